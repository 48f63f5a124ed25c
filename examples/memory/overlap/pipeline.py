"""Numbers that go to the GPU, are computed with, and come back, in chunks.

chunks = pieces(64, x, d, y)  # on the host, on the GPU, on the host again
enqueue(chunks, [cuda.Stream() for _ in range(4)], steps)
"""

from functools import cache
from itertools import pairwise
from time import perf_counter

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.overlap.model import STAGES

A, C = 1664525, 1013904223  # a step of the generator: v * A + C


@cache
def kernel():
    return ct.Kernel("memory/overlap/overlap.cu", "forward")


# --8<-- [start:pieces]
def pieces(count, *arrays):
    """So many chunks of each array, beside each other."""
    n = arrays[0].size
    cuts = [n * k // count for k in range(count + 1)]
    bounds = [(i, j) for i, j in pairwise(cuts) if i < j]
    return [tuple(array[i:j] for array in arrays) for i, j in bounds]


# --8<-- [end:pieces]


# --8<-- [start:enqueue]
def enqueue(chunks, streams, steps, stages=STAGES):
    """Depth-first: all that becomes of a chunk, then the next one."""
    forward = kernel()
    for k, (source, work, result) in enumerate(chunks):
        stream = streams[k % len(streams)]
        if "in" in stages:
            cuda.memcpy_htod_async(work.gpudata, source, stream)
        if "kernel" in stages:
            forward(
                work, work.size, steps, A, C,
                grid=ct.cdiv(work.size, 256), block=256, stream=stream,
            )  # fmt: skip
        if "out" in stages:
            cuda.memcpy_dtoh_async(result, work.gpudata, stream)


# --8<-- [end:enqueue]


# --8<-- [start:breadth]
def breadth(chunks, streams, steps):
    """Breadth-first: one stage of all chunks, then the next one."""
    for stage in STAGES:
        enqueue(chunks, streams, steps, [stage])


# --8<-- [end:breadth]


def moved(values, steps):
    """What the kernel has to make of these values: many steps are one."""
    a, c = 1, 0
    for _ in range(steps):
        a, c = A * a % 2**32, (C + A * c) % 2**32
    return values * np.uint32(a) + np.uint32(c)


def median_ms(launch, runs=5):
    """Of the GPU, from the first copy to the end of the last."""
    time_us = ct.time_once_bare if ct.tool.running() else ct.time_hidden
    launch()  # the first run is not timed
    return float(np.median([time_us(launch) for _ in range(runs)])) / 1e3


def wall_ms(launch, runs=5):
    """Medians by the host's clock: until all is done, and in the calls."""
    both = []
    for _ in range(1 + runs):
        ct.synchronize()
        begin = perf_counter()
        launch()
        called = perf_counter()
        ct.synchronize()
        both.append((perf_counter() - begin, called - begin))
    done, calls = np.median(both[1:], axis=0) * 1e3
    return float(done), float(calls)


# --8<-- [start:measure]
class Meter:
    """Measures the stages of a pipeline, each with the others left out."""

    def __init__(self, arrays, streams, many, runs):
        self.whole, self.small = pieces(1, *arrays), pieces(many, *arrays)
        self.streams, self.runs = streams, runs
        self.copies = {s: self.stage([s], 0) for s in ("in", "out")}
        self.copies["both"] = self.both()

    def ms(self, chunks, steps, stages=STAGES):
        return median_ms(
            lambda: enqueue(chunks, self.streams, steps, stages), self.runs
        )

    def stage(self, stages, steps):
        """ms of all bytes, and what each chunk costs besides."""
        once, often = (
            self.ms(chunks, steps, stages)
            for chunks in (self.whole, self.small)
        )
        cost = max((often - once) / (len(self.small) - 1), 1e-4)
        return max(once - cost, 1e-3), cost

    def both(self):
        """The same of both copies at once."""
        # In chunks: one copy alone at each end, in between one of each kind.
        many = len(self.small)
        ends = sum(ms / many + cost for ms, cost in self.copies.values())
        turn = (self.ms(self.small, 0, ["in", "out"]) - ends) / (many - 1)
        cost = max(cost for _, cost in self.copies.values())
        return max(many * (turn - cost), 1e-3), cost

    def all(self, steps):
        """Of every stage, and of both copies at once."""
        kernel = self.stage(["kernel"], steps)
        return {
            name: self.copies.get(name, kernel) for name in (*STAGES, "both")
        }

    def steps_for(self, ms):
        """Steps with which the kernel takes about so long."""
        if ct.tool.running():
            return 5  # its times tell nothing
        few, more = (self.ms(self.whole, s, ["kernel"]) for s in (100, 300))
        each = max((more - few) / 200, 1e-6)
        return min(max(round(100 + (ms - few) / each), 1), 1_000_000)


# --8<-- [end:measure]
