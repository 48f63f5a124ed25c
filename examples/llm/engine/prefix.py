"""A block manager that finds computed prefixes again, by hashes of their
blocks.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b

from cudatut.book.llm.engine.blocks import BlockError, Id, NaiveBlocks, Tokens


# --8<-- [start:prefix]
class PrefixBlocks(NaiveBlocks):
    """Full blocks can be found again by a hash of all tokens up to their end,
    also after nobody holds them.

    Such a block stays as it is until a block is needed and none is empty: then
    the one that has been idle for longest is evicted. Its hash covers the hash
    of the block before it: equal tokens after different beginnings have
    different keys and values. A cryptographic hash, because a collision would
    show one user's text to another.
    """

    def __init__(self, count: int, block_size: int):
        super().__init__(count, block_size)
        self._by_hash: dict[bytes, int] = {}
        self._hash_of: dict[int, bytes] = {}
        # Idle blocks that can be found, the one that was idle first in front.
        self._cached: OrderedDict[int, None] = OrderedDict()
        self.evictions = 0

    @property
    def free(self) -> int:
        return len(self._free) + len(self._cached)

    # --8<-- [start:lookup]
    def hash(self, parent: bytes, block: bytes) -> bytes:
        """Of a full block, its tokens as bytes, after the block of the hash
        `parent` (the first: b'').
        """
        return blake2b(parent + block, digest_size=16).digest()

    def texts(self, tokens: Tokens, first: int, stop: int) -> Iterator[bytes]:
        """The tokens of the blocks first to stop - 1: converted at once, which
        takes less time than block by block.
        """
        size = self.block_size
        text = array("i", tokens[first * size : stop * size])
        data, each = text.tobytes(), size * text.itemsize
        for start in range(0, len(data), each):
            yield data[start : start + each]

    def lookup(self, tokens: Tokens) -> list[int]:
        found, parent = [], b""
        whole = (len(tokens) - 1) // self.block_size
        for text in self.texts(tokens, 0, whole):
            parent = self.hash(parent, text)
            block = self._by_hash.get(parent)
            if block is None:
                break
            found.append(block)
        return found

    # --8<-- [end:lookup]

    def begin(
        self, request: Id, tokens: Tokens, found: list[int] | None = None
    ) -> int:
        computed = super().begin(request, tokens, found)
        table = self.tables[request]
        table.chain = [self._hash_of[block] for block in table.blocks]
        return computed

    def commit(self, request: Id, tokens: Tokens, computed: int) -> None:
        super().commit(request, tokens, computed)
        table, full = self.tables[request], computed // self.block_size
        for text in self.texts(tokens, len(table.chain), full):
            parent = table.chain[-1] if table.chain else b""
            block = table.blocks[len(table.chain)]
            own = self.hash(parent, text)
            table.chain.append(own)
            # Another request may have computed the same at the same time: its
            # block is found, ours is not.
            if own not in self._by_hash:
                self._by_hash[own] = block
                self._hash_of[block] = own

    # --8<-- [start:evict]
    def _take(self) -> int:
        if not self._free:
            block, _ = self._cached.popitem(last=False)
            del self._by_hash[self._hash_of.pop(block)]
            self._free.append(block)
            self.evictions += 1
        return super()._take()

    def _hold(self, block: int) -> None:
        self._cached.pop(block, None)
        super()._hold(block)

    def _idle(self, block: int) -> None:
        if block in self._hash_of:
            self._cached[block] = None
        else:
            super()._idle(block)

    # --8<-- [end:evict]

    def idle_blocks(self) -> list[int]:
        return [*self._free, *self._cached]

    def check(self) -> None:
        super().check()
        if self._by_hash != {h: b for b, h in self._hash_of.items()}:
            raise BlockError("hashes and blocks differ")
        if any(block in self._hash_of for block in self._free):
            raise BlockError("a block that can be found counts as empty")


# --8<-- [end:prefix]
