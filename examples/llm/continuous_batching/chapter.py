# ---
# jupyter:
#   cudatut:
#     title: {en: "Continuous batching", zh: "连续批处理"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 240
#     sizes:
#       layers: [30, 1]
#       vocab: [49152, 512]
#       COUNT: [256, 3]
#       SLOTS: [64, 2]
#       long_prompts: [[32, 512, 32, 256], [8, 24, 2, 3]]
#       short_prompts: [[16, 64, 16, 256], [4, 16, 2, 3]]
#       rounds: [3, 1]
# ---

# %% [markdown]
# Steps, counted from the lengths of the answers alone.

# %% program
import heapq
from random import Random

rng = Random(0)
lengths = [rng.randint(32, 256) for _ in range(256)]  # tokens of answers


def static_steps(lengths, slots):
    """A batch after the other, each until its longest answer ends."""
    batches = [lengths[i : i + slots] for i in range(0, len(lengths), slots)]
    return sum(max(batch) for batch in batches)


def continuous_steps(lengths, slots):
    """The next answer begins where one has ended."""
    ends = [0] * slots
    for length in lengths:
        heapq.heappush(ends, heapq.heappop(ends) + length)
    return max(ends)


print("slots  static  continuous  longest first  at least")
for slots in (1, 16, 64, 256):
    least = max(-(-sum(lengths) // slots), max(lengths))
    print(
        f"{slots:5}  {static_steps(lengths, slots):6}"
        f"  {continuous_steps(lengths, slots):10}"
        f"  {continuous_steps(sorted(lengths)[::-1], slots):13}  {least:8}"
    )

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.continuous_batching.runs import (
    BLOCK,
    BLOCKS,
    KINDS,
    bound_with_times,
    engine_of,
    requests_of,
    serve,
    step_us,
)
from cudatut.book.llm.engine.arrivals import (
    Clock,
    ModelBackend,
    lognormal,
    uniform,
)
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.engine.static_batches import StaticBatches, bound

# %% [markdown]
# A schedule that fits on a page: seven requests, three at a time, at most 12
# tokens in a step, and so few blocks that one has to give up its own.

# %% schedule
LITTLE = [(14, 5), (3, 12), (6, 3), (9, 8), (4, 4), (10, 6), (2, 9)]


def watch(kind):
    """What each request does in each step: 0 it has left, 1 waits, 2 is
    preempted, 3 decodes, 10 + n prefills n tokens; and the steps.
    """
    blocks = NaiveBlocks(10, 4)
    scheduler = kind(blocks, token_budget=12, max_running=3, watermark=0)
    engine = Engine(ModelBackend(Clock(), 10, 4), scheduler)
    requests = [Request(i, [1] * p, n) for i, (p, n) in enumerate(LITTLE)]
    for request in requests:
        engine.add(request)
    rows = [[] for _ in requests]
    while engine.busy:
        waits = [int(r.id in scheduler.requests) for r in requests]
        engine.step()
        for request in engine.last.preempted:
            waits[request.id] = 2
        for work in engine.last.work:
            tokens = work.stop - work.start
            prefill = not work.last or tokens > 1
            waits[work.request.id] = 10 + tokens if prefill else 3
        for row, what in zip(rows, waits):
            row.append(what)
        blocks.check()
    return rows


schedules = {"static": watch(StaticBatches), "continuous": watch(Scheduler)}
for name, rows in schedules.items():
    ct.facts(
        f"schedule, {name}",
        {f"request {i}": " ".join(map(str, row)) for i, row in enumerate(rows)},
    )
tokens = sum(answer for _, answer in LITTLE)
first, again = (n - 10 for n in schedules["continuous"][5] if n >= 10)
ct.facts(
    "the small schedule",
    {
        "steps, static": len(schedules["static"][0]),
        "steps, continuous": len(schedules["continuous"][0]),
        "tokens sampled": tokens,
        "preemptions": sum(row.count(2) for row in schedules["continuous"]),
        "request 5, tokens computed first": first,
        "request 5, tokens computed again": again,
    },
)

# %% [markdown]
# 256 requests: what the lengths allow, and what the scheduler makes of it.

# %% predict
COUNT = 256  # requests
SLOTS = 64  # at a time
# Tokens of prompts and answers, from and to, equally often.
long_prompts = (32, 512, 32, 256)
short_prompts = (16, 64, 16, 256)
vocab = 49152

WORK = {"long prompts": long_prompts, "short prompts": short_prompts}
bounds, table = {}, {}
for name, ends in WORK.items():
    requests = requests_of(ends, COUNT, vocab)
    outputs = [request.max_tokens for request in requests]
    batches = [outputs[i : i + SLOTS] for i in range(0, COUNT, SLOTS)]
    static = sum(max(batch) for batch in batches)
    bounds[name] = bound(outputs, SLOTS)
    table[name] = {
        "answers, tokens": sum(outputs),
        "static, steps": static,
        "at least, steps": max(ct.cdiv(sum(outputs), SLOTS), max(outputs)),
        "bound": bounds[name],
    }
ct.table(
    "from the lengths of the answers",
    table,
    corner="requests",
    units={"bound": "×"},
)

# %% steps
BUDGET = 2048  # tokens of a step


def steps_of(kind, policy, ends):
    """Steps, by a backend that computes nothing."""
    model = ModelBackend(Clock(), BLOCKS, BLOCK)
    engine = engine_of(model, kind, policy, BUDGET, SLOTS)
    for request in requests_of(ends, COUNT, vocab):
        engine.add(request)
    steps = 0
    while engine.busy:
        engine.step()
        steps += 1
    return steps


for name, ends in WORK.items():
    kinds = KINDS | {"static, longest first": (StaticBatches, "longest")}
    steps = {label: steps_of(*how, ends) for label, how in kinds.items()}
    ct.table(
        f"steps, {name}",
        {
            label: {
                "steps": count,
                "times as few": steps["static"] / count,
                "of the bound": 100 * steps["static"] / count / bounds[name],
            }
            for label, count in steps.items()
        },
        corner="scheduler",
        units={"times as few": "×", "of the bound": "%"},
    )

# %% [markdown]
# On the GPU, with the shape of SmolLM2 and random weights.

# %% model
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.model.random_model import RandomModel

layers = 30
backend = GpuBackend(
    RandomModel(layers=layers, vocab=vocab),
    block_count=BLOCKS,
    block_size=BLOCK,
    max_tokens=BUDGET,
    max_requests=SLOTS,
)

# %% tokens
rounds = 3
decode_us, rates = {name: {} for name in WORK}, {}
for name, ends in WORK.items():
    seconds = {label: [] for label in KINDS}
    for turn in range(1 + rounds):  # the first compiles and captures
        seen = decode_us[name] if turn else None
        for label, how in KINDS.items():
            engine = engine_of(backend, *how, BUDGET, SLOTS, ahead=True)
            requests = requests_of(ends, COUNT, vocab)
            seconds[label].append(serve(engine, requests, seen)[0])
    middle = {s: float(np.median(all_[1:])) for s, all_ in seconds.items()}
    answers = sum(request.max_tokens for request in requests)
    rates[name] = {
        label: {
            "tokens/s": answers / middle[label],
            "times static": middle["static"] / middle[label],
            "of the bound": 100
            * middle["static"]
            / middle[label]
            / bounds[name],
        }
        for label in KINDS
    }
    ct.table(
        f"tokens per second, {name}",
        rates[name],
        corner="scheduler",
        units={"times static": "×", "of the bound": "%"},
    )

# %% step-time
# A step that only decodes, by the number of its requests, for each set of
# requests by itself; and the bound if a step takes as long as measured there,
# and prefill takes no time.
shown = [n for n in (1, 8, 16, 32, 48, 64) if n <= SLOTS]
ct.table(
    "time of a step that only decodes",
    {n: {name: step_us(decode_us[name], n) for name in WORK} for n in shown},
    corner="requests in the step",
    units=dict.fromkeys(WORK, "us"),
)
with_times = {}
for name, ends in WORK.items():
    requests = requests_of(ends, COUNT, vocab)
    outputs = [request.max_tokens for request in requests]
    with_times[name] = bound_with_times(decode_us[name], outputs, SLOTS)
ct.facts(
    "bound with these times",
    {name: (ratio, "×") for name, ratio in with_times.items()},
)

# %% [markdown]
# How much can be won at all? It depends on the lengths and on the slots.

# %% bounds
LAWS = {
    "all 128": uniform(128, 128),
    "32 to 256": uniform(32, 256),
    "1 to 512": uniform(1, 512),
    "few long ones": lognormal(64, 1.0, 1024),
    "very few long ones": lognormal(16, 1.5, 1024),
}
table = {}
for law, draw in LAWS.items():
    answers = draw(ct.rng(0), 4096).tolist()
    table[law] = {"mean": float(np.mean(answers)), "longest": max(answers)}
    table[law] |= {
        f"{slots} slots": bound(answers, slots) for slots in (4, 16, 64)
    }
ct.table("bound from the lengths", table, corner="answers, tokens")
