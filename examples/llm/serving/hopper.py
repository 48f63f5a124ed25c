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
import random
import statistics

import numpy as np

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.kernels.attention import flash_hopper_paged
from cudatut.book.llm.kernels.linear_hopper import instances
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.model.reference import Reference
from cudatut.book.llm.serving.step_kernels import distinct
from cudatut.book.llm.serving.step_times import (
    alone,
    back_to_back,
    behind,
    graph_of_step,
    launches_of,
    reading,
)
from cudatut.book.llm.serving.ways import (
    BLOCK,
    BUDGET,
    COUNT,
    ROOM,
    crowd,
    play,
    prompts_of,
    served,
    watched,
)

model = served(Checkpoint.open(fetch()))
config = model.config
attention = flash_hopper_paged.instances(config.head_dim, BLOCK)
ct.compile_ahead(instances() + attention)  # side by side
rounds = 5
ways = {
    by: GpuBackend(model, COUNT, BLOCK, **ROOM, products=by)
    for by in ("mma.sync", "wgmma")
}

# %% [markdown]
# Right before fast: logits beside the reference, in NumPy and fp32, for prompts
# that are read together; then the answers beside each other.

# %% answers
lengths = (12, 31, 70, 129, 300, 33, 400, 64, 9, 17, 250, 90)
say = 24  # tokens of an answer
prompts = prompts_of(lengths, config.vocab)
reference = Reference(model)
exact = []
for prompt in prompts:
    reference.reset()
    exact.append(reference.forward(prompt)[-1])
exact = np.array(exact)
answers, logits, rows = {}, {}, {}
for name, backend in ways.items():
    requests = [Request(i, p, say) for i, p in enumerate(prompts)]
    kept = watched(backend, requests, token_budget=BUDGET)
    answers[name] = [request.output for request in requests]
    got = np.array([kept[i, len(p) - 1] for i, p in enumerate(prompts)])
    logits[name] = got
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
PROMPT = (32, 512)
OUTPUT = (32, 256)
said = 256  # tokens of the answer to one request alone
read = 8000  # tokens of the long prompt


def run(backend, requests):
    return play(backend, requests, ahead=True, token_budget=BUDGET)


def one(n, answer):
    return [Request(0, *prompts_of((n,), config.vocab), answer)]


measured = {
    "256 requests": lambda backend: (
        run(backend, crowd(many, PROMPT, OUTPUT, config.vocab)).rate
    ),
    "one request": lambda backend: run(backend, one(32, said)).rate,
    "first token of a long prompt": lambda backend: (
        1e3 * run(backend, one(read, 1)).seconds
    ),
}
found = {name: {what: [] for what in measured} for name in ways}
for turn in range(1 + rounds):  # the first one is a warm-up run
    for what, measure in measured.items():
        for name, backend in ways.items():
            value = measure(backend)
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
rows = {}
for n in busy:
    prompts = prompts_of((seen,) * n, config.vocab)
    graphs = {name: graph_of_step(way, prompts) for name, way in ways.items()}
    times = ct.take_turns(
        {
            name: lambda one=(ways[name], graph): one
            for name, graph in graphs.items()
        },
        rounds,
        random.Random(0),
        time=lambda run: back_to_back(*run(), replays),
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
prompts = prompts_of((asked,) * readers, config.vocab)
rows = {kind: {} for kind in ("attention", "products", "norms", "others")}
for name, backend in ways.items():
    launches = launches_of(reading(backend, prompts))
    first = alone(backend, launches[:1])
    us = dict.fromkeys(rows, 0.0)
    for those in distinct(launches):
        if those[0].base == "sample":  # no part of the graph of the layers
            continue
        graph = alone(backend, those)
        kind = KINDS.get(those[0].base, "others")
        us[kind] += statistics.median(
            behind(backend, first, graph) for _ in range(rounds)
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
