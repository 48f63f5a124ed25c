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
#       repeats: [5, 1]
#       turns: [2, 1]
#       places: [[16, 32], [2]]
#       budgets: [[128, 512, 2048], [64]]
#       decoding: [63, 2]
#       chunk: [449, 70]
#       before: [1000, 40]
#       passes: [100, 1]
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
from time import perf_counter

import numpy as np

import cudatut as ct
from cudatut.book.llm.engine.arrivals import (
    Clock,
    ModelBackend,
    lognormal,
    uniform,
    workload,
)
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.engine.static_batches import StaticBatches, bound

KINDS = {
    "static": (StaticBatches, "fcfs"),
    "continuous, first come": (Scheduler, "fcfs"),
    "continuous, longest first": (Scheduler, "longest"),
}

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


def requests_of(ends):
    """The requests of such a workload, the same each time."""
    low, high, least, most = ends
    prompt, output = uniform(low, high), uniform(least, most)
    return workload(COUNT, np.inf, prompt, output, vocab=vocab)


WORK = {"long prompts": long_prompts, "short prompts": short_prompts}
bounds, table = {}, {}
for name, ends in WORK.items():
    outputs = [request.max_tokens for request in requests_of(ends)]
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
BLOCKS = 6000


def engine_of(backend, kind, policy, budget=BUDGET, slots=SLOTS, ahead=False):
    blocks = NaiveBlocks(BLOCKS, 16)
    scheduler = kind(blocks, budget, slots, policy, context=8192)
    return Engine(backend, scheduler, ahead=ahead)


def steps_of(kind, policy, ends):
    """Steps, by a backend that computes nothing."""
    engine = engine_of(ModelBackend(Clock(), BLOCKS, 16), kind, policy)
    for request in requests_of(ends):
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
    block_size=16,
    max_tokens=BUDGET,
    max_requests=SLOTS,
)

# %% tokens
rounds = 3


def serve(kind, policy, ends, budget=BUDGET, slots=SLOTS, seen=None):
    """Seconds for all requests, and for each step. seen: gets the times of the
    steps that only decode, by the number of their requests.
    """
    engine = engine_of(backend, kind, policy, budget, slots, ahead=True)
    requests = requests_of(ends)
    for request in requests:
        engine.add(request)
    ct.synchronize()
    begin = before = perf_counter()
    steps, begun = [], []
    while engine.busy:
        # Starts a step, and waits for the one before.
        engine.step()
        now = perf_counter()
        done, begun = begun, engine.last.work
        decodes = done and all(w.stop - w.start == 1 for w in done)
        if decodes and seen is not None:
            seen.setdefault(len(done), []).append(1e6 * (now - before))
        steps.append(now - before)
        before = now
    assert all(len(r.output) == r.max_tokens for r in requests)
    return before - begin, steps


decode_us, rates = {name: {} for name in WORK}, {}
for name, ends in WORK.items():
    seconds = {label: [] for label in KINDS}
    for turn in range(1 + rounds):  # the first compiles and captures
        seen = decode_us[name] if turn else None
        for label, how in KINDS.items():
            seconds[label].append(serve(*how, ends, seen=seen)[0])
    middle = {s: float(np.median(all_[1:])) for s, all_ in seconds.items()}
    answers = sum(request.max_tokens for request in requests_of(ends))
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
def step_us(times, requests):
    """Of a step with so many requests; times: of steps, by their requests."""
    known = sorted(times)
    typical = [float(np.median(times[n])) for n in known]
    return float(np.interp(requests, known, typical))


def bound_with_times(times, outputs, slots):
    """Times static, if all steps decode and take as long as these."""
    static = 0.0
    for i in range(0, len(outputs), slots):
        batch = outputs[i : i + slots]
        for step in range(max(batch)):
            static += step_us(times, sum(length > step for length in batch))
    least = max(ct.cdiv(sum(outputs), slots), max(outputs))
    return static / (least * step_us(times, slots))


shown = [n for n in (1, 8, 16, 32, 48, 64) if n <= SLOTS]
ct.table(
    "time of a step that only decodes",
    {n: {name: step_us(decode_us[name], n) for name in WORK} for n in shown},
    corner="requests in the step",
    units=dict.fromkeys(WORK, "us"),
)
with_times = {}
for name, ends in WORK.items():
    outputs = [request.max_tokens for request in requests_of(ends)]
    with_times[name] = bound_with_times(decode_us[name], outputs, SLOTS)
ct.facts(
    "bound with these times",
    {name: (ratio, "×") for name, ratio in with_times.items()},
)

# %% places
# The fewer places, the less steps differ in length. Steps are measured anew.
places = (16, 32)
turns = 2
outputs = [request.max_tokens for request in requests_of(short_prompts)]
table = {}
for slots in places:
    seconds, seen = {"static": [], "continuous, longest first": []}, {}
    for turn in range(1 + turns):  # the first compiles and captures
        for label, found in seconds.items():
            took, _ = serve(
                *KINDS[label],
                short_prompts,
                slots=slots,
                seen=seen if turn else None,
            )
            found += [took] if turn else []
    ratio = min(seconds["static"]) / min(seconds["continuous, longest first"])
    most = bound(outputs, slots)
    with_its_times = bound_with_times(seen, outputs, slots)
    table[slots] = {
        "bound": most,
        "times static": ratio,
        "of the bound": 100 * ratio / most,
        "step with one request": step_us(seen, 1),
        "step with all": step_us(seen, slots),
        "bound with these times": with_its_times,
        "of that bound": 100 * ratio / with_its_times,
    }
ct.table(
    "longest first, short prompts",
    table,
    corner="requests at a time",
    units={
        "bound": "×",
        "times static": "×",
        "of the bound": "%",
        "step with one request": "us",
        "step with all": "us",
        "bound with these times": "×",
        "of that bound": "%",
    },
)

# %% budget
# A smaller budget cuts prompts into more chunks.
budgets = (128, 512, 2048)
repeats = 5
answers = sum(request.max_tokens for request in requests_of(long_prompts))
served = {budget: [] for budget in budgets}
for turn in range(1 + repeats):  # the first compiles and captures
    for budget, found in served.items():
        one = serve(Scheduler, "fcfs", long_prompts, budget)
        found += [one] if turn else []
table = {}
for budget, found in served.items():
    table[budget] = {
        "longest step": 1000 * float(np.median([max(t) for _, t in found])),
        "p99 of the steps": 1000
        * float(np.median([np.percentile(t, 99) for _, t in found])),
        "tokens/s": answers / float(np.median([s for s, _ in found])),
    }
ct.table(
    "by the token budget",
    table,
    corner="most tokens of a step",
    units={"longest step": "ms", "p99 of the steps": "ms"},
)

# %% [markdown]
# The attention of one mixed step: requests that decode, and a chunk of a
# prompt. Unused slots hold NaN.

# %% mixed
import pycuda.driver as cuda

from cudatut.book.llm.kernels.attention import decode
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.measure.graphs import Graph
from cudatut.book.llm.model.reference import attention
from cudatut.book.llm.model.weights import bits, floats

HEADS, KV_HEADS, DIM, SIZE = 9, 3, 64, 16
decoding = 63
chunk = 449
before = 1000  # tokens of that prompt that are computed already
rng = ct.rng(3)
lengths = np.append(rng.integers(32, 769, decoding), before + chunk)
lengths = lengths.astype("int32")
queries = np.append(np.ones(decoding, int), chunk)
starts = np.append(0, np.cumsum(queries)).astype("int32")
owned = -(-lengths // SIZE)
free = iter(rng.permutation(owned.sum()).tolist())
tables = np.full((len(lengths), owned.max()), -1, "int32")
for i, n in enumerate(owned):
    tables[i, :n] = [next(free) for _ in range(n)]
shape = int(owned.sum()) * SIZE, KV_HEADS, DIM
keys, values = (np.full(shape, 0x7FC0, "uint16") for _ in range(2))  # NaN
where = []
for i, length in enumerate(lengths):
    t = np.arange(length)
    where.append(tables[i, t // SIZE] * SIZE + t % SIZE)
    for cache in (keys, values):
        cache[where[i]] = bits(
            rng.standard_normal((length, *shape[1:]), dtype="float32")
        )
q = bits(rng.standard_normal((starts[-1], HEADS, DIM), dtype="float32"))

tile = flash.tile_for(DIM)
work = flash.order(starts, lengths, tile)
d_q, d_keys, d_values = map(ct.to_device, (q, keys, values))
out = ct.empty(q.shape, "uint16")


def lists(first, last):
    """What flash.paged wants to know of requests first to last - 1."""
    own = starts[first : last + 1], lengths[first:last]
    on_gpu = [ct.to_device(np.ascontiguousarray(a)) for a in own]
    of_tables = ct.to_device(np.ascontiguousarray(tables[first:last]))
    return *on_gpu, of_tables, SIZE, ct.to_device(flash.order(*own, tile))


count = len(lengths)
together = lists(0, count)
flash.paged(d_q, d_keys, d_values, out, *together)
for i in (0, 1, count - 1):
    own = slice(starts[i], starts[i + 1])
    positions = np.arange(lengths[i] - queries[i], lengths[i])
    expected = attention(
        floats(q[own]),
        floats(keys[where[i]]),
        floats(values[where[i]]),
        positions,
    )
    ct.check(
        floats(out.get()[own]).reshape(expected.shape),
        expected,
        atol=0.015,
        name=f"request {i}, {queries[i]} queries",
    )
ct.facts(
    "rows of one mixed step",
    {
        "tokens": int(starts[-1]),
        "requests that decode": decoding,
        "tokens of the chunk": chunk,
        "tiles of queries": len(work),
        "padded to a rectangle, tokens": count * chunk,
    },
)

# %% mixed-bench
alone = [lists(i, i + 1) for i in range(count)]
only_chunk = lists(decoding, count)
few = [
    ct.to_device(np.ascontiguousarray(a[:decoding])) for a in (tables, lengths)
]
longest = int(lengths[:decoding].max())
need = decode.sizes(decoding, HEADS, KV_HEADS, DIM, longest)
lse = ct.empty((decoding, HEADS), "float32")
partials = ct.empty(need.partials, "float32")
tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
apart = ct.empty(q.shape, "uint16")


stream = cuda.Stream()


def one_by_one():
    for of_one in alone:
        flash.paged(d_q, d_keys, d_values, out, *of_one, stream=stream)


def one_launch():
    flash.paged(d_q, d_keys, d_values, out, *together, stream=stream)


def two_kernels():
    decode.paged(
        d_q[:decoding], d_keys, d_values, *few, SIZE, apart[:decoding], lse,
        partials, tickets, longest, stream=stream,
    )  # fmt: skip
    flash.paged(d_q, d_keys, d_values, apart, *only_chunk, stream=stream)


def graph_us(graph):
    """Microseconds of a graph; L2 is flushed first, and the host has started
    the graph meanwhile.
    """
    begin, end = cuda.Event(), cuda.Event()
    ct.flush_l2()
    begin.record(stream)
    graph.launch()
    end.record(stream)
    end.synchronize()
    return 1e3 * begin.time_till(end)


ct.synchronize()
two_kernels()
ct.synchronize()
ct.check(
    floats(apart.get()),
    floats(out.get()),
    atol=0.015,
    name="two kernels beside one",
)
# Each way is a graph, so that no host starts its launches one by one.
ways = {
    "a launch per request": one_by_one,
    "one launch": one_launch,
    "decode.cu and flash.cu": two_kernels,
}
passes = 100
graphs = {way: Graph(work, stream) for way, work in ways.items()}
found = ct.take_turns(
    {way: lambda graph=graph: graph for way, graph in graphs.items()},
    passes,
    Random(0),
    time=lambda run: graph_us(run()),
)
ct.table(
    "attention of one mixed step, each way a CUDA graph",
    {
        way: {
            "launches": graphs[way].nodes,
            "time": float(np.median(us)),
            "beside one launch": float(
                np.median(us) / np.median(found["one launch"])
            ),
        }
        for way, us in found.items()
    },
    corner="way",
    units={"time": "us", "beside one launch": "×"},
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
