# ---
# jupyter:
#   cudatut:
#     title: {en: "From a request to a batch", zh: "从请求到批次"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       arrivals_n: [1000, 40]
#       PROMPT: [[32, 512], [8, 40]]
#       OUTPUT: [[32, 256], [2, 4]]
#       served_n: [300, 2]
#       loads: [[50, 100, 200, 400], [400]]
#       runs_n: [8, 1]
#       gaps_n: [100_000, 1_000]
# ---

# %% [markdown]
# Text becomes tokens, tokens wait, a scheduler decides who computes what in
# the next step. First a schedule that fits on a page: three requests, six
# blocks of four tokens, and no model at all.

# %% program
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler

blocks = NaiveBlocks(count=6, block_size=4)
scheduler = Scheduler(blocks, token_budget=8, max_running=3, watermark=0)
sizes = {"A": (5, 7), "B": (10, 6), "C": (4, 3)}  # prompt, most tokens
for name, (prompt, most) in sizes.items():
    scheduler.add(Request(name, [1] * prompt, max_tokens=most))

print("step", *(f"{name:>10}" for name in sizes), " free")
schedule = []
while scheduler.requests:
    step = scheduler.schedule()
    cells = {r.id: "preempted" for r in step.preempted}
    for work in step.work:
        cells[work.request.id] = f"{work.start} to {work.stop - 1}"
    free = blocks.free
    # A model would compute these tokens here. Ours always says 1.
    scheduler.finish(step, [[1] * work.last for work in step.work])
    schedule.append(cells)
    row = (f"{cells.get(name, ''):>10}" for name in sizes)
    print(f"{len(schedule):4}", *row, f"{free:5}")

# %% setup
from time import perf_counter

import numpy as np

import cudatut as ct
from cudatut.book.llm.model import tokens
from cudatut.book.llm.engine.arrivals import (
    Clock,
    ModelBackend,
    metrics,
    poisson,
    replay,
)
from cudatut.book.llm.engine.arrivals import uniform, workload
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.backends.numpy_backend import NumpyBackend
from cudatut.book.llm.model.reference import Reference
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.llm.engine.scheduler import Refused

# Rows per request, columns per step: the figure of the page reads them.
ct.table(
    "schedule",
    {
        name: {str(i): cells.get(name) for i, cells in enumerate(schedule, 1)}
        for name in sizes
    },
    corner="request",
)

# %% [markdown]
# The second step of these three as the arrays that a model gets, with our small
# model for Tang poems, and the first launch of this step.

# %% launch
tang = Checkpoint.open(ct.paths.examples_dir() / "llm/model/tang.gguf")
vocab, dim = tang.config.vocab, tang.config.dim
machine = Scheduler(NaiveBlocks(6, 4), 8, max_running=3, watermark=0)
engine = Engine(NumpyBackend(tang, 6, 4), machine)
for number, (prompt, most) in enumerate(sizes.values()):
    ids = ct.rng(number).integers(5, vocab, prompt).tolist()
    engine.add(Request(number, ids, most))
engine.step()
batch, _, _ = engine.assemble(machine.schedule())
print("tokens of each request:", *np.diff(batch.starts))
print("their positions:", *batch.positions)

# A thread block for each token, whichever request it belongs to: it copies a
# row of the embedding, 4 numbers at a time in each thread.
embedding = to_bf16(Reference(tang).weights["embedding"])
rows, ids = ct.to_device(embedding), ct.to_device(batch.tokens)
x = ct.empty((len(batch.tokens), dim), "float32")
drawn = np.uint64(0)  # no token is still being drawn
kernel = ct.Kernel("llm/kernels/activation.cu", "embed_bf16")
threads = min(256, ct.cdiv(dim, 128) * 32)
kernel(ids, drawn, rows, x, dim, grid=len(batch.tokens), block=threads)
ct.check(x, to_float(embedding)[batch.tokens], name="rows of the embedding")

# %% [markdown]
# The chat template: marks are tokens of their own, and what a user types never
# becomes a mark.

# %% template
checkpoint = Checkpoint.open(fetch())
tokenizer = tokens.load(checkpoint)
messages = [("user", "What is the capital of France?")]
ids = tokenizer.chat(messages)
marks = {number: name for name, number in tokenizer.special.items()}
print("".join(marks.get(i) or tokenizer.decode([i]) for i in ids))
typed = tokenizer.encode("<|im_end|>")
ct.facts(
    "tokens",
    {
        "of the conversation": len(ids),
        "of the question alone": len(tokenizer.encode(messages[0][1])),
        "<|im_end|> as a mark": 1,
        "<|im_end|> as a user types it": len(typed),
        "marks among these": sum(i in marks for i in typed),
    },
)

# %% [markdown]
# What can be computed before anything runs: who can never fit, and how many
# requests per second a machine can answer.

# %% predict
POOL, BLOCK = 64, 16  # blocks, tokens of a block
pairs = [(100, 50), (1000, 24), (1000, 25), (1000, 26), (600, 500)]


def blocks_needed(prompt, most):
    """The last token is sampled and shown, but never computed."""
    return ct.cdiv(prompt + most - 1, BLOCK)


ct.table(
    f"who fits into a pool of {POOL} blocks",
    {
        f"{prompt} + {most}": {
            "tokens at most": prompt + most,
            "blocks needed": blocks_needed(prompt, most),
            "refused": blocks_needed(prompt, most) > POOL,
        }
        for prompt, most in pairs
    },
    corner="prompt + answer",
)

# %% predict-load
# The modelled machine: a step takes this long, then so much per token and per
# token of the KV cache that attention reads.
STEP_US, TOKEN_US, KV_US = 500.0, 1.0, 0.01
SLOTS = 32
PROMPT = (32, 512)
OUTPUT = (32, 256)
prompt, output = sum(PROMPT) / 2, sum(OUTPUT) / 2
per_step = SLOTS * (1 + prompt / output)  # tokens: one each, and new prompts
held = SLOTS * (prompt + output / 2)
step_us = STEP_US + TOKEN_US * per_step + KV_US * held
ct.facts(
    "prediction: the most that 32 running requests get",
    {
        "a step": (step_us, "us"),
        "tokens": (1e6 * SLOTS / step_us, "tokens/s"),
        "requests": (1e6 * SLOTS / step_us / output, "requests/s"),
    },
)

# %% refuse
machine = Scheduler(NaiveBlocks(POOL, BLOCK), context=1050)
requests = [(0, 5), *pairs[1:]]
for number, (prompt, most) in enumerate(requests):
    try:
        machine.add(Request(number, [1] * prompt, most))
        print(f"request {number} waits")
    except Refused as reason:
        print(reason)

# %% [markdown]
# Arrivals: a Poisson process. Then load on the modelled machine, where time is
# computed and every run gives the same numbers.

# %% arrivals
gaps_n = 100_000
times = poisson(np.random.default_rng(0), 50.0, gaps_n)
gaps = np.diff(times)
counts = np.bincount(times.astype(int))[:-1]  # the last second is not whole
ct.facts(
    "arrivals, 50 per second",
    {
        "mean gap": (1e3 * gaps.mean(), "ms"),
        "gaps below half the mean": (100 * np.mean(gaps < 0.01), "%"),
        "the same, by the formula": (100 * (1 - np.exp(-0.5)), "%"),
        "arrivals in a second, least": int(counts.min()),
        "arrivals in a second, most": int(counts.max()),
    },
)


# %% load
def simulate(rate, policy="fcfs", pool=4096, **fields):
    """`arrivals_n` requests on the modelled machine."""
    clock = Clock()
    model = ModelBackend(clock, pool, BLOCK, STEP_US, TOKEN_US, KV_US)
    machine = Scheduler(
        NaiveBlocks(pool, BLOCK),
        token_budget=512,
        max_running=SLOTS,
        policy=policy,
    )
    engine = Engine(model, machine, clock=clock)
    lengths = {"prompt": uniform(*PROMPT), "output": uniform(*OUTPUT)}
    requests = workload(arrivals_n, rate, seed=0, **lengths, **fields)
    for i, request in enumerate(requests):
        request.priority = int(i % 10 > 0)  # every tenth is urgent: 0
    replay(engine, requests, clock.wait)
    return requests


def seen(requests):
    """What users saw, in milliseconds."""
    m = metrics(requests)
    return {
        "TTFT p50": 1e3 * m.ttft_p50,
        "TTFT p99": 1e3 * m.ttft_p99,
        "TPOT p50": 1e3 * m.tpot_p50,
        "TPOT p99": 1e3 * m.tpot_p99,
        "tokens": m.tokens_per_second,
    }


UNITS = dict.fromkeys(("TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99"), "ms")
UNITS["tokens"] = "tokens/s"
arrivals_n = 1000
rates = 100, 200, 250, 300, 350, 400
found = {f"{rate} per second": seen(simulate(rate)) for rate in rates}
ct.table("requests under load, modelled", found, corner="arrivals", units=UNITS)

# %% chart
points = [(rate, found[f"{rate} per second"]) for rate in rates]
ct.series(
    "time to first token, modelled",
    ("arrivals", "requests/s"),
    ("time to first token", "ms"),
    {
        what: [(rate, row[f"TTFT {what}"]) for rate, row in points]
        for what in ("p50", "p99")
    },
)

# %% policies
runs = {name: simulate(350, name) for name in ("fcfs", "priority", "shortest")}


def waits(requests):
    """Milliseconds to the first token, 50th and 99th percentile."""
    found = [1e3 * (r.times[0] - r.arrival) for r in requests]
    return np.percentile(found, [50, 99])


def longest(requests):
    """The quarter with the most tokens."""
    order = sorted(requests, key=lambda r: len(r.prompt) + r.max_tokens)
    return order[-(len(order) // 4) :]


rows = {}
for name, requests in runs.items():
    groups = {
        "all": requests,
        "urgent": [r for r in requests if r.priority == 0],
        "longest quarter": longest(requests),
    }
    rows[name] = {}
    for group, members in groups.items():
        p50, p99 = waits(members)
        rows[name] |= {f"{group}: p50": p50, f"{group}: p99": p99}
ct.table(
    "time to first token at 350 requests per second",
    rows,
    corner="policy",
    units=dict.fromkeys(rows["fcfs"], "ms"),
)

# %% preempt
rows = {}
for pool in (4096, 800, 700, 600, 500):
    requests = simulate(200, pool=pool)
    m = metrics(requests)
    rows[f"pool of {pool} blocks"] = {
        "preemptions": m.preemptions,
        "preempted requests": sum(r.preemptions > 0 for r in requests),
        "TTFT p99": 1e3 * m.ttft_p99,
        "TPOT p99": 1e3 * m.tpot_p99,
    }
ct.table(
    "200 requests per second, by the size of the pool",
    rows,
    corner="pool",
    units={"TTFT p99": "ms", "TPOT p99": "ms"},
)

# %% [markdown]
# The real engine on the GPU, with requests that arrive by the clock on the
# wall. A step of a new size is recorded as a graph, which takes as long as many
# steps. So the same requests come again until no step of a run is new, and that
# run counts.

# %% serve
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.model.random_model import RandomModel

# What a sanitizer can watch is a small model of random numbers.
small = {"layers": 1, "dim": 128, "heads": 2, "kv_heads": 1, "ffn": 256}
served = RandomModel(**small, vocab=512) if ct.tool.running() else checkpoint
backend = GpuBackend(served, block_count=8192, block_size=BLOCK)


def serve(rate, seed=0):
    """`served_n` requests on the GPU; arrivals in seconds from now."""
    machine = Scheduler(
        NaiveBlocks(8192, BLOCK),
        token_budget=2048,
        max_running=256,
        context=served.config.context,
    )
    begin = perf_counter()
    engine = Engine(backend, machine, clock=lambda: perf_counter() - begin)
    requests = workload(
        served_n,
        rate,
        prompt=uniform(*PROMPT),
        output=uniform(*OUTPUT),
        seed=seed,
        vocab=served.config.vocab,
    )

    def wait(until):
        while engine.clock() < until:
            pass

    replay(engine, requests, wait)
    return requests


def rehearsed(rate):
    """The first run that records no graph, or the last of `runs_n`; how many
    graphs it recorded.
    """
    for _ in range(runs_n):
        before = backend.recorded
        requests = serve(rate)
        if backend.recorded == before:
            break
    return requests, backend.recorded - before


served_n = 300
runs_n = 8
loads = (50, 100, 200, 400)
rows = {}
for rate in loads:
    requests, recorded = rehearsed(rate)
    rows[f"{rate} per second"] = {**seen(requests), "graphs recorded": recorded}
ct.table(
    "requests under load, on the GPU", rows, corner="arrivals", units=UNITS
)
