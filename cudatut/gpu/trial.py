"""A reader's own kernel on a ladder: `python -m cudatut try reduction my_reduce.cu`.

It is compiled, checked on the same inputs as every rung, timed beside all of them in one process, and ranked; a few
counters of Nsight Compute then say what to look at next.
"""

import difflib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from cudatut import words
from cudatut.gpu.device import activate, require
from cudatut.gpu.ladder import Rung, RungError, load_ladder, read_rung
from cudatut.gpu.profile import profile
from cudatut.results import Benchmark, Profile, show

_say = words.section("trial")
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
    """How a reader's kernel did: its row in the contest, its rank (1 is fastest), what its counters suggest, and the inputs
    that it does not claim to take."""

    rung: Rung
    contest: Benchmark
    rank: int
    hints: list[str]
    refused: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Rank and hints, as lines for a terminal."""
        rows = sorted(self.contest.rows, key=lambda row: row.median_us)
        names = [row.name for row in rows]
        ahead = _say("behind", name=names[self.rank - 2]) if self.rank > 1 else ""
        behind = _say("ahead", name=names[self.rank]) if self.rank < len(names) else ""
        own = {"name": self.rung.name, "rank": self.rank, "count": len(names)}
        lines = [_say("rank", ahead=ahead, behind=behind, **own)]
        lines += [_say("not checked", why=why) for why in self.refused]
        return "\n".join([*lines, *(f"  - {hint}" for hint in self.hints)])


def attempt(ladder_name: str, file: str) -> Verdict:
    """Check, time and rank the kernel in `file` on a ladder ('reduction', 'transpose'); shows results as they come.

    Raises RungError (no such ladder, no @rung line, an option that the ladder does not know, a file that is not UTF-8, a
    kernel that does not take the contest's input), FileNotFoundError, KernelCompileError, CheckError (a wrong result, naming
    the input), LaunchError, NoGpuError, UnsupportedGpuError.
    """
    ladder, rung = load_ladder(ladder_name), _readers_rung(ladder_name, file)
    if needs := rung.options.get("requires"):
        show(_say("needs", file=file, needs=needs))
    activate()  # before random data is made for nothing
    if needs:
        require(needs)
    if rung.name in ladder.names:
        rung = replace(rung, name=_say("your rung", name=rung.name))
    if why := ladder.refuses(rung, **ladder.contest):
        raise RungError(_say("refused", why=why))
    refused = []
    for arguments in [*ladder.trials, *ladder.more_trials]:
        if why := ladder.refuses(rung, **arguments):
            refused.append(why)
        else:
            ladder.problem(**arguments).check(rung)
    contest = ladder.bench(
        [*ladder.names, rung], name=f"{ladder.name}: {rung.name}", **ladder.contest
    )
    rank = 1 + sum(row.median_us < contest[rung.name].median_us for row in contest.rows)
    counters = _counters(ladder_name, rung)
    return Verdict(rung, contest, rank, hints(counters, contest[rung.name].of_peak), refused)


def launch_once(ladder_name: str, file: str) -> None:
    """Solve the contest's instance once with the kernel in `file`: what the profiler watches."""
    ladder = load_ladder(ladder_name)
    ladder.problem(**ladder.contest).launcher(_readers_rung(ladder_name, file))()


def _readers_rung(ladder_name: str, file: str) -> Rung:
    """The rung in a reader's file, which may include what the ladder's own files include (`edges.cuh`)."""
    path, ladder = Path(file), load_ladder(ladder_name)
    if path.suffix != ".cu":
        raise RungError(_say("no cuda file", file=file))
    if path.is_file():
        _text(path)
    rung = replace(read_rung(path.resolve()), beside=str(ladder.where))
    _check_options(file, rung, ladder.name)
    _check_requires(file, rung, ladder.where)
    return rung


def _text(path: Path) -> str:
    """A source of the reader's. Raises RungError for one in another encoding than UTF-8, such as GBK."""
    raw = path.read_bytes()
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        place = {"byte": error.start + 1, "value": raw[error.start], "line": line}
        raise RungError(_say("no utf-8", path=path, **place)) from None


# What an `@rung` line may say beside `kernel`, by ladder; the page 'Writing a chapter' says what it means.
OPTIONS = {
    "matmul": ("block", "tile", "launch"),
    "reduction": ("block", "blocks", "per_thread", "vectors", "grid", "launches", "launch"),
    "gemm": ("block", "tile", "launch", "shared"),
    "tensor": ("block", "tile", "stage", "box_a", "cluster", "boxes", "multiples", "launch"),
    "transpose": ("block", "tile", "shared", "align", "group"),
    "sort": ("block", "per_thread", "shared"),
    "scan": ("block", "per_thread", "vectors", "launches"),
}
_OF_EVERY_RUNG = ("requires",)  # read from a line of its own


def _check_options(file: str, rung: Rung, ladder: str) -> None:
    """Raise RungError for an option that the ladder does not know: the launch would go by a default, without a word."""
    known = OPTIONS.get(ladder)
    if known is None:
        raise RungError(
            f"{file}: cudatut/gpu/trial.py does not say which options the ladder {ladder!r} knows; add them to OPTIONS"
        )
    for name, value in rung.options.items():
        if name not in (*known, *_OF_EVERY_RUNG):
            close = difflib.get_close_matches(name, known, 1)
            meant = _say("did you mean", name=close[0]) if close else ""
            own = {"file": file, "ladder": ladder, "name": name, "known": _say("joint").join(known)}
            raise RungError(_say("unknown option", meant=meant, **own))
        if not value:
            raise RungError(_say("no value", file=file, name=name))


# What only some GPUs have, most demanding first, and the line that says so.
_NEEDS = {
    r"\bwgmma\b|\bsetmaxnreg\b": "sm_90a",
    r"\bcp\.async\.bulk\b|\bCUtensorMap\b|\b__cluster_dims__\b|\bmbarrier\.try_wait\b": "sm_90",
    r"\bcp\.async\b|\bm16n8k16\b": "sm_80",
}
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def _check_requires(file: str, rung: Rung, beside: Path) -> None:
    """Raise RungError for a file that says nothing of the GPU it needs, but uses what only newer ones have.

    Without that line it would be compiled for this GPU in general, and what fails then is PTX that the reader never wrote.
    """
    if "requires" in rung.options:
        return
    todo, text = [Path(rung.path)], ""
    for source in todo:  # which grows
        found = _text(source)
        text += found
        for name in _INCLUDE.findall(found):
            header = next(
                (one / name for one in (source.parent, beside) if (one / name).is_file()), None
            )
            if header and header not in todo:
                todo.append(header)
    code = re.sub(r"//.*|/\*.*?\*/", "", text)
    for pattern, needs in _NEEDS.items():
        if used := re.search(pattern, code):
            raise RungError(_say("unsaid", file=file, used=used[0], needs=needs))


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
        return [_say("no ncu")]
    value = {name: counters[metric] for name, metric in _COUNTERS.items()}
    found = list(_hints(value, of_peak))
    if not found and value["dram"] < 80 and value["requests"]:
        found = [_say("waits")]
    return found


def _hints(value: dict[str, float], of_peak: float | None) -> Iterator[str]:
    if of_peak is not None and 0.95 < of_peak < 1.05:  # beyond, the limit is that of other units
        yield _say("at the limit", share=of_peak)
    wasted = 32 * value["sectors"] / value["bytes"] if value["bytes"] else 0
    if wasted > 1.2:
        yield _say("wasted", bytes=wasted)
    if value["requests"] and value["bytes"] / value["requests"] < 32 * 4 * 0.9:
        yield _say("narrow")
    if value["conflicts"] > 0.05 * value["requests"]:
        yield _say("conflicts", count=value["conflicts"])
    if value["lanes"] < 24:
        yield _say("lanes", lanes=value["lanes"])
    # Where threads load nothing themselves, few of them can be enough.
    if value["warps"] < 50 and value["dram"] < 80 and value["requests"]:
        yield _say("warps", percent=value["warps"])
