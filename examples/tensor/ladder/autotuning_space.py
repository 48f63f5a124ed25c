"""What `python -m cudatut tune tensor` searches: tiles of final.cu, stages, clusters, boxes, the order of tiles, and how
what is left of them is shared. The search itself is gemm/tuner.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from cudatut.book.tensor.gemm import gemm

import cudatut as ct

from cudatut.book.tensor.ladder.ladder import LADDER

# --8<-- [start:ranges]
RANGES = {
    "columns": (64, 128, 192, 256),  # of a tile, whose rows are 128
    "stages": (3, 4, 5, 6, 7, 8, 9, 10),
    "cluster": (1, 2),
    "buffers": (1, 2, 3, 4),  # boxes through which a consumer stores
}
GROUPS = (0.5, 1, 2)  # times what `gemm.group_for` says
# --8<-- [end:ranges]


# --8<-- [start:rules]
def whole_boxes(tile: gemm.Tile, shared: int) -> bool:
    """A block of a cluster brings whole boxes of 64 columns, and stores no
    more of them than a tile has."""
    per_block = 64 * tile.cluster
    return tile.columns % per_block == 0 and tile.buffers <= tile.columns // 64


def fits_shared(tile: gemm.Tile, shared: int) -> bool:
    return tile.shared <= shared


def deep(tile: gemm.Tile, shared: int) -> bool:
    """No room for two stages more: what waits for memory wants all of it."""
    more = tile._replace(stages=tile.stages + 2)
    return not fits_shared(more, shared)


RULES = {
    "whole boxes": whole_boxes,
    "shared memory": fits_shared,
    "as deep as fits": deep,
}
# --8<-- [end:rules]


def prune(shared: int) -> tuple[list[tuple[str, int]], list[gemm.Tile]]:
    """How many tiles are left after each rule, 'all tiles' first; and those left in the end.

    shared: bytes of shared memory that a block of this GPU can have.
    """
    left = [gemm.Tile(*numbers) for numbers in product(*RANGES.values())]
    steps = [("all tiles", len(left))]
    for name, rule in RULES.items():
        left = [tile for tile in left if rule(tile, shared)]
        steps.append((name, len(left)))
    return steps, left


@dataclass(frozen=True)
class Candidate:
    """A plan, and how many tiles stand below each other in its order."""

    plan: gemm.Plan
    group: int

    @property
    def label(self) -> str:
        tile, plan = self.plan.tile, self.plan
        rest = f", shares of {plan.share} steps" if plan.share else ""
        rest += ", read by threads" * plan.plain
        return (
            f"{gemm.ROWS}x{tile.columns}, {tile.stages} stages, cluster {tile.cluster}, {tile.buffers} boxes, "
            f"group {self.group}{rest}"
        )

    @property
    def numbers(self) -> dict[str, Any]:
        """What tells one candidate from another."""
        plan = self.plan._asdict()
        tile = plan.pop("tile")
        return {
            **tile._asdict(),
            **plan,
            "group": self.group,
        }


class Space:
    """What the tuner has to know of products on tensor cores: candidates, how one is compiled, launched and checked."""

    name = "tensor"
    requires = "sm_90a"
    source = gemm.SOURCE
    sizes = ({"m": 4096, "n": 4096, "k": 4096},)
    axes = ("m", "n", "k")

    def prune(
        self, gpu: Any, size: dict[str, int]
    ) -> tuple[list[tuple[str, int]], list[Candidate]]:
        """Steps as of `prune`, and the candidates for a product of this size on a GPU (`ct.device()`)."""
        steps, tiles = prune(gpu.shared_per_block_optin)
        found = []
        for tile in tiles:
            most = ct.cdiv(
                size["m"], gemm.ROWS * tile.cluster
            )  # tiles below each other
            about = gemm.group_for(tile, gpu.sm_count)
            groups = {min(most, max(1, round(about * by))) for by in GROUPS}
            for plan in gemm.plans(**size, tile=tile, sms=gpu.sm_count):
                found += [Candidate(plan, group) for group in sorted(groups)]
        return [*steps, ("with orders and shares", len(found))], found

    def instance(self, candidate: Candidate) -> tuple[Any, ...]:
        """Source, kernel and architecture, to be compiled ahead."""
        plan = candidate.plan
        end = gemm.end_of(plan, mapped=True)
        name = gemm.kernel_name(
            plan.tile, False, False, "uint16", plan.plain, end
        )
        return self.source, name, None, (), self.requires

    def problem(self, size: dict[str, int]) -> Any:
        """Random matrices of this size, in bf16."""
        return LADDER.problem(**size)

    def trials(self) -> list[Any]:
        """Small products on which a candidate has to be right: extents that no tile divides, rows that begin anywhere."""
        return [
            LADDER.problem(520, 1032, 704, integers=True),
            LADDER.problem(
                *ct.size((257, 515), (130, 260)), 131, integers=True
            ),
        ]

    def launcher(
        self, problem: Any, candidate: Candidate
    ) -> Callable[[], None]:
        """A callable that multiplies once; `.kernel`, `.block` and `.shared` say what it launches.

        A plan is made for one size. For another, a trial, the same tile shares the work in the same way.
        """
        p, plan, sms = problem, candidate.plan, ct.device().sm_count
        own = [
            one._replace(plain=plan.plain)
            for one in gemm.plans(p.m, p.n, p.k, plan.tile, sms)
        ]
        if plan not in own:
            plan = own[-1] if plan.share else own[0]
        run = gemm.prepare(p.a, p.b, p.c, plan=plan, group=candidate.group)
        end = gemm.end_of(
            plan, mapped=p.n % 8 == 0, steps=ct.cdiv(p.k, gemm.DEPTH)
        )
        run.kernel = gemm.kernel(
            plan.tile, False, False, "uint16", plan.plain, end
        )
        run.block, run.shared = 128 * (1 + gemm.CONSUMERS), plan.tile.shared
        # What the same machine code does in different ways.
        run.splits, run.whole = (
            (plan.share, candidate.group),
            plan.whole,
        )
        return run

    def default(self, problem: Any, gpu: Any) -> Candidate:
        """What `gemm` chooses untuned, by its costs."""
        p = problem
        plan = gemm.choose(
            p.m, p.n, p.k, gpu.sm_count, gemm.unaligned_bytes(p.a, p.b)
        )
        tile = plan.tile
        return Candidate(plan, gemm.group_for(tile, gpu.sm_count))

    def check(self, problem: Any, candidate: Candidate) -> None:
        """Multiply once into poisoned memory and compare with the reference. Raises CheckError."""
        ct.poison(problem.c)
        self.launcher(problem, candidate)()
        problem.compare(
            f"{candidate.label}, {problem.m} x {problem.n} x {problem.k}"
        )

    def lines(self, size: dict[str, int], choice: Candidate) -> list[str]:
        """What to write into the tables of gemm.py, and what its costs say of the choice."""
        plan = choice.plan
        unaligned = sum(
            2 * rows * columns
            for rows, columns in (
                (size["m"], size["k"]),
                (size["k"], size["n"]),
            )
            if columns % 8
        )
        known = (
            "which stands there"
            if plan.tile in gemm.TILES
            else "which is new there"
        )
        cycles = gemm.cycles(
            plan, size["k"], unaligned, boxes=size["n"] % 8 == 0
        )
        return [
            f"TILES in examples/tensor/gemm/gemm.py: {plan.tile}, {known}",
            f"COSTS say {cycles:,.0f} cycles: {gemm.COSTS}",
        ]


SPACE = Space()
