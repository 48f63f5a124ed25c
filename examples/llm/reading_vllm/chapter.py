# ---
# jupyter:
#   cudatut:
#     title: {en: "Reading vLLM today", zh: "读今天的 vLLM"}
#     requires: sm_80
#     extra: llm
#     alone: false
#     timeout_s: 180
# ---

# %% [markdown]
# The same three requests under two sets of rules. Each number is what a request
# computes in a step: many tokens of a prompt, or one token of an answer.

# %% program
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.prefill_first import PrefillFirst
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler

# Tokens of the prompt, most tokens of the answer, and when it comes.
COMING = {"A": (4, 9, 1), "B": (6, 6, 1), "C": (22, 3, 4)}


def run(machine):
    """For each step: what each request computes."""
    steps = []
    while machine.requests or not steps:
        for name, (prompt, most, when) in COMING.items():
            if when == len(steps) + 1:
                machine.add(Request(name, [1] * prompt, most))
        step = machine.schedule()
        steps.append({w.request.id: w.stop - w.start for w in step.work})
        # A model would compute these tokens here. Ours always says 1.
        machine.finish(step, [[1] * work.last for work in step.work])
    return steps


rules = {
    "prefill first": PrefillFirst(NaiveBlocks(16, 4), 32, max_running=4),
    "mixed": Scheduler(NaiveBlocks(16, 4), 8, max_running=4),
}
found = {name: run(machine) for name, machine in rules.items()}
for name, steps in found.items():
    print(f"{name}, in {len(steps)} steps")
    for request in COMING:
        print(" ", request, *(f"{s.get(request, ''):>3}" for s in steps))
    print("all", *(f"{sum(s.values()):>3}" for s in steps))

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.model import tokens
from cudatut.book.llm.engine.arrivals import (
    Clock,
    ModelBackend,
    metrics,
    replay,
    uniform,
    workload,
)
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.backends.numpy_backend import NumpyBackend
from cudatut.book.llm.model.reference import Reference, greedy

# Rows per request, columns per step: the figure of the page reads them.
for name, steps in found.items():
    ct.table(
        name,
        {
            request: {str(i): s.get(request) for i, s in enumerate(steps, 1)}
            for request in COMING
        },
        corner="request",
    )

# %% [markdown]
# What can be computed: a long prompt comes while 31 others decode. How long do
# these wait, and how long does the long one?

# %% model
STEP_US, TOKEN_US, KV_US = 500.0, 1.0, 0.01  # of the modelled machine
# Keys and values of a token of SmolLM2, in bf16: 30 layers, 3 heads of 64.
KV_BYTES = 30 * 2 * 3 * 64 * 2
MOVE_US = KV_BYTES / 50e3  # one way over a link of 50 GB/s
ct.facts(
    "the modelled GPU",
    {
        "a step": (STEP_US, "us"),
        "a token computed": (TOKEN_US, "us"),
        "a token read from the KV cache": (KV_US, "us"),
        "a token moved out and back": (2 * MOVE_US, "us"),
    },
)

# %% predict
OTHERS, HELD, LONG = 31, 500, 2000  # requests, tokens of each; new prompt
BUDGET = 512


def step_us(tokens, read):
    return STEP_US + TOKEN_US * tokens + KV_US * read


def predicted(chunks):
    """Times in ms. None: the prompt in one step, nobody beside it."""
    if chunks is None:
        alone = step_us(LONG, LONG)
        together = step_us(OTHERS, OTHERS * HELD)
        return alone, alone + together
    steps, done = [], 0
    while done < LONG:
        part = min(chunks - OTHERS, LONG - done)
        done += part
        steps.append(step_us(OTHERS + part, OTHERS * HELD + done))
    return sum(steps), max(steps)


ct.table(
    "prediction: a prompt of 2,000 tokens beside 31 that decode",
    {
        name: dict(
            zip(
                ("first token of the long one", "longest gap of the others"),
                (us / 1e3 for us in predicted(chunks)),
            )
        )
        for name, chunks in (("prefill first", None), ("mixed, 512", BUDGET))
    },
    corner="rules",
    units=dict.fromkeys(
        ("first token of the long one", "longest gap of the others"), "ms"
    ),
)

# %% [markdown]
# Right first. Our small model continues poems under both sets of rules, in a
# pool so small that requests are preempted, and says what it says alone. With
# swapping nothing is computed twice, and all that is saved is fetched.

# %% check
tang = Checkpoint.open(ct.paths.examples_dir() / "llm/model/tang.gguf")
characters = tokens.load(tang)
beginnings = ("春眠不觉晓，", "白日依山尽，", "床前明月光，")
prompts = [[characters.bos, *characters.encode(line)] for line in beginnings]
alone = [greedy(Reference(tang), prompt, 20) for prompt in prompts]
for name, kind, budget in (
    ("prefill first", PrefillFirst, 64),
    ("mixed", Scheduler, 8),
):
    backend = NumpyBackend(tang, 10, 4, one_by_one=True)
    machine = kind(NaiveBlocks(10, 4), budget, max_running=3, watermark=0)
    engine = Engine(backend, machine)
    requests = [Request(i, prompt, 20) for i, prompt in enumerate(prompts)]
    for request in requests:
        engine.add(request)
    while engine.busy:
        engine.step()
        machine.blocks.check()
    said = np.array([request.output for request in requests])
    ct.check(said, np.array(alone), name=f"{name}, beside alone")
    assert sum(request.preemptions for request in requests)

# %% [markdown]
# A mixed step as arrays, and one of its launches. Two requests decode, and a
# part of a third one's prompt is computed beside them.

# %% launch
machine = Scheduler(NaiveBlocks(32, 4), 8, max_running=4)
engine = Engine(NumpyBackend(tang, 32, 4), machine)
for number in (0, 1):
    engine.add(Request(number, prompts[number], 9))
for _ in range(3):  # both prompts are computed after two
    engine.step()
engine.add(Request(2, 2 * prompts[2], 3))
batch, _, _ = engine.assemble(machine.schedule())
n, m, dim = len(batch.tokens), len(batch.wanted), tang.config.dim
ct.facts(
    "a mixed step",
    {
        "tokens": n,
        "requests": len(batch.lengths),
        "tokens whose logits are wanted": m,
    },
)

# After the last layer only the wanted rows go on: a block copies one row, 4
# numbers at a time in each thread.
x = ct.to_device(ct.rng(0).standard_normal((n, dim), dtype="float32"))
wanted, last = ct.to_device(batch.wanted), ct.empty((m, dim), "float32")
kernel = ct.Kernel("llm/kernels/activation.cu", "gather")
kernel(wanted, x, last, dim, grid=m, block=min(256, ct.cdiv(dim, 128) * 32))
ct.check(last, x.get()[batch.wanted], name="rows of the wanted tokens")

# %% count
rng = ct.rng(0)
computed, needed, twice = 0, 0, 0
for swap in (True, False):
    machine = PrefillFirst(NaiveBlocks(20, 4), 256, max_running=8, swap=swap)
    for i in range(30):
        prompt, most = (int(n) for n in rng.integers(1, 33, 2))
        machine.add(Request(i, [1] * prompt, most))
        needed += swap * (prompt + most - 1)
    while machine.requests:
        step = machine.schedule()
        work = sum(w.stop - w.start for w in step.work)
        computed += work if swap else 0
        machine.finish(step, [[1]] * len(step.work))
        machine.blocks.check()
    assert machine.blocks.free == 20
    assert bool(machine.moved) == swap
ct.check(np.array(computed), needed, name="tokens computed with swapping")

# %% [markdown]
# Load on the modelled machine. Time is computed, so every run gives the same.

# %% load
SERVED, SLOTS, POOL, BLOCK = 400, 32, 4096, 16
PROMPT, OUTPUT = (32, 1024), (32, 256)
RULES = {
    "prefill first": lambda blocks: PrefillFirst(blocks, 2048, SLOTS),
    "mixed, 512": lambda blocks: Scheduler(blocks, 512, SLOTS),
    "mixed, 2048": lambda blocks: Scheduler(blocks, 2048, SLOTS),
}


def serve(make, rate, pool=POOL):
    """What SERVED requests saw, and the tokens of each step: those of
    requests that begin, or begin again, and those of answers.
    """
    clock = Clock()
    machine = make(NaiveBlocks(pool, BLOCK))
    model = ModelBackend(clock, pool, BLOCK, STEP_US, TOKEN_US, KV_US)
    engine = Engine(model, machine, clock=clock)
    lengths = {"prompt": uniform(*PROMPT), "output": uniform(*OUTPUT)}
    requests = workload(SERVED, rate, seed=0, **lengths)
    steps, moved = [], 0

    def each():
        nonlocal moved
        sizes = [w.stop - w.start for w in engine.last.work]
        ones = sum(n == 1 for n in sizes)
        steps.append((sum(sizes) - ones, ones))
        now = getattr(machine, "moved", 0)
        clock.now += (now - moved) * MOVE_US * 1e-6
        moved = now

    replay(engine, requests, clock.wait, each)
    m = metrics(requests)
    gaps = np.concatenate([np.diff(r.times) for r in requests])
    needed = sum(len(r.prompt) + r.max_tokens - 1 for r in requests)
    return {
        "TTFT p50": 1e3 * m.ttft_p50,
        "TTFT p99": 1e3 * m.ttft_p99,
        "gap p99": 1e3 * float(np.percentile(gaps, 99)),
        "preemptions": m.preemptions,
        "computed again": int(np.sum(steps)) - needed,
        "tokens moved": moved,
        "tokens": m.tokens_per_second,
    }, steps


def columns(row, *names):
    return {name: row[name] for name in names}


UNITS = dict.fromkeys(("TTFT p50", "TTFT p99", "gap p99"), "ms")
UNITS["tokens"] = "tokens/s"
TIMES = tuple(UNITS)
light = {name: serve(make, 150) for name, make in RULES.items()}
ct.table(
    "150 requests per second, modelled",
    {name: columns(row, *TIMES) for name, (row, _) in light.items()},
    corner="rules",
    units=UNITS,
)

# %% chart
BEGIN, END = 308, 338  # some of the steps
ct.series(
    "tokens computed in each step",
    ("number of the step", ""),
    ("tokens", ""),
    {
        name: [(i, sum(light[name][1][i])) for i in range(BEGIN, END)]
        for name in ("prefill first", "mixed, 512")
    },
)

# %% gap
rows = {}
for name, kind, budget in (
    ("prefill first", PrefillFirst, 4096),
    ("mixed, 512", Scheduler, BUDGET),
):
    clock = Clock()
    model = ModelBackend(clock, POOL, BLOCK, STEP_US, TOKEN_US, KV_US)
    engine = Engine(
        model, kind(NaiveBlocks(POOL, BLOCK), budget, 64), clock=clock
    )
    others = [Request(i, [1] * HELD, 200) for i in range(OTHERS)]
    for request in others:
        engine.add(request)
    while not all(request.output for request in others):
        engine.step()
    came = clock()
    late = Request(OTHERS, [1] * LONG, 2, came)
    engine.add(late)
    while engine.busy:
        engine.step()
    gaps = [np.diff([t for t in r.times if t >= came]).max() for r in others]
    rows[name] = {
        "first token of the long one": 1e3 * (late.times[0] - came),
        "longest gap of the others": 1e3 * float(max(gaps)),
    }
ct.table(
    "a prompt of 2,000 tokens beside 31 that decode, modelled",
    rows,
    corner="rules",
    units=dict.fromkeys(rows["mixed, 512"], "ms"),
)

# %% [markdown]
# Few blocks: who gives way, and what it costs to save keys and values on the
# host, or to compute them again.

# %% few
FEW = {
    "prefill first, computed again": RULES["prefill first"],
    "prefill first, saved on the host": lambda blocks: PrefillFirst(
        blocks, 2048, SLOTS, swap=True
    ),
    "mixed, 512": RULES["mixed, 512"],
}
NAMES = "preemptions", "computed again", "tokens moved", "TTFT p50", "tokens"
few = {name: serve(make, 200, 900)[0] for name, make in FEW.items()}
ct.table(
    "200 requests per second, pool of 900 blocks, modelled",
    {name: columns(row, *NAMES) for name, row in few.items()},
    corner="rules",
    units={name: UNITS[name] for name in NAMES if name in UNITS},
)

# %% rates
rates = 100, 150, 200, 220
ct.table(
    "time to first token, p99, modelled",
    {
        name: {
            f"{rate} per second": serve(RULES[name], rate)[0]["TTFT p99"]
            for rate in rates
        }
        for name in ("prefill first", "mixed, 2048")
    },
    corner="rules",
    units={f"{rate} per second": "ms" for rate in rates},
)
