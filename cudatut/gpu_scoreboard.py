"""A ladder's scoreboard on a reader's GPU: `python -m cudatut results gemm`.

Every rung that this GPU supports is checked, then all are timed beside the vendor's library at each size, taking turns in
one process; `cudatut.gpu_results` keeps what came of it.
"""

import contextlib
import gc
import io
from collections.abc import Callable, Sequence
from typing import Any

from . import gpu_results
from .errors import CheckError, KernelCompileError, LaunchError, OutOfDeviceMemory
from .gpu import device, supports
from .ladder import Ladder, Rung, load, shared
from .timing import bench


def rungs_of(ladder: Ladder) -> list[Rung]:
    """The rungs of a ladder, those of an earlier part that its module lends it (`earlier_rungs`) first."""
    earlier = getattr(shared(f"{ladder.part}/ladder"), "earlier_rungs", list)
    return [*earlier(), *(ladder[name] for name in ladder.names)]


def sort_out(
    rungs: Sequence[Rung], capability: tuple[int, int]
) -> tuple[list[Rung], dict[str, str]]:
    """The rungs that a GPU of this compute capability can run; and why it cannot run the others, by name."""
    able, left_out = [], {}
    for rung in rungs:
        requires = rung.options.get("requires", "sm_75")
        if supports(capability, requires):
            able.append(rung)
        else:
            left_out[rung.name] = f"needs {requires}"
    return able, left_out


def measure(
    ladder: Ladder, sizes: Sequence[dict[str, Any]], say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Check and time all rungs at each size; returns the entry for `results/<gpu>.json`, without its certificate.

    A rung that does not run here, or whose result is wrong, is left out, with the reason, and said so; a size for which
    the memory is too small is skipped. Raises GpuResultsError if nothing could be measured, NoGpuError.
    """
    rungs, left_out = sort_out(rungs_of(ladder), device().compute_capability)
    contests = []
    for size in sizes:
        try:
            benchmark = _contest(ladder, rungs, size, left_out)
        except (OutOfDeviceMemory, MemoryError) as error:
            say(f"{gpu_results.size_name(size)} is skipped: {error}")
            continue
        contests.append({"size": dict(size), "benchmark": benchmark.json()})
        gc.collect()  # the arrays of this size, before those of the next are made
    if not contests:
        raise gpu_results.GpuResultsError(f"{ladder.name}: no size could be measured on this GPU")
    for name, why in left_out.items():
        say(f"{name} is left out: {why}")
    files = [rung.path for rung in rungs if rung.name not in left_out]
    # A rung may be launched by a module of its own, which then counts as well.
    files += [
        f"{ladder.part}/{rung.options['launch']}.py"
        for rung in rungs
        if rung.name not in left_out and "launch" in rung.options
    ]
    return {"sources": gpu_results.sources(files), "left_out": left_out, "contests": contests}


def _contest(
    ladder: Ladder, rungs: Sequence[Rung], size: dict[str, Any], left_out: dict[str, str]
) -> Any:
    problem = ladder.problem(**size)
    runs = {}
    for rung in rungs:
        if rung.name in left_out:
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # a table for each passed check
                problem.check(rung)
            runs[rung.name] = problem.launcher(rung)
        except CheckError as error:
            left_out[rung.name] = f"wrong result: {str(error).splitlines()[0]}"
        except (LaunchError, KernelCompileError) as error:  # needs more than this GPU has
            left_out[rung.name] = str(error).splitlines()[0]
    return bench(
        {**runs, **problem.vendors()},
        bytes=problem.bytes,
        flops=problem.flops,
        name=f"{ladder.name}, {gpu_results.size_name(size)}",
    )


def main(name: str) -> None:
    """What `python -m cudatut results` does with a ladder's name."""
    ladder = load(name)
    gpu = gpu_results.gpu_here()
    print(f"{ladder.name} on {gpu['name']}", flush=True)
    entry = measure(ladder, ladder.scoreboard)
    command = f"python -m cudatut results {name}"
    entry = {"certificate": gpu_results.certificate(command, entry["sources"]), **entry}
    print(f"kept in {gpu_results.save(gpu, 'scoreboards', name, entry)}")


def listing() -> list[str]:
    """A line for each thing that is kept, of whatever GPU. Raises GpuResultsError for a file that is none of ours."""
    lines = []
    for found in gpu_results.load_all():
        lines.append(found["gpu"]["name"])
        for name, board in found["scoreboards"].items():
            rows = board["contests"][-1]["benchmark"]["rows"]
            best = min((row for row in rows if not row["vendor"]), key=lambda row: row["median_us"])
            lines.append(
                f"  {name}: scoreboard, {len(board['contests'])} sizes, {_when(board)}; "
                f"first at {gpu_results.size_name(board['contests'][-1]['size'])}: {best['name']}{_stale(board)}"
            )
        for name, sizes in found["tuned"].items():
            for size, entry in sizes.items():
                chosen = " ".join(f"{key}={value}" for key, value in entry["choice"].items())
                lines.append(f"  {name}: tuned for {size}, {_when(entry)}: {chosen}{_stale(entry)}")
    return lines


def _when(entry: dict[str, Any]) -> str:
    return entry["certificate"]["recorded_at"][:10]


def _stale(entry: dict[str, Any]) -> str:
    files = gpu_results.changed(entry)
    return f" (changed since: {', '.join(files)})" if files else ""
