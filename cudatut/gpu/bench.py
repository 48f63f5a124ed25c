"""Time kernels honestly: a clean L2 before each run, the host kept apart, contestants in turns, medians of paired ratios."""

import math
import random
import statistics
import time
from collections.abc import Callable

from cudatut import tool, words
from cudatut.errors import BenchError
from cudatut.gpu import limits, rivals, sm_clock
from cudatut.gpu.device import activate, device
from cudatut.gpu.kernel import cdiv
from cudatut.gpu.timing import Run, time_hidden, time_once_bare, timed
from cudatut.results import BELOW_MOST, Benchmark, Row, rounded, show, spread

Work = int | float | dict[str, int | float] | None

_BUDGET_US = 4e5  # of GPU time for one benchmark
_MIN_ROUNDS, _MAX_ROUNDS = 5, 100
_SETTLE_S = 1.0
_say = words.section("bench")


def bench(
    candidates: dict[str, Callable[[], object] | None],
    bytes: Work = None,
    flops: Work = None,
    name: str | None = None,
    rounds: int | None = None,
    limit: bool = True,
) -> Benchmark:
    """Time callables against each other and show the table.

    candidates: name -> function that launches the work and returns at once. None leaves the row out; for a library that is
    missing or does not run (`ct.vendor`) the reason stands in its place. They take turns, in an order that is drawn anew
    for every round, each run after an L2 flush and behind a gate (`cudatut.gpu.timing`). Where slow contestants leave fewer
    than 100 rounds, fast ones take two, four ... turns in each.
    bytes: moved by one call (read plus written), for GB/s; or flops: for TFLOP/s; a number, or a dict by name.
    rounds: in which all take part; default as many as fit in 0.4 s of GPU time, 5 to 100.
    limit: False leaves the share of the limit out, as for slow products on tensor cores: the limit of FMAs is not theirs.

    Returns a Benchmark: median, 20th and 80th percentile in microseconds, GB/s or TFLOP/s, the share of this GPU's
    measured limit (of FLOPs, that of fp32 FMAs; none where a contestant is beyond it), and the ratio to the fastest row of
    the vendor's library, if there is one: the median of the ratios within turns, with its interval. Besides, what the host
    needs for a launch; for runs of 200 us and more the clock of the SMs and their cycles; the kernels that rivals launched.
    Raises BenchError for a time of 0 or NaN, or no candidate.
    While a sanitizer or profiler runs the process every candidate runs once and nothing is shown.
    """
    activate()
    runs, missing = _able(candidates)
    if not runs:
        why = "".join(f"; {label}: {reason}" for label, reason in missing.items())
        raise BenchError(_say("nothing", name=name or "", why=why))
    if tool.running():
        times = {label: [Run(time_once_bare(launch), 0.0)] for label, launch in runs.items()}
        return _result(name, runs, times, bytes, flops, 1, peak=None)

    first = {label: _warmed_up(launch) for label, launch in runs.items()}
    _settle(runs, first)
    all_us = sum(max(run.us, 1.0) for run in first.values())
    count = rounds or max(_MIN_ROUNDS, min(_MAX_ROUNDS, int(_BUDGET_US / all_us)))
    turns = {label: _turns(run.us, count) for label, run in first.items()}
    most, times, chance = max(turns.values()), {one: list[Run]() for one in runs}, random.Random(0)
    order = list(runs)
    for turn in range(count * most):
        chance.shuffle(order)
        for label in order:
            if turn % (most // turns[label]) == 0:
                times[label].append(_again(runs[label], first[label]))
    peak = _peak(bytes, flops) if limit else None
    result = _result(name, runs, times, bytes, flops, count, peak)
    result.missing = missing or None
    for row in result.rows:  # last, since whoever listens to launches slows them down
        if hasattr(runs[row.name], "vendor"):
            row.kernels = rivals.name_kernels(row.name, runs[row.name])
    show(result)
    return result


def take_turns(
    runs: dict[str, Callable[[], object]],
    rounds: int,
    order: random.Random,
    time: Callable[[Callable[[], object]], float] = time_hidden,
) -> dict[str, list[float]]:
    """Microseconds of `rounds` runs of each, taking turns in an order that is drawn anew for every round.

    time: how one run is timed; by default behind a flush of L2 and a gate.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    names, waiting = list(runs), set()
    for _ in range(rounds):
        order.shuffle(names)
        for name in names:
            if time is not time_hidden:
                times[name].append(time(runs[name]))
                continue
            run = timed(runs[name], gated=name not in waiting)
            if not run.hidden:
                waiting.add(name)
            times[name].append(run.us)
    for name in names:
        if hasattr(runs[name], "vendor"):
            rivals.name_kernels(name, runs[name])
    return times


def _able(
    candidates: dict[str, Callable[[], object] | None],
) -> tuple[dict[str, Callable[[], object]], dict[str, str]]:
    """The candidates that can run, and of rivals that cannot the reason."""
    runs, missing = {}, {}
    for label, launch in candidates.items():
        if reason := getattr(launch, "reason", None):
            missing[label] = reason
        elif launch is not None:
            if hasattr(launch, "vendor") and not (tool.running() or tool.recording()):
                try:  # a library may fail at its first call only
                    launch()
                except Exception as error:
                    missing[label] = f"its first call failed: {error}"
                    continue
            runs[label] = launch
    return runs, missing


def _warmed_up(launch: Callable[[], object]) -> Run:
    """A run after another one, which may have compiled, loaded or allocated something."""
    launch()
    return timed(launch)


def _again(launch: Callable[[], object], first: Run) -> Run:
    """One more run of what ran before: with a gate if one holds, with its clock if it is long enough."""
    return timed(launch, gated=first.hidden, clock=first.us >= sm_clock.LEAST_US)


def _settle(runs: dict[str, Callable[[], object]], first: dict[str, Run]) -> None:
    """Run the contestants until a GPU that lowers its clock under this load has lowered it.

    It does so within a second. One that has not begun to after a twentieth is not at its limit.
    """
    begin, most = time.perf_counter(), device().clock_khz / 1e3
    while (took := time.perf_counter() - begin) < _SETTLE_S:
        ran = [_again(launch, first[label]) for label, launch in runs.items()]
        clocks = [run.mhz for run in ran if run.mhz is not None]
        if not clocks or (took > _SETTLE_S / 20 and min(clocks) >= BELOW_MOST * most):
            return


def _turns(estimate_us: float, rounds: int) -> int:
    """Turns in each round, a power of two: a slow contestant leaves few rounds, and then a fast one runs more often."""
    budget = int(_BUDGET_US / 10 / (rounds * max(estimate_us, 1.0)))
    most = max(1, min(cdiv(_MAX_ROUNDS, 2 * rounds), budget))
    return 1 << most.bit_length() - 1


def _peak(bytes: Work, flops: Work) -> float | None:
    return limits.bandwidth() if bytes is not None else limits.fma() if flops is not None else None


def _result(
    name: str | None,
    runs: dict[str, Callable[[], object]],
    times: dict[str, list[Run]],
    bytes: Work,
    flops: Work,
    rounds: int,
    peak: float | None,
) -> Benchmark:
    unit = "GB/s" if bytes is not None else "TFLOP/s" if flops is not None else "us"
    rows = [
        _row(label, times[label], _of(bytes, label), _of(flops, label), peak, launch)
        for label, launch in runs.items()
    ]
    for row in () if tool.running() else rows:
        if not (math.isfinite(row.median_us) and row.median_us > 0):
            raise BenchError(
                _say("no measurement", name=name or "", row=row.name, us=row.median_us)
            )
    if flops is not None and peak and any(row.value and row.value > 1.05 * peak for row in rows):
        # Beyond what FMAs can do: tensor cores computed it, and the limit is not theirs.
        peak = None
        for row in rows:
            row.of_peak = None
    clock = device().clock_khz / 1e3 if any(row.mhz for row in rows) else None
    result = Benchmark(name or "benchmark", unit, peak, rows, rounds, most_mhz=clock)
    if vendor := result.fastest_vendor():
        for row in rows:
            found = result.ratio(row.name, vendor.name)
            row.ratio_to_vendor, row.ratio_low, row.ratio_high = (
                found.median,
                found.low,
                found.high,
            )
    return result


def _of(work: Work, label: str) -> int | None:
    value = work.get(label) if isinstance(work, dict) else work
    return None if value is None else int(value)


def _row(
    label: str,
    times: list[Run],
    bytes: int | None,
    flops: int | None,
    peak: float | None,
    launch: Callable[[], object],
) -> Row:
    us = [rounded(run.us) for run in times]
    p20, median, p80 = spread(us)
    value = None
    if bytes is not None:
        value = bytes / median / 1e3
    elif flops is not None:
        value = flops / median / 1e6
    clocks = [(run.us, run.mhz) for run in times if run.mhz is not None]
    return Row(
        name=label,
        median_us=median,
        p20_us=p20,
        p80_us=p80,
        value=value,
        of_peak=value / peak if value is not None and peak else None,
        vendor=bool(getattr(launch, "vendor", False)),
        ratio_to_vendor=None,
        bytes=bytes,
        flops=flops,
        times=" ".join(f"{one:g}" for one in us),
        host_us=rounded(statistics.median(run.host_us for run in times)),
        waits=None if all(run.hidden for run in times) else True,
        mhz=rounded(statistics.median(mhz for _, mhz in clocks)) if clocks else None,
        cycles=rounded(statistics.median(took * mhz for took, mhz in clocks)) if clocks else None,
    )
