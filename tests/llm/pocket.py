"""A model small enough to see every token that it reads: a backend for tests of scheduler and engine."""

import numpy as np

from cudatut.book.llm.engine.batch import Room

VOCAB, STOP = 5, 4
PRIME = 1_000_003


def value_of(read, token, position):
    """What this model keeps of a token: it depends on all that it keeps of those before, as attention does."""
    return (int(np.sum(read)) * 31 + token * 7 + position + 1) % PRIME


class Pocket:
    """A backend of one number per slot. It reads through tables alone, and refuses to read what was never written."""

    config = None
    room = Room()

    def __init__(self, block_count, block_size):
        self.block_count, self.block_size = block_count, block_size
        self.cache = np.full(block_count * block_size, -1, "int64")
        self.steps, self.budget, self.most = 0, None, None
        self.ahead = False  # whether tables may name blocks that hold nothing yet

    def run(self, batch):
        size = self.block_size
        for array in batch:
            assert array.dtype == np.int32 and array.flags.c_contiguous
        assert 1 <= len(batch.tokens) <= self.budget and len(batch.lengths) <= self.most
        assert len(set(batch.slots.tolist())) == len(batch.slots), "a slot is written twice"
        written = {int(slot) // size for slot in batch.slots}
        assert all(self.refs[block] == 1 for block in written), "a shared block is written"
        for old, new in batch.copies:
            self.cache[new * size : (new + 1) * size] = self.cache[old * size : (old + 1) * size]
        drawn = [t if t >= 0 else self.drawn[-1 - t] for t in batch.tokens]
        kept = []
        for i, length in enumerate(batch.lengths):
            needed = -(-length // size)
            table = batch.tables[i]
            assert (table[:needed] >= 0).all() and batch.starts[i] < batch.starts[i + 1]
            assert self.ahead or (table[needed:] == -1).all(), "a stale entry"
            t = np.arange(length)
            slots = table[t // size] * size + t % size
            for n in range(batch.starts[i], batch.starts[i + 1]):
                position = batch.positions[n]
                assert batch.slots[n] == slots[position]
                read = self.cache[slots[:position]]
                assert (read >= 0).all(), "a slot is read that was never written"
                self.cache[batch.slots[n]] = value_of(read, int(drawn[n]), int(position))
                kept.append(self.cache[batch.slots[n]])
            assert batch.positions[batch.starts[i + 1] - 1] == length - 1
        self.steps += 1
        return np.array(kept)[batch.wanted]

    def sample(self, logits, draws):
        self.drawn = (logits // 3 % VOCAB).astype("int32")
        return self.drawn.copy()

    def fetch(self, drawn):
        return drawn


def alone(prompt, max_tokens, stop):
    """What the model says to a prompt."""
    kept, output, tokens = [], [], list(prompt)
    while len(output) < max_tokens:
        for token in tokens[len(kept) :]:
            kept.append(value_of(np.array(kept, "int64"), token, len(kept)))
        output.append(kept[-1] // 3 % VOCAB)
        tokens.append(output[-1])
        if output[-1] in stop:
            break
    return output


def managers():
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.prefix import PrefixBlocks
    from cudatut.book.llm.engine.radix import RadixBlocks

    return [NaiveBlocks, PrefixBlocks, RadixBlocks]
