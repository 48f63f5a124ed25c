# ---
# jupyter:
#   cudatut:
#     title: {en: "From a request to a batch: solutions", zh: "从请求到批次：参考答案"}
#     requires: sm_80
#     extra: llm
#     sizes: {trials: [40, 3], coming_n: [400, 20]}
# ---

# %% [markdown]
# Percentiles of what users saw; a scheduler with two mistakes, mended; and an
# order in which everybody's turn comes.

# %% given-1
import numpy as np


# %% solution-1
def seen(arrivals, times):
    ttft = [found[0] - came for came, found in zip(arrivals, times)]
    tpot = [
        (found[-1] - found[0]) / (len(found) - 1)
        for found in times
        if len(found) > 1
    ]
    return *np.percentile(ttft, [50, 99]), *np.percentile(tpot, [50, 99])


# %% check-1
import cudatut as ct
import numpy as np
from cudatut.book.llm.engine.arrivals import metrics
from cudatut.book.llm.engine.request import Request, State

for trial in range(5):
    rng = ct.rng(trial)
    arrivals = np.cumsum(rng.exponential(0.02, 200))
    done = []
    for i, arrival in enumerate(arrivals):
        gaps = rng.exponential(0.004, 1 if i % 7 == 0 else rng.integers(2, 40))
        request = Request(i, [1], 99, arrival=arrival, state=State.FINISHED)
        request.times = (arrival + 0.05 + np.cumsum(gaps)).tolist()
        done.append(request)
    m = metrics(done)
    found = seen(arrivals.tolist(), [r.times for r in done])
    for name, at in (("TTFT", 0), ("TPOT", 2)):
        want = (
            getattr(m, f"{name.lower()}_p50"),
            getattr(m, f"{name.lower()}_p99"),
        )
        ct.check(np.array(found[at : at + 2], float), np.array(want), name=name)

# %% given-2
from bisect import insort

import numpy as np
from cudatut.book.llm.engine.blocks import BlockError, NaiveBlocks
from cudatut.book.llm.engine.request import Request, State, Work
from cudatut.book.llm.engine.scheduler import Scheduler


# %% solution-2
class Impatient(Scheduler):
    """Two methods of Scheduler, mended."""

    def admit(self, step, budget):
        while self.waiting and budget and len(self.running) < self.max_running:
            request = self.waiting[0]
            spare = self.spare if self.running else 0
            # A preempted request has said something already: its tokens are
            # more than its prompt.
            if not self.blocks.fits(request.tokens, spare):
                break
            self._start(step, request)
            start, known = request.computed, len(request.tokens)
            stop = min(known, start + budget)
            step.copies += self.blocks.reserve(request.id, start, stop)
            budget -= stop - start
            step.work.append(Work(request, start, stop, (), stop == known))

    def _preempt(self, step):
        # The last: the first must get on, and has work in this step already.
        request = self.running.pop()
        self.blocks.release(request.id)
        request.state, request.computed = State.WAITING, 0
        request.preemptions += 1
        insort(self.waiting, request, key=self.order)
        step.preempted.append(request)


# %% check-2
import cudatut as ct

trials = 40
done = 0
for trial in range(trials):
    rng = ct.rng(trial)
    count = int(rng.integers(12, 30))
    machine = Impatient(
        NaiveBlocks(count, 4), token_budget=64, max_running=8, watermark=0
    )
    for number in range(8):
        prompt = [1] * int(rng.integers(1, 20))
        machine.add(Request(number, prompt, int(rng.integers(1, 25))))
    for _ in range(2000):
        if not machine.requests:
            break
        first = machine.running[0] if machine.running else None
        try:
            step = machine.schedule()
        except BlockError as error:
            raise ct.CheckError(f"admitted without room: {error}") from None
        if first in step.preempted:
            raise ct.CheckError("the first is preempted: will it ever get on?")
        machine.finish(step, [[1] * work.last for work in step.work])
        machine.blocks.check()
    done += not machine.requests
ct.check(np.array(done), trials, name="machines whose requests all end")

# %% given-3
import numpy as np
from cudatut.book.llm.engine.request import Request


# %% solution-3
def patient(request):
    tokens = len(request.prompt) + request.max_tokens
    return (request.arrival + 0.001 * tokens, request.id)


# %% check-3
import cudatut as ct
from cudatut.book.llm.engine.arrivals import (
    Clock,
    ModelBackend,
    replay,
    uniform,
    workload,
)
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.scheduler import POLICIES, Scheduler

come = [(0.0, 500, 500), (0.85, 60, 40), (0.95, 60, 40), (0.0, 999, 1)]
requests = [
    Request(i, [1] * prompt, most, arrival)
    for i, (arrival, prompt, most) in enumerate(come)
]
order = [r.id for r in sorted(requests, key=patient)]
ct.check(np.array(order), np.array([1, 0, 3, 2]), name="order")
before = [patient(r) for r in requests]
for request in requests:
    request.tokens += [1, 2, 3]
ct.check(
    np.array([patient(r) == key for r, key in zip(requests, before)]),
    np.ones(4, bool),
    name="order that does not change",
)

# The longest wait, beside shortest first.
coming_n = 400
longest = {}
POLICIES["patient"] = patient
for policy in ("shortest", "patient"):
    clock = Clock()
    machine = Scheduler(NaiveBlocks(4096, 16), max_running=32, policy=policy)
    engine = Engine(ModelBackend(clock, 4096, 16), machine, clock=clock)
    lengths = {"prompt": uniform(32, 512), "output": uniform(32, 256)}
    coming = workload(coming_n, 500.0, seed=0, **lengths)
    replay(engine, coming, clock.wait)
    longest[policy] = max(1e3 * (r.times[0] - r.arrival) for r in coming)
del POLICIES["patient"]
ct.facts(
    "the longest wait for a first token",
    {policy: (ms, "ms") for policy, ms in longest.items()},
)
