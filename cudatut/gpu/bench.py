"""Time kernels honestly: CUDA events, warm-up, a clean L2 before each run, contestants interleaved, medians with spread."""

import math
import random
import statistics
from collections.abc import Callable

from cudatut import tool
from cudatut.errors import BenchError
from cudatut.gpu import limits
from cudatut.gpu.device import activate
from cudatut.gpu.kernel import cdiv
from cudatut.gpu.timing import flushes_for, time_hidden, time_once_bare
from cudatut.results import Benchmark, Row, show

Work = int | float | dict[str, int | float] | None

_BUDGET_US = 4e5  # of GPU time for one benchmark
_MIN_ROUNDS, _MAX_ROUNDS = 5, 100


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
    missing or does not run (`ct.vendor`) the reason stands in its place. In every round each runs, in rotating order,
    always after an L2 flush; where slow contestants leave fewer than 100 rounds, fast ones run several times in each.
    bytes: moved by one call (read plus written), for GB/s; or flops: for TFLOP/s; a number, or a dict by name.
    rounds: default as many as fit in 0.4 s of GPU time, 5 to 100.
    limit: False leaves the share of the limit out, as for slow products on tensor cores: the limit of FMAs is not theirs.

    Returns a Benchmark: median, 20th and 80th percentile in microseconds, GB/s or TFLOP/s, the share of this GPU's
    measured limit (of FLOPs, that of fp32 FMAs; none where a contestant is beyond it), the ratio to the fastest row of the
    vendor's library, if there is one. Raises BenchError for a time of 0 or NaN, or no candidate.
    While a sanitizer or profiler runs the process every candidate runs once and nothing is shown.
    """
    activate()
    runs, missing = _able(candidates)
    if not runs:
        why = "".join(f"; {label}: {reason}" for label, reason in missing.items())
        raise BenchError(f"bench {name or ''}: nothing to measure, every candidate is missing{why}")
    if tool.running():
        times = {label: [time_once_bare(launch)] for label, launch in runs.items()}
        return _result(name, runs, times, bytes, flops, 1, peak=None)

    flushes = {label: flushes_for(launch) for label, launch in runs.items()}
    estimates = {label: max(time_hidden(run, flushes[label]), 1.0) for label, run in runs.items()}
    count = rounds or max(_MIN_ROUNDS, min(_MAX_ROUNDS, int(_BUDGET_US / sum(estimates.values()))))
    repeats = {label: _repeats(estimate, count) for label, estimate in estimates.items()}
    times = {label: [] for label in runs}
    order = list(runs)
    for turn in range(count):
        shift = turn % len(order)
        for label in order[shift:] + order[:shift]:
            for _ in range(repeats[label]):
                times[label].append(time_hidden(runs[label], flushes[label]))
    peak = _peak(bytes, flops) if limit else None
    result = _result(name, runs, times, bytes, flops, count, peak)
    result.missing = missing
    show(result)
    return result


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


def _repeats(estimate_us: float, rounds: int) -> int:
    """Runs per round: a slow contestant leaves few rounds, and then a fast one runs several times in each."""
    return max(1, min(cdiv(_MAX_ROUNDS, 2 * rounds), int(_BUDGET_US / 10 / (rounds * estimate_us))))


def _peak(bytes: Work, flops: Work) -> float | None:
    return limits.bandwidth() if bytes is not None else limits.fma() if flops is not None else None


def _result(name, runs, times, bytes, flops, rounds: int, peak: float | None) -> Benchmark:
    unit = "GB/s" if bytes is not None else "TFLOP/s" if flops is not None else "us"
    rows = [
        _row(label, times[label], _of(bytes, label), _of(flops, label), peak, launch)
        for label, launch in runs.items()
    ]
    for row in () if tool.running() else rows:
        if not (math.isfinite(row.median_us) and row.median_us > 0):
            raise BenchError(
                f"bench {name or ''}: '{row.name}' took {row.median_us} us; that is no measurement"
            )
    if flops is not None and peak and any(row.value and row.value > 1.05 * peak for row in rows):
        # Beyond what FMAs can do: tensor cores computed it, and the limit is not theirs.
        peak = None
        for row in rows:
            row.of_peak = None
    if any(row.vendor for row in rows):
        # Rates, where the work is known: rows of different work must not be compared by their times.
        speed = {row.name: 1 / row.median_us if row.value is None else row.value for row in rows}
        fastest = max(speed[row.name] for row in rows if row.vendor)
        for row in rows:
            row.ratio_to_vendor = speed[row.name] / fastest
    return Benchmark(name or "benchmark", unit, peak, rows, rounds)


def _of(work: Work, label: str) -> int | None:
    value = work.get(label) if isinstance(work, dict) else work
    return None if value is None else int(value)


def _row(label: str, times: list[float], bytes: int | None, flops: int | None, peak, launch) -> Row:
    median = statistics.median(times)
    p20, *_, p80 = statistics.quantiles(times, n=5) if len(times) > 1 else (median, median)
    value = None
    if bytes is not None or flops is not None:
        value = bytes / median / 1e3 if bytes is not None else flops / median / 1e6
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
    )
