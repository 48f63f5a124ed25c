"""Find the fastest instance of a template for this GPU, honestly: `python -m cudatut tune gemm`.

Candidates come from a search space of the examples (the `SPACE` of a module `*_space.py`) and are

  1. pruned by rules that need no compiler (registers, shared memory, threads),
  2. compiled, several at a time, and dropped if they spill registers or fit no multiprocessor,
  3. run on small inputs of every kind, and dropped if they are wrong; so are survivors of the first heat on the size
     itself,
  4. raced: few rounds for all, more for the best. In a round every contestant runs once, in an order drawn anew, after
     an L2 flush, so that neither the order nor what another left behind decides,
  5. the winner is timed once more beside the untuned choice and the vendor's library: the times by which it was chosen
     flatter it, as the luckiest of many, and are not used.

What came of it is kept by `cudatut.gpu_results`.
"""

import contextlib
import io
import itertools
import os
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from . import gpu_results, paths, tool
from .errors import CheckError, CudatutError, KernelCompileError, LaunchError
from .gpu import activate, device, require
from .kernel import Kernel
from .results import Benchmark
from .timing import bench, time_hidden

ROUNDS = (2, 5, 12, 30)  # of each heat
KEEP = 0.25  # of the contestants, from one heat to the next
AT_LEAST = 4


class TuningError(CudatutError):
    """Nothing to tune, or nothing left of it; the message says what and why."""


class Candidate(Protocol):
    """One point of a search space."""

    label: str
    numbers: dict[str, int]


class Space(Protocol):
    """A search space: see examples/gemm/autotuning_space.py."""

    name: str
    requires: str
    files: Sequence[str]
    sizes: Sequence[dict[str, int]]
    axes: Sequence[str]

    def prune(
        self, gpu: Any, size: dict[str, int]
    ) -> tuple[list[tuple[str, int]], list[Candidate]]:
        """(rule, candidates left) for each rule, and the candidates that are left."""

    def instance(self, candidate: Candidate) -> tuple[str, str]:
        """The source file and the kernel's name, for `compile_ahead`."""

    def problem(self, size: dict[str, int]) -> Any:
        """The problem to tune for, as of a ladder."""

    def trials(self) -> list[Any]:
        """Small problems on which a candidate has to be right."""

    def launcher(self, problem: Any, candidate: Candidate) -> Callable[[], object]:
        """Solves the problem once; with `.kernel`, `.block` (threads) and `.shared` (bytes)."""

    def default(self, problem: Any, gpu: Any) -> Candidate:
        """What is chosen untuned."""

    def check(self, problem: Any, candidate: Candidate) -> None:
        """Solve and compare. Raises CheckError."""


def load_space(name: str) -> Space:
    """The search space of this name, from the `*_space.py` of some part. Raises TuningError if there is none."""
    from .ladder import shared

    root = paths.examples_dir()
    spaces = {}
    for file in sorted(root.glob("*/*_space.py")):
        space = shared(file.relative_to(root).with_suffix("").as_posix()).SPACE
        spaces[space.name] = space
    if name not in spaces:
        known = ", ".join(sorted(spaces)) or "none"
        raise TuningError(f"there is nothing to tune by the name '{name}'; there is: {known}")
    return spaces[name]


# --- the race ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heat:
    """One heat: microseconds of each contestant's runs, and who goes on, fastest first."""

    rounds: int
    times: dict[str, list[float]]
    kept: list[str]

    def median(self, name: str) -> float:
        return statistics.median(self.times[name])


def take_turns(
    runs: dict[str, Callable[[], object]], rounds: int, order: random.Random, time=time_hidden
) -> dict[str, list[float]]:
    """Microseconds of `rounds` runs of each, taking turns in an order that is drawn anew for every round."""
    times = {name: [] for name in runs}
    names = list(runs)
    for _ in range(rounds):
        order.shuffle(names)
        for name in names:
            times[name].append(time(runs[name]))  # flushes L2 first
    return times


def race(
    runs: dict[str, Callable[[], object]],
    rounds: Sequence[int] = ROUNDS,
    keep: float = KEEP,
    at_least: int = AT_LEAST,
    seed: int = 0,
    time: Callable[[Callable[[], object]], float] = time_hidden,
) -> list[Heat]:
    """Successive halving: a heat of few rounds for all, and ever more rounds for ever fewer.

    runs: callables by name, warmed up already. rounds: of each heat. keep: the share that goes on, at least `at_least`
    as long as there are so many. Medians decide, each heat by its own times alone. Raises TuningError without runs.
    """
    if not runs:
        raise TuningError("a race needs contestants")
    order, heats, left = random.Random(seed), [], list(runs)
    for count in rounds:
        times = take_turns({name: runs[name] for name in left}, count, order, time)
        ranked = sorted(left, key=lambda name: statistics.median(times[name]))
        left = ranked[: max(at_least, round(len(ranked) * keep))]
        heats.append(Heat(count, times, left))
    return heats


# --- compiling many ------------------------------------------------------------------------------


class _Unloaded(Kernel):
    """A kernel that is compiled, which any thread can do, but not loaded, which needs the thread with the context."""

    def _load(self) -> None:
        return None


def compile_ahead(
    instances: Iterable[tuple[str, str]],
    jobs: int | None = None,
    done: Callable[[], None] = lambda: None,
) -> dict[tuple[str, str], KernelCompileError]:
    """Compile kernels (source, name), several at a time: `ct.Kernel(source, name)` then costs no time in this process.

    jobs: threads, each waiting for an nvcc of its own; default: as many as cores. done: called after each.
    Under a sanitizer other than memcheck, and under the profiler, nothing happens: memcheck's run, or one without a tool,
    has compiled for all of them, and what they launch themselves they find.
    Returns the error of each that does not compile. Raises NoGpuError, ToolMissing, FileNotFoundError.
    """
    if tool.running() not in (None, "memcheck"):
        return {}
    activate()
    device()  # both once, before threads ask

    def compile_one(instance: tuple[str, str]) -> KernelCompileError | None:
        try:
            _Unloaded(*instance)
        except KernelCompileError as error:
            return error
        finally:
            done()
        return None

    unique = list(dict.fromkeys(instances))
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        errors = pool.map(compile_one, unique)
        return {one: error for one, error in zip(unique, errors) if error is not None}


# --- tuning --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuned:
    """What came of tuning for one size: how many candidates each step left, the heats, who won, and the last contest."""

    space: Space
    size: dict[str, int]
    search: list[tuple[str, int]]
    dropped: dict[str, str]  # label -> why, of those that were compiled
    heats: list[Heat]
    choice: Candidate
    default: Candidate
    contest: Benchmark

    @property
    def gain(self) -> float:
        """How many times as fast as the untuned choice the winner is, in the last contest."""
        rows = {row.name: row.median_us for row in self.contest.rows_}
        return rows.get("default", rows["tuned"]) / rows["tuned"]

    @property
    def clear(self) -> bool:
        """Whether the middle 60 % of the winner's times and of the untuned choice's do not overlap."""
        rows = {row.name: row for row in self.contest.rows_}
        return "default" in rows and rows["tuned"].p80_us < rows["default"].p20_us

    def json(self, command: str) -> dict[str, Any]:
        """The entry for `results/<gpu>.json`."""
        return {
            "certificate": gpu_results.certificate(command, self.space.files),
            "sources": gpu_results.sources(self.space.files),
            "size": self.size,
            "choice": self.choice.numbers,
            "default": self.default.numbers,
            "search": [{"step": step, "left": left} for step, left in self.search],
            "benchmark": self.contest.json(),
        }


def tune(
    space: Space,
    size: dict[str, int],
    most: int | None = None,
    jobs: int | None = None,
    rounds: Sequence[int] = ROUNDS,
    say: Callable[[str], None] = print,
) -> Tuned:
    """Tune for one size on this GPU; `say` gets a line for each step.

    most: compile at most so many candidates, drawn at random from what the rules leave. jobs: compilers at a time.
    Raises TuningError (nothing is left), UnsupportedGpuError, NoGpuError.
    """
    require(space.requires)
    gpu = device()
    search, candidates = space.prune(gpu, size)
    for step, left in search:
        say(f"{left:7,}  {step}")
    if most and len(candidates) > most:
        candidates = random.Random(0).sample(candidates, most)
        search = [*search, (f"random sample of {most}", len(candidates))]
        say(f"{len(candidates):7,}  drawn at random")
    problem = space.problem(size)
    default = space.default(problem, gpu)
    if default.numbers not in [one.numbers for one in candidates]:
        candidates = [*candidates, default]  # whatever the rules say of it
    dropped: dict[str, str] = {}
    runs = _compiled(space, problem, candidates, jobs, dropped)
    search = [*search, ("compiled, fit and do not spill", len(runs))]
    say(f"{len(runs):7,}  compiled, fit and do not spill")
    runs = _different(runs, default)
    search = [*search, ("different machine code", len(runs))]
    say(f"{len(runs):7,}  different machine code")
    runs = _right(space, space.trials(), runs, dropped)
    search = [*search, ("right", len(runs))]
    say(f"{len(runs):7,}  right")
    for _, run in runs:
        run()  # on this size for the first time
    if not runs:
        raise TuningError(_nothing_left(space, size, dropped))
    heats = race({one.label: run for one, run in runs}, rounds[:1])
    survivors = [(one, run) for one, run in runs if one.label in heats[0].kept]
    survivors = _right(space, [problem], survivors, dropped)
    if not survivors:
        raise TuningError(_nothing_left(space, size, dropped))
    heats += race({one.label: run for one, run in survivors}, rounds[1:])
    for heat in heats:
        search = [*search, (f"raced, {heat.rounds} rounds each", len(heat.times))]
        best = heat.kept[0]
        say(
            f"{len(heat.times):7,}  raced, {heat.rounds} rounds each; first: {best}, {heat.median(best):,.1f} us"
        )
    by_label = {one.label: (one, run) for one, run in runs}
    choice, winner = by_label[heats[-1].kept[0]]
    last = {"tuned": winner}
    if choice.numbers != default.numbers and default.label in by_label:
        last["default"] = by_label[default.label][1]
    contest = bench(
        {**last, **problem.vendors()},
        bytes=problem.bytes,
        flops=problem.flops,
        name=f"{space.name}, {gpu_results.size_name(size)}",
    )
    return Tuned(space, size, search, dropped, heats, choice, default, contest)


def _compiled(
    space: Space,
    problem: Any,
    candidates: Sequence[Candidate],
    jobs: int | None,
    dropped: dict[str, str],
) -> list[tuple[Candidate, Callable[[], object]]]:
    """Candidates with their launchers; those that do not compile, spill or fit nowhere go to `dropped`."""
    with _progress("compiling", len({space.instance(one) for one in candidates})) as done:
        errors = compile_ahead([space.instance(one) for one in candidates], jobs, done)
    found = []
    for one in candidates:
        if error := errors.get(space.instance(one)):
            dropped[one.label] = f"does not compile: {str(error).splitlines()[-1].strip()}"
            continue
        run = space.launcher(problem, one)
        try:
            needs = run.kernel.resources(run.block, run.shared)
        except LaunchError as error:
            dropped[one.label] = str(error)
            continue
        if needs.spill_bytes:
            dropped[one.label] = f"spills {needs.spill_bytes} B per thread"
        elif not needs.blocks_per_sm:
            dropped[one.label] = "no block fits on a multiprocessor"
        else:
            found.append((one, run))
    return found


def _different(
    runs: Sequence[tuple[Candidate, Callable[[], object]]], default: Candidate
) -> list[tuple[Candidate, Callable[[], object]]]:
    """One of each kind of those that are launched with the same machine code: they can only differ by luck."""
    kinds: dict[Any, tuple[Candidate, Callable[[], object]]] = {}
    for one, run in runs:
        how = getattr(run, "splits", 1), getattr(run, "whole", None)
        key = (run.kernel.machine_code(), run.block, run.shared, *how)
        if key not in kinds or one.numbers == default.numbers:
            kinds[key] = (one, run)
    return list(kinds.values())


def _right(
    space: Space,
    problems: Sequence[Any],
    runs: Sequence[tuple[Candidate, Callable[[], object]]],
    dropped: dict[str, str],
) -> list[tuple[Candidate, Callable[[], object]]]:
    """Those whose results are right on all these problems."""
    right = []
    with _progress("checking", len(runs)) as done:
        for one, run in runs:
            try:
                with contextlib.redirect_stdout(
                    io.StringIO()
                ):  # hundreds of tables of passed checks
                    for problem in problems:
                        space.check(problem, one)
            except (CheckError, LaunchError) as error:
                dropped[one.label] = f"is wrong: {str(error).splitlines()[0]}"
            else:
                right.append((one, run))
            done()
    return right


def _nothing_left(space: Space, size: dict[str, int], dropped: dict[str, str]) -> str:
    reasons = "; ".join(f"{label}: {why}" for label, why in itertools.islice(dropped.items(), 3))
    return f"{space.name}, {gpu_results.size_name(size)}: no candidate is left ({reasons or 'none passes the rules'})"


@contextlib.contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing elsewhere."""
    import sys

    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def parse_size(space: Space, text: str) -> dict[str, int]:
    """'4096' (all axes) or '4096x1024x512' as a size. Raises TuningError."""
    words = text.lower().split("x")
    if len(words) == 1:
        words *= len(space.axes)
    try:
        values = [int(word) for word in words]
    except ValueError:
        values = []
    if len(values) != len(space.axes) or min(values) < 1:
        raise TuningError(
            f"'{text}' is no size: give one number, or {' x '.join(space.axes)} as {'x'.join(['1024'] * len(space.axes))}"
        )
    return dict(zip(space.axes, values))


def main(name: str, sizes: Sequence[str], most: int | None, jobs: int | None) -> None:
    """What `python -m cudatut tune` does: tune for each size, show, and keep the result as soon as it is there."""
    space = load_space(name)
    wanted = [parse_size(space, text) for text in sizes] or list(space.sizes)
    activate()
    for size in wanted:
        said = gpu_results.size_name(size)
        print(f"{space.name}, {said}, on {device().name}", flush=True)
        found = tune(space, size, most, jobs)
        word = "x".join(str(value) for value in size.values())
        command = f"python -m cudatut tune {name} --size {word}" + (
            f" --most {most}" if most else ""
        )
        path = gpu_results.save(gpu_results.gpu_here(), "tuned", name, {said: found.json(command)})
        for label, why in found.dropped.items():
            if why.startswith("is wrong"):
                print(f"{label} {why}; please report this")
        print(verdict(found))
        print(f"kept in {path}")


def verdict(found: Tuned) -> str:
    """One line: what won, and whether it is really faster than the untuned choice."""
    if found.choice.numbers == found.default.numbers:
        return f"best: {found.choice.label}, which is also what is chosen untuned"
    sure = "clearly" if found.clear else "but their times overlap: this is no clear win"
    return (
        f"best: {found.choice.label}; {found.gain:.3f} times as fast as the untuned choice, "
        f"{found.default.label} ({sure})"
    )
