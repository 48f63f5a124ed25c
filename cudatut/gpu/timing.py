"""Time one launch honestly: CUDA events, behind a flush of the L2 cache that also hides the host's part."""

import time
from collections.abc import Callable
from functools import cache

from cudatut import tool
from cudatut.gpu.device import device
from cudatut.gpu.kernel import cdiv
from cudatut.gpu.memory import empty
from cudatut.gpu.probes import random_words, read_once

_MOST_FLUSHES = 64  # outlast what the host needs for some hundred launches
_LONG_US = 1e4  # beside so long a kernel the host's time is nothing


def time_once(launch: Callable[[], object], flushes: int = 1) -> float:
    """Microseconds on the GPU between just before and just after what `launch` enqueues; L2 is flushed first.

    The flush also keeps the GPU busy while the host enqueues the launch, so that the launch's overhead on the host stays
    out of the time; `flushes` says how often it runs, for a launch that takes the host long.
    """
    import pycuda.driver as cuda

    start, stop = cuda.Event(), cuda.Event()
    for _ in range(flushes):
        flush_l2()
    start.record()
    launch()
    stop.record()
    stop.synchronize()
    return start.time_till(stop) * 1e3


def time_once_bare(launch: Callable[[], object]) -> float:
    """One launch between two events, nothing else: what a run under a tool can afford."""
    return time_once(launch, flushes=0)


def time_hidden(launch: Callable[[], object], flushes: int = 1) -> float:
    """As `time_once`, but only a run counts during whose flushes the host has enqueued the whole launch.

    Something else may hold the host up at any time; a run that it held up is timed once more, behind as many flushes as
    outlast twice what the host took, at most 64.
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
    # Reading, not writing: dirty lines would be written back on the account of the kernel that is timed.
    # Under a tool there is nothing to time, and so much instrumented work would keep others from the GPU.
    nbytes = tool.size(max(4 * device().l2_bytes, 1 << 28), 1 << 16)
    words, sink = random_words(nbytes // 4), empty(1, "uint32")
    return lambda: read_once(words, sink)


def flush_l2() -> None:
    """Replace what the L2 cache holds, so that a run finds none of its data there. Enqueued, not waited for."""
    _flusher()()


@cache
def _flush_us() -> float:
    """How long one flush keeps the GPU busy."""
    flush_l2()
    return time_once_bare(lambda: [flush_l2() for _ in range(10)]) / 10


def flushes_for(launch: Callable[[], object]) -> int:
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
