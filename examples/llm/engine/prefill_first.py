"""The rival of chunked prefill: a step has whole prompts, or one token each.

Written after the rules of vLLM's first engine (0.6.3), to be run beside ours on
the same requests.
"""

from cudatut.book.llm.engine.request import Request, State, Step, Work
from cudatut.book.llm.engine.scheduler import Scheduler


# --8<-- [start:rules]
class PrefillFirst(Scheduler):
    """Whole prompts go first, and nobody decodes beside them.

    swap: who gives up its blocks has its keys and values saved on the host, and
    fetched back before anybody new is admitted. Else they are computed again.
    moved: tokens whose keys and values were saved or fetched, in all. No prompt
    with its answer may be longer than the budget. Not for an engine that runs
    ahead.
    """

    def __init__(self, *arguments, swap: bool = False, **named):
        super().__init__(*arguments, **named)
        self.swap, self.moved = swap, 0
        self.swapped: list[Request] = []

    def schedule(self, propose=None) -> Step:
        step, self.at_hand = Step(), None
        if not self.swapped:
            self.admit(step, self.token_budget)
        if step.work:
            return step
        for request in list(self.running):
            self.at_hand = request
            # It may have been preempted for one before it.
            while request.state is State.RUNNING:
                start, known = request.computed, len(request.tokens)
                if self._reserve(step, request, known):
                    work = Work(request, start, known, (), True)
                    step.work.append(work)
                    break
                self._preempt(step)
        if not step.preempted:
            self._fetch(step)
        return step

    def admit(self, step: Step, budget: int) -> None:
        while self.waiting and len(self.running) < self.max_running:
            self.at_hand = request = self.waiting[0]
            spare = self.spare if self.running else 0
            known = len(request.tokens)
            if known > budget or not self.blocks.fits(request.tokens, spare):
                break
            self._start(step, request)
            start = request.computed
            step.copies += self.blocks.reserve(request.id, start, known)
            budget -= known - start
            step.work.append(Work(request, start, known, (), True))

    def _preempt(self, step: Step) -> None:
        computed = self.running[-1].computed
        super()._preempt(step)
        if self.swap:
            request = step.preempted[-1]
            self.waiting.remove(request)
            self.swapped.append(request)
            request.computed = computed
            self.moved += computed

    def _leave(self, request: Request, state: State) -> None:
        if request in self.swapped:  # it waits, too
            self.swapped.remove(request)
            self.waiting.append(request)
        super()._leave(request, state)

    def _fetch(self, step: Step) -> None:
        """Who was preempted last was the first to come."""
        while self.swapped and len(self.running) < self.max_running:
            self.at_hand = request = self.swapped[-1]
            spare = self.spare if self.running else 0
            if not self.blocks.fits(request.tokens, spare):
                break
            self.waiting.append(self.swapped.pop())
            computed = request.computed
            self._start(step, request)
            request.computed = computed
            known = len(request.tokens)
            self.blocks.reserve(request.id, 0, known)
            self.blocks.commit(request.id, request.tokens, computed)
            self.moved += computed
            step.work.append(Work(request, computed, known, (), True))


# --8<-- [end:rules]
