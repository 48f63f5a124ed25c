# ---
# jupyter:
#   cudatut:
#     title: {en: "vLLM's scheduler, rule by rule", zh: "逐条看 vLLM 的调度规则"}
#     requires: sm_80
#     extra: llm
#     alone: false
#     timeout_s: 300
#     sizes: {SEEDS: [20, 1], SERVED: [200, 20]}
# ---

# %% [markdown]
# Two rules of admission on a pool so small that it can be followed by hand. A
# decodes; the prompt of B comes while it does.

# %% program
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.request import Request, Work
from cudatut.book.llm.engine.scheduler import Scheduler


class FirstPiece(Scheduler):
    """Admits a request as soon as its next piece fits into the free blocks."""

    def admit(self, step, budget):
        blocks = self.blocks
        while self.waiting and budget and len(self.running) < self.max_running:
            self.at_hand = request = self.waiting[0]
            found = blocks.lookup(request.tokens)  # in the prefix cache
            stop = len(found) * blocks.block_size + budget
            if not blocks.fits(request.tokens[:stop], 0, found):
                break
            self._start(step, request, found)
            start, known = request.computed, len(request.tokens)
            stop = min(known, start + budget)
            step.copies += blocks.reserve(request.id, start, stop)
            budget -= stop - start
            step.work.append(Work(request, start, stop, (), stop == known))


# Tokens of the prompt, most tokens of the answer, and when it comes.
COMING = {"A": (8, 11, 1), "B": (20, 3, 2)}


def run(machine):
    """For each step: what each request computes; -1: it is preempted."""
    steps = []
    while machine.requests or not steps:
        for name, (prompt, most, when) in COMING.items():
            if when == len(steps) + 1:
                machine.add(Request(name, [1] * prompt, most))
        step = machine.schedule()
        row = {w.request.id: w.stop - w.start for w in step.work}
        steps.append(row | {r.id: -1 for r in step.preempted})
        # A model would compute these tokens here. Ours always says 1.
        machine.finish(step, [[1] * work.last for work in step.work])
    return steps


rules = {
    "the whole prompt must fit": Scheduler(
        NaiveBlocks(7, 4), 8, max_running=4, watermark=0
    ),
    "the next piece must fit": FirstPiece(NaiveBlocks(7, 4), 8, max_running=4),
}
found = {name: run(machine) for name, machine in rules.items()}
needed = sum(prompt + most - 1 for prompt, most, _ in COMING.values())
totals = {}
for name, steps in found.items():
    computed = sum(n for step in steps for n in step.values() if n > 0)
    totals[name] = {"steps": len(steps), "computed again": computed - needed}
    print(f"{name}: {len(steps)} steps, {computed - needed} computed again")
    for request in COMING:
        cells = (step.get(request, "") for step in steps)
        print(" ", request, *(f"{'x' if n == -1 else n:>3}" for n in cells))

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.backends.numpy_backend import NumpyBackend
from cudatut.book.llm.engine.arrivals import (
    Clock,
    ModelBackend,
    metrics,
    replay,
    uniform,
    workload,
)
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.prefill_first import PrefillFirst
from cudatut.book.llm.engine.prefix import PrefixBlocks
from cudatut.book.llm.model import tokens
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.reference import Reference, greedy
from cudatut.book.numbers.bf16 import to_bf16, to_float

# %% predict
ct.table("what both rules cost", totals, corner="rule")

# %% [markdown]
# The other two rules, both of V0: a delay before the next prompt, and room that
# is made for whoever has a higher priority.


# %% rules
class Delayed(PrefillFirst):
    """Lets prompts gather: none is computed before the oldest has waited
    longer than `factor` times what the last step with prompts took.
    """

    def __init__(self, *arguments, clock, factor, **named):
        super().__init__(*arguments, **named)
        self.clock, self.factor = clock, factor
        self.then = self.latency = 0.0
        self.prompts = False  # whether the last step had some

    def admit(self, step, budget):
        now = self.clock()
        if self.prompts:
            self.latency = now - self.then
        self.then, self.prompts = now, False
        if self.factor and self.waiting and self.running:
            oldest = min(request.arrival for request in self.waiting)
            if now - oldest <= self.factor * self.latency:
                return
        super().admit(step, budget)
        self.prompts = bool(step.work)


class Forced(PrefillFirst):
    """Whoever waits with a higher priority has running requests preempted,
    from the last on, until there is room.
    """

    def admit(self, step, budget):
        super().admit(step, budget)
        if step.work:
            return
        while self.waiting and self.running:
            first, last = self.waiting[0], self.running[-1]
            if self.order(last) < self.order(first) or self._room(first):
                break
            self._preempt(step)

    def _room(self, request):
        places = len(self.running) < self.max_running
        return places and self.blocks.fits(request.tokens, self.spare)


# %% [markdown]
# Right first. Under each of these rules our small model continues poems as it
# does alone, in a pool so small that requests are preempted.

# %% check
tang = Checkpoint.open(ct.paths.examples_dir() / "llm/model/tang.gguf")
characters = tokens.load(tang)
beginnings = ("春眠不觉晓，", "白日依山尽，", "床前明月光，")
prompts = [[characters.bos, *characters.encode(line)] for line in beginnings]
alone = [greedy(Reference(tang), prompt, 20) for prompt in prompts]
own = {"max_running": 3, "watermark": 0}
machines = {
    "the next piece": FirstPiece(NaiveBlocks(10, 4), 8, **own),
    "delayed": Delayed(
        NaiveBlocks(10, 4), 64, clock=Clock(), factor=1.0, **own
    ),
    "forced": Forced(NaiveBlocks(10, 4), 64, policy="priority", **own),
}
for name, machine in machines.items():
    engine = Engine(NumpyBackend(tang, 10, 4, one_by_one=True), machine)
    requests = [
        Request(i, prompt, 20, priority=-i) for i, prompt in enumerate(prompts)
    ]
    for request in requests:
        engine.add(request)
        engine.step()
    while engine.busy:
        engine.step()
        machine.blocks.check()
    said = np.array([request.output for request in requests])
    ct.check(said, np.array(alone), name=f"{name}, beside alone")
    assert sum(request.preemptions for request in requests)

# %% [markdown]
# Load on the modelled machine. Time is computed, so every run gives the same.
# Each number is the median of twenty sets of arrivals.

# %% load
SERVED = 200
SEEDS = 20
SLOTS, BLOCK = 32, 16
PROMPT, OUTPUT = (32, 1024), (32, 256)
UNITS = dict.fromkeys(("TTFT p50", "TTFT p99", "gap p99"), "ms")
UNITS["tokens"] = "tokens/s"


def serve(make, rate, pool, seed, kind=NaiveBlocks, mark=None):
    """Requests that were answered, and the tokens computed in all."""
    clock, computed = Clock(), 0
    machine = make(kind(pool, BLOCK), clock)
    engine = Engine(ModelBackend(clock, pool, BLOCK), machine, clock=clock)
    lengths = {"prompt": uniform(*PROMPT), "output": uniform(*OUTPUT)}
    requests = workload(SERVED, rate, seed=seed, **lengths)
    if mark:
        mark(requests)

    def each():
        nonlocal computed
        computed += sum(w.stop - w.start for w in engine.last.work)

    replay(engine, requests, clock.wait, each)
    return requests, computed


def seen(requests, computed):
    m = metrics(requests)
    gaps = np.concatenate([np.diff(r.times) for r in requests])
    needed = sum(len(r.prompt) + r.max_tokens - 1 for r in requests)
    return {
        "TTFT p50": 1e3 * m.ttft_p50,
        "TTFT p99": 1e3 * m.ttft_p99,
        "gap p99": 1e3 * float(np.percentile(gaps, 99)),
        "preemptions": m.preemptions,
        "computed again": computed - needed,
        "tokens": m.tokens_per_second,
    }


def medians(make, rate, pool, names, kind=NaiveBlocks):
    """Of what is named: medians over the sets of arrivals."""
    runs = [seen(*serve(make, rate, pool, s, kind)) for s in range(SEEDS)]
    return {name: float(np.median([r[name] for r in runs])) for name in names}


ADMISSION = {
    "the whole prompt": lambda b, _: Scheduler(b, 512, SLOTS, watermark=0),
    "and 5 % stay free": lambda b, _: Scheduler(b, 512, SLOTS, watermark=0.05),
    "the next piece": lambda b, _: FirstPiece(b, 512, SLOTS),
}
NAMES = "preemptions", "computed again", "TTFT p50"
KINDS = {"": NaiveBlocks, ", cached": PrefixBlocks}
rows = {
    name: {
        column + ending: value
        for ending, kind in KINDS.items()
        for column, value in medians(make, 200, 900, NAMES, kind).items()
    }
    for name, make in ADMISSION.items()
}
ct.table(
    "admission: 200 requests per second, pool of 900 blocks, modelled",
    rows,
    corner="what must fit",
    units=dict.fromkeys(("TTFT p50", "TTFT p50, cached"), "ms"),
)


# %% delay
def delayed(factor):
    return lambda b, clock: Delayed(b, 2048, SLOTS, clock=clock, factor=factor)


ct.table(
    "delay: 150 requests per second, modelled",
    {
        f"factor {f:g}": medians(delayed(f), 150, 4096, UNITS)
        for f in (0, 0.5, 1, 2)
    },
    corner="delay",
    units=UNITS,
)

# %% priority
URGENT = 10  # every tenth request


def mark(requests):
    for request in requests:
        request.priority = int(request.id % URGENT > 0)


def first_tokens(make):
    """99th percentile of the time to first token, and preemptions: medians."""
    rows = []
    for seed in range(SEEDS):
        requests, _ = serve(make, 200, 900, seed, mark=mark)
        times = [[], []]
        for r in requests:
            times[r.priority].append(1e3 * (r.times[0] - r.arrival))
        again = sum(r.preemptions for r in requests)
        rows.append((*(np.percentile(t, 99) for t in times), again))
    return np.median(rows, axis=0).tolist()


ORDERS = {
    "by arrival": lambda b, _: PrefillFirst(b, 2048, SLOTS),
    "priority": lambda b, _: PrefillFirst(b, 2048, SLOTS, policy="priority"),
    "priority, forced": lambda b, _: Forced(b, 2048, SLOTS, policy="priority"),
}
COLUMNS = "urgent", "the others", "preemptions"
ct.table(
    "priority: TTFT p99 at 200 requests per second, pool of 900 blocks, modelled",
    {n: dict(zip(COLUMNS, first_tokens(make))) for n, make in ORDERS.items()},
    corner="rule",
    units=dict.fromkeys(COLUMNS[:2], "ms"),
)

# %% [markdown]
# A step that is arranged while the one before it still runs does not know its
# tokens yet. It names their places, and a kernel on the GPU looks them up.

# %% launch
vocab, dim = 1000, 64
embedding = to_bf16(ct.rng(0).standard_normal((vocab, dim), dtype="float32"))
drawn = np.array([7, 42, 13], "int32")  # of the step before: on the GPU alone
arranged = np.array([-1, 5, -3, 8, -2], "int32")  # -1 - i: token i of these
meant = [drawn[-1 - t] if t < 0 else t for t in arranged]

ids, rows = ct.to_device(arranged), ct.to_device(embedding)
places, x = ct.to_device(drawn), ct.empty((len(arranged), dim), "float32")
kernel = ct.Kernel("llm/kernels/activation.cu", "embed_bf16")
kernel(ids, places, rows, x, dim, grid=len(arranged), block=32)
ct.check(x, to_float(embedding)[meant], name="rows of tokens not yet known")
