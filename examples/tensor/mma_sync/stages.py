"""How many stages of a kernel fit in the shared memory of this GPU.

    rungs = fitting(LADDER.upto("mma_spread"))  # by name, some with fewer

A block may have 227 KiB on an H100, 163 KiB on an A100, 99 KiB on a GeForce of
the 30 series or newer.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

import cudatut as ct

LEAST = 2  # one is multiplied while another arrives
SYSTEM = 1024  # bytes of each block that CUDA itself needs, since Ampere


def room(blocks: int = 1) -> int:
    """Bytes of shared memory that a block may have here, if `blocks` of them
    are to share an SM.
    """
    gpu = ct.device()
    share = gpu.shared_per_sm // blocks - SYSTEM
    return min(gpu.shared_per_block_optin, share)


def stages_of(rung: ct.Rung) -> int:
    """The first number of the template; 0 for a kernel without stages."""
    found = re.search(r"<(\d+)", rung.kernel)
    return int(found[1]) if found and "stage" in rung.options else 0


def with_stages(rung: ct.Rung, count: int) -> ct.Rung:
    """Another instance of the template."""
    kernel = re.sub(r"<\d+", f"<{count}", rung.kernel, count=1)
    return replace(rung, kernel=kernel)


def fitting(rungs: Iterable[ct.Rung]) -> dict[str, ct.Rung]:
    """The rungs by name, those up to mma_spread, each with its stages or as
    many as fit. One that has fewer is noted, and so is one that is left out
    because not even two fit.
    """
    found = {}
    for rung in rungs:
        if wanted := stages_of(rung):
            count = min(wanted, room() // rung.number("stage"))
            if count < wanted:
                note(rung.name, wanted, count)
            if count < LEAST:
                continue
            rung = with_stages(rung, count)
        found[rung.name] = rung
    return found


def variants(rung: ct.Rung, counts: Iterable[int]) -> dict[str, ct.Rung]:
    """`name, 3 stages`: the rung with that many; those that do not fit are left
    out, after a note.
    """
    found = {}
    for count in counts:
        name = f"{rung.name}, {count} stages"
        if count * rung.number("stage") <= room():
            found[name] = with_stages(rung, count)
        else:
            note(name, count, 0)
    return found


def note(
    name: str, wanted: int, count: int, least: int = LEAST, blocks: int = 1
) -> None:
    """Say that a kernel has fewer stages than it wants, or, with less than the
    least, that it has no row.
    """
    why = (
        f"{wanted} do not fit in the {room(blocks) / 1024:.0f} KiB of shared "
        f"memory that a block may have on {ct.device().name}"
    )
    if blocks > 1:
        why += f" where {blocks} share an SM"
    if count < least:
        ct.show(f"no row for {name}: of its stages, {why}")
    else:
        ct.show(f"{name} has {count} stages here: {why}")
