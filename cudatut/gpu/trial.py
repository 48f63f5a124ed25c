"""A reader's own kernel on a ladder: `python -m cudatut try reduction my_reduce.cu`.

It is compiled, checked on the same inputs as every rung, timed beside all of them in one process, and ranked; a few
counters of Nsight Compute then say what to look at next.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cudatut import paths
from cudatut.gpu.device import activate
from cudatut.gpu.ladder import Rung, RungError, load_ladder, read_rung
from cudatut.gpu.profile import profile
from cudatut.results import Benchmark, Profile

_COUNTERS = {
    "dram": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "bytes": "smsp__sass_data_bytes_mem_global_op_ld.sum",
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "lanes": "smsp__thread_inst_executed_per_inst_executed.ratio",
}


@dataclass(frozen=True)
class Verdict:
    """How a reader's kernel did: its row in the contest, its rank (1 is fastest), and what its counters suggest."""

    rung: Rung
    contest: Benchmark
    rank: int
    hints: list[str]

    def text(self) -> str:
        """Rank and hints, as lines for a terminal."""
        rows = sorted(self.contest.rows, key=lambda row: row.median_us)
        names = [row.name for row in rows]
        ahead = f", behind {names[self.rank - 2]}" if self.rank > 1 else ""
        behind = f", ahead of {names[self.rank]}" if self.rank < len(names) else ""
        lines = [f"{self.rung.name}: rank {self.rank} of {len(names)}{ahead}{behind}"]
        return "\n".join([*lines, *(f"  - {hint}" for hint in self.hints)])


def attempt(ladder_name: str, file: str) -> Verdict:
    """Check, time and rank the kernel in `file` on a ladder ('reduction', 'matmul'); shows results as they come.

    Raises RungError (no such ladder, no @rung line), FileNotFoundError, KernelCompileError, CheckError (a wrong result,
    naming the input), LaunchError, NoGpuError.
    """
    ladder, rung = load_ladder(ladder_name), _readers_rung(ladder_name, file)
    activate()  # before random data is made for nothing
    if rung.name in ladder.names:
        rung = replace(rung, name=f"your {rung.name}")
    for arguments in ladder.trials:
        ladder.problem(**arguments).check(rung)
    contest = ladder.bench(
        [*ladder.names, rung], name=f"{ladder.name}: {rung.name}", **ladder.contest
    )
    rank = 1 + sum(row.median_us < contest[rung.name].median_us for row in contest.rows)
    counters = _counters(ladder_name, rung)
    return Verdict(rung, contest, rank, hints(counters, contest[rung.name].of_peak))


def launch_once(ladder_name: str, file: str) -> None:
    """Solve the contest's instance once with the kernel in `file`: what the profiler watches."""
    ladder = load_ladder(ladder_name)
    ladder.problem(**ladder.contest).launcher(_readers_rung(ladder_name, file))()


def _readers_rung(ladder_name: str, file: str) -> Rung:
    """The rung in a reader's file, which may include what the part's own files include (`edges.cuh`)."""
    path, part = Path(file), paths.examples_dir() / load_ladder(ladder_name).part
    if path.suffix != ".cu":
        raise RungError(
            f"{file} is no .cu file: a kernel is tried in CUDA C++, with a line `// @rung kernel=NAME ...` in front"
        )
    return replace(read_rung(path.resolve()), beside=str(part))


def _counters(ladder_name: str, rung: Rung) -> Profile | None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "launch.py"
        call = f"launch_once({ladder_name!r}, {rung.path!r})"
        script.write_text(f"from cudatut.gpu.trial import launch_once\n{call}\n")
        return profile(str(script), kernel=rung.kernel, metrics=list(_COUNTERS.values()))


def hints(counters: Profile | None, of_peak: float | None) -> list[str]:
    """What the counters of one launch suggest, most pressing first; empty if nothing stands out.

    of_peak: share of this GPU's measured limit that the benchmark found, or None.
    """
    if counters is None:
        return ["install Nsight Compute (ncu) to see what its counters suggest"]
    value = {name: counters[metric] for name, metric in _COUNTERS.items()}
    found = list(_hints(value, of_peak))
    if not found and value["dram"] < 80:
        more = "more bytes in flight per thread (several loads before the first use, 16 bytes each)"
        found = [f"memory waits for the kernel: {more}"]
    return found


def _hints(value: dict[str, float], of_peak: float | None) -> Iterator[str]:
    if of_peak is not None and of_peak > 0.95:
        yield f"it reaches {of_peak:.0%} of this GPU's measured limit: only fewer bytes would make it faster"
    wasted = 32 * value["sectors"] / value["bytes"] if value["bytes"] else 0
    if wasted > 1.2:
        yield f"global loads move {wasted:.1f} bytes for each byte used: let neighboring lanes read neighboring words"
    if value["requests"] and value["bytes"] / value["requests"] < 32 * 4 * 0.9:
        yield "a load brings less than 4 bytes per lane: some lanes idle while loading"
    if value["conflicts"] > 0.05 * value["requests"]:
        yield f"{value['conflicts']:,.0f} shared-memory bank conflicts: change the stride, pad, or swizzle"
    if value["lanes"] < 24:
        yield f"only {value['lanes']:.1f} of 32 lanes work per instruction: let whole warps take the same branch"
    if value["warps"] < 50 and value["dram"] < 80:
        yield f"{value['warps']:.0f} % of the warp slots are filled: fewer registers or less shared memory per block"
