# ---
# jupyter:
#   cudatut:
#     title: {en: "Block managers: solutions", zh: "块管理器：参考答案"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 60
# ---

# %% [markdown]
# What is left to compute; and an allocator with reference counts.

# %% given-1
import numpy as np


# %% solution-1
def left_to_compute(prompt, earlier, size):
    """Tokens of the prompt that have to be computed."""
    longest = 0
    for tokens in earlier:
        same = 0
        # The last token of the prompt is computed in any case.
        for a, b in zip(prompt[:-1], tokens):
            if a != b:
                break
            same += 1
        # Whole blocks, and whole blocks of that request too.
        same = min(same, len(tokens) // size * size)
        longest = max(longest, same // size * size)
    return len(prompt) - longest


# %% check-1
import cudatut as ct
from cudatut.book.llm.engine.prefix import PrefixBlocks

found, expected = [], []
for seed in range(30):
    rng, size = np.random.default_rng(seed), 1 + seed % 5
    blocks, earlier = PrefixBlocks(1000, size), []
    for number in range(20):
        prompt = rng.integers(0, 2, rng.integers(1, 30)).tolist()
        cached = blocks.begin(number, prompt)
        expected.append(len(prompt) - cached)
        found.append(left_to_compute(prompt, earlier, size))
        blocks.reserve(number, cached, len(prompt))
        blocks.commit(number, prompt, len(prompt))
        earlier.append(prompt)
ct.check(found, expected, name="tokens left")

# %% given-2
import numpy as np


# %% solution-2
class Allocator:
    """Blocks of `size` tokens for requests that can be forked."""

    def __init__(self, count, size):
        self.size = size
        self.free = list(range(count))
        self.refs = [0] * count
        self.tables, self.lengths = {}, {}

    def begin(self, name):
        self.tables[name], self.lengths[name] = [], 0

    def grow(self, name, length):
        table, start = self.tables[name], self.lengths[name]
        last = -(-length // self.size)
        written = range(start // self.size, min(last, len(table)))
        shared = [i for i in written if self.refs[table[i]] > 1]
        new = last - len(table)
        if len(shared) + new > len(self.free):
            raise MemoryError
        copies = []
        for i in shared:
            own = self._take()
            copies.append((table[i], own))
            self.refs[table[i]] -= 1  # another one still holds it
            table[i] = own
        table += [self._take() for _ in range(new)]
        self.lengths[name] = length
        return copies

    def fork(self, parent, child):
        for block in self.tables[parent]:
            self.refs[block] += 1
        self.tables[child] = list(self.tables[parent])
        self.lengths[child] = self.lengths[parent]

    def release(self, name):
        for block in self.tables.pop(name):
            self.refs[block] -= 1
            if not self.refs[block]:
                self.free.append(block)
        del self.lengths[name]

    def _take(self):
        block = self.free.pop()
        self.refs[block] = 1
        return block


# %% check-2
import cudatut as ct

kept = {}  # what each request wrote or took over, by position


def right(seed, count=10, size=3):
    """Whether random operations lose and mix up nothing."""
    rng, allocator = np.random.default_rng(seed), Allocator(count, size)
    memory, texts = {}, {}
    for number in range(60):
        action = rng.integers(4) if texts else 0
        name = int(rng.choice(list(texts))) if texts else None
        if action == 0:
            allocator.begin(number)
            texts[number], name = [], number
        if action in (0, 1):
            old = texts[name]
            text = old + rng.integers(0, 9, rng.integers(1, 6)).tolist()
            before = sorted(allocator.free), list(allocator.tables[name])
            try:
                copies = allocator.grow(name, len(text))
            except MemoryError:
                after = sorted(allocator.free), allocator.tables[name]
                if before != tuple(after):
                    return False
                continue
            for a, b in copies:
                for offset in range(size):
                    memory[b, offset] = memory.get((a, offset))
            table = allocator.tables[name]
            for i in range(len(old), len(text)):
                memory[table[i // size], i % size] = name, i, text[i]
            texts[name] = text
            wrote = {i: (name, i, text[i]) for i in range(len(old), len(text))}
            kept.setdefault((seed, name), {}).update(wrote)
        elif action == 2:
            allocator.fork(name, number)
            texts[number] = texts[name]
            kept[seed, number] = dict(kept.get((seed, name), {}))
        else:
            allocator.release(name)
            del texts[name]
        for name, text in texts.items():
            table = allocator.tables[name]
            for i in range(len(text)):
                there = memory.get((table[i // size], i % size))
                if there != kept[seed, name][i]:
                    return False
    for name in list(texts):
        allocator.release(name)
    return sorted(allocator.free) == list(range(count))


found = sum(right(seed) for seed in range(300))
ct.check([found], [300], name="sequences without an error")
