"""Requests that are all there from the beginning, served at once: the seconds of
each step, and what they say about the bound.

    engine = engine_of(backend, Scheduler, "fcfs", budget=2048, slots=64)
    seconds, steps = serve(engine, requests_of((32, 512, 32, 256), 256, 49152))
"""

from time import perf_counter
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.llm.engine.arrivals import uniform, workload
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.engine.static_batches import StaticBatches

KINDS = {
    "static": (StaticBatches, "fcfs"),
    "continuous, first come": (Scheduler, "fcfs"),
    "continuous, longest first": (Scheduler, "longest"),
}
BLOCKS, BLOCK = 6000, 16  # of the cache; tokens of one

Times = dict[int, list[float]]  # us of steps, by the number of their requests


def requests_of(
    ends: tuple[int, int, int, int], count: int, vocab: int
) -> list[Request]:
    """So many requests, the same each time. ends: of the tokens of prompts, and
    of answers, from and to, equally often.
    """
    low, high, least, most = ends
    prompt, output = uniform(low, high), uniform(least, most)
    return workload(count, np.inf, prompt, output, vocab=vocab)


def engine_of(
    backend: Any, kind: type[Scheduler], policy: str, budget: int, slots: int,
    ahead: bool = False,
) -> Engine:  # fmt: skip
    """budget: tokens of a step. slots: requests at a time."""
    blocks = NaiveBlocks(BLOCKS, BLOCK)
    scheduler = kind(blocks, budget, slots, policy, context=8192)
    return Engine(backend, scheduler, ahead=ahead)


# --8<-- [start:serve]
def serve(
    engine: Engine, requests: list[Request], seen: Times | None = None
) -> tuple[float, list[float]]:
    """Seconds for all requests, and for each step. engine: one that runs ahead.
    seen: gets the times of the steps that only decode.
    """
    for request in requests:
        engine.add(request)
    ct.synchronize()
    begin = before = perf_counter()
    steps, begun = [], []
    while engine.busy:
        # Starts a step, and waits for the one before.
        engine.step()
        now = perf_counter()
        done, begun = begun, engine.last.work
        decodes = done and all(w.stop - w.start == 1 for w in done)
        if decodes and seen is not None:
            seen.setdefault(len(done), []).append(1e6 * (now - before))
        steps.append(now - before)
        before = now
    assert all(len(r.output) == r.max_tokens for r in requests)
    return before - begin, steps


# --8<-- [end:serve]


def step_us(times: Times, requests: int) -> float:
    """Of a step that only decodes, with so many requests."""
    known = sorted(times)
    typical = [float(np.median(times[n])) for n in known]
    return float(np.interp(requests, known, typical))


def bound_with_times(times: Times, outputs: list[int], slots: int) -> float:
    """Times static, if all steps decode and take as long as these."""
    static = 0.0
    for i in range(0, len(outputs), slots):
        batch = outputs[i : i + slots]
        for step in range(max(batch)):
            static += step_us(times, sum(length > step for length in batch))
    least = max(ct.cdiv(sum(outputs), slots), max(outputs))
    return static / (least * step_us(times, slots))
