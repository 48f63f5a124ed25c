"""Prompts whose beginnings are known, on the GPU: the time to the first token.

backend = backend_for(layers=30, vocab=49152)
us, computed = first_token(backend, PrefixBlocks, 8000, rounds=9)
"""

from collections.abc import Callable
from time import perf_counter

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.block_managers.traffic import some
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.model.random_model import RandomModel

BLOCK = 16  # tokens
OWN = 64  # tokens of a prompt that it does not share


# --8<-- [start:backend]
def backend_for(layers: int, vocab: int) -> GpuBackend:
    """A model of the shape of SmolLM2, unless these are others, with random
    weights."""
    return GpuBackend(
        RandomModel(layers=layers, vocab=vocab),
        block_count=1200,
        block_size=BLOCK,
        max_tokens=8192,
        max_requests=4,
    )


# --8<-- [end:backend]


# --8<-- [start:first-token]
def first_token(
    backend: GpuBackend,
    manager: type[NaiveBlocks],
    length: int,
    rounds: int,
    begin: Callable[[Engine], None] = lambda engine: None,
    before_each: Callable[[], None] = lambda: None,
) -> tuple[list[float], list[int]]:
    """Of so many prompts that share all but OWN tokens: microseconds until the
    first token, and tokens computed. begin: gets the engine, before the first
    prompt; before_each: is called before each.
    """
    blocks = manager(backend.block_count, BLOCK)
    scheduler = Scheduler(blocks, 8192, max_running=4, context=8192)
    engine = Engine(backend, scheduler)
    begin(engine)
    vocab = backend.config.vocab
    shared, us, computed = some(length - OWN, vocab), [], []
    for number in range(rounds):
        request = Request(number, shared + some(OWN, vocab), 1)
        before_each()
        ct.synchronize()
        start = perf_counter()
        engine.add(request)
        while engine.busy:
            engine.step()
        us.append(1e6 * (perf_counter() - start))
        computed.append(length - request.cached)
    return us, computed


# --8<-- [end:first-token]
