# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine's products on Hopper", zh: "引擎在 Hopper 上的矩阵乘法"}
#     requires: sm_90a
#     extra: llm
#     timeout_s: 240
#     sizes:
#       rounds: [5, 1]
#       lengths: [[12, 31, 70, 129, 300, 33, 400, 64, 9, 17, 250, 90], [12, 31]]
#       say: [24, 2]
#       many: [256, 12]
#       OUTPUT: [[32, 256], [1, 2]]
#       said: [256, 2]
#       read: [8000, 40]
#       busy: [[128, 192, 256], [128]]
#       seen: [300, 20]
#       replays: [20, 2]
#       asked: [256, 20]
#       readers: [32, 6]
# ---

# %% [markdown]
# The engine with its products by mma.sync, beside the one that takes wgmma
# where that is faster.

# %% setup
import copy
import random
import statistics
from time import perf_counter

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.llm.kernels.attention import flash_hopper_paged
from cudatut.book.llm.engine.arrivals import uniform, workload
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.measure.graphs import Graph
from cudatut.book.llm.kernels.linear_hopper import instances
from cudatut.book.llm.model.random_model import RandomModel
from cudatut.book.llm.model.reference import Reference
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.serving.step_kernels import distinct, noted, replay
from cudatut.book.llm.backends.step_shape import Shape

# What a sanitizer can watch is a small model of random numbers.
small = {"layers": 1, "dim": 128, "heads": 2, "kv_heads": 1, "ffn": 256}
if ct.tool.running():
    model = RandomModel(**small, vocab=512)
else:
    model = Checkpoint.open(fetch())
config = model.config
COUNT, BLOCK, BUDGET = 8192, 16, 8192
attention = flash_hopper_paged.instances(config.head_dim, BLOCK)
ct.compile_ahead(instances() + attention)  # side by side
rounds = 5
room = {"max_tokens": BUDGET, "max_requests": 256, "max_logits": 2048}
ways = {
    by: GpuBackend(model, COUNT, BLOCK, **room, products=by)
    for by in ("mma.sync", "wgmma")
}


def play(backend, requests, ahead=False):
    """Run requests to their ends; seconds."""
    manager = NaiveBlocks(COUNT, BLOCK)
    machine = Scheduler(manager, BUDGET, 256, context=config.context)
    engine = Engine(backend, machine, ahead=ahead)
    for request in requests:
        engine.add(request)
    begin = perf_counter()
    while engine.busy:
        engine.step()
    return perf_counter() - begin


# %% [markdown]
# Right before fast: logits beside the reference, in NumPy and fp32, for prompts
# that are read together; then the answers beside each other.


# %% answers
class Watched:
    """A backend that keeps the logits of each step."""

    def __init__(self, backend):
        self.backend, self.kept = backend, []

    def run(self, batch):
        logits = self.backend.run(batch)
        if len(batch.wanted):
            self.kept.append(logits.get())
        return logits

    def __getattr__(self, name):
        return getattr(self.backend, name)


lengths = (12, 31, 70, 129, 300, 33, 400, 64, 9, 17, 250, 90)
say = 24  # tokens of an answer
rng = ct.rng(0)
prompts = [rng.integers(5, config.vocab, n).tolist() for n in lengths]
reference = Reference(model)
exact = []
for prompt in prompts:
    reference.reset()
    exact.append(reference.forward(prompt)[-1])
exact = np.array(exact)
answers, logits, rows = {}, {}, {}
for name, backend in ways.items():
    watched = Watched(backend)
    requests = [Request(i, p, say) for i, p in enumerate(prompts)]
    play(watched, requests)
    answers[name] = [request.output for request in requests]
    logits[name] = got = watched.kept[0]
    choices = got.argmax(1) == exact.argmax(1)
    rows[name] = {
        "largest error": float(np.abs(got - exact).max()),
        "other first choice": int((~choices).sum()),
    }
ct.table("logits beside the reference", rows, corner="products")
first, second = logits.values()
pairs = list(zip(*answers.values()))
ct.facts(
    "mma.sync beside wgmma",
    {
        "prompts": len(prompts),
        "largest logit": float(np.abs(exact).max()),
        "largest difference of two logits": float(np.abs(first - second).max()),
        "same first choice": int((first.argmax(1) == second.argmax(1)).sum()),
        "same answer": sum(a == b for a, b in pairs),
    },
)

# %% [markdown]
# The 256 requests of the chapter on the engine, one request alone, and the
# first token after a long prompt, in turns.

# %% speeds
many = 256
OUTPUT = (32, 256)
said = 256  # tokens of the answer to one request alone
read = 8000  # tokens of the long prompt


def crowd():
    return workload(
        many,
        float("inf"),
        prompt=uniform(32, 512),
        output=uniform(*OUTPUT),
        seed=0,
        vocab=config.vocab,
    )


def rate(backend, requests):
    """Tokens per second."""
    seconds = play(backend, requests, ahead=True)
    return sum(len(request.output) for request in requests) / seconds


def random_prompt(n):
    return ct.rng(n).integers(0, config.vocab, n).tolist()


measured = {
    "256 requests": lambda backend: rate(backend, crowd()),
    "one request": lambda backend: rate(
        backend, [Request(0, random_prompt(32), said)]
    ),
    "first token of a long prompt": lambda backend: (
        1e3 * play(backend, [Request(0, random_prompt(read), 1)])
    ),
}
found = {name: {what: [] for what in measured} for name in ways}
for turn in range(1 + rounds):  # the first one is a warm-up run
    for what, run in measured.items():
        for name, backend in ways.items():
            value = run(backend)
            found[name][what] += [value] if turn else []
ct.table(
    "the engine, by mma.sync and by wgmma",
    {
        name: {what: statistics.median(v) for what, v in values.items()}
        for name, values in found.items()
    },
    corner="products",
    units=dict(zip(measured, ("tokens/s", "tokens/s", "ms"))),
)

# %% [markdown]
# A step in which each request gets a token, on the GPU's own clock.

# %% steps
busy = (128, 192, 256)  # requests
seen = 300  # tokens of each prompt
replays = 20


def decoding_step(backend, count):
    """The graph of a step in which so many requests get a token each; its
    arrays are still in place.
    """
    manager = NaiveBlocks(COUNT, BLOCK)
    machine = Scheduler(manager, BUDGET, 256, context=config.context)
    engine = Engine(backend, machine)
    for i in range(count):
        engine.add(Request(i, [7] * seen, 100))

    def decodes():
        work = engine.last.work
        return len(work) == count and all(w.stop - w.start == 1 for w in work)

    while not decodes():
        engine.step()
    shape = next(s for s in reversed(backend._graphs) if isinstance(s, Shape))
    assert (shape.decode, shape.tokens) == (count, 0), shape
    return backend._graphs[shape]


def step_us(backend, graph):
    """Microseconds of a graph, back to back: the host is not in it."""
    begin, end = cuda.Event(), cuda.Event()
    begin.record(backend.stream)
    for _ in range(replays):
        graph.launch()
    end.record(backend.stream)
    end.synchronize()
    return 1e3 * begin.time_till(end) / replays


rows = {}
for n in busy:
    graphs = {name: decoding_step(way, n) for name, way in ways.items()}
    times = ct.take_turns(
        {
            name: lambda one=(ways[name], graph): one
            for name, graph in graphs.items()
        },
        rounds,
        random.Random(0),
        time=lambda run: step_us(*run()),
    )
    us = {name: statistics.median(values) for name, values in times.items()}
    nodes = {f"launches, {name}": one.nodes for name, one in graphs.items()}
    rows[f"{n} requests"] = {**nodes, **us}
ct.table(
    "a step, by mma.sync and by wgmma",
    rows,
    corner="requests",
    units=dict.fromkeys(ways, "us"),
)

# %% [markdown]
# The kernels of a step that reads prompts, each by itself.

# %% prompts
asked = 256  # tokens of a prompt
readers = 32  # prompts
KINDS = {
    "flash": "attention",
    "flash_hopper_paged": "attention",
    "flash_parts": "attention",
    "merge_parts": "attention",
    "linear": "products",
    "linear_split": "products",
    "linear_qkv": "products",
    "linear_hopper": "products",
    "rms_norm": "norms",
}


def prompt_step(backend):
    """The launches of a step that reads prompts, but for sampling."""
    eager = copy.copy(backend)
    eager.graphs, eager._graphs = False, type(backend._graphs)()
    manager = NaiveBlocks(COUNT, BLOCK)
    machine = Scheduler(manager, BUDGET, 256, context=config.context)
    engine = Engine(eager, machine)
    for i in range(readers):
        prompt = ct.rng(i).integers(0, config.vocab, asked).tolist()
        engine.add(Request(i, prompt, 1))
    with noted() as launches:
        engine.step()
    ct.synchronize()
    return [one for one in launches if one.base != "sample"]


def graph_of(backend, launches):
    return Graph(replay(launches), backend.stream, backend.overlap)


def behind(stream, first, graph):
    """Microseconds of a graph just behind another one; L2 is flushed first,
    and the host has started all of it meanwhile.
    """
    begin, end = cuda.Event(), cuda.Event()
    ct.flush_l2()
    first.launch()
    begin.record(stream)
    graph.launch()
    end.record(stream)
    end.synchronize()
    return 1e3 * begin.time_till(end)


rows = {kind: {} for kind in ("attention", "products", "norms", "others")}
for name, backend in ways.items():
    launches = prompt_step(backend)
    first = graph_of(backend, launches[:1])
    us = dict.fromkeys(rows, 0.0)
    for those in distinct(launches):
        graph = graph_of(backend, those)
        kind = KINDS.get(those[0].base, "others")
        us[kind] += statistics.median(
            behind(backend.stream, first, graph) for _ in range(rounds)
        )
    for kind, time in us.items():
        rows[kind] |= {
            name: time,
            f"share, {name}": 100 * time / sum(us.values()),
        }
ct.table(
    f"a step of {asked * readers} tokens of prompts",
    rows,
    corner="kernels",
    units={
        unit_of: unit
        for name in ways
        for unit_of, unit in ((name, "us"), (f"share, {name}", "%"))
    },
)
