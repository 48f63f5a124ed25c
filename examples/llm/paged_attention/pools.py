"""A simulation of memory for keys and values: requests come and go, and a pool
of slots, one for each token, is shared among them in different ways.

    requests = draw(2000, ct.rng(0))
    history = run(Contiguous(SLOTS, longest), requests)
    history.shares()      # of all slots over all steps: what each was good for

A step gives every running request one token more. Requests wait in one queue;
the first of them is admitted as soon as there is room for it.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.arrivals import lognormal

LONGEST = 2048  # tokens that the model allows


# --8<-- [start:draw]
class Ask(NamedTuple):
    """A request: tokens of its prompt, and of prompt and output together, which
    nobody knows in advance."""

    prompt: int
    total: int


def draw(count: int, rng: np.random.Generator) -> list[Ask]:
    """Requests with many short and few long prompts and outputs."""
    prompts = lognormal(160, 1.0, LONGEST // 2)(rng, count)
    outputs = lognormal(200, 0.8, LONGEST // 2)(rng, count)
    return [Ask(int(p), int(p + o)) for p, o in zip(prompts, outputs)]


# --8<-- [end:draw]


class Pool(Protocol):
    """Slots for tokens. admit: room for a request, if there is; grow: a token
    more for it; leave: its room is free again. pieces: its slots, as (begin,
    end), in the order of its tokens; owned: how many they are."""

    slots: int

    def admit(self, name: int, ask: Ask, tokens: int) -> bool: ...

    def grow(self, name: int, tokens: int) -> bool: ...

    def leave(self, name: int) -> None: ...

    def pieces(self, name: int) -> list[tuple[int, int]]: ...

    def owned(self, name: int) -> int: ...


# --8<-- [start:contiguous]
def longest(ask: Ask) -> int:
    """Whatever the request will need."""
    return LONGEST


def power_of_two(ask: Ask) -> int:
    """For who can guess the length to within a factor of 2."""
    return 1 << (ask.total - 1).bit_length()


def exact(ask: Ask) -> int:
    """For who knows the future."""
    return ask.total


class Contiguous:
    """Each request has slots side by side, `size` of them from the beginning:
    the first gap that is large enough."""

    def __init__(self, slots: int, size: Callable[[Ask], int]):
        self.slots, self.size = slots, size
        self._begin: dict[int, int] = {}
        self._taken: list[tuple[int, int]] = []  # (begin, end), ascending

    def admit(self, name: int, ask: Ask, tokens: int) -> bool:
        need, begin = self.size(ask), 0
        for taken, end in self._taken:
            if taken - begin >= need:
                break
            begin = end
        if begin + need > self.slots:
            return False
        insort(self._taken, (begin, begin + need))
        self._begin[name] = begin
        return True

    def grow(self, name: int, tokens: int) -> bool:
        return True

    def leave(self, name: int) -> None:
        begin = self._begin.pop(name)
        self._taken = [part for part in self._taken if part[0] != begin]

    def pieces(self, name: int) -> list[tuple[int, int]]:
        begin = self._begin[name]
        return [part for part in self._taken if part[0] == begin]

    def owned(self, name: int) -> int:
        ((begin, end),) = self.pieces(name)
        return end - begin


# --8<-- [end:contiguous]


# --8<-- [start:paged]
class Paged:
    """Each request has blocks, anywhere, and one more when the last is full."""

    def __init__(self, slots: int, block_size: int):
        self.slots = slots
        self.blocks = NaiveBlocks(slots // block_size, block_size)

    def admit(self, name: int, ask: Ask, tokens: int) -> bool:
        if self.blocks.blocks_for(tokens) > self.blocks.free:
            return False
        self.blocks.begin(name, range(tokens))
        self.blocks.reserve(name, 0, tokens)
        return True

    def grow(self, name: int, tokens: int) -> bool:
        if self.blocks.blocks_for(tokens) > len(self.table(name)):
            if not self.blocks.free:
                return False
            self.blocks.reserve(name, tokens - 1, tokens)
        return True

    def leave(self, name: int) -> None:
        self.blocks.release(name)

    def pieces(self, name: int) -> list[tuple[int, int]]:
        size = self.blocks.block_size
        return [(b * size, (b + 1) * size) for b in self.table(name)]

    def owned(self, name: int) -> int:
        return len(self.table(name)) * self.blocks.block_size

    def table(self, name: int) -> list[int]:
        return self.blocks.table(name).blocks


# --8<-- [end:paged]


class History(NamedTuple):
    """Of each step: slots that hold a token; that are kept for a token which
    will come; that are owned and never used; that nobody owns. And requests
    that run."""

    tokens: np.ndarray
    reserved: np.ndarray
    internal: np.ndarray
    free: np.ndarray
    running: np.ndarray
    preempted: int
    worst: int  # most slots that a request owned and never used

    def shares(self) -> dict[str, float]:
        """Percent of all slots, over the steps in which requests waited."""
        parts = self.tokens, self.reserved, self.internal, self.free
        whole = sum(part.sum() for part in parts)
        names = "tokens", "reserved", "internal", "external"
        return {n: float(100 * p.sum() / whole) for n, p in zip(names, parts)}


# --8<-- [start:run]
def run(
    pool: Pool,
    requests: list[Ask],
    watch: Callable[[int, dict[int, int]], None] | None = None,
) -> History:
    """Steps until nobody waits any longer. watch is told of each step, and how
    many tokens who runs has.

    Who finds no room for its next token is preempted, the last one first: it
    leaves, and waits at the front of the queue to be computed again.
    """
    waiting = deque((i, ask.prompt) for i, ask in enumerate(requests))
    running: dict[int, int] = {}  # tokens so far, in the order of admission
    steps: list[tuple[int, ...]] = []
    preempted = worst = 0
    while waiting:
        while waiting and pool.admit(
            waiting[0][0], requests[waiting[0][0]], waiting[0][1]
        ):
            name, tokens = waiting.popleft()
            running[name] = tokens
        if not running:
            raise ValueError(f"{requests[waiting[0][0]]} never fits")
        if watch:
            watch(len(steps), running)
        held = reserved = internal = 0
        for name, tokens in running.items():
            # What a request will use of what it owns is not lost for ever.
            owned, total = pool.owned(name), requests[name].total
            held += tokens
            reserved += min(owned, total) - tokens
            internal += owned - min(owned, total)
            worst = max(worst, owned - min(owned, total))
        free = pool.slots - held - reserved - internal
        steps.append((held, reserved, internal, free, len(running)))
        for name in list(running):
            if name not in running:
                continue  # preempted
            if running[name] == requests[name].total:
                pool.leave(name)
                del running[name]
                continue
            while name in running and not pool.grow(name, running[name] + 1):
                last = next(reversed(running))
                waiting.appendleft((last, running.pop(last)))
                pool.leave(last)
                preempted += 1
            if name in running:
                running[name] += 1
    return History(*np.array(steps).T, preempted, worst)


# --8<-- [end:run]


class Map:
    """Pictures of a pool as text, taken by `run` every so many steps: a digit for
    `cell` slots, 0 for free ones, else one for the request; and whether the
    first of these slots holds a token."""

    def __init__(self, pool: Pool, cell: int, every: int, count: int):
        self.pool, self.cell = pool, cell
        self.moments = range(every, every * (count + 1), every)
        self.taken: dict[int, tuple[str, str]] = {}

    def watch(self, step: int, running: dict[int, int]) -> None:
        if step not in self.moments:
            return
        owners, tokens = np.zeros((2, self.pool.slots), int)
        for name, held in running.items():
            place = np.concatenate(
                [np.arange(b, e) for b, e in self.pool.pieces(name)]
            )
            owners[place] = 1 + name % 6
            tokens[place[:held]] = 1
        rows = (x[:: self.cell] for x in (owners, tokens))
        self.taken[step] = tuple("".join(map(str, x)) for x in rows)
