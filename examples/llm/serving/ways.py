"""Ways to compute the same requests with one engine, and what each gives: the
steps, the answers, the logits.

    fast = GpuBackend(model, COUNT, BLOCK, **ROOM)
    played = play(fast, [Request(0, prompt, 32)])
    played.steps, played.rate           # tokens per second
    rows = compared(fast, prompts, say=24)
"""

import copy
from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.book.llm.engine.arrivals import uniform, workload
from cudatut.book.llm.engine.batch import Batch
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.prefix import PrefixBlocks
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.random_model import RandomModel

COUNT, BLOCK = 8192, 16  # blocks, tokens of a block
BUDGET = 8192  # tokens of a step, where many requests are to be fast
ROOM = {"max_tokens": BUDGET, "max_requests": 256, "max_logits": 2048}

Manager = NaiveBlocks | type[NaiveBlocks]


def served(checkpoint: Checkpoint) -> Checkpoint | RandomModel:
    """The checkpoint; while a sanitizer watches, a small model of random
    numbers.
    """
    small = {"layers": 1, "dim": 128, "heads": 2, "kv_heads": 1, "ffn": 256}
    return RandomModel(**small, vocab=512) if ct.tool.running() else checkpoint


def eager(backend: Any) -> Any:
    """The same weights, cache and arrays without graphs: Python launches every
    kernel of a step.
    """
    found = copy.copy(backend)
    found.graphs, found._graphs = False, type(backend._graphs)()
    return found


def prompts_of(lengths: Sequence[int], vocab: int) -> list[list[int]]:
    """Prompts of so many random tokens, the same each time."""
    rng = ct.rng(0)
    return [rng.integers(5, vocab, n).tolist() for n in lengths]


def crowd(
    count: int, prompt: tuple[int, int], output: tuple[int, int], vocab: int
) -> list[Request]:
    """Requests that are all there at once. prompt, output: least and most of
    their tokens, all lengths equally often.
    """
    lengths = {"prompt": uniform(*prompt), "output": uniform(*output)}
    return workload(count, float("inf"), **lengths, seed=0, vocab=vocab)


class Played(NamedTuple):
    """requests: run to their ends. seconds: of the steps alone."""

    requests: list[Request]
    steps: int
    seconds: float

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return sum(len(one.output) for one in self.requests) / self.seconds


def run(engine: Engine, requests: list[Request]) -> Played:
    """Run requests to their ends."""
    for request in requests:
        engine.add(request)
    steps, begin = 0, perf_counter()
    while engine.busy:
        engine.step()
        steps += 1
    return Played(requests, steps, perf_counter() - begin)


def engine_of(
    backend: Any, manager: Manager = NaiveBlocks, speculate: int = 0,
    ahead: bool = False, **options: Any,
) -> Engine:  # fmt: skip
    """options: of the scheduler."""
    if isinstance(manager, type):
        manager = manager(backend.block_count, backend.block_size)
    options = {"token_budget": 2048, "max_running": 256, **options}
    scheduler = Scheduler(manager, context=backend.config.context, **options)
    return Engine(backend, scheduler, speculate, ahead)


def play(
    backend: Any, requests: list[Request], *how: Any, **more: Any
) -> Played:
    """Run requests to their ends on an engine of their own; how and more: see
    `engine_of`.
    """
    return run(engine_of(backend, *how, **more), requests)


# --8<-- [start:watched]
class Watched:
    """A backend that keeps the logits of each request and position. engine:
    whose steps it computes, to be set.
    """

    engine: Engine

    def __init__(self, backend: Any):
        self.backend, self.config = backend, backend.config
        self.block_count = backend.block_count
        self.block_size, self.room = backend.block_size, backend.room
        self.kept: dict[tuple[int, int], np.ndarray] = {}

    def run(self, batch: Batch) -> Any:
        logits = self.backend.run(batch)
        work = self.engine.last.work
        if len(batch.wanted):
            host = logits.get()
            for row, token in enumerate(batch.wanted.tolist()):
                i = int(np.searchsorted(batch.starts, token, "right")) - 1
                key = work[i].request.id, int(batch.positions[token])
                self.kept[key] = host[row].copy()
        return logits

    def sample(self, logits: Any, draws: Any) -> Any:
        return self.backend.sample(logits, draws)

    def fetch(self, drawn: Any) -> np.ndarray:
        return self.backend.fetch(drawn)


def watched(
    backend: Any, requests: list[Request], *how: Any, **more: Any
) -> dict[tuple[int, int], np.ndarray]:
    """As `play`; the logits by request and position."""
    seen = Watched(backend)
    seen.engine = engine_of(seen, *how, **more)
    run(seen.engine, requests)
    return seen.kept


# --8<-- [end:watched]


# --8<-- [start:compared]
def compared(
    backend: Any, prompts: list[list[int]], say: int, ways_n: int
) -> dict[str, dict[str, Any]]:
    """The first `ways_n` ways to compute answers of `say` tokens, each beside
    'by itself': answers, and logits while the tokens agree.
    """

    def asked_for() -> list[Request]:
        return [Request(i, prompt, say) for i, prompt in enumerate(prompts)]

    few = copy.copy(backend)  # the same memory, but fewer blocks are used
    longest = max(map(len, prompts)) + say
    few.block_count = ct.cdiv(longest, backend.block_size) + 1
    found = PrefixBlocks(backend.block_count, backend.block_size)
    ways: dict[str, dict[str, Any]] = {
        "by itself": {"max_running": 1},
        "in a batch": {},
        "in chunks of 16": {"token_budget": 16},
        "preempted": {"backend": few, "watermark": 0},
        "prefix found": {"manager": found},
        "guessed tokens": {"speculate": 4},
        "a step ahead": {"ahead": True},
        "without graphs": {"backend": eager(backend)},
    }
    rows, alone = {}, None
    for name, how in list(ways.items())[:ways_n]:
        if "manager" in how:  # so that the second time it is found
            play(backend, asked_for(), found)
        requests = asked_for()
        how = {"backend": backend, "max_running": len(prompts), **how}
        kept = watched(how.pop("backend"), requests, **how)
        said = [request.output for request in requests]
        alone = alone or (said, kept)
        largest, count, equal = 0.0, 0, 0
        for i, (one, other) in enumerate(zip(alone[0], said)):
            start = len(prompts[i]) - 1
            for n in range(say):
                if one[:n] != other[:n]:
                    break
                a, b = (of[i, start + n] for of in (alone[1], kept))
                count, equal = count + 1, equal + np.array_equal(a, b)
                largest = max(largest, float(np.abs(a - b).max()))
        rows[name] = {
            "answers as alone": sum(a == b for a, b in zip(alone[0], said)),
            "rows of logits": count,
            "equal in every bit": int(equal),
            "largest difference": largest,
            "preemptions": sum(request.preemptions for request in requests),
            "tokens found": sum(request.cached for request in requests),
        }
    return rows


# --8<-- [end:compared]
