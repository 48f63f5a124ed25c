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
#       series: [5, 1]
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

# %% setup
import copy
from functools import partial
from itertools import pairwise
from time import perf_counter

from cudatut.book.llm.engine.blocks import BlockError, NaiveBlocks, OutOfBlocks
from cudatut.book.llm.engine.prefix import PrefixBlocks
from cudatut.book.llm.engine.radix import RadixBlocks

MANAGERS = {
    "free list": NaiveBlocks,
    "hashes": PrefixBlocks,
    "radix tree": RadixBlocks,
}

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
draw = iter(range(10_000))


def some(count):
    """So many random tokens, other ones each time."""
    return ct.rng(next(draw)).integers(0, 49152, count).tolist()


system = some(200)
traffic = {
    "one instruction for all": [],
    "conversations": [],
    "nothing shared": [],
}
for i in range(40):
    own = 20 + 3 * i
    traffic["one instruction for all"].append((system + some(own), some(30)))
    traffic["nothing shared"].append((some(200 + own), some(30)))
for user in range(8):
    before = []
    for _ in range(5):
        prompt, answer = before + some(30 + 7 * user), some(50)
        traffic["conversations"].append((prompt, answer))
        before = prompt + answer


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
            shared = len(system)
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


def serve(blocks, requests):
    """One request after the other; what was computed of each prompt."""
    computed = []
    for number, (prompt, answer) in enumerate(requests):
        cached = blocks.begin(number, prompt)
        computed.append(len(prompt) - cached)
        blocks.reserve(number, cached, len(prompt))
        blocks.commit(number, prompt, len(prompt))
        text = prompt + answer
        for stop in range(len(prompt) + 1, len(text)):  # decoding
            blocks.reserve(number, stop - 1, stop)
            blocks.commit(number, text, stop)
        blocks.release(number)
    blocks.check()
    return computed


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

# %% block-size
# A larger block means fewer table entries and fewer hashes, and fewer hits.
by_size = {}
for BLOCK in (1, 4, 16, 64, 256):
    by_size[BLOCK] = {
        name: sum(serve(PrefixBlocks(80_000 // BLOCK, BLOCK), requests))
        for name, requests in traffic.items()
    }
BLOCK = 16
ct.table(
    "tokens computed by the size of a block", by_size, corner="tokens per block"
)

# %% evict
# 600 questions about 40 documents, some asked about far more often than others.
rng = ct.rng(2)
documents = [some(160) for _ in range(40)]
weights = 1 / (1 + rng.permutation(40))
asked = rng.choice(40, 600, p=weights / weights.sum())
stream = [(documents[d] + some(20), some(10)) for d in asked]
sizes = (40, 80, 120, 160, 240, 320, 400, 480)
found, evictions = {kind: [] for kind in ("hashes", "radix tree")}, {}
every = sum(len(prompt) for prompt, _ in stream)
for kind in found:
    for count in sizes:
        manager = MANAGERS[kind](count, BLOCK)
        computed = sum(serve(manager, stream))
        found[kind].append((count, 100 * (1 - computed / every)))
        evictions[kind, count] = manager.evictions
ct.series(
    "prompt tokens found",
    ("blocks in the pool", ""),
    ("share found", "%"),
    found,
)
ct.check(
    [share for _, share in found["radix tree"]],
    [share for _, share in found["hashes"]],
    name="the tree finds as much",
)
ct.facts(
    "hashes: hits and evictions",
    {
        f"pool of {n} blocks": f"{share:.1f} %, {evictions['hashes', n]}"
        for n, share in found["hashes"]
    },
)

# %% host
# Time of the host for one request of 8,000 tokens that are all known already
# but the last block, in a manager that knows 50 such texts.
texts = [(some(8000), some(2)) for _ in range(50)]
spent = {}
for kind, manager in MANAGERS.items():
    blocks = manager(30_000, BLOCK)
    serve(blocks, texts)
    best = []
    for prompt, _ in texts[:20]:
        start = perf_counter()
        cached = blocks.begin("again", prompt)
        blocks.reserve("again", cached, len(prompt))
        blocks.commit("again", prompt, len(prompt))
        best.append(1e6 * (perf_counter() - start))
        blocks.release("again")
    spent[kind] = (sorted(best)[len(best) // 2], "us")
ct.facts("time of the host for a prompt of 8,000 tokens", spent)

# %% [markdown]
# Random sequences of operations, and three managers with a fault each.

# %% traces


def trace(blocks, seed, most=200):
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
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.model.random_model import RandomModel

layers = 30
vocab = 49152
LENGTHS = (1000, 8000)  # tokens of a prompt; all but the last 64 are shared
times = 7
OWN = 64
backend = GpuBackend(
    RandomModel(layers=layers, vocab=vocab),
    block_count=1200,
    block_size=BLOCK,
    max_tokens=8192,
    max_requests=4,
)

# %% first-token


def first_token(manager, length, rounds, watch=None):
    """Microseconds until the first token of prompts that share all but OWN
    tokens, of each; and the tokens computed for each. watch: gets the engine,
    before the first prompt.
    """
    blocks = manager(backend.block_count, BLOCK)
    scheduler = Scheduler(blocks, 8192, max_running=4, context=8192)
    engine = Engine(backend, scheduler)
    if watch:
        watch(engine)
    shared, us, computed = some(length - OWN), [], []
    shared = [token % vocab for token in shared]
    for number in range(rounds):
        own = [token % vocab for token in some(OWN)]
        request = Request(number, shared + own, 1)
        if watch:
            watch.prompts.append({})
        ct.synchronize()
        start = perf_counter()
        engine.add(request)
        while engine.busy:
            engine.step()
        us.append(1e6 * (perf_counter() - start))
        computed.append(length - request.cached)
    return us, computed


table, work = {}, {}
for length in LENGTHS:
    # The first two of each compile, capture and fill the cache.
    plain, all_tokens = first_token(NaiveBlocks, length, 2 + times)
    hits, some_tokens = first_token(PrefixBlocks, length, 2 + times)
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

# %% [markdown]
# The same once more, with a watch on every part of the host: how long it is in
# the block manager, in the scheduler, and how long it waits for the GPU.


# %% first-token-parts
class Watch:
    """Seconds that the host spends in each part, without those in a part that
    this one calls; of each prompt.
    """

    def __init__(self):
        self.prompts, self.inside = [], None

    def __call__(self, engine):
        scheduler, engine.backend = engine.scheduler, copy.copy(engine.backend)
        for part, owner, names in (
            ("block manager", scheduler.blocks, "lookup fits begin reserve"),
            ("block manager", scheduler.blocks, "commit release"),
            ("scheduler and arrays", scheduler, "add schedule finish"),
            ("scheduler and arrays", engine, "assemble"),
            ("start of the step", engine.backend, "run sample"),
            ("wait for the GPU", engine.backend, "fetch"),
        ):
            for name in names.split():
                setattr(owner, name, self.timed(part, getattr(owner, name)))

    def timed(self, part, call):
        def found(*arguments, **named):
            spent, outer = self.prompts[-1], self.inside
            self.inside, begin = part, perf_counter()
            result = call(*arguments, **named)
            took, self.inside = perf_counter() - begin, outer
            spent[part] = spent.get(part, 0) + took
            if outer:
                spent[outer] = spent.get(outer, 0) - took
            return result

        return found


series = 5
MANAGERS = {"without hits": NaiveBlocks, "with hits": PrefixBlocks}
ways = [(length, name) for length in LENGTHS for name in MANAGERS]
noted = {way: [] for way in ways}  # of each prompt its time and the parts
for _ in range(series):
    for length, name in ways:
        watch = Watch()
        us, _ = first_token(MANAGERS[name], length, 2 + times, watch)
        # The first two of each series do not count.
        noted[length, name] += [*zip(us, watch.prompts)][2:]
table = {}
for (length, name), prompts in noted.items():
    prompts.sort(key=lambda one: one[0])
    us, parts = prompts[len(prompts) // 2]  # the prompt of the median
    spent = {part: 1000 * s for part, s in parts.items()}
    spent |= {"all else": us / 1000 - sum(spent.values()), "in all": us / 1000}
    for percent in (20, 80):
        at = prompts[len(prompts) * percent // 100][0]
        spent[f"in all, p{percent}"] = at / 1000
    table[f"{length} tokens, {name}"] = spent
ct.table(
    "time to the first token, by what the host does",
    table,
    corner="prompt",
    units=dict.fromkeys(spent, "ms"),
)

# %% [markdown]
# Where few tokens are left, attention has few tiles of queries. One layer's, by
# flash.cu and with the keys of a tile dealt out to several thread blocks.

# %% dealt
import numpy as np

from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.kernels.attention import flash_parts
from cudatut.book.llm.decoding.steps import random_bits
from cudatut.book.llm.model.weights import floats

heads, kv_heads, dim = 9, 3, 64
launches = {}
for length in LENGTHS:
    table = ct.rng(3).permutation(ct.cdiv(length, BLOCK))[None].astype("int32")
    starts, lengths = np.int32([0, OWN]), np.int32([length])
    tile = flash.tile_for(dim)
    order = flash.order(starts, lengths, tile)
    q = random_bits(OWN, heads, dim)
    cache = [random_bits(table.size * BLOCK, kv_heads, dim) for _ in "kv"]
    lists = [ct.to_device(x) for x in (starts, lengths, table)]
    out = [ct.empty((OWN, heads, dim), "uint16") for _ in range(2)]
    work = ct.to_device(order)
    partials = ct.empty(flash_parts.room(tile), "float32")
    one = partial(flash.paged, q, *cache, out[0], *lists, BLOCK, work)
    dealt = partial(
        flash_parts.few_or_many, q, *cache, out[1], *lists, BLOCK, work,
        partials,
    )  # fmt: skip
    launches[f"{length} keys, flash.cu"] = one
    launches[f"{length} keys, dealt out"] = dealt
    one(), dealt()
    ct.check(
        floats(out[1].get()),
        floats(out[0].get()),
        atol=0.015,
        name=f"{length} keys dealt out: the same as by flash.cu",
    )
by_kernel = ct.bench(launches, name="attention of 64 tokens in one layer")

# %% dealt-facts
if not ct.tool.running():
    facts = {}
    for length in LENGTHS:
        one = by_kernel[f"{length} keys, flash.cu"].median_us
        many = by_kernel[f"{length} keys, dealt out"].median_us
        facts[f"{length} keys"] = (one / many, "times")
    ct.facts("attention of 64 tokens, dealt out: times as fast", facts)
