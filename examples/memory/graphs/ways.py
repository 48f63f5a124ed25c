"""How long a chain of launches takes, by several clocks; and PyTorch's chain.

take({"PyCUDA": launches, "CUDA graph": graph}, count, rounds)
"""

import random
import statistics
from collections.abc import Callable, Mapping
from time import perf_counter

import numpy as np

import cudatut as ct
from cudatut.book.measure.graphs import torch_recorded
from cudatut.book.rivals.torch_rival import rival

Run = Callable[[], object]


# --8<-- [start:take]
def as_sent(run: Run) -> float:
    """Microseconds between two events on an idle GPU, the host's work too."""
    import pycuda.driver as cuda

    ct.synchronize()
    start, stop = cuda.Event(), cuda.Event()
    start.record()
    run()
    stop.record()
    stop.synchronize()
    return 1e3 * start.time_till(stop)


def on_host(run: Run) -> float:
    """Microseconds until the host has handed everything over."""
    ct.synchronize()
    begin = perf_counter()
    run()
    took = 1e6 * (perf_counter() - begin)
    ct.synchronize()
    return took


CLOCKS = {
    "host": on_host,
    "as sent": as_sent,
    "behind a gate": ct.time_hidden,
}


def take(
    runs: Mapping[str, Run], count: int, rounds: int
) -> dict[str, dict[str, float]]:
    """By name and clock: microseconds for each of `count` kernels, the median
    of some rounds in which all take turns.
    """
    if ct.tool.running():
        for run in runs.values():
            run()
        ct.synchronize()
        return {name: dict.fromkeys(CLOCKS, 1.0) for name in runs}
    for run in runs.values():
        run()  # the first time costs more
    found: dict[str, dict[str, float]] = {name: {} for name in runs}
    # As plain functions: to name a rival's kernels would slow down what follows.
    turns = {name: lambda run=run: run() for name, run in runs.items()}
    for clock, time in CLOCKS.items():
        times = ct.take_turns(turns, rounds, random.Random(0), time=time)
        for name, us in times.items():
            found[name][clock] = statistics.median(us) / count
    return found


# --8<-- [end:take]


# --8<-- [start:pytorch]
def pytorch(count: int) -> dict[str, Run]:
    """So many short kernels of PyTorch, one by one and as its own graph;
    empty where it cannot run.
    """

    def prepare(torch, x):
        return lambda: [x.add_(1.0) for _ in range(count)]

    def recorded(torch, x):
        return torch_recorded(torch, prepare(torch, x))

    x = ct.to_device(np.zeros(1000, "float32"))
    ways = {
        "PyTorch": rival(prepare, x),
        "PyTorch, CUDA graph": rival(recorded, x),
    }
    return {
        name: way
        for name, way in ways.items()
        if way is not None and not getattr(way, "reason", None)
    }


# --8<-- [end:pytorch]
