# ---
# jupyter:
#   cudatut:
#     title: {en: "Continuous batching: solutions", zh: "连续批处理：参考答案"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 60
# ---

# %% [markdown]
# Chunks of a prompt beside requests that decode; and a scheduler on a page.

# %% given-1
import numpy as np


# %% solution-1
def steps_to_first_token(prompt, decoding, budget):
    """The step, from 1, in which the new request's first token is sampled."""
    return -(-prompt // (budget - decoding))


# %% check-1
import cudatut as ct
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler


def asked(prompt, decoding, budget):
    """What the scheduler does."""
    scheduler = Scheduler(NaiveBlocks(4000, 4), budget, decoding + 1)
    for i in range(decoding + 1):
        length = prompt if i == decoding else 1
        if i == decoding:
            step = scheduler.schedule()
            scheduler.finish(step, [[1]] * decoding)
        scheduler.add(Request(i, [1] * length, 1000))
    for number in range(1, 1000):
        step = scheduler.schedule()
        scheduler.finish(step, [[1] * work.last for work in step.work])
        if step.work[-1].last:
            return number


cases = [(100, 3, 16), (64, 0, 64), (65, 1, 64), (500, 31, 32), (9, 8, 512)]
ct.check(
    [steps_to_first_token(*case) for case in cases],
    [asked(*case) for case in cases],
    name="step of the first token",
)

# %% given-2
from cudatut.book.llm.engine.blocks import NaiveBlocks, OutOfBlocks
from cudatut.book.llm.engine.request import Request

SIZE = 2  # tokens of a block


class Pocket:
    """A model that keeps one number of each token, made from all before it."""

    def __init__(self, count):
        self.cache = [0] * (count * SIZE)

    def compute(self, table, tokens, start, stop):
        """Compute tokens start to stop - 1; the token that comes next."""
        slots = [table[i // SIZE] * SIZE + i % SIZE for i in range(stop)]
        for i in range(start, stop):
            read = sum(self.cache[slot] for slot in slots[:i])
            self.cache[slots[i]] = (31 * read + 7 * tokens[i] + i + 1) % 10007
        return self.cache[slots[-1]] % 50


# %% solution-2
class Little:
    """First come first served: at most `most` requests, `budget` tokens."""

    def __init__(self, count, most=3, budget=8):
        self.blocks, self.model = NaiveBlocks(count, SIZE), Pocket(count)
        self.most, self.budget = most, budget
        self.waiting, self.running = [], []

    def step(self):
        budget, work, preempted, i = self.budget, [], False, 0
        while i < len(self.running):
            request = self.running[i]
            behind = len(self.running) - i - 1  # each is left a token
            most = request.computed + budget - behind
            stop = min(len(request.tokens), most)
            if self.room(request, stop):
                budget -= stop - request.computed
                work.append((request, stop))
                i += 1
            else:
                self.preempt()
                preempted = True
        while self.waiting and budget and len(self.running) < self.most:
            request = self.waiting[0]
            if preempted or not self.blocks.fits(request.tokens):
                break
            self.blocks.begin(request.id, request.tokens)
            stop = min(len(request.tokens), budget)
            self.room(request, stop)
            self.running.append(self.waiting.pop(0))
            budget -= stop
            work.append((request, stop))
        for request, stop in work:
            self.compute(request, stop)

    def room(self, request, stop):
        try:
            self.blocks.reserve(request.id, request.computed, stop)
        except OutOfBlocks:
            return False
        return True

    def preempt(self):
        request = self.running.pop()
        self.blocks.release(request.id)
        request.computed = 0
        self.waiting.insert(0, request)

    def compute(self, request, stop):
        table = self.blocks.table(request.id).blocks
        start, request.computed = request.computed, stop
        token = self.model.compute(table, request.tokens, start, stop)
        self.blocks.commit(request.id, request.tokens, stop)
        # Sampled once nothing is missing: a request that was preempted has an
        # answer to compute again, too, not only its prompt.
        if stop == len(request.tokens):
            request.tokens.append(token)
        if not request.left:
            self.running.remove(request)
            self.blocks.release(request.id)


# %% check-2
import cudatut as ct


def answers(count, most):
    """What 12 requests are told, with so many blocks."""
    rng = ct.rng(4)
    scheduler, requests = Little(count, most), []
    for i in range(12):
        prompt = rng.integers(0, 50, rng.integers(1, 20)).tolist()
        requests.append(Request(i, prompt, int(rng.integers(1, 16))))
    scheduler.waiting = list(requests)
    for _ in range(5000):
        if scheduler.waiting or scheduler.running:
            scheduler.step()
    return [request.output for request in requests]


alone = answers(60, 1)
right = []
for count in (60, 30, 24, 20, 18):
    found = answers(count, 3)
    right.append(sum(a == b for a, b in zip(found, alone)))
ct.check(
    right, [12] * 5, name="right answers of 12, with fewer and fewer blocks"
)
