"""Overlap on a real GPU: the pipeline with few buffers 1,000 times, and races planted into it."""

from textwrap import dedent

import numpy as np
import pytest

import cudatut as ct
from cudatut import exercises

A, C, STEPS = 1664525, 1013904223, 8
# A wait of the solution, what stands in its place, and the delay of the kernels with which it shows. The events are still
# recorded, and nobody waits for them.
FAULTS = {
    "a buffer used again too early": ("coming.wait_for_event(free[own])", "pass", 4_000_000),
    "a kernel before its copy": ("computing.wait_for_event(", "(", 0),
    "a copy out before its kernel": ("leaving.wait_for_event(", "(", 200_000),
}


def pipeline_of(solution: str):
    import pycuda.driver as cuda

    names = {"cuda": cuda}
    exec(dedent(solution), names)
    return names["pipeline"]


def wrong_numbers(pipeline, size: int, count: int, delay: int, rounds: int) -> int:
    """How many results are wrong in all, with random delays of up to so many nanoseconds."""
    import pycuda.driver as cuda

    forward = ct.Kernel("memory/overlap/overlap.cu", "forward")
    hold = ct.Kernel("memory/overlap/overlap.cu", "hold")
    x, y = (cuda.pagelocked_empty((count, size), "uint32") for _ in range(2))
    x[:] = ct.rng(0).integers(0, 1 << 32, x.shape, dtype="uint32")
    expected = x.copy()
    for _ in range(STEPS):
        expected = expected * np.uint32(A) + np.uint32(C)
    buffers = [ct.to_device(x[0]) for _ in range(3)]
    streams, rng, wrong = [cuda.Stream() for _ in range(3)], ct.rng(1), 0

    def work(buffer, k, stream):
        if delays[k]:
            hold(int(delays[k]), grid=1, block=1, stream=stream)
        grid = ct.cdiv(size, 256)
        forward(buffer, size, STEPS, A, C, grid=grid, block=256, stream=stream)

    for _ in range(rounds):
        delays = rng.integers(delay // 2, delay + 1, count)
        y[:] = ~expected
        ct.synchronize()
        pipeline(list(zip(x, y)), buffers, work, streams)
        ct.synchronize()
        wrong += int(np.count_nonzero(y != expected))
    return wrong


def test_a_thousand_runs_with_random_delays_are_right():
    pipeline = pipeline_of(exercises.get("memory/overlap", 2).solution)
    assert wrong_numbers(pipeline, 4_099, 8, 20_000, 1000) == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_wait_is_noticed(fault):
    wait, instead, delay = FAULTS[fault]
    solution = exercises.get("memory/overlap", 2).solution
    assert solution.count(wait) == 1
    faulty = pipeline_of(solution.replace(wait, instead))
    assert wrong_numbers(faulty, 4_194_304, 6, delay, 3) > 0
