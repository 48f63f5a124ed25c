# ---
# jupyter:
#   cudatut:
#     title: {en: "Block managers", zh: "块管理器"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       layers: [30, 1]
#       vocab: [49152, 512]
#       LENGTHS: [[1000, 8000], [100, 200]]
#       times: [7, 1]
# ---

# %% [markdown]
# First one request, its fork and what happens when the fork writes.

# %% program
import cudatut as ct

from cudatut.book.llm.engine.blocks import NaiveBlocks

blocks = NaiveBlocks(count=6, block_size=4)


def show(what):
    tables = {name: table.blocks for name, table in blocks.tables.items()}
    print(f"{what}: tables {tables}, refs {blocks.refs}, free {blocks.free}")


prompt = [11, 12, 13, 14, 15, 16]
blocks.begin("A", prompt)
blocks.reserve("A", 0, 6)  # now tokens 0 to 5 can be written
blocks.commit("A", prompt, 6)  # and now they are computed
show("6 tokens")
blocks.fork("A", "B")
show("B forks A")
print("to be copied:", blocks.reserve("B", 6, 7))
show("B writes")
print("to be copied:", blocks.reserve("A", 6, 7))
show("A writes")
blocks.release("A")
show("A leaves")
blocks.check()

# %% [markdown]
# The copy itself is work for the GPU: a kernel copies these blocks in the keys
# and the values of all layers. Here are two layers.

# %% launch
import numpy as np

forked = NaiveBlocks(count=6, block_size=4)
forked.begin("A", prompt)
forked.reserve("A", 0, 6)
forked.commit("A", prompt, 6)
forked.fork("A", "B")
pairs = np.array(forked.reserve("B", 6, 7), "int32")  # from, to

layers, kv_heads, head_dim = 2, 3, 64
words = 4 * kv_heads * head_dim // 2  # a block has 4 tokens, a word 2 bf16
shape = 2, layers, forked.count, words  # keys and values
before = ct.rng(0).integers(0, 1 << 32, shape, dtype="uint32")
keys, values = map(ct.to_device, before)
copies = ct.to_device(pairs)

# A thread copies one vector of 16 bytes, and of each pair the same one. So the
# grid covers a block's vectors, the layers, and keys beside values.
vectors = words // 4
kernel = ct.Kernel("llm/kernels/rope.cu", "copy_blocks")
kernel(
    keys, values, forked.count * vectors, vectors, forked.count, copies,
    len(pairs), grid=(ct.cdiv(vectors, 128), layers, 2), block=128,
)  # fmt: skip

for old, new in pairs:
    before[:, :, new] = before[:, :, old]
ct.check(keys, before[0], name="keys, one block copied")
ct.check(values, before[1], name="values, one block copied")

# %% setup
from itertools import pairwise

from cudatut.book.llm.block_managers.traces import trace
from cudatut.book.llm.block_managers.traffic import (
    INSTRUCTION,
    MANAGERS,
    kinds,
    serve,
)
from cudatut.book.llm.engine.prefix import PrefixBlocks

# %% [markdown]
# A pool of 32 blocks while requests come, grow and leave.

# %% timeline
rng = ct.rng(2)
POOL, SIZE = 32, 4
blocks = NaiveBlocks(POOL, SIZE)
coming = [
    (number, int(rng.integers(2, 21)), int(rng.integers(4, 29)))
    for number in range(1, 40)
]  # number, tokens of the prompt, of the answer
running, owners = {}, {}
for step in range(48):
    # At most 4 run, so that nobody waits for a block.
    while coming and len(running) < 4:
        number, prompt_len, answer = coming.pop(0)
        blocks.begin(number, [0] * prompt_len)
        blocks.reserve(number, 0, prompt_len)
        running[number] = [prompt_len, prompt_len + answer]
    owner = [0] * POOL
    for number, table in blocks.tables.items():
        for block in table.blocks:
            owner[block] = number
    owners[f"at step {step}"] = " ".join(map(str, owner))
    for number, (length, last) in list(running.items()):
        blocks.reserve(number, length, length + 1)
        running[number][0] += 1
        if length + 1 == last:
            blocks.release(number)
            del running[number]
    blocks.check()
ct.facts("who holds each block", owners)

# %% fragments
WANTED = 6  # blocks


def longest_free(owner):
    """The most free blocks side by side."""
    taken = "".join("." if one else "f" for one in owner)
    return max(map(len, taken.split(".")))


rows = [list(map(int, row.split())) for row in owners.values()]
enough = [row for row in rows if row.count(0) >= WANTED]
apart = [row for row in enough if longest_free(row) < WANTED]
pieces = {}  # neighbors in a table that lie side by side are one piece
for row in rows:
    for number in set(row) - {0}:
        held = [i for i, one in enumerate(row) if one == number]
        gaps = sum(b != a + 1 for a, b in pairwise(held))
        pieces[number] = max(pieces.get(number, 0), 1 + gaps)
ct.facts(
    "the pool over time",
    {
        "steps": len(rows),
        "steps with 6 free blocks": len(enough),
        "of these, without 6 side by side": len(apart),
        "requests in more than one piece": sum(p > 1 for p in pieces.values()),
        "requests in all": len(pieces),
        "most pieces of a request": max(pieces.values()),
    },
)

# %% [markdown]
# Three kinds of traffic. How many tokens of the prompts have to be computed?

# %% predict
BLOCK = 16  # tokens
traffic = kinds()


def whole(count):
    """The tokens of the full blocks among so many."""
    return count // BLOCK * BLOCK


def unshared(name):
    """Prompt tokens to be computed, by the rule: whole blocks are found that an
    earlier request has computed, the last token of an answer excepted.
    """
    total, left = 0, 0
    for i, (prompt, _) in enumerate(traffic[name]):
        shared = 0
        if name == "one instruction for all" and i:
            shared = INSTRUCTION
        elif name == "conversations" and i % 5:
            prompt_before, answer_before = traffic[name][i - 1]
            shared = len(prompt_before) + len(answer_before) - 1
        total, left = total + len(prompt), left + len(prompt) - whole(shared)
    return total, left


expected = {name: unshared(name) for name in traffic}
ct.table(
    "tokens of the prompts to be computed, predicted",
    {
        name: {
            "all": total,
            "with hits": left,
            "saved": 100 * (1 - left / total),
        }
        for name, (total, left) in expected.items()
    },
    corner="shared",
    units={"saved": "%"},
)

# %% count
counted = {
    name: {
        kind: sum(serve(manager(4000, BLOCK), requests))
        for kind, manager in MANAGERS.items()
    }
    for name, requests in traffic.items()
}
ct.table("tokens of the prompts computed, counted", counted, corner="shared")
ct.check(
    [list(row.values()) for row in counted.values()],
    [[total, left, left] for total, left in expected.values()],
    name="tokens as predicted",
)

# %% [markdown]
# Random sequences of operations, and three managers with a fault each.

# %% traces
runs = 200
wrong = {
    kind: sum(trace(manager(8, 2), seed) is not None for seed in range(runs))
    for kind, manager in MANAGERS.items()
}
ct.check(list(wrong.values()), [0, 0, 0], name="random sequences with an error")

# %% faults


class NeverFreed(NaiveBlocks):
    """A fork does not count: whoever leaves first frees the shared blocks."""

    def _hold(self, block):
        pass


class WrittenTogether(NaiveBlocks):
    """No copy-on-write: the shared block itself is written."""

    def reserve(self, request, start, stop):
        refs, self.refs = self.refs, [min(n, 1) for n in self.refs]
        try:
            return super().reserve(request, start, stop)
        finally:
            self.refs = [max(a, b) for a, b in zip(refs, self.refs)]


class ForgottenParent(PrefixBlocks):
    """The hash covers a block's own tokens, and not what stands before."""

    def hash(self, parent, tokens):
        return super().hash(b"", tokens)


FAULTS = {
    "a fork is not counted": NeverFreed,
    "no copy before a write": WrittenTogether,
    "the hash forgets the beginning": ForgottenParent,
}
table = {}
for what, manager in FAULTS.items():
    first = [trace(manager(8, 2), seed) for seed in range(runs)]
    found_at = sorted(one[0] for one in first if one)
    shortest = min(one for one in first if one)
    table[what] = {
        "sequences of 200 that find it": len(found_at),
        "operations in the shortest one": found_at[0],
        "what it says": shortest[1],
    }
ct.table("planted faults", table, corner="fault")

# %% faults-found
ct.check(
    [row["sequences of 200 that find it"] > 0 for row in table.values()],
    [True] * 3,
    name="every fault is found",
)

# %% [markdown]
# Equal tokens after another beginning: the same blocks? The model of the book
# continues two lines by Meng Haoran, alone and after a request that has the
# first of them behind another line. A block holds one line of six tokens.

# %% wrong-hash
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.backends.numpy_backend import NumpyBackend
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.model.tokens import load

model = Checkpoint.open(ct.paths.examples_dir() / "llm/model/tang.gguf")
words = load(model)
first, second = "春眠不觉晓，", "处处闻啼鸟。"


def continued(manager, prompts, count=18):
    """The answers to these prompts, one request after the other, and how many
    tokens of the last one were found.
    """
    engine = Engine(
        NumpyBackend(model, 40, 6), Scheduler(manager(40, 6), context=200)
    )
    answers = []
    for number, prompt in enumerate(prompts):
        engine.add(request := Request(number, words.encode(prompt), count))
        while engine.busy:
            engine.step()
        answers.append(words.decode(request.output))
        engine.scheduler.blocks.check()
    return answers[-1], request.cached


before, after = first + second + first, second + first
table = {}
for name, manager, prompts in (
    ("the request alone", PrefixBlocks, [after]),
    ("after another request", PrefixBlocks, [before, after]),
    ("the hash forgets the beginning", ForgottenParent, [before, after]),
):
    answer, cached = continued(manager, prompts)
    table[name] = {"tokens found": cached, "answer": answer}
ct.table("what follows", table, corner="request")

# %% same-answer
right, same, other = (row["answer"] for row in table.values())
ct.check(
    [same == right, other == right],
    [True, False],
    name="the same answer: right hash, wrong hash",
)

# %% [markdown]
# On the GPU: the time until the first token of a prompt whose beginning is
# known. The model has the shape of SmolLM2 and random weights.

# %% model
from cudatut.book.llm.block_managers.prompts import (
    BLOCK,
    OWN,
    backend_for,
    first_token,
)

layers = 30
vocab = 49152
LENGTHS = (1000, 8000)  # tokens of a prompt; all but the last 64 are shared
times = 7
backend = backend_for(layers, vocab)

# %% first-token
table, turns = {}, 2 + times  # the first two compile, capture, fill the cache
for length in LENGTHS:
    plain, all_tokens = first_token(backend, NaiveBlocks, length, turns)
    hits, some_tokens = first_token(backend, PrefixBlocks, length, turns)
    middle = sorted(plain[2:])[times // 2], sorted(hits[2:])[times // 2]
    table[f"{length} tokens"] = {
        "without hits": middle[0] / 1000,
        "with hits": middle[1] / 1000,
        "times sooner": middle[0] / middle[1],
        "tokens computed": some_tokens[-1],
        "tokens, ratio": all_tokens[-1] / some_tokens[-1],
    }
    ct.check(
        [OWN <= n <= OWN + BLOCK for n in some_tokens[1:]],
        [True] * (1 + times),
        name=f"{length} tokens: the unshared ones, and at most a block more",
    )
ct.table(
    "time to the first token, 64 tokens not shared",
    table,
    corner="prompt",
    units={"without hits": "ms", "with hits": "ms"},
)
