"""Who computes what in the next step: continuous batching.

    scheduler = Scheduler(PrefixBlocks(1000, 16), token_budget=512)
    scheduler.add(Request(0, prompt, max_tokens=100))
    step = scheduler.schedule()            # compute step.work
    scheduler.finish(step, sampled)

There is no difference between prefill and decode here: a running request has
tokens whose keys and values are computed, and tokens that lack them, many of a
prompt or the one that was sampled last. A step computes some of the missing
ones.
"""

from array import array
from bisect import insort
from collections.abc import Callable, Sequence
from math import isfinite
from numbers import Integral

import numpy as np

import cudatut as ct
from cudatut.book.llm.engine.blocks import NaiveBlocks, OutOfBlocks
from cudatut.book.llm.engine.request import (
    ENDED,
    Output,
    Request,
    State,
    Step,
    Work,
)
from cudatut.book.llm.engine.sampler import accept, up_to


class Refused(ct.CudatutError):
    """A request that could never be answered; the message is the reason."""


# --8<-- [start:policies]
# Smaller goes first, is preempted last, and never changes: so the first of all
# is never preempted, and gets on.
POLICIES: dict[str, Callable[[Request], tuple]] = {
    "fcfs": lambda r: (r.arrival, r.id),
    "priority": lambda r: (r.priority, r.arrival, r.id),
    "shortest": lambda r: (len(r.prompt) + r.max_tokens, r.arrival, r.id),
    # For a batch of known lengths: long answers begin early, none is left over.
    "longest": lambda r: (-r.max_tokens, r.arrival, r.id),
}
# --8<-- [end:policies]


class Scheduler:
    """Iteration-level scheduling: after every step requests may come and go.

    token_budget: most tokens of a step. max_running: most requests of a step.
    watermark: share of the blocks that stays free when a request is admitted,
    for the growth of those that run. context: most tokens of a request. Raises
    ValueError.

    at_hand: the request that `schedule` works for right now; if it raises, this
    one is the cause.
    """

    def __init__(
        self,
        blocks: NaiveBlocks,
        token_budget: int = 512,
        max_running: int = 64,
        policy: str = "fcfs",
        watermark: float = 0.01,
        context: int = 1 << 30,
    ):
        if not 1 <= max_running <= token_budget:
            raise ValueError(
                f"each of {max_running} running requests needs a token of the "
                f"budget, which is {token_budget}"
            )
        if policy not in POLICIES:
            raise ValueError(f"'{policy}' is none of {', '.join(POLICIES)}")
        if not (0 <= watermark <= 1 and context >= 1):
            raise ValueError(
                f"watermark is {watermark} and context {context}: "
                "a share from 0 to 1, and at least 1 token"
            )
        self.blocks, self.context = blocks, context
        self.vocab, self.numbers = 1 << 31, None  # see `serve`
        self.at_hand: Request | None = None
        self.token_budget, self.max_running = token_budget, max_running
        self.spare, self.order = int(watermark * blocks.count), POLICIES[policy]
        self.waiting: list[Request] = []
        self.running: list[Request] = []  # both in the policy's order
        self.requests: dict[int, Request] = {}  # those and no others

    def serve(self, context: float, vocab: int) -> None:
        """From now on take only what a model of this context and vocabulary can
        compute, under numbers that fit into the arrays of a step: int32.
        """
        self.context = min(self.context, context)
        self.vocab, self.numbers = min(self.vocab, vocab), 1 << 31

    def add(self, request: Request) -> None:
        """Let a request wait. Raises Refused with the reason for one that can
        never be answered, ValueError.
        """
        self._check(request, request.prompt)
        if request.tokens != request.prompt:
            raise Refused(f"request {request.id} is refused: it has an output")
        insort(self.waiting, request, key=self.order)
        self.requests[request.id] = request

    def _check(self, request: Request, tokens: Sequence[int]) -> None:
        request.sampling.check()
        if why := self._obstacle(request, tokens):
            raise Refused(f"request {request.id} is refused: {why}")
        request.most = len(tokens) + request.max_tokens

    def _obstacle(self, request: Request, tokens: Sequence[int]) -> str:
        """Why a request with this prompt can never be answered; or ''."""
        if not tokens:
            return "its prompt is empty"
        if not isinstance(request.max_tokens, Integral):
            return f"max_tokens is {request.max_tokens!r}, no whole number"
        if request.max_tokens < 1:
            return "max_tokens is less than 1"
        if self.numbers and not (
            isinstance(request.id, Integral) and 0 <= request.id < self.numbers
        ):
            return "the number of a request is a whole one, from 0 to 2^31 - 1"
        if request.id in self.requests:
            return f"the number {request.id} is taken"
        if request.state is not State.WAITING:
            return f"it has been {request.state.name} before: make a new one"
        if not isfinite(request.arrival):
            return f"its arrival is {request.arrival}, no time"
        most = len(tokens) + request.max_tokens
        if most > self.context:
            return f"it may have {most} tokens; the model knows {self.context}"
        # The last token is sampled, but never computed.
        needed = self.blocks.blocks_for(most - 1)
        if needed > self.blocks.count:
            return f"it may need {needed} blocks; there are {self.blocks.count}"
        return strange(tokens, self.vocab)

    # --8<-- [start:schedule]
    def schedule(
        self, propose: Callable[[Request, int], Sequence[int]] | None = None
    ) -> Step:
        """The next step. propose(request, most): guesses for a request that
        decodes; without: none.
        """
        step, self.at_hand = Step(), None
        self.form_batch(step)
        # However long a prompt is, a token is left for each that follows: only
        # the others are extra.
        extra = self.token_budget - len(self.running)
        for request in self.running:  # ends sooner when one is preempted
            self.at_hand = request
            start, known = request.computed, len(request.tokens)
            extra += 1
            if known == request.most:  # only ahead: its last is being drawn
                continue
            stop = known if known <= start + extra else start + extra
            drafts: Sequence[int] = ()
            if propose and known - start == 1:
                room = min(extra, request.left) - 1
                drafts = list(propose(request, room))[:room] if room else ()
                if not self._reserve(step, request, stop + len(drafts)):
                    drafts = ()  # a guess is not worth a preemption
                extra -= len(drafts)
            while stop > request.reserved:
                if not self._reserve(step, request, stop):
                    self._preempt(step)
                    extra += 1
                    if request.state is not State.RUNNING:
                        return step  # it was the last itself
            extra -= stop - start
            step.work.append(Work(request, start, stop, drafts, stop == known))
        if not step.preempted:
            self.admit(step, extra)
        return step

    # --8<-- [end:schedule]

    # --8<-- [start:admit]
    def admit(self, step: Step, budget: int) -> None:
        """Admit the first of those that wait while they fit; nobody overtakes,
        or a long one would wait forever.
        """
        while self.waiting and budget and len(self.running) < self.max_running:
            self.at_hand = request = self.waiting[0]
            spare = self.spare if self.running else 0
            found = self.blocks.lookup(request.tokens)
            if not self.blocks.fits(request.tokens, spare, found):
                break
            self._start(step, request, found)
            start, known = request.computed, len(request.tokens)
            stop = min(known, start + budget)
            step.copies += self.blocks.reserve(request.id, start, stop)
            budget -= stop - start
            step.work.append(Work(request, start, stop, (), stop == known))

    # --8<-- [end:admit]

    def form_batch(self, step: Step) -> None:
        """Continuous batching forms no batches."""

    def _start(
        self, step: Step, request: Request, found: list[int] | None = None
    ) -> None:
        """found: as `begin` of the blocks has it."""
        self.at_hand, begin = request, self.blocks.begin
        request.computed = begin(request.id, request.tokens, found)
        request.cached, request.state = request.computed, State.RUNNING
        self.waiting.remove(request)
        request.reserved = 0
        insort(self.running, request, key=self.order)
        step.admitted.append(request)

    def _reserve(self, step: Step, request: Request, stop: int) -> bool:
        """Whether it has blocks for tokens up to `stop`, maybe new ones."""
        if stop <= request.reserved:
            return True
        blocks, start = self.blocks, request.computed
        try:
            step.copies += blocks.reserve(request.id, start, stop)
        except OutOfBlocks:
            return False
        request.reserved = blocks.blocks_for(stop) * blocks.block_size
        step.grown.append(request)
        return True

    # --8<-- [start:preempt]
    def _preempt(self, step: Step) -> None:
        """The last gives up its blocks, and waits to compute everything again.
        To save it in the host's memory may be cheaper, but needs room there.
        """
        request = self.running.pop()
        self.blocks.release(request.id)
        request.state, request.computed = State.WAITING, 0
        request.preemptions += 1
        insort(self.waiting, request, key=self.order)
        step.preempted.append(request)

    # --8<-- [end:preempt]

    # --8<-- [start:advance]
    def advance(self, step: Step) -> None:
        """Count a step without drafts as computed while it still runs, so that
        the next one can be scheduled: a place is kept for each token that is
        being drawn. `finish` puts the tokens there.
        """
        step.advanced, place = True, 0
        for work in step.work:
            request = work.request
            request.computed = work.stop
            if work.last:
                place -= 1
                request.tokens.append(place)
                request.pending += 1

    # --8<-- [end:advance]

    # --8<-- [start:finish]
    def finish(self, step: Step, sampled: Sequence[list[int]]) -> list[Output]:
        """Take over a step's results; who got tokens, and which. sampled: per
        work 1 + drafts tokens, [] if not `last`.
        """
        outputs, size = [], self.blocks.block_size
        for work, new in zip(step.work, sampled):
            request, stop, drafts = work.request, work.stop, work.drafts
            if request.state in ENDED:
                continue  # meanwhile, or by the token before this one
            ended = False
            if work.last:
                if drafts:
                    new = accept(drafts, new)
                if request.stop:
                    new, ended = up_to(new, request.stop)
                if step.advanced:
                    request.tokens[stop] = new[0]
                    request.pending -= 1
                    if ended:  # nothing more is wanted
                        del request.tokens[stop + 1 :]
                        request.pending = 0
                else:
                    request.tokens += new
                if drafts:  # those that were right are computed already
                    stop += len(new) - 1
                ended = ended or stop + 1 == request.most
                outputs.append(Output(request, new, ended))
            if not step.advanced:
                request.computed = stop
            full = stop // size > work.start // size  # there is a block more
            if full and request.state is State.RUNNING:  # not preempted
                self.blocks.commit(request.id, request.tokens, stop)
            if ended:
                self._leave(request, State.FINISHED)
        return outputs

    # --8<-- [end:finish]

    def cancel(self, number: int) -> None:
        """End a request, waiting or running, and free its blocks. Raises
        KeyError if there is none (any longer).
        """
        self._end(self.requests[number], State.CANCELLED)

    # --8<-- [start:fail]
    def fail(self, lost: Sequence[Request], restart: bool) -> list[Request]:
        """After a step that was not computed: end these requests, which was not
        theirs to choose; those that had not ended. restart: the others that run
        give up their blocks and begin again, because the step was only half
        arranged.
        """
        failed = [r for r in lost if self.requests.get(r.id) is r]
        while restart and self.running:
            self._preempt(Step())
        for request in failed:
            self._end(request, State.FAILED)
            if request.id in self.blocks.tables:  # it was just being admitted
                self.blocks.release(request.id)
        return failed

    # --8<-- [end:fail]

    def _end(self, request: Request, state: State) -> None:
        """Before its time: what is still being drawn will not come."""
        while request.tokens[-1] < 0:
            request.tokens.pop()
        request.pending = 0
        self._leave(request, state)

    def _leave(self, request: Request, state: State) -> None:
        waits, request.state = request.state is State.WAITING, state
        del self.requests[request.id]
        if waits:
            self.waiting.remove(request)
        else:
            self.running.remove(request)
            self.release(request)

    def release(self, request: Request) -> None:
        """Free the blocks of a request that has left."""
        self.blocks.release(request.id)

    def fork(self, number: int, child: Request) -> None:
        """Let `child`, a new request, go on with the tokens and blocks of a
        running one. Raises Refused, KeyError.
        """
        parent = self.requests[number]
        self._check(child, parent.prompt)
        if parent.state is not State.RUNNING:
            raise Refused(f"request {number} does not run: it cannot be forked")
        if len(self.running) == self.max_running:
            raise Refused(f"{self.max_running} requests run: no room to fork")
        child.prompt, child.tokens = parent.prompt, list(parent.tokens)
        if child.left < 1:
            raise Refused(f"request {child.id} would have its tokens already")
        self.blocks.fork(number, child.id)
        child.computed, child.state = parent.computed, State.RUNNING
        parent.reserved = 0  # they share blocks now
        self.requests[child.id] = child
        insort(self.running, child, key=self.order)


def strange(tokens: Sequence[int], vocab: int) -> str:
    """What is wrong with the first that is no token of a vocabulary; or ''.
    Negative ones are an engine's own: they stand for tokens that are being
    drawn.
    """
    try:
        known = np.frombuffer(array("i", tokens), "int32")
    except (TypeError, OverflowError):  # it is found below
        pass
    else:
        if known.min() >= 0 and known.max() < vocab:
            return ""
    for place, token in enumerate(tokens):
        if not (isinstance(token, Integral) and 0 <= token < vocab):
            return (
                f"token {place} of its prompt is {token!r}; "
                f"tokens are whole numbers from 0 to {vocab - 1}"
            )
    return ""
