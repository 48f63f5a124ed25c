"""Random sequences of operations on a block manager, and a memory in which each
slot remembers the text that it was computed from.

    found = trace(PrefixBlocks(8, 2), seed=0)  # None: no error
"""

import cudatut as ct
from cudatut.book.llm.engine.blocks import (
    BlockError,
    NaiveBlocks,
    OutOfBlocks,
)


# --8<-- [start:trace]
def trace(
    blocks: NaiveBlocks, seed: int, most: int = 200
) -> tuple[int, str] | None:
    """A random sequence of operations; after how many an error is found, and
    which.

    `cache` stands for the memory: in each slot lies what was computed there,
    which depends on all tokens up to it, as keys and values do.
    """
    rng, size = ct.rng(seed), blocks.block_size
    cache, texts = [None] * (blocks.count * size), {}

    def write(name, start):
        text = texts[name]
        copies = blocks.reserve(name, start, len(text))
        for old, new in copies:
            to = slice(new * size, (new + 1) * size)
            cache[to] = cache[old * size : (old + 1) * size]
        table = blocks.table(name).blocks
        for i in range(start, len(text)):
            cache[table[i // size] * size + i % size] = tuple(text[: i + 1])
        blocks.commit(name, text, len(text))

    for number in range(most):
        action = rng.integers(4) if texts else 0
        name = int(rng.choice(list(texts))) if texts else None
        try:
            if action == 0:
                text = rng.integers(0, 2, rng.integers(1, 14)).tolist()
                if blocks.fits(text):
                    texts[number] = text
                    write(number, blocks.begin(number, text))
            elif action == 1:
                known = len(texts[name])
                more = rng.integers(0, 2, rng.integers(1, 4)).tolist()
                texts[name] = texts[name] + more
                try:
                    write(name, known)
                except OutOfBlocks:
                    texts[name] = texts[name][:known]
            elif action == 2:
                blocks.fork(name, number)
                texts[number] = texts[name]
            else:
                blocks.release(name)
                del texts[name]
            blocks.check()
        except (BlockError, IndexError, KeyError) as error:
            return number + 1, f"{type(error).__name__}: {error}"
        for name, text in texts.items():
            table = blocks.table(name).blocks
            for i in range(len(text)):
                there = cache[table[i // size] * size + i % size]
                if there != tuple(text[: i + 1]):
                    return number + 1, "another token is read"
    return None


# --8<-- [end:trace]
