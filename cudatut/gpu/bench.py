"""Time kernels honestly: CUDA events, warm-up, a clean L2 before each run, contestants interleaved, medians with spread."""

import math
import random
import statistics
import time
from collections.abc import Callable
from functools import cache

from cudatut import tool
from cudatut.errors import BenchError
from cudatut.gpu.device import activate, device
from cudatut.gpu.kernel import cdiv
from cudatut.results import Benchmark, Row, show

Work = int | float | dict[str, int | float] | None

_BUDGET_US = 4e5  # of GPU time for one benchmark
_MIN_ROUNDS, _MAX_ROUNDS = 5, 100
_MOST_FLUSHES = 20
_LONG_US = 1e4  # beside so long a kernel the host's time is nothing


def time_once(launch: Callable[[], object], flushes: int = 1) -> float:
    """Microseconds on the GPU between just before and just after what `launch` enqueues; L2 is flushed first.

    The flush also keeps the GPU busy while the host enqueues the launch, so that the launch's overhead on the host stays
    out of the time; `flushes` says how often it runs, for a launch that takes the host long.
    """
    return _timed(launch, lambda: [flush_l2() for _ in range(flushes)])


def time_once_bare(launch: Callable[[], object]) -> float:
    """One launch between two events, nothing else: what a run under a tool can afford."""
    return _timed(launch)


def _timed(launch: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    import pycuda.driver as cuda

    start, stop = cuda.Event(), cuda.Event()
    before()
    start.record()
    launch()
    stop.record()
    stop.synchronize()
    return start.time_till(stop) * 1e3


def time_hidden(launch: Callable[[], object], flushes: int = 1) -> float:
    """As `time_once`, but only a run counts during whose flushes the host has enqueued the whole launch.

    Something else may hold the host up at any time; a run that it held up is timed once more, behind as many flushes as
    outlast twice what the host took, at most 20.
    """
    while True:
        host_us = 0.0

        def enqueue() -> None:
            nonlocal host_us
            begin = time.perf_counter()
            launch()
            host_us = (time.perf_counter() - begin) * 1e6

        took = time_once(enqueue, flushes)
        # A margin for the events, and for the part of the flush that passes before the launch begins.
        needed_us = 1.25 * host_us + 10
        if needed_us < flushes * _flush_us() or took > _LONG_US or flushes >= _MOST_FLUSHES:
            return took
        flushes = min(_MOST_FLUSHES, max(flushes + 1, cdiv(int(2 * needed_us), int(_flush_us()))))


@cache
def _flusher() -> Callable[[], None]:
    from cudatut.gpu.limits import random_words, read_once
    from cudatut.gpu.memory import empty

    # Reading, not writing: dirty lines would be written back on the account of the kernel that is timed.
    # Under a tool there is nothing to time, and so much instrumented work would keep others from the GPU.
    nbytes = tool.size(max(4 * device().l2_bytes, 1 << 28), 1 << 16)
    words, sink = random_words(nbytes // 4), empty(1, "uint32")
    return lambda: read_once(words, sink)


def flush_l2() -> None:
    """Replace what the L2 cache holds, so that a run finds none of its data there. Enqueued, not waited for."""
    _flusher()()


def bench(
    candidates: dict[str, Callable[[], object] | None],
    bytes: Work = None,
    flops: Work = None,
    name: str | None = None,
    rounds: int | None = None,
) -> Benchmark:
    """Time callables against each other and show the table.

    candidates: name -> function that launches the work and returns at once. None leaves the row out; for a library that is
    missing or does not run (`ct.vendor`) the reason stands in its place. In every round each runs, in rotating order,
    always after an L2 flush; where slow contestants leave fewer than 100 rounds, fast ones run several times in each.
    bytes: moved by one call (read plus written), for GB/s; or flops: for TFLOP/s; a number, or a dict by name.
    rounds: default as many as fit in 0.4 s of GPU time, 5 to 100.

    Returns a Benchmark: median, 20th and 80th percentile in microseconds, GB/s or TFLOP/s, the share of this GPU's
    measured limit, the ratio to the fastest row of the vendor's library, if there is one. Raises BenchError for a time of
    0 or NaN, or no candidate.
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

    flushes = {label: _flushes(launch) for label, launch in runs.items()}
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
    result = _result(name, runs, times, bytes, flops, count, _peak(bytes, flops))
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


def _flushes(launch: Callable[[], object]) -> int:
    """Warm a contestant up, and find how many flushes outlast what the host needs to enqueue it, with a margin."""
    import pycuda.driver as cuda

    if time_once(launch) > _LONG_US:  # or it compiles, loads, allocates
        return 1
    host = []
    for _ in range(5):
        begin = time.perf_counter()
        launch()
        host.append((time.perf_counter() - begin) * 1e6)
        cuda.Context.synchronize()
    return max(1, min(_MOST_FLUSHES, cdiv(int(3 * max(host)), int(_flush_us()))))


@cache
def _flush_us() -> float:
    """How long one flush keeps the GPU busy."""
    flush_l2()
    return _timed(lambda: [flush_l2() for _ in range(10)]) / 10


def _peak(bytes: Work, flops: Work) -> float | None:
    from cudatut.gpu import limits

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
