# ---
# jupyter:
#   cudatut:
#     title: {en: "Launches that overlap, and a cache in FP8", zh: "重叠的启动，与 FP8 的缓存"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 240
#     sizes:
#       counts: [[1, 8, 64, 256], [1]]
#       tokens: [8, 2]
#       replays: [20, 2]
#       rounds: [5, 1]
#       long: [1800, 20]
#       many: [256, 2]
#       OUTPUT: [[32, 256], [1, 2]]
#       crowds: [[1, 256], [1, 2]]
#       asked: [300, 7]
#       many_of_one: [21, 2]
#       passes: [100, 1]
# ---

# %% [markdown]
# The step of an engine, a graph, on the GPU's own clock: its launches one after
# the other, and overlapping.

# %% setup
import copy
import random
import statistics

import numpy as np

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.model import tokens as texts
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.model.reference import Reference
from cudatut.book.numbers.bf16 import to_float
from cudatut.book.llm.serving.kv_scales import fp8_scales
from cudatut.book.llm.serving.step_kernels import distinct, work_of
from cudatut.book.llm.serving.step_times import (
    alone,
    back_to_back,
    behind,
    decoding,
    graph_of_step,
    launches_of,
)
from cudatut.book.llm.serving.ways import (
    BLOCK,
    BUDGET,
    COUNT,
    crowd,
    play,
    prompts_of,
    served,
    watched,
)

checkpoint = Checkpoint.open(fetch())
model = served(checkpoint)
config = model.config
rounds = 5
replays = 20


def step_us(backend, graph):
    return back_to_back(backend, graph, replays)


fast = GpuBackend(model, COUNT, BLOCK, max_tokens=BUDGET)

# %% overlap
apart = copy.copy(fast)  # the same weights, cache and arrays; plain arrows
apart.overlap, apart._graphs = False, type(fast._graphs)()
counts = (1, 8, 64, 256)  # requests
rows = {}
for n in counts:
    length = min(300, 1800 // n)  # all prompts fit into one step
    prompts = prompts_of((length,) * n, config.vocab)
    graphs = {
        "not overlapping": (apart, graph_of_step(apart, prompts)),
        "overlapping": (fast, graph_of_step(fast, prompts)),
    }
    runs = {
        name: lambda pair=pair: step_us(*pair) for name, pair in graphs.items()
    }
    found = ct.take_turns(
        runs, rounds, random.Random(0), time=lambda run: run()
    )
    us = {name: statistics.median(values) for name, values in found.items()}
    nodes = graphs["overlapping"][1].nodes
    less = (us["not overlapping"] - us["overlapping"]) / nodes
    name = "one request" if n == 1 else f"{n} requests"
    rows[name] = {
        "tokens of each": length + 1,
        "launches": nodes,
        **us,
        "less per launch": less,
    }
ct.table(
    "a step, its launches overlapping and not",
    rows,
    corner="requests",
    units=dict.fromkeys((*us, "less per launch"), "us"),
)

# %% [markdown]
# A cache in FP8: what it costs, and what it saves. The scales come from a text
# that is not among those that are compared.

# %% fp8
SEEN = "The quick brown fox jumps over the lazy dog near the quiet river bank."
ASKED = (
    "Water boils at a lower temperature on a high mountain, because",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "In the year 1969 two people walked on the Moon. Their names were",
    "To bake bread you need flour, water, salt and",
    "The train to Vienna leaves at half past nine, so we should",
)
reader = texts.load(checkpoint)
seen, *asked = (
    [token % config.vocab for token in reader.encode(text)]
    for text in (SEEN, *ASKED)
)


def largest(cache):
    """Of each layer and KV head; slots that nobody wrote hold NaN."""
    return np.nanmax(np.abs(to_float(cache.get())), axis=(1, 3))


tokens = 8  # of an answer
probe = GpuBackend(model, 64, BLOCK, max_tokens=BUDGET)
play(probe, [Request(0, seen, tokens)])
both = np.stack([largest(probe.keys), largest(probe.values)], axis=1)
of_fp8 = {"max_tokens": BUDGET, "kv": "fp8"}
plain = GpuBackend(model, COUNT, BLOCK, **of_fp8)  # all scales are 1
scaled = GpuBackend(model, COUNT, BLOCK, **of_fp8)
scaled.scales = ct.to_device(fp8_scales(both))
caches = {"bf16": fast, "FP8, all scales 1": plain, "FP8": scaled}

reference = Reference(model)
errors = {name: [] for name in caches}
others = dict.fromkeys(caches, 0)
for prompt in asked:
    reference.reset()
    exact = reference.forward(prompt)[-1]
    for name, backend in caches.items():
        got = watched(backend, [Request(0, prompt, 1)])[0, len(prompt) - 1]
        errors[name].append(float(np.abs(got - exact).max()))
        others[name] += int(got.argmax() != exact.argmax())

# %% [markdown]
# The time of a step after a long text, and the 256 requests of the chapter.

# %% fp8-times
long = 1800  # tokens
many = 256
PROMPT = (32, 512)
OUTPUT = (32, 256)
rates = {name: [] for name in caches}
for turn in range(1 + rounds):  # the first one is a warm-up run
    for name, backend in caches.items():
        requests = crowd(many, PROMPT, OUTPUT, config.vocab)
        rate = play(backend, requests, ahead=True, token_budget=BUDGET).rate
        rates[name] += [rate] if turn else []
rows = {}
for name, backend in caches.items():
    graph = graph_of_step(backend, prompts_of((long,), config.vocab))
    rows[name] = {
        "bytes of a token": config.kv_bytes // (1 if name == "bf16" else 2),
        "largest error": max(errors[name]),
        "other first choice": others[name],
        "step after a long text": statistics.median(
            step_us(backend, graph) for _ in range(rounds)
        ),
        "generated": statistics.median(rates[name]),
    }
ct.table(
    "a cache in FP8 beside one in bf16",
    rows,
    corner="cache",
    units={"step after a long text": "us", "generated": "tokens/s"},
)

# %% [markdown]
# Each kernel of a step by itself: its launches of that step, from the first
# layer to the last, as a graph of their own. What they read is in no cache at
# the beginning.

# %% kernels
crowds = (1, 256)  # requests
asked = 300  # tokens of each prompt
# Times the shortest kernel, for the time that a graph itself takes.
many_of_one = 21
passes = 100


def decoding_step(count):
    """The launches of a step in which so many requests get a token each, and
    the tokens that they attend to.
    """
    engine = decoding(fast, prompts_of((asked,) * count, config.vocab))
    launches = launches_of(engine)
    return launches, sum(w.stop for w in engine.last.work)


bandwidth = ct.limits.bandwidth()  # GB/s
sums = {}
for n in crowds:
    launches, seen = decoding_step(n)
    kernels = distinct(launches)
    # Sampling is no part of the graph of the layers.
    chain = [one for one in launches if one.base != "sample"]
    first = alone(fast, launches[:1])
    graphs = {"one": first, "many": alone(fast, launches[:1] * many_of_one)}
    graphs |= {i: alone(fast, those) for i, those in enumerate(kernels)}
    graphs["step"] = alone(fast, chain)
    found = ct.take_turns(
        {name: lambda graph=graph: graph for name, graph in graphs.items()},
        passes,
        random.Random(0),
        time=lambda run, first=first: behind(fast, first, run()),
    )
    us = {name: statistics.median(times) for name, times in found.items()}
    start = us["one"] - (us["many"] - us["one"]) / (many_of_one - 1)
    rows, together = {}, 0.0
    for i, those in enumerate(kernels):
        work = work_of(those[0], fast.weights, config, n, seen)
        # Events resolve no less than some hundredths of a microsecond.
        each = max((us[i] - start) / len(those), 0.01)
        together += (
            us[i] - start if any(one is those[0] for one in chain) else 0
        )
        name = work.name
        if name in rows:  # the same work, by launches of another size
            name = f"{name}, {i}"
        rows[name] = {
            "source": those[0].kernel.label.removeprefix("llm/"),
            "launches": len(those),
            "thread blocks": those[0].blocks,
            "a launch": each,
            "bytes": work.bytes and work.bytes / 1e6,
            "rate": work.bytes and work.bytes / each / 1e3,
            "of the bandwidth": work.bytes
            and 100 * work.bytes / each / 1e3 / bandwidth,
            "FLOP per byte": work.bytes and work.flops / work.bytes,
            "TFLOP/s": work.bytes and work.flops / each / 1e6,
        }
    many = "one request" if n == 1 else f"{n} requests"
    ct.table(
        f"the kernels of a step, {many}",
        rows,
        corner="operation",
        units={
            "a launch": "us",
            "bytes": "MB",
            "rate": "GB/s",
            "of the bandwidth": "%",
        },
    )
    sums[f"{many}: kernels by themselves"] = (together, "us")
    sums[f"{many}: the whole step"] = (us["step"] - start, "us")
ct.facts(
    "beside the whole step",
    {"GPU memory": (bandwidth, "GB/s"), **sums},
)
