"""A step of the engine on the GPU's own clock: all of it, by the graph that the
backend has recorded, or its launches by themselves.

    graph = graph_of_step(backend, prompts)
    us = back_to_back(backend, graph, 20)
    launches = launches_of(decoding(backend, prompts))
    us = behind(backend, alone(backend, launches[:1]), alone(backend, launches))
"""

from typing import Any

import cudatut as ct
from cudatut.book.llm.backends.step_shape import Shape
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.serving.step_kernels import Launch, noted, replay
from cudatut.book.llm.serving.ways import BUDGET, eager, engine_of
from cudatut.book.measure.graphs import Graph, elapsed

ANSWER = 100  # tokens: more than there are steps until all have read


def reading(backend: Any, prompts: list[list[int]]) -> Engine:
    """An engine whose next step begins with these prompts."""
    engine = engine_of(backend, token_budget=BUDGET)
    for i, prompt in enumerate(prompts):
        engine.add(Request(i, prompt, ANSWER))
    return engine


def decoding(backend: Any, prompts: list[list[int]]) -> Engine:
    """An engine whose last step has given each request a token, and read no
    prompt; its arrays are still in place.
    """
    engine = reading(backend, prompts)
    while not _decodes(engine, len(prompts)):
        engine.step()
    return engine


def _decodes(engine: Engine, count: int) -> bool:
    work = engine.last.work
    return len(work) == count and all(w.stop - w.start == 1 for w in work)


def graph_of_step(backend: Any, prompts: list[list[int]]) -> Graph:
    """The graph of the last step of `decoding`."""
    decoding(backend, prompts)
    shape = next(s for s in reversed(backend._graphs) if isinstance(s, Shape))
    assert (shape.decode, shape.tokens) == (len(prompts), 0), shape
    return backend._graphs[shape]


def launches_of(engine: Engine) -> list[Launch]:
    """What the next step of an engine launches; it is taken without graphs."""
    engine.backend = eager(engine.backend)
    with noted() as launches:
        engine.step()
    ct.synchronize()
    return launches


def alone(backend: Any, launches: list[Launch]) -> Graph:
    """A graph of some launches of a step."""
    return Graph(replay(launches), backend.stream, backend.overlap)


def back_to_back(backend: Any, graph: Graph, count: int) -> float:
    """Microseconds of a graph, of so many in a row: the host is not in it."""

    def work() -> None:
        for _ in range(count):
            graph.launch()

    return elapsed(backend.stream, work) / count


def behind(backend: Any, first: Graph, graph: Graph) -> float:
    """Microseconds of a graph just behind another one; L2 is flushed first,
    and the host has started all of it meanwhile.
    """
    ct.flush_l2()
    first.launch()
    return elapsed(backend.stream, graph.launch)
