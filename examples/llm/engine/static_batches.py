"""The rival of continuous batching: static batches, and how much can be won
over them.
"""

from collections.abc import Sequence

import cudatut as ct
from cudatut.book.llm.engine.request import Request, Step
from cudatut.book.llm.engine.scheduler import Scheduler


# --8<-- [start:static]
class StaticBatches(Scheduler):
    """The rival: a batch is formed, runs until its longest answer ends, and
    only then the next one is formed.

    Each request has blocks for its longest answer from the beginning, and keeps
    them until the batch ends. In its favor: requests that have ended cost no
    computation, and blocks are counted as here, not in whole contexts.
    """

    def form_batch(self, step: Step) -> None:
        if self.running:
            return
        while self.waiting and len(self.running) < self.max_running:
            request = self.waiting[0]
            most = len(request.prompt) + request.max_tokens - 1
            if self.blocks.blocks_for(most) > self.blocks.free:
                break
            self._start(step, request)
            self.blocks.reserve(request.id, request.computed, most)

    def admit(self, step: Step, budget: int) -> None:
        """Nobody joins a batch."""

    def _preempt(self, step: Step) -> None:
        super()._preempt(step)  # only after a step that failed
        self.release(step.preempted[-1])

    def release(self, request: Request) -> None:
        if not self.running:
            for number in list(self.blocks.tables):
                self.blocks.release(number)


def bound(outputs: Sequence[int], slots: int) -> float:
    """At most how many times as fast as static batches continuous batching can
    be, from the lengths of the answers alone.

    A step is taken to last equally long whatever is in it, and prefill to be
    free. Static batches of `slots` requests, in this order, take as many steps
    as the longest answer of each. No schedule takes fewer than all tokens over
    `slots`, or than the longest answer.
    """
    batches = [outputs[i : i + slots] for i in range(0, len(outputs), slots)]
    static = sum(max(batch) for batch in batches)
    return static / max(ct.cdiv(sum(outputs), slots), max(outputs))


# --8<-- [end:static]
