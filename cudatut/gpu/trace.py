"""What a program asked of the GPU, and what it waited for: `python -m cudatut trace SCRIPT`, and `ct.trace`.

CUPTI, the library beneath NVIDIA's profilers, notes every kernel, copy and call of the CUDA API with its begin and its end;
`cupti-python` hands these notes to Python. From them come two tables: how long the GPU worked at what, and how long the
host stood in which call, with the part of it during which the GPU was busy with earlier work that the call waited for.
"""

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cudatut import catalog, paths, results, tool, words
from cudatut.errors import CudatutError, NoGpuError, ToolMissing
from cudatut.fingerprint import ran
from cudatut.gpu import cupti, device
from cudatut.gpu.running import run_file

# Kinds of CUPTI's records, from cupti_activity.h.
_MEMCPY, _MEMSET, _DRIVER, _RUNTIME, _PEER_COPY = 1, 2, 4, 5, 22
KINDS = (_DRIVER, _RUNTIME, cupti.KERNEL, _MEMCPY, _MEMSET, _PEER_COPY)
# CUpti_ActivityMemcpyKind. A is a CUDA array.
_COPIES = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
}  # fmt: skip
# The clocks of GPU and host are matched to about a microsecond.
SLACK_NS = 5_000
# What makes the context; without such a call, the first of the runtime API that needs one does.
_MAKES_THE_CONTEXT = (
    re.compile(r"cuCtxCreate|cuDevicePrimaryCtxRetain"),
    re.compile(r"cuda(?!Get|RuntimeGet|DriverGet|Peek|DeviceGet)"),
)
_MADE = "made the context"  # what the call waited for that made it
_say = words.section("trace")
_ONLY_ASKS_OR_ENQUEUES = re.compile(r"Launch|Async|Record|Query|Get|SetLimit|WaitEvent")


@dataclass(frozen=True)
class Span:
    """One thing that the GPU did (a kernel, a copy or a memset), or one call of the API on the host. Times in nanoseconds.

    call: the number that CUPTI gave the call, or the call which asked for the work. bytes: copied or set.
    """

    name: str
    start: int
    end: int
    call: int
    bytes: int | None = None


AnySpan = TypeVar("AnySpan", bound=Span)


@dataclass
class Row:
    """Everything of one name: how often, and milliseconds. `bytes`: copied or set, in all.

    Of calls, waiting_ms: the part of total_ms during which the GPU did other work that ended before the call did;
    waited_for: the work that most of it went to, or "made the context".
    """

    name: str
    calls: int
    total_ms: float
    bytes: int | None = None
    waiting_ms: float = 0.0
    waited_for: str = ""


@dataclass
class Trace:
    """The two tables, each with the largest total first. Under a sanitizer or profiler nothing is traced: both are empty."""

    gpu: list[Row] = field(default_factory=list)
    api: list[Row] = field(default_factory=list)

    def __getitem__(self, name: str) -> Row:
        """The row of a kernel (by its plain name), a copy ("copy DtoH") or a call ("cuMemcpyDtoH").

        Raises KeyError. While a tool runs this process: a row of NaNs.
        """
        known = [*self.gpu, *self.api]
        for row in known:
            if name in (row.name, row.name.partition("<")[0]):
                return row
        if tool.running():
            nan = float("nan")
            return Row(name, 0, nan, 0, nan)
        raise KeyError(f"no {name!r} in this trace: it has {[row.name for row in known]}")

    def show(self, rows: int | None = None) -> None:
        """The two tables as results: rows by name, or the first so many of each; times in milliseconds."""
        if not self.gpu and not self.api:
            results.show(_say("saw nothing"))
        units, waiting = {_say("total"): "ms", _say("average"): "ms"}, _say("waiting")
        if self.gpu:
            table = {
                row.name: _times(row) | {"MB": None if row.bytes is None else row.bytes / 1e6}
                for row in self.gpu[:rows]
            }
            results.table(_say("gpu"), table, corner=_say("work"), units=units | {"MB": "MB"})
        if self.api:
            table = {
                row.name: _times(row)
                | {waiting: round(row.waiting_ms, 4), _say("waited for"): _waited_for(row)}
                for row in self.api[:rows]
            }
            results.table(_say("api"), table, corner=_say("call"), units=units | {waiting: "ms"})


def _times(row: Row) -> dict[str, Any]:
    average = row.total_ms / row.calls
    values = {"calls": row.calls, "total": round(row.total_ms, 4), "average": round(average, 4)}
    return {_say(name): value for name, value in values.items()}


def _waited_for(row: Row) -> str | None:
    return _say("context") if row.waited_for == _MADE else row.waited_for or None


# --- from records to rows ----------------------------------------------------------------------------------------------


def summarize(works: Iterable[Span], calls: Iterable[Span]) -> Trace:
    """Rows by name, and what each call waited for. Pure: needs neither CUPTI nor a GPU."""
    works, calls = sorted(works, key=lambda work: work.end), list(calls)
    gpu, api = _rows(works), _rows(calls)
    shares = {name: Counter[str]() for name in api}
    for call in calls:
        for work, start, end in waits(works, call):
            shares[call.name][work.name] += end - start
    for name, row in api.items():
        row.waiting_ms = shares[name].total() / 1e6
        row.waited_for = max(shares[name], key=shares[name].__getitem__, default="")
    if maker := _context_maker(calls):
        api[maker.name].waited_for = _MADE
    return Trace(*(sorted(rows.values(), key=lambda row: -row.total_ms) for rows in (gpu, api)))


def _rows(spans: Iterable[Span]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for span in spans:
        row = rows.setdefault(span.name, Row(span.name, 0, 0.0))
        row.calls += 1
        row.total_ms += (span.end - span.start) / 1e6
        if span.bytes:
            row.bytes = (row.bytes or 0) + span.bytes
    return rows


def waits(ordered: Sequence[AnySpan], call: Span) -> Iterator[tuple[AnySpan, int, int]]:
    """The work during which a call did not return, with the begin and the end of each wait, the last wait first.

    ordered: by their ends. A call waited for work of other calls that went on while it stood, and ended before it (or it
    did not wait for it). Calls that only ask or enqueue wait for nothing. Where several things ran at the same time, the
    one that ended last counts.
    """
    if _ONLY_ASKS_OR_ENQUEUES.search(call.name):
        return
    covered = call.end  # from the end backwards, so that no moment counts twice
    for work in reversed(ordered):
        own, later = work.call == call.call, work.end > call.end + SLACK_NS
        start, end = max(work.start, call.start), min(work.end, covered)
        if not own and not later and end > start:
            yield work, start, end
            covered = start


def _context_maker(calls: list[Span]) -> Span | None:
    for makes in _MAKES_THE_CONTEXT:
        if found := [call for call in calls if makes.match(call.name)]:
            return min(found, key=lambda call: call.start)
    return None


# --- from CUPTI to records ---------------------------------------------------------------------------------------------


def fields(record: Any) -> tuple[Any, ...]:
    """What `read` needs of one record of CUPTI."""
    names = {_DRIVER: ["cbid"], _RUNTIME: ["cbid"], cupti.KERNEL: ["name"], _MEMSET: ["bytes"]}
    more = names.get(record.kind, ["bytes", "copy_kind"])
    return tuple(getattr(record, name) for name in ("start", "end", "correlation_id", *more))


def read(
    notes: Iterable[tuple[int, tuple[Any, ...]]], name_of_call: Callable[[int, int], str]
) -> tuple[list[Span], list[Span]]:
    """What the GPU did, and calls, from (kind, fields of the record); name_of_call(kind, number) knows the names of the API.

    A record whose work never ended (CUPTI gives it an end of 0) is left out.
    """
    works, calls = [], []
    for kind, (start, end, number, *rest) in notes:
        if end < start or end == 0:
            continue
        if kind in (_DRIVER, _RUNTIME):
            calls.append(Span(plain_name(name_of_call(kind, rest[0])), start, end, number))
        elif kind == cupti.KERNEL:
            works.append(Span(cupti.demangled(rest[0]), start, end, number))
        else:
            copied = _COPIES.get(rest[-1], "of an unknown kind")
            name = "memset" if kind == _MEMSET else f"copy {copied}"
            works.append(Span(name, start, end, number, rest[0]))
    return works, calls


def plain_name(call: str) -> str:
    """A function's name as one writes it: `cuMemcpyDtoH_v2` is cuMemcpyDtoH, `cudaLaunchKernel_v7000` cudaLaunchKernel."""
    return re.sub(r"(_v\d+|_ptsz|_ptds)+$", "", call)


# --- running a program -------------------------------------------------------------------------------------------------


def run(script: Path, arguments: Sequence[str] = ()) -> tuple[int, Trace]:
    """Run a script in this process as `python SCRIPT ARGUMENTS` would, traced; its exit status, and what was seen.

    Raises ToolMissing without cupti-python, NoGpuError. An exception of the script is printed as Python would.
    """
    notes: list[tuple[int, tuple[Any, ...]]] = []

    def hear(records: list[Any]) -> None:
        # Copied, for they lie in a buffer that CUPTI takes back.
        notes.extend((record.kind, fields(record)) for record in records)

    status, name_of_call = watch(script, arguments, KINDS, hear)
    return status, summarize(*read(notes, name_of_call))


def watch(
    script: Path,
    arguments: Sequence[str],
    kinds: Iterable[int],
    hear: Callable[[list[Any]], None],
) -> tuple[int, Callable[[int, int], str]]:
    """Run a script while `hear` is given CUPTI's records of these kinds; its exit status, and what `read` calls
    name_of_call. Raises as `run` does.
    """
    # Whether the driver shows a GPU is not asked: that would call cuInit, which is the program's to call.
    driver = device.installed_driver()
    if driver is None:
        raise NoGpuError(_say("nothing to trace", why=device.why_no_gpu()))
    if "pycuda" in sys.modules:
        raise CudatutError(_say("too late"))
    with cupti.listen(kinds, hear) as module:
        status = run_file(script, arguments)
        sys.stdout.flush()
        for kind in (_DRIVER, _RUNTIME):  # what follows is not the program's
            module.activity_disable(kind)

    def name_of_call(kind: int, number: int) -> str:
        domain = module.CallbackDomain
        api = domain.DRIVER_API if kind == _DRIVER else domain.RUNTIME_API
        return module.get_callback_name(api, number)

    return status, name_of_call


def find(name: str) -> Path:
    """The script of this name: a file, or an example such as start/hello. Raises CudatutError."""
    path = Path(name)
    if path.is_file():
        return path.resolve()
    try:
        return catalog.get(name).path
    except catalog.UnknownExampleError as error:
        raise CudatutError(_say("no file", name=name, error=error)) from error


def main(arguments: Sequence[str]) -> int:
    """`python -m cudatut.gpu.trace FILE SCRIPT ...`, which `trace` starts: the rows as JSON instead of two tables."""
    into, script, *rest = arguments
    status, found = run(Path(script).resolve(), rest)
    Path(into).write_text(json.dumps(asdict(found)), encoding="utf-8")
    return status


def trace(
    script: str | None = None,
    *arguments: str,
    source: str | None = None,
    rows: int = 8,
    timeout_s: float = 120,
) -> Trace | None:
    """Run a program in a process of its own, traced, and show what it printed and two tables: GPU work, and API calls.

    script: a Python file (or an example's name) with its arguments; or source: the text of one. rows: of each table.
    The tables' times are in milliseconds. Returns the Trace, `found["cuMemcpyDtoH"].waiting_ms`; or None after a note
    when cupti-python is missing; while an example is recorded that is a ToolMissing. While a tool runs this process
    nothing is run. Raises CudatutError when the program fails, with what it printed.
    """
    if (script is None) == (source is None):
        raise TypeError("trace takes a script, or source=..., and not both")
    path = None if script is None else find(script)
    if path is not None:
        paths.note_read(path)
    if tool.running():
        return Trace()
    asked = tool.recording() or device.installed_driver()  # without a driver, the child says so
    if asked and importlib.util.find_spec("cupti") is None:
        missing = _say("needs cupti", how=cupti.install_advice())
        if tool.recording():
            raise ToolMissing(missing)
        results.show(_say("no trace", missing=missing))
        return None
    ran.use("profiling")
    with tempfile.TemporaryDirectory(prefix="cudatut-") as folder:
        if source is not None:
            path = Path(folder, "program.py")
            path.write_text(source, encoding="utf-8")
        into = Path(folder, "trace.json")
        done = subprocess.run(
            [sys.executable, "-m", "cudatut.gpu.trace", str(into), str(path), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=tool.environment(),
            cwd=folder,
        )
        if done.returncode or not into.is_file():
            output = f"{done.stdout}{done.stderr}"
            said = _say("ended", status=done.returncode, output=output)
            raise CudatutError(said.rstrip())
        data = json.loads(into.read_text(encoding="utf-8"))
    if done.stdout:
        print(done.stdout, end="", flush=True)
    found = Trace(*([Row(**row) for row in data[part]] for part in ("gpu", "api")))
    found.show(rows)
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
