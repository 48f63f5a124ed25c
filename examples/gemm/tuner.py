"""The fastest instance of final.cu for this GPU: `python examples/gemm/tuner.py 4096` (or MxNxK).

Candidates come from autotuning_space.py and are

  1. pruned by rules that need no compiler,
  2. compiled, several at a time, and dropped if they spill or fit nowhere,
  3. run on small products of every kind, and dropped if they are wrong,
  4. raced: few rounds for all, more for the best, in an order drawn anew,
  5. timed once more, the winner beside the untuned choice and cuBLAS: the
     times by which it was chosen flatter it, as the luckiest of many.
"""

import argparse
import contextlib
import io
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cudatut as ct

ROUNDS = (2, 5, 12, 30)  # of each heat
KEEP = 0.25  # of the contestants, from one heat to the next
AT_LEAST = 4


class TuningError(ct.CudatutError):
    """Nothing to tune, or nothing left of it; the message says why."""


# --- the race ------------------------------------------------------------


@dataclass(frozen=True)
class Heat:
    """Microseconds of each contestant's runs; who goes on, fastest first."""

    rounds: int
    times: dict[str, list[float]]
    kept: list[str]

    def median(self, name: str) -> float:
        return statistics.median(self.times[name])


def race(
    runs: dict[str, Callable[[], object]],
    rounds: Sequence[int] = ROUNDS,
    keep: float = KEEP,
    at_least: int = AT_LEAST,
    seed: int = 0,
    time: Callable[[Callable[[], object]], float] | None = None,
) -> list[Heat]:
    """A heat of few rounds for all, and ever more rounds for ever fewer.

    runs: callables by name, warmed up already. rounds: of each heat. keep: the
    share that goes on, at least `at_least` as long as there are so many.
    Medians decide, each heat by its own times alone. Raises TuningError
    without runs.
    """
    if not runs:
        raise TuningError("a race needs contestants")
    order, heats, left = random.Random(seed), [], list(runs)
    for count in rounds:
        some = {name: runs[name] for name in left}
        times = ct.take_turns(some, count, order, time or ct.time_hidden)
        ranked = sorted(left, key=lambda name: statistics.median(times[name]))
        left = ranked[: max(at_least, round(len(ranked) * keep))]
        heats.append(Heat(count, times, left))
    return heats


# --- tuning --------------------------------------------------------------


@dataclass(frozen=True)
class Tuned:
    """Who won for one size: the steps of the search, the last contest."""

    search: list[tuple[str, int]]
    dropped: dict[str, str]  # label -> why, of those that were compiled
    heats: list[Heat]
    choice: Any
    default: Any
    contest: Any

    @property
    def gain(self) -> float:
        """Times as fast as the untuned choice, in the last contest."""
        rows = {row.name: row.median_us for row in self.contest.rows}
        return rows.get("default", rows["tuned"]) / rows["tuned"]

    @property
    def clear(self) -> bool:
        """Whether the middle 60 % of both contestants' times lie apart."""
        rows = {row.name: row for row in self.contest.rows}
        return (
            "default" in rows and rows["tuned"].p80_us < rows["default"].p20_us
        )

    def verdict(self) -> str:
        """One line: what won, and whether it is really faster."""
        if self.choice.numbers == self.default.numbers:
            return f"best: {self.choice.label}, which is chosen untuned, too"
        sure = (
            "clearly"
            if self.clear
            else "but their times overlap: this is no clear win"
        )
        return (
            f"best: {self.choice.label}; {self.gain:.3f} times as fast as the "
            f"untuned choice, {self.default.label} ({sure})"
        )


def tune(
    space: Any,
    size: dict[str, int],
    most: int | None = None,
    rounds: Sequence[int] = ROUNDS,
    say: Callable[[str], None] = print,
) -> Tuned:
    """Tune for one size on this GPU; `say` gets a line for each step.

    space: as `autotuning_space.SPACE`. most: compile at most so many
    candidates, drawn at random from what the rules leave. Raises TuningError
    (nothing is left), UnsupportedGpuError, NoGpuError.
    """
    ct.require(space.requires)
    gpu, search = ct.device(), []

    def step(what: str, left: int) -> None:
        search.append((what, left))
        say(f"{left:7,}  {what}")

    steps, candidates = space.prune(gpu, size)
    for what, left in steps:
        step(what, left)
    if most and len(candidates) > most:
        candidates = random.Random(0).sample(candidates, most)
        step(f"random sample of {most}", most)
    problem = space.problem(size)
    default = space.default(problem, gpu)
    if default.numbers not in [one.numbers for one in candidates]:
        candidates = [*candidates, default]  # whatever the rules say of it
    dropped: dict[str, str] = {}
    runs = _compiled(space, problem, candidates, dropped)
    step("compiled, fit and do not spill", len(runs))
    runs = _different(runs, default)
    step("different machine code", len(runs))
    runs = _right(space, space.trials(), runs, dropped)
    step("right", len(runs))
    for _, run in runs:
        run()  # on this size for the first time
    heats = race(_labelled(runs), rounds[:1]) if runs else []
    going_on = [one for one in runs if one[0].label in heats[0].kept]
    going_on = _right(space, [problem], going_on, dropped)
    if not going_on:
        why = "; ".join(f"{k}: {v}" for k, v in list(dropped.items())[:3])
        raise TuningError(
            f"{space.name}, {size}: no candidate is left "
            f"({why or 'none passes the rules'})"
        )
    heats += race(_labelled(going_on), rounds[1:])
    for heat in heats:
        step(f"raced, {heat.rounds} rounds each", len(heat.times))
    by_label = {one.label: (one, run) for one, run in runs}
    choice, winner = by_label[heats[-1].kept[0]]
    last = {"tuned": winner}
    if choice.numbers != default.numbers and default.label in by_label:
        last["default"] = by_label[default.label][1]
    contest = ct.bench(
        {**last, **problem.vendors()},
        bytes=problem.bytes,
        flops=problem.flops,
        name=f"{space.name}, {' x '.join(map(str, size.values()))}",
    )
    return Tuned(search, dropped, heats, choice, default, contest)


def _labelled(runs):
    return {one.label: run for one, run in runs}


def _compiled(space, problem, candidates, dropped):
    """Candidates with their launchers; the others go to `dropped`."""
    errors = ct.compile_ahead([space.instance(one) for one in candidates])
    found = []
    for one in candidates:
        if error := errors.get(space.instance(one)):
            last = str(error).splitlines()[-1].strip()
            dropped[one.label] = f"does not compile: {last}"
            continue
        run = space.launcher(problem, one)
        try:
            needs = run.kernel.resources(run.block, run.shared)
        except ct.LaunchError as error:
            dropped[one.label] = str(error)
            continue
        if needs.spill_bytes:
            dropped[one.label] = f"spills {needs.spill_bytes} B per thread"
        elif not needs.blocks_per_sm:
            dropped[one.label] = "no block fits on a multiprocessor"
        else:
            found.append((one, run))
    return found


def _different(runs, default):
    """One of each kind with the same code and launch: luck alone parts them."""
    kinds: dict[Any, Any] = {}
    for one, run in runs:
        how = getattr(run, "splits", 1), getattr(run, "whole", None)
        key = (run.kernel.machine_code(), run.block, run.shared, *how)
        if key not in kinds or one.numbers == default.numbers:
            kinds[key] = (one, run)
    return list(kinds.values())


def _right(space, problems, runs, dropped):
    """Those whose results are right on all these problems."""
    right = []
    for one, run in runs:
        try:
            # Hundreds of tables of passed checks.
            with contextlib.redirect_stdout(io.StringIO()):
                for problem in problems:
                    space.check(problem, one)
        except (ct.CheckError, ct.LaunchError) as error:
            dropped[one.label] = f"is wrong: {str(error).splitlines()[0]}"
        else:
            right.append((one, run))
    return right


def parse_size(text: str, axes: Sequence[str]) -> dict[str, int]:
    """'4096' (all axes) or '4096x1024x512' as a size. Raises TuningError."""
    words = text.lower().split("x")
    if len(words) == 1:
        words *= len(axes)
    if len(words) != len(axes) or not all(
        word.isdecimal() and int(word) for word in words
    ):
        raise TuningError(
            f"'{text}' is no size: give one number, or {' x '.join(axes)} "
            f"as {'x'.join(['1024'] * len(axes))}"
        )
    return dict(zip(axes, map(int, words)))


def main() -> None:
    from cudatut.book.gemm.ladder.autotuning_space import SPACE

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=["4096"], metavar="SIZE")
    parser.add_argument(
        "--most", type=int, help="compile at most so many candidates"
    )
    options = parser.parse_args()
    try:
        for size in [parse_size(text, SPACE.axes) for text in options.sizes]:
            ct.activate()
            print(f"{SPACE.name}, {size}, on {ct.device().name}", flush=True)
            found = tune(SPACE, size, options.most)
            for label, why in found.dropped.items():
                if why.startswith("is wrong"):
                    print(f"{label} {why}; please report this")
            print(found.verdict())
    except ct.CudatutError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
