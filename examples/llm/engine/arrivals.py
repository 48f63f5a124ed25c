"""When requests come, how long they are, and what their users saw: seeded
workloads and their metrics.

    lengths = {"prompt": uniform(32, 512), "output": uniform(32, 256)}
    requests = workload(200, rate=50.0, seed=0, **lengths)
    replay(engine, requests, clock.wait)
    print(metrics(requests))

A clock that only a model of a GPU moves makes scheduling visible without one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cudatut.book.llm.engine.batch import Room
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.request import Request, State
from cudatut.book.llm.engine.scheduler import Refused

Lengths = Callable[[np.random.Generator, int], np.ndarray]


# --8<-- [start:arrivals]
def uniform(low: int, high: int) -> Lengths:
    """Each length from low to high, both included, equally often."""
    return lambda rng, n: rng.integers(low, high + 1, n)


def lognormal(median: float, sigma: float, most: int) -> Lengths:
    """Many short ones and few long ones, as people write; 1 to `most`. sigma:
    standard deviation of the logarithm.
    """

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        lengths = median * np.exp(sigma * rng.standard_normal(n))
        return np.clip(np.rint(lengths), 1, most).astype(int)

    return draw


def poisson(rng: np.random.Generator, rate: float, n: int) -> np.ndarray:
    """Times of n arrivals that know nothing of each other, `rate` a second on
    average; rate inf: all at 0.
    """
    if np.isinf(rate):
        return np.zeros(n)
    return np.cumsum(rng.exponential(1 / rate, n))


def workload(
    n: int,
    rate: float,
    prompt: Lengths,
    output: Lengths,
    seed: int = 0,
    vocab: int = 49152,
    **fields: Any,
) -> list[Request]:
    """n requests with prompts of random tokens; the same for the same seed.
    fields: further ones of every Request.
    """
    rng = np.random.default_rng(seed)
    prompts, outputs = prompt(rng, n), output(rng, n)
    times = poisson(rng, rate, n)
    return [
        Request(
            i,
            rng.integers(0, vocab, prompts[i]).tolist(),
            int(outputs[i]),
            float(times[i]),
            **fields,
        )
        for i in range(n)
    ]


# --8<-- [end:arrivals]


# --8<-- [start:clock]
class Clock:
    """A clock that only moves when it is told: a run without a GPU takes the
    time that a model of one gives.
    """

    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, until: float) -> None:
        """Let the time come."""
        self.now = until


class ModelBackend:
    """A backend that computes nothing and lets a clock run on by the time that
    a step is expected to take.

    step_us: of a step that only reads the weights; token_us: added per token,
    kv_us: per token that attention reads. Its tokens are all 0.
    """

    config = None
    room = Room()

    def __init__(
        self,
        clock: Clock,
        block_count: int,
        block_size: int,
        step_us: float = 500.0,
        token_us: float = 1.0,
        kv_us: float = 0.01,
    ):
        self.clock, self.costs = clock, (step_us, token_us, kv_us)
        self.block_count, self.block_size = block_count, block_size

    def run(self, batch) -> int:
        step, token, kv = self.costs
        read = int(batch.lengths.sum())
        us = step + token * len(batch.tokens) + kv * read
        self.clock.now += us * 1e-6
        return len(batch.wanted)

    def sample(self, logits: int, draws) -> np.ndarray:
        return np.zeros(logits, "int32")

    def fetch(self, drawn: np.ndarray) -> np.ndarray:
        return drawn


# --8<-- [end:clock]


# --8<-- [start:replay]
def replay(
    engine: Engine,
    requests: Sequence[Request],
    wait: Callable[[float], None],
    each: Callable[[], None] | None = None,
) -> float:
    """Run requests as they arrive by the engine's clock; its time at the end.
    wait(t): until the clock shows t.

    Requests that are refused are cancelled. each: is called after every step.
    """
    coming = sorted(requests, key=lambda r: (r.arrival, r.id))[::-1]
    while coming or engine.busy:
        if not engine.busy and coming[-1].arrival > engine.clock():
            wait(coming[-1].arrival)
        while coming and coming[-1].arrival <= engine.clock():
            try:
                engine.add(request := coming.pop())
            except Refused:
                request.state = State.CANCELLED
        engine.step()
        if each:
            each()
    return engine.clock()


# --8<-- [end:replay]


# --8<-- [start:metrics]
class Metrics(NamedTuple):
    """What users saw, in seconds: 50th and 99th percentile of each.

    ttft: time to first token, from arrival. tpot: time per output token, from
    the first to the last of a request; without requests of one token.
    tokens_per_second: of all requests together, from the first arrival to the
    last token.
    """

    requests: int
    tokens: int
    preemptions: int
    ttft_p50: float
    ttft_p99: float
    tpot_p50: float
    tpot_p99: float
    tokens_per_second: float


def metrics(requests: Iterable[Request]) -> Metrics:
    """Of the requests that were answered. Raises ValueError if none was."""
    done = [r for r in requests if r.state is State.FINISHED]
    if not done:
        raise ValueError("no request was answered")
    ttft = [r.times[0] - r.arrival for r in done]
    tpot = [
        (r.times[-1] - r.times[0]) / (len(r.times) - 1)
        for r in done
        if len(r.times) > 1
    ] or [float("nan")]
    tokens = sum(len(r.times) for r in done)
    span = max(r.times[-1] for r in done) - min(r.arrival for r in done)
    return Metrics(
        len(done),
        tokens,
        sum(r.preemptions for r in done),
        *(float(p) for p in np.percentile(ttft, [50, 99])),
        *(float(p) for p in np.percentile(tpot, [50, 99])),
        tokens / span if span else float("inf"),
    )


# --8<-- [end:metrics]
