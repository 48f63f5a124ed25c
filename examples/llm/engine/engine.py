"""The engine: requests in, tokens out. Scheduler and block manager decide, a
backend computes.

    backend = NumpyBackend(checkpoint, block_count=256, block_size=16)
    blocks = PrefixBlocks(backend.block_count, backend.block_size)
    engine = Engine(backend, Scheduler(blocks, context=8192))
    engine.add(Request(0, prompt, max_tokens=50, stop=tokenizer.stop))
    while engine.busy:
        for output in engine.step():
            ...  # output.request, output.tokens, output.finished
"""

from collections.abc import Callable
from itertools import accumulate
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.llm.engine.batch import Backend, Batch, Draws
from cudatut.book.llm.engine.request import Output, Request, State, Step
from cudatut.book.llm.engine.sampler import Ngrams
from cudatut.book.llm.engine.scheduler import Scheduler

# A request's part of Draws.
HOW = {
    "temperature": "float32",
    "top_k": "int32",
    "top_p": "float32",
    "seed": "uint64",
    "request": "int32",
}


class StepFailed(ct.CudatutError):
    """A step failed, and `requests` were dropped with it: the one that caused
    it, or all of the step if that is not known. Their state is FAILED. The
    engine goes on with the others; __cause__ is what went wrong.
    """

    def __init__(self, requests: list[Request], cause: Exception):
        self.requests = requests
        numbers = ", ".join(str(request.id) for request in requests[:5])
        more = f" and {len(requests) - 5} more" if len(requests) > 5 else ""
        super().__init__(
            f"a step failed, so request {numbers or 'none'}{more} is dropped: "
            f"{type(cause).__name__}: {cause}"
        )


class Engine:
    """Runs steps. speculate: most guessed tokens of a request per step. ahead:
    start each step before the tokens of the one before are known; a request's
    last token is then noticed a step late. clock: seconds, for `Request.times`.

    Raises ValueError if scheduler and backend differ in their blocks, if the
    backend has less room than the scheduler may fill, and for guesses ahead of
    what they are made from.
    """

    def __init__(
        self,
        backend: Backend,
        scheduler: Scheduler,
        speculate: int = 0,
        ahead: bool = False,
        clock: Callable[[], float] = perf_counter,
    ):
        blocks = scheduler.blocks
        ours = blocks.count, blocks.block_size
        theirs = backend.block_count, backend.block_size
        if ours != theirs:
            raise ValueError(
                f"the scheduler's blocks {ours} are not the backend's {theirs}"
            )
        if ahead and speculate:
            raise ValueError("a guess is made from all tokens before it")
        if speculate < 0:
            raise ValueError(f"speculate is {speculate}: 0 or more guesses")
        if scheduler.requests:
            raise ValueError(
                f"{len(scheduler.requests)} requests were added to the "
                "scheduler before: add them to the engine, which checks them"
            )
        fit(backend, scheduler, speculate)
        model = backend.config
        scheduler.serve(
            context=model.context if model else inf,
            vocab=model.vocab if model else 1 << 31,
        )
        self.backend, self.scheduler = backend, scheduler
        self.speculate, self.clock = speculate, clock
        self.ahead, self._under_way = ahead, None
        self._catch_up = False  # end what is under way before a new step
        self.last = Step()  # what was scheduled last, for those who watch
        self._ngrams: dict[int, Ngrams] = {}
        # A row for each request that runs: its table is copied when it changes,
        # not in every step.
        width = blocks.blocks_for(min(scheduler.context, ours[0] * ours[1]))
        self._tables = np.full((scheduler.max_running, width), -1, "int32")
        self._how = {
            name: np.zeros(scheduler.max_running, kind)
            for name, kind in HOW.items()
        }
        self._rows: dict[int, int] = {}
        self._free_rows = list(range(scheduler.max_running))

    @property
    def busy(self) -> bool:
        """Whether any request waits or runs, or a step is under way."""
        return bool(self.scheduler.requests or self._under_way)

    def add(self, request: Request) -> None:
        """Let a request wait. Raises Refused, ValueError for its sampling."""
        self.scheduler.add(request)

    def cancel(self, number: int) -> None:
        """End a request and free its blocks. Raises KeyError."""
        self.scheduler.cancel(number)
        self._forget(number)

    def fork(self, number: int, child: Request) -> None:
        """Let `child` go on from where a running request is. Raises Refused,
        KeyError.
        """
        if self.ahead:
            raise ValueError("an engine that runs ahead cannot fork")
        self.scheduler.fork(number, child)

    # --8<-- [start:step]
    def step(self) -> list[Output]:
        """Compute one step; the requests that got tokens: of this step, or
        `ahead` of the one before, while this one is computed. Raises
        StepFailed; the engine can go on then.
        """
        started = None
        try:
            if not self._catch_up:
                started = self._start()
            self._catch_up = False
            if self.ahead:
                started, self._under_way = self._under_way, started
            return self._end(*started) if started else []
        except Exception as error:
            raise StepFailed(self._drop(started), error) from error

    def _start(self) -> tuple[Step, list[int], Any] | None:
        """A step that is under way: the logits that each request wants, and the
        tokens that are drawn from them.
        """
        propose, self.last = self._propose if self.speculate else None, Step()
        self.last = step = self.scheduler.schedule(propose)
        for request in step.preempted:
            self._forget(request.id)
        if not step.work:
            return None
        batch, draws, counts = self.assemble(step)
        logits, drawn = self.backend.run(batch), None
        if len(batch.wanted):
            drawn = self.backend.sample(logits, draws)
        if self.ahead:
            self.scheduler.advance(step)
        return step, counts, drawn

    def _end(self, step: Step, counts: list[int], drawn: Any) -> list[Output]:
        tokens = [] if drawn is None else self.backend.fetch(drawn).tolist()
        first = accumulate(counts, initial=0)
        parts = [tokens[i : i + n] for i, n in zip(first, counts)]
        outputs, now = self.scheduler.finish(step, parts), self.clock()
        for output in outputs:
            output.request.times += [now] * len(output.tokens)
            if output.finished:
                self._forget(output.request.id)
        return outputs

    # --8<-- [end:step]

    # --8<-- [start:drop]
    def _drop(
        self, ending: tuple[Step, list[int], Any] | None
    ) -> list[Request]:
        """After an error: drop its cause, so that nothing of the step is left;
        whom. ending: the step that could not be ended; None: one could not be
        started.
        """
        scheduler, restart = self.scheduler, False
        if ending:
            lost = [work.request for work in ending[0].work]
        elif scheduler.at_hand:  # the others were arranged only in part
            lost, restart = [scheduler.at_hand], True
        else:
            lost = [work.request for work in self.last.work]
            lost = lost or scheduler.running[:] or scheduler.waiting[:1]
        scheduler.at_hand = None
        if not ending:  # what is under way is older, and its tokens are good
            self._catch_up = self._under_way is not None
        # Who finished in this very step has tokens that nobody was told of.
        untold = [
            request
            for request in lost
            if request.state is State.FINISHED
            and len(request.times) < len(request.output)
        ]
        for request in untold:
            request.state = State.FAILED
        failed = untold + scheduler.fail(lost, restart)
        for number in self._rows.keys() | self._ngrams.keys():
            request = scheduler.requests.get(number)
            if request is None or request.state is not State.RUNNING:
                self._forget(number)
        return failed

    # --8<-- [end:drop]

    # --8<-- [start:assemble]
    def assemble(self, step: Step) -> tuple[Batch, Draws, list[int]]:
        """The arrays of a step, and the number of logits that each request
        wants.
        """
        for request in step.admitted + step.grown:
            self.scheduler.at_hand = request
            self._write_table(request)
        self.scheduler.at_hand = None  # from here on the step is one
        tokens: list[int] = []
        end, length, row, counts = [0], [], [], []
        for work in step.work:
            request, stop, drafts = work.request, work.stop, work.drafts
            tokens += request.tokens[work.start : stop]
            if drafts:
                tokens += drafts
                stop += len(drafts)
            end.append(len(tokens))
            length.append(stop)
            row.append(self._rows[request.id])
            counts.append(1 + len(drafts) if work.last else 0)
        starts, lengths = np.array(end, "int32"), np.array(length, "int32")
        rows, wants = np.array(row), np.array(counts, "int32")
        index, ends = np.arange(len(tokens), dtype="int32"), starts[1:]
        owner = index[: len(rows)].repeat(ends - starts[:-1])
        # A request's tokens end at its length; the positions run up to there.
        positions = index + (lengths - ends)[owner]
        size = self.backend.block_size
        tables = self._tables[rows, : -(-max(length) // size)]
        slots = tables[owner, positions // size] * size + positions % size
        # The last tokens of a request that wants logits.
        behind = (ends - wants.cumsum(dtype="int32")).repeat(wants)
        wanted = index[: len(behind)] + behind
        batch = Batch(
            np.array(tokens, "int32"),
            positions,
            slots,
            starts,
            lengths,
            tables,
            wanted,
            np.array(step.copies, "int32").reshape(-1, 2),
        )
        who = rows.repeat(wants)
        draws = Draws(
            *(array[who] for array in self._how.values()),
            position=positions[wanted] + 1,
        )
        return batch, draws, counts

    # --8<-- [end:assemble]

    def _write_table(self, request: Request) -> None:
        """Into the request's row; a new one for a request that is new."""
        row = self._rows.get(request.id)
        # The blocks before the one that this step writes first are as they were.
        old = request.computed // self.backend.block_size
        if row is None:
            row = self._rows[request.id] = self._free_rows.pop()
            how = *request.sampling[:3], *request.sampling.key(request.id)
            for array, value in zip(self._how.values(), how):
                array[row] = value
            self._tables[row] = -1
            old = 0
        blocks = self.scheduler.blocks.tables[request.id].blocks
        self._tables[row, old : len(blocks)] = blocks[old:]

    def _forget(self, number: int) -> None:
        """A request does not run any longer."""
        if (row := self._rows.pop(number, None)) is not None:
            self._free_rows.append(row)
        self._ngrams.pop(number, None)

    def _propose(self, request: Request, most: int) -> list[int]:
        ngrams = self._ngrams.setdefault(request.id, Ngrams())
        return ngrams.propose(request.tokens, min(most, self.speculate))


def fit(backend: Backend, scheduler: Scheduler, speculate: int) -> None:
    """Raises ValueError if a step may become too large for the backend: now,
    and not in the middle of an answer.
    """
    budget, running = scheduler.token_budget, scheduler.max_running
    room = backend.room
    for what, most, least, size, mend in (
        ("tokens", room.tokens, budget, "token_budget", "max_tokens"),
        ("requests", room.requests, running, "max_running", "max_requests"),
        (
            "rows of logits",
            room.logits,
            min(budget, running * (1 + speculate)),
            "max_running or speculate",
            "max_logits",
        ),
    ):
        if least > most:
            raise ValueError(
                f"a step of this scheduler may have {least} {what}, and the "
                f"backend has room for {most}: make the scheduler's {size} "
                f"smaller, or the backend's {mend} larger"
            )
