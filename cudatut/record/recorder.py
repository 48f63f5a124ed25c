"""Record examples: all four sanitizers first, then each notebook alone on the GPU; keep what is whole and good.

First, side by side: every example under each of the four sanitizers, some of them to a process, and the notebooks that
measure no time (`alone: false` in their header). This also leaves every kernel in PyCUDA's cache, compiled on all cores.
Then the other notebooks, one after the other: while one runs, nothing else of ours does. A recording replaces the old one
in one step; whatever fails leaves the old one untouched.
"""

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cudatut import catalog, failures, paths, processes, recording, tool
from cudatut.catalog import Example
from cudatut.errors import CudatutError, NoGpuError, ToolMissing
from cudatut.gpu import device
from cudatut.record.run import Executed, record_notebook
from cudatut.record.write import UnwritableError, write, write_slim
from cudatut.results import Sanitizer
from cudatut.to_notebook import RecordingFailed, notebook_of
from cudatut.tool import SANITIZERS

RACECHECK = "racecheck"

Sanitize = Callable[[list[Path], str, float], Sanitizer]  # examples, a tool, seconds -> its verdict
# Instrumented kernels are slow: each tool gets this many times an example's own limit.
SANITIZER_TIME = 2


@dataclass
class Outcome:
    """What became of one example: `status` is "recorded", "failed" or "skipped"; `reason` says why not recorded."""

    name: str
    status: str
    reason: str = ""


@dataclass
class Progress:
    """How far recording has come; the command line shows it. Every method may be called from any thread."""

    start: Callable[[str, int], None] = lambda phase, total: None
    step: Callable[[str], None] = lambda what: None
    done: Callable[[str], None] = lambda what: None
    outcome: Callable[[Outcome], None] = lambda outcome: None


# --- which ---------------------------------------------------------------------------------------


def chosen(
    names: Iterable[str] = (), *, only_stale: bool = False, shard: str | None = None
) -> list[Example]:
    """The examples to record: those named, or all; of them only those not whole, fresh and good with `only_stale`.

    Without names the long runs (`long: true` in their header) are left out while their recordings are good. shard: "2/3"
    for the second of three parts of the others, about equally long by their last recordings; "long" for the long runs.
    Parts fit together when all are drawn from the same recordings.
    Raises UnknownExampleError, CudatutError for another shard.
    """
    named = [catalog.get(name) for name in dict.fromkeys(names)]
    examples = named or catalog.examples()
    if shard == "long":
        examples = [example for example in examples if example.long]
    elif shard:
        number, _, count = shard.partition("/")
        if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            raise CudatutError(f"--shard {shard}: write 2/3 for the second of three parts, or long")
        examples = _part([e for e in examples if not e.long], int(number), int(count))
    elif not named:
        examples = [e for e in examples if not e.long or not is_fresh(e.name)]
    return [e for e in examples if not is_fresh(e.name)] if only_stale else examples


def _part(examples: list[Example], number: int, count: int) -> list[Example]:
    """The longest first, each to the part that has the least so far."""
    parts: list[list[Example]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for example in sorted(examples, key=lambda e: (-_seconds(e), e.name)):
        least = loads.index(min(loads))
        parts[least].append(example)
        loads[least] += _seconds(example)
    return sorted(parts[number - 1], key=lambda example: example.name)


def _seconds(example: Example) -> float:
    """What its last recording took, with the start of its process; those side by side cost little."""
    took = _took(example) + 4
    return took if example.alone else took / 8


def _took(example: Example) -> float:
    """What the cells of its last recording took, in seconds; a guess where there is none."""
    try:
        return recording.load(example.name).metadata["duration_s"]
    except CudatutError:
        return 6


# --- how -----------------------------------------------------------------------------------------


def record_all(
    examples: list[Example],
    *,
    slim: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Record these examples on this GPU.

    slim: results and provenance alone, into recordings/<gpu>/, without the sanitizers: for a GPU beside the book's own.
    jobs: how many sanitizers, or notebooks that measure no time, run side by side (default: as many as cores, at most 15).
    Before any of them runs, refuses with UnwritableError, RecordingFailed (a cell without title), ToolMissing or
    NoGpuError. After that an example that fails does not stop the others: see the outcomes.
    """
    if not examples:
        return []
    require_writable()
    _require_jupyter()
    for example in examples:
        notebook_of(example)
    gpu = probe_gpu()
    # The kernels and the sanitizers' children must import this cudatut.
    os.environ["PYTHONPATH"] = tool.environment()["PYTHONPATH"]
    able = partial(record_examples, examples, gpu["name"], gpu["compute_capability"])
    if slim:
        return able(None, jobs=jobs or 1, progress=progress)
    if shutil.which("compute-sanitizer") is None:
        raise ToolMissing(
            "compute-sanitizer is not on PATH, and a recording without it is not whole; it comes with the CUDA toolkit"
        )
    from cudatut.gpu import sanitizer

    cores = os.cpu_count() or 1
    jobs = jobs or min(15, cores)
    sanitize = partial(sanitizer.run, workers=max(1, cores // _racing(jobs)))
    # CUB takes nvcc some ten seconds, and no sanitizer asks for it: without this the first contest would wait for it.
    code = "from cudatut.gpu.vendor import compile_ahead; compile_ahead()"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as ahead:
        return able(sanitize, jobs=jobs, progress=progress, before_timed=ahead.wait)


def record_examples(
    examples: list[Example],
    gpu_name: str,
    capability: tuple[int, int],
    sanitize: Sanitize | None,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    before_timed: Callable[[], object] = lambda: None,
) -> list[Outcome]:
    """Both phases, on a GPU known to be there; without `sanitize` the recordings are slim.

    before_timed: waits for what else was started, before the first notebook that measures time.
    """
    recorder = _Recorder(sanitize, progress or Progress())
    able = recorder.take(examples, gpu_name, capability)
    recorder.run_side_by_side(able, jobs)
    before_timed()
    recorder.run_alone([example for example in able if example.alone])
    return [recorder.outcomes[example.name] for example in examples]


class _Recorder:
    """What is known of the examples while they are recorded, and what is done with one of them or with a few."""

    def __init__(self, sanitize: Sanitize | None, progress: Progress):
        self._sanitize: Any = sanitize  # None where it is asked for nothing
        self._progress = progress
        self.outcomes: dict[str, Outcome] = {}
        self._before: dict[str, dict[str, str | None]] = {}  # hashes of sources
        self._found: dict[str, dict[str, Sanitizer | Exception]] = {}

    def take(self, examples: list[Example], gpu: str, capability: tuple[int, int]) -> list[Example]:
        """Those that this GPU can run; the others are skipped."""
        able = []
        for example in examples:
            if device.supports(capability, example.requires):
                able.append(example)
                self._before[example.name] = recording.hashes(example.sources())
                self._found[example.name] = {}
            else:
                needs = f"needs {example.requires}, and {gpu} is sm_{capability[0]}{capability[1]}"
                self._settle(example.name, "skipped", needs)
        return able

    def run_side_by_side(self, able: list[Example], jobs: int) -> None:
        """The sanitizers, and the notebooks that measure no time."""
        together = [example for example in able if not example.alone]
        # All examples under one tool, then under the next: runs of one example at the same time would each compile its
        # kernels, where the later ones now find them in the cache. For the same reason racecheck begins at the end.
        batches = _batches(able, jobs) if self._sanitize and able else []
        to_race = deque(batches)
        tools = len(SANITIZERS) if self._sanitize else 0
        self._progress.start("side by side", len(able) * tools + len(together))

        def race() -> None:
            while to_race:
                with suppress(IndexError):  # another has taken the last one
                    self._watch(to_race.pop(), RACECHECK)

        with _workers(jobs) as pool:
            racing = [pool.submit(race) for _ in range(_racing(jobs))]
            others = [(one, name) for name in SANITIZERS if name != RACECHECK for one in batches]
            watching = [pool.submit(self._watch, *one) for one in others]
            running = [(example, pool.submit(self._execute, example)) for example in together]
            racing += [pool.submit(race) for _ in racing]  # who has nothing else to do helps
            wait([*racing, *watching])
            for example, future in running:
                self._finish(example, future)

    def run_alone(self, examples: list[Example]) -> None:
        """The notebooks that measure time, while nothing else of ours runs."""
        self._progress.start("alone on the GPU", len(examples))
        with _workers(1) as pool:  # a thread, so that Ctrl-C reaches this one at once
            for example in examples:
                if not self._refused(example):
                    self._finish(example, pool.submit(self._execute, example))

    def _settle(self, name: str, status: str, reason: str = "") -> None:
        self.outcomes[name] = Outcome(name, status, reason)
        # What fails on another GPU says nothing of the book's own recording.
        if self._sanitize and status == "failed":
            failures.keep(name, reason)
        elif self._sanitize and status == "recorded":
            failures.forget(name)
        self._progress.outcome(self.outcomes[name])

    def _watch(self, batch: list[Example], name: str) -> None:
        """One process for all of them; where it fails or finds something, one for each, which tells whose it is."""
        started = time.monotonic()
        # No sum of them: one that hangs would hold up all others of its process for as long.
        limit = SANITIZER_TIME * max(e.timeout_s for e in batch) * min(len(batch), 2)
        try:
            result = self._sanitize([example.path for example in batch], name, limit)
        except Exception as error:  # whatever it is, the others go on
            result = error
        if len(batch) > 1 and (isinstance(result, Exception) or result.errors):
            for example in batch:
                self._watch([example], name)
            return
        took = f"{time.monotonic() - started:.1f} s"
        # Said at once, and its report kept: whoever waits for the other examples, or ends this, knows already.
        said = _not_clean(name, result)
        for example in batch:
            self._found[example.name][name] = result
            if said:
                failures.keep(example.name, said)
            says = f": {said.splitlines()[0]}" if said else ""
            self._progress.done(f"{example.name} {name} ({took} for {len(batch)}){says}")

    def _execute(self, example: Example) -> Executed:
        try:
            name, step = example.name, self._progress.step
            return record_notebook(example, lambda cell: step(f"{name} {cell}"))
        finally:
            self._progress.done(example.name)

    def _refused(self, example: Example) -> bool:
        """Whether a sanitizer's verdict refuses the recording: then the notebook need not run alone on the GPU."""
        try:
            if self._sanitize:
                _all_clean(example.name, self._found[example.name])
        except RecordingFailed as error:
            self._settle(example.name, "failed", str(error))
            return True
        return False

    def _finish(self, example: Example, running: Future[Executed]) -> None:
        before = self._before[example.name]
        try:
            executed = running.result()
            # As they were when the first sanitizer began: none may have changed until the recording is written.
            now = recording.hashes(before)
            if changed := [name for name, sha in before.items() if now[name] != sha]:
                reason = f"{', '.join(changed)} changed while it was being recorded"
                raise RecordingFailed(example.name, reason)
            if self._sanitize:
                write(executed, _all_clean(example.name, self._found[example.name]))
            else:
                write_slim(executed)
        except CudatutError as error:
            self._settle(example.name, "failed", str(error))
        except Exception as error:
            self._settle(example.name, "failed", f"{example.name}: {error!r}")
        else:
            self._settle(example.name, "recorded")


# Examples that share a process under a tool. To open the GPU takes a second there, half of it or more in the driver (an
# H100 with 16 cores). Memcheck of all 86, their kernels compiled before, took 16 s in 18 processes; 29 of them, each in
# one of its own, had taken 11 s.
_BATCH = 5


def _batches(examples: list[Example], jobs: int) -> list[list[Example]]:
    """Examples by process, each from all over the book, and at least as many processes as run side by side.

    The longest come last, where racecheck begins, which takes longest itself: one that began as the last would let all
    others wait (that of llm/serving took 128 s, 50 of them alone).
    """
    count = max(math.ceil(len(examples) / _BATCH), min(jobs, len(examples)))
    batches = [examples[first::count] for first in range(count)]
    return sorted(batches, key=lambda batch: sum(map(_took, batch)))


def _racing(jobs: int) -> int:
    """How many of the runs side by side are racecheck's: more would wait for one another on the GPU."""
    return max(1, jobs // 3)


@contextmanager
def _workers(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for the length of a phase. What interrupts it (Ctrl-C) ends the processes that run, and starts no others."""
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for leader in tuple(processes.under_way):
            processes.kill(leader)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _all_clean(name: str, found: dict[str, Sanitizer | Exception]) -> list[Sanitizer]:
    reasons = [said for which in SANITIZERS if (said := _not_clean(which, found[which]))]
    if reasons:
        raise RecordingFailed(name, "; ".join(reasons))
    return [one for which in SANITIZERS if isinstance(one := found[which], Sanitizer)]


def _not_clean(which: str, result: Sanitizer | Exception) -> str:
    """What refuses a recording; empty where nothing does."""
    if isinstance(result, Exception):
        return f"{which} did not finish: {result}"
    if not result.errors:
        return ""
    report = [line for line in result.log.splitlines() if line.strip(" =")][:20]
    return "\n    ".join([f"{which} found {result.errors} errors", *report])


def is_fresh(name: str) -> bool:
    """Whether a recording exists and is whole, fresh and good."""
    try:
        recording.require_good(name)
    except CudatutError:
        return False
    return True


def require_writable() -> None:
    """Raises UnwritableError, naming the folder, unless recordings can be written."""
    folder = paths.recordings_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".cudatut-"):
            pass
    except OSError as error:
        raise UnwritableError(
            f"recordings cannot be written to {folder}: {error.strerror}. Make the checkout writable, or set "
            "CUDATUT_RECORDINGS to a folder that is"
        ) from error


def _require_jupyter() -> None:
    needed = ("ipykernel", "jupytext", "nbclient")
    if missing := [name for name in needed if find_spec(name) is None]:
        raise ToolMissing(f"recording needs {', '.join(missing)}: `{paths.pip_install('record')}`")


def probe_gpu() -> dict[str, Any]:
    """Name and compute capability of the GPU, as the driver alone tells them: this process holds no context on it.

    Raises NoGpuError saying what is missing.
    """
    missing = device.why_no_gpu()
    if missing is None and find_spec("pycuda") is None:
        missing = "there is a GPU, but no PyCUDA"
    if missing:
        raise NoGpuError(f"{missing}; `python -m cudatut doctor` says what to do")
    name, capability = device.name_and_capability(int(os.environ.get("CUDA_DEVICE", 0)))
    return {"name": name, "compute_capability": capability}
