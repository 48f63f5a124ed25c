"""Time one launch honestly: CUDA events, behind a flush of the L2 cache, and behind a gate that the host opens.

What the host needs to enqueue a launch (some microseconds, or 60 for one with several tensor maps) is no part of the
kernel's time. So the GPU waits at a gate until everything between the two events is enqueued.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from cudatut import tool
from cudatut.fingerprint import ran
from cudatut.gpu.device import device
from cudatut.gpu.gate import Gate, gate
from cudatut.gpu.memory import empty
from cudatut.gpu.probes import random_words, read_once
from cudatut.gpu.sm_clock import stamps


@dataclass(frozen=True)
class Run:
    """One run of a launch.

    us: microseconds on the GPU. host_us: what the host needed to enqueue it. mhz: the clock of the SMs meanwhile, None
    where nobody asked or no SM told. hidden: False where the launch itself waits for the GPU; then what the host does
    between the two events is part of `us`.
    """

    us: float
    host_us: float
    mhz: float | None = None
    hidden: bool = True


def time_once(launch: Callable[[], object], flushes: int = 1) -> float:
    """Microseconds on the GPU between just before and just after what `launch` enqueues; L2 is flushed first.

    The flush also keeps the GPU busy while the host enqueues the launch; `flushes` says how often it runs. For a launch
    that takes the host longer than that there is `time_hidden`.
    """
    ran.use("timing")
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


def time_hidden(launch: Callable[[], object]) -> float:
    """Microseconds on the GPU of what `launch` enqueues, behind a flush of L2 and a gate: see `timed`."""
    return timed(launch).us


def timed(launch: Callable[[], object], gated: bool = True, clock: bool = False) -> Run:
    """Run a launch between two events, behind a flush of L2 and a gate that opens once the host has enqueued all of it.

    A launch that waits for the GPU by itself (it copies a result to the host, or allocates) cannot be enqueued ahead, and
    the gate loses patience. What waits once, as the first launch does that loads its code, is repeated; what waits twice
    runs behind the flush alone, as it does with `gated=False`.
    clock: whether the clock of the SMs is read, right before and right after.
    """
    ran.use("timing")
    for _ in range(2 if gated else 0):
        run = _between_events(launch, clock, gate())
        if run.hidden:
            return run
    return _between_events(launch, clock, None)


def _between_events(launch: Callable[[], object], clock: bool, shut: Gate | None) -> Run:
    import pycuda.driver as cuda

    start, stop = cuda.Event(), cuda.Event()
    flush_l2()
    if shut:
        shut.shut()
    try:
        if clock:
            stamps().before()
        start.record()
        begin = time.perf_counter()
        launch()
        host_us = (time.perf_counter() - begin) * 1e6
        stop.record()
        if clock:
            stamps().after()
    finally:  # also where the launch raises, or the GPU would stand still for a while
        if shut:
            shut.open()
    cuda.Context.synchronize()
    mhz = stamps().mhz() if clock else None
    hidden = shut is not None and shut.held()
    return Run(start.time_till(stop) * 1e3, host_us, mhz, hidden)


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
