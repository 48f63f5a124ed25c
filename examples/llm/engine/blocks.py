"""Block managers: who owns which piece of the KV cache.

The cache is cut into blocks of `block_size` tokens. A request has a table: its
tokens 0 to block_size - 1 lie in the block that the table names first, and so
on. Managers count and name blocks; what is in them is the backend's business.

    blocks = PrefixBlocks(count=1000, block_size=16)  # or NaiveBlocks
    cached = blocks.begin(7, prompt)  # tokens that need not be computed
    copies = blocks.reserve(7, cached, len(prompt))  # do these, then compute
    blocks.commit(7, prompt, len(prompt))
    blocks.release(7)

What always holds, and what `check` verifies:
 1. A block is free or held, never both and never neither: count = free + held.
 2. refs[b] is the number of tables that name b, and none names it twice.
 3. What `reserve` hands out for writing is named by one table alone.
 4. A block that others may find is full and computed, is found only for the
    text that it was computed from, and is not written while it can be found.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import cudatut as ct

Id, Tokens = Hashable, Sequence[int]
# (from, to): blocks to be copied before anything is written
Copies = Sequence[tuple[int, int]]


class BlockError(ct.CudatutError):
    """A block manager was used in a way that would lose blocks or share them
    wrongly.
    """


class OutOfBlocks(BlockError):
    """Fewer blocks are free than are needed; nothing has changed."""


class UnknownRequest(BlockError):
    """No request of this name has a table: it was never begun, or released
    already.
    """


# --8<-- [start:table]
@dataclass(slots=True)
class Table:
    """The blocks of one request, in the order of its tokens.

    computed: tokens whose keys and values are known to be there. chain: what a
    manager keeps of each block that it has made findable.
    """

    blocks: list[int] = field(default_factory=list)
    computed: int = 0
    chain: list[bytes] = field(default_factory=list)


# --8<-- [end:table]


# --8<-- [start:naive]
class NaiveBlocks:
    """A list of free blocks and a reference count for each: blocks are shared
    by forks only.
    """

    def __init__(self, count: int, block_size: int):
        if min(count, block_size) < 1:
            raise BlockError(f"{count} blocks of {block_size} tokens: none")
        self.count, self.block_size = count, block_size
        self.refs = [0] * count
        self.tables: dict[Id, Table] = {}
        self._free = list(range(count - 1, -1, -1))  # the last is taken first

    @property
    def free(self) -> int:
        """Blocks that can be handed out."""
        return len(self._free)

    def blocks_for(self, tokens: int) -> int:
        """Blocks that so many tokens take."""
        return -(-tokens // self.block_size)

    def table(self, request: Id) -> Table:
        """The table of a request, to be read only. Raises UnknownRequest."""
        if request not in self.tables:
            raise UnknownRequest(f"request {request!r} has no blocks")
        return self.tables[request]

    def lookup(self, tokens: Tokens) -> list[int]:
        """Blocks that hold the beginning of these tokens already; here none.
        Never all: a logit must be computed.
        """
        return []

    def fits(
        self, tokens: Tokens, spare: int = 0, found: list[int] | None = None
    ) -> bool:
        """Whether a new request could have blocks for all these tokens now, and
        `spare` be left. found: what `lookup` says of them, if it was asked.
        """
        found = self.lookup(tokens) if found is None else found
        # Found blocks that nobody holds count as free, and would be no more.
        idle = sum(self.refs[block] == 0 for block in found)
        needed = self.blocks_for(len(tokens)) - len(found) + idle
        return needed + spare <= self.free

    def begin(
        self, request: Id, tokens: Tokens, found: list[int] | None = None
    ) -> int:
        """Give a request its table; the tokens that need not be computed.
        found: what `lookup` says of them, if nothing has changed since; the
        table keeps it. Raises BlockError if the request has a table.
        """
        if request in self.tables:
            raise BlockError(f"request {request!r} has blocks already")
        found = self.lookup(tokens) if found is None else found
        for block in found:
            self._hold(block)
        computed = len(found) * self.block_size
        self.tables[request] = Table(found, computed)
        return computed

    # --8<-- [start:reserve]
    def reserve(self, request: Id, start: int, stop: int) -> Copies:
        """Make tokens start to stop - 1 writable; the copies that this takes:
        copy-on-write.

        Raises OutOfBlocks, and changes nothing then; BlockError for tokens that
        are computed already, or leave a gap.
        """
        table, size = self.table(request), self.block_size
        blocks, room = table.blocks, len(table.blocks) * size
        if not table.computed <= start <= room:
            raise BlockError(
                f"request {request!r}: token {start} cannot be written, "
                f"after {table.computed}, with room for {room}"
            )
        last = self.blocks_for(stop)
        old = range(start // size, min(last, len(blocks)))
        shared = [i for i in old if self.refs[blocks[i]] > 1]
        new = max(0, last - len(blocks))
        if not shared and not new:
            return ()
        if (needed := len(shared) + new) > self.free:
            raise OutOfBlocks(
                f"request {request!r} needs {needed} blocks; "
                f"{self.free} are free"
            )
        copies = []
        for i in shared:
            before, blocks[i] = blocks[i], self._take()
            self._drop(before)
            if i * size < start:  # it holds tokens that are kept
                copies.append((before, blocks[i]))
        for _ in range(new):
            blocks.append(self._take())
        return copies

    # --8<-- [end:reserve]

    def commit(self, request: Id, tokens: Tokens, computed: int) -> None:
        """Say that so many tokens are computed; needed once a block is full.
        Raises BlockError without room.
        """
        table = self.table(request)
        room = len(table.blocks) * self.block_size
        if not table.computed <= computed <= min(room, len(tokens)):
            raise BlockError(
                f"request {request!r}: {computed} tokens cannot be computed, "
                f"after {table.computed}, with room for {room}"
            )
        table.computed = computed

    # --8<-- [start:fork]
    def fork(self, parent: Id, child: Id) -> None:
        """Give a new request the same blocks; who writes into a shared one
        first gets a copy. Raises BlockError.
        """
        if child in self.tables:
            raise BlockError(f"request {child!r} has blocks already")
        old = self.table(parent)
        for block in old.blocks:
            self._hold(block)
        copy = Table(list(old.blocks), old.computed, list(old.chain))
        self.tables[child] = copy

    # --8<-- [end:fork]

    # --8<-- [start:release]
    def release(self, request: Id) -> None:
        """Take the table back. Raises UnknownRequest, so that nothing is freed
        twice.
        """
        table = self.table(request)
        del self.tables[request]
        # The end first: it is then taken, or evicted, before the beginning,
        # which others are likelier to ask for.
        for block in reversed(table.blocks):
            self._drop(block)

    def _take(self) -> int:
        block = self._free.pop()
        self.refs[block] = 1
        return block

    def _hold(self, block: int) -> None:
        self.refs[block] += 1

    def _drop(self, block: int) -> None:
        self.refs[block] -= 1
        if not self.refs[block]:
            self._idle(block)

    def _idle(self, block: int) -> None:
        """What becomes of a block that nobody holds any longer."""
        self._free.append(block)

    # --8<-- [end:release]

    def idle_blocks(self) -> list[int]:
        """Blocks that nobody holds, each once; for `check`."""
        return list(self._free)

    # --8<-- [start:invariants]
    def check(self) -> None:
        """Verify the invariants. Raises BlockError."""
        named = [0] * self.count
        for request, table in self.tables.items():
            if len(set(table.blocks)) < len(table.blocks):
                raise BlockError(f"{request!r} names a block twice")
            for block in table.blocks:
                named[block] += 1
        if named != self.refs:
            raise BlockError("reference counts differ from the tables")
        idle = self.idle_blocks()
        if sorted(idle) != [b for b in range(self.count) if not named[b]]:
            raise BlockError("a block is lost, or both free and held")
        if len(idle) != self.free:
            raise BlockError(f"{self.free} are said to be free: {len(idle)}")

    # --8<-- [end:invariants]


# --8<-- [end:naive]
