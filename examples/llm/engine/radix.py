"""The same cache of prefixes with a radix tree instead of hashes: for
comparison with PrefixBlocks.

A node stands for a run of full blocks that has no branch; children begin with
different blocks. To find a prefix is to walk from the root, and tokens
themselves are compared: nothing can collide. The tree also knows what continues
what, so that an end is always evicted before its beginning; hashes keep blocks
whose beginning is gone and which nobody can find until it is computed again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cudatut.book.llm.engine.blocks import BlockError, Id, NaiveBlocks, Tokens

Key = tuple[int, ...]  # the tokens of one block


@dataclass(eq=False)
class Node:
    """A run of blocks: their tokens, their numbers, and what follows by the
    first block's tokens. used: a time.
    """

    parent: "Node | None" = None
    keys: list[Key] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    children: dict[Key, "Node"] = field(default_factory=dict)
    used: int = 0

    def split(self, at: int) -> None:
        """Keep the first `at` blocks; the others become the only child."""
        rest = Node(
            self, self.keys[at:], self.blocks[at:], self.children, self.used
        )
        for child in rest.children.values():
            child.parent = rest
        self.keys, self.blocks = self.keys[:at], self.blocks[:at]
        self.children = {rest.keys[0]: rest}

    def walk(self) -> Iterator["Node"]:
        """All nodes below."""
        left = list(self.children.values())
        while left:
            node = left.pop()
            left += node.children.values()
            yield node


class RadixBlocks(NaiveBlocks):
    """A block manager, used as PrefixBlocks is.

    Whoever holds a block of the tree holds all blocks before it. So an idle
    block has only idle ones behind it, and every idle block can be reached by
    evicting from the ends. That is why a request whose block is a second copy
    of one in the tree (computed at the same time) adds nothing behind it:
    PrefixBlocks does.
    """

    def __init__(self, count: int, block_size: int):
        super().__init__(count, block_size)
        self.root = Node()
        self._node_of: dict[int, Node] = {}  # of each block in the tree
        self._idle_in_tree = 0
        self._clock = 0
        self.evictions = 0

    @property
    def free(self) -> int:
        return len(self._free) + self._idle_in_tree

    def keys(self, tokens: Tokens, count: int) -> list[Key]:
        """The tokens of the first `count` blocks."""
        size = self.block_size
        return [tuple(tokens[i * size : (i + 1) * size]) for i in range(count)]

    # --8<-- [start:find]
    def find(self, keys: Sequence[Key]) -> tuple[list[int], Node, int]:
        """The blocks of the longest prefix that the tree has; the node where it
        ends, and after how many blocks of it.
        """
        found, node, at = [], self.root, 0
        for key in keys:
            if at < len(node.keys):  # inside a run
                if node.keys[at] != key:
                    break
            elif key in node.children:
                node, at = node.children[key], 0
            else:
                break
            found.append(node.blocks[at])
            at += 1
        return found, node, at

    # --8<-- [end:find]

    def lookup(self, tokens: Tokens) -> list[int]:
        keys = self.keys(tokens, (len(tokens) - 1) // self.block_size)
        return self.find(keys)[0]

    # --8<-- [start:insert]
    def commit(self, request: Id, tokens: Tokens, computed: int) -> None:
        before = self.table(request).computed // self.block_size
        super().commit(request, tokens, computed)
        table, full = self.tables[request], computed // self.block_size
        if full == before:
            return
        keys = self.keys(tokens, full)
        found, node, at = self.find(keys)
        # What the tree has of this prefix has to be our own blocks, and what it
        # lacks ours alone.
        rest = table.blocks[len(found) : full]
        if found != table.blocks[: len(found)] or not rest:
            return
        if any(block in self._node_of for block in rest):
            raise BlockError(f"request {request!r} wrote into a cached block")
        if at < len(node.keys):
            node.split(at)
            for below in node.children.values():
                self._node_of |= dict.fromkeys(below.blocks, below)
        if node is self.root or node.children:
            key = keys[len(found)]
            node.children[key] = node = Node(node)
        node.keys += keys[len(found) :]
        node.blocks += rest
        self._touch(node)
        self._node_of |= dict.fromkeys(rest, node)

    # --8<-- [end:insert]

    def _touch(self, node: Node) -> None:
        self._clock += 1
        node.used = self._clock

    # --8<-- [start:evict]
    def _take(self) -> int:
        if not self._free:
            ends = (
                node
                for node in self.root.walk()
                if not node.children and not self.refs[node.blocks[-1]]
            )
            oldest = min(ends, key=lambda node: node.used)
            self._evict_end(oldest)
        return super()._take()

    def _evict_end(self, node: Node) -> None:
        block, key = node.blocks.pop(), node.keys.pop()
        if not node.blocks:
            del node.parent.children[key]
        del self._node_of[block]
        self._idle_in_tree -= 1
        self._free.append(block)
        self.evictions += 1

    # --8<-- [end:evict]

    def _hold(self, block: int) -> None:
        if not self.refs[block]:  # only a block of the tree is held again
            self._idle_in_tree -= 1
        super()._hold(block)

    def _idle(self, block: int) -> None:
        if block in self._node_of:
            self._idle_in_tree += 1
            self._touch(self._node_of[block])
        else:
            super()._idle(block)

    def idle_blocks(self) -> list[int]:
        return [*self._free, *(b for b in self._node_of if not self.refs[b])]

    def check(self) -> None:
        super().check()
        seen: dict[int, Node] = {}
        for node in self.root.walk():
            if not node.blocks or len(node.blocks) != len(node.keys):
                raise BlockError("a node of the tree is empty or torn")
            if node.parent.children.get(node.keys[0]) is not node:
                raise BlockError("a node hangs in the wrong place")
            seen |= dict.fromkeys(node.blocks, node)
            line = [self.refs[b] > 0 for b in node.blocks]
            above = node.parent.blocks[-1:]
            if sorted(line, reverse=True) != line or (
                line[0] and above and not self.refs[above[0]]
            ):
                raise BlockError("an idle block has a held one behind it")
        if seen != self._node_of:
            raise BlockError("the tree and its index differ")
