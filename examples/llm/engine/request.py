"""A request, and what one step of the engine does for it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from cudatut.book.llm.engine.sampler import GREEDY, Sampling


class State(Enum):
    """FAILED: the step that computed it failed, see `engine.StepFailed`."""

    WAITING, RUNNING, FINISHED, CANCELLED, FAILED = range(5)


ENDED = State.FINISHED, State.CANCELLED, State.FAILED


# --8<-- [start:request]
@dataclass(eq=False, slots=True)
class Request:
    """A prompt to be continued by max_tokens tokens, or up to a token of
    `stop`.

    arrival: seconds. priority: smaller goes first. tokens: prompt and output so
    far, of which the first `computed` have keys and values. pending: how many
    of the last are still being drawn; -1 - i stands for token i of the last
    draw. cached: tokens that were found computed when it was admitted last.
    times: of each output token.

    What its scheduler notes: most, tokens that it may have in all; reserved,
    tokens for which it has blocks that it may write.
    """

    id: int
    prompt: Sequence[int]
    max_tokens: int
    arrival: float = 0.0
    priority: int = 0
    stop: frozenset[int] = frozenset()
    sampling: Sampling = GREEDY
    state: State = State.WAITING
    tokens: list[int] = field(default_factory=list)
    computed: int = 0
    pending: int = 0
    most: int = 0
    reserved: int = 0
    cached: int = 0
    preemptions: int = 0
    times: list[float] = field(default_factory=list)

    def __post_init__(self):
        self.prompt = list(self.prompt)
        self.tokens = self.tokens or list(self.prompt)

    @property
    def output(self) -> list[int]:
        return self.tokens[len(self.prompt) : len(self.tokens) - self.pending]

    @property
    def left(self) -> int:
        """Tokens that may still be sampled."""
        return len(self.prompt) + self.max_tokens - len(self.tokens)


# --8<-- [end:request]


@dataclass(slots=True, eq=False)
class Work:
    """Tokens start to stop - 1 of a request are computed, and behind them
    guessed ones: drafts.

    last: nothing is missing then, so the next token is sampled, and one after
    each draft.
    """

    request: Request
    start: int
    stop: int
    drafts: Sequence[int]
    last: bool


@dataclass(slots=True, eq=False)
class Output:
    """New tokens of a request; whether they are the last."""

    request: Request
    tokens: list[int]
    finished: bool


@dataclass(slots=True)
class Step:
    """copies: blocks to be copied first, in this order. preempted, admitted,
    grown: who left, who came, and whose blocks have changed. advanced: whether
    `Scheduler.advance` counted it.
    """

    work: list[Work] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)
    preempted: list[Request] = field(default_factory=list)
    admitted: list[Request] = field(default_factory=list)
    grown: list[Request] = field(default_factory=list)
    advanced: bool = False
