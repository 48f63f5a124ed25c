# ---
# jupyter:
#   cudatut:
#     title: {en: "PagedAttention", zh: "PagedAttention：分块的 KV 缓存"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 240
#     sizes:
#       count: [1000, 20]
#       watched: [16, 2, 16]
#       sequences: [64, 2]
#       many: [4096, 256]
#       prompts: [4, 1]
#       tokens: [4096, 256]
# ---

# %% [markdown]
# Three sequences whose keys lie in blocks of 16, anywhere in a pool; a slot
# that nobody uses holds NaN.

# %% program
import math

import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16

from cudatut.book.llm.kernels.attention import decode

heads, kv_heads, d, block_size = 8, 2, 64, 16
lengths = np.array([40, 1, 333], "int32")
rng = ct.rng(0)
q = to_bf16(rng.standard_normal((3, heads, d)))
keys, values = (
    to_bf16(rng.standard_normal((3, 333, kv_heads, d))) for _ in "kv"
)

# Blocks in no order; the last five stay unused.
needed = -(-lengths // block_size)
free = list(rng.permutation(needed.sum() + 5))
pool_shape = len(free) * block_size, kv_heads, d
pool_keys, pool_values = (np.full(pool_shape, 0x7FC0, "uint16") for _ in "kv")
tables = np.full((3, needed.max()), -1, "int32")
for i, n in enumerate(lengths):
    tables[i, : needed[i]] = [free.pop(0) for _ in range(needed[i])]
    j = np.arange(n)  # tokens of this sequence, and their slots
    slots = tables[i, j // block_size] * block_size + j % block_size
    pool_keys[slots], pool_values[slots] = keys[i, :n], values[i, :n]

out = ct.empty(q.shape, "uint16")
lse = ct.empty((3, heads), "float32")
need = decode.sizes(3, heads, kv_heads, d, longest=333)
partials = ct.empty(need.partials, "float32")
tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
on_gpu = [ct.to_device(x) for x in (q, pool_keys, pool_values, tables, lengths)]
decode.paged(*on_gpu, block_size, out, lse, partials, tickets, longest=333)

group = heads // kv_heads
expected = []
for i, n in enumerate(lengths):
    for h in range(heads):
        k, v = (to_float(x[i, :n, h // group]) for x in (keys, values))
        scores = k.astype("float64") @ to_float(q[i, h]) / math.sqrt(d)
        p = np.exp(scores - scores.max())
        expected.append(p / p.sum() @ v)
ct.check(
    to_float(out.get()), np.reshape(expected, q.shape), rtol=0, atol=0.02,
    name="keys in blocks of 16, NaN elsewhere",
)  # fmt: skip

# %% setup
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.decoding.steps import Step, random_bits
from cudatut.book.llm.paged_attention.pools import (
    LONGEST,
    Contiguous,
    Paged,
    draw,
    exact,
    longest,
    power_of_two,
    run,
)
from cudatut.book.llm.paged_attention.ragged import (
    decode_step,
    prefill,
    scattered,
)

# %% [markdown]
# These three launches are counted further down.

# %% watched
watched = 16
step = Step(watched, 4096, 32, 8)
ways = {
    "contiguous": step.contiguous,
    "KV blocks of 16": step.paged(16),
    "KV blocks of 1": step.paged(1),
}
for launch in ways.values():
    launch()
names = list(ways)
del step, ways

# %% [markdown]
# The step of the program once more, launched by hand.

# %% launch
WARPS, STAGES, TILE, HEADS = 4, 4, 16, 8  # TILE keys; HEADS of a block
name = f"decode<{d},{WARPS},{STAGES},true>"
kernel = ct.Kernel("llm/kernels/attention/decode.cu", name)
# Rows of keys in shared memory are an odd number of 16 bytes long: no two of
# eight lie in the same banks.
row = ((2 * d // 16 + 1) | 1) * 16
shared = WARPS * STAGES * 2 * TILE * row  # keys and values
split = 512  # keys of a part: here each sequence is one part
parts = ct.cdiv(int(lengths.max()), split)
octets = kv_heads * ct.cdiv(group, HEADS)
none = np.uint64(0)  # bf16 has no scales
by_hand = ct.empty(q.shape, "uint16")
d_q, *pools, d_tables, d_lengths = on_gpu
kernel(
    d_q, heads * d, *pools, d_tables, tables.shape[1], block_size, d_lengths,
    kv_heads, group, split, 0, 1 / math.sqrt(d), 0.0, by_hand, lse, partials,
    tickets, none, grid=(octets, parts, 3), block=32 * WARPS, shared=shared,
)  # fmt: skip
ct.check(
    to_float(by_hand.get()), np.reshape(expected, q.shape), rtol=0, atol=0.02,
    name="launched by hand",
)  # fmt: skip

# %% [markdown]
# A pool of slots that many requests share, simulated.

# %% requests
SLOTS = 32768  # tokens that the pool has room for
count = 1000
requests = draw(count, ct.rng(0))
of_prompt, totals = np.array(requests).T
ct.facts(
    "requests in tokens",
    {
        "prompt, median": float(np.median(of_prompt)),
        "prompt and output, mean": float(np.mean(totals)),
        "prompt and output, longest": int(totals.max()),
        "allowed": LONGEST,
        "the pool": SLOTS,
    },
)

# %% waste
histories = {
    "the longest allowed": run(Contiguous(SLOTS, longest), requests),
    "the next power of two": run(Contiguous(SLOTS, power_of_two), requests),
    "the exact length": run(Contiguous(SLOTS, exact), requests),
    "KV blocks of 16": run(Paged(SLOTS, 16), requests),
}
ct.table(
    "what the pool's slots are good for",
    {
        name: history.shares() | {"requests": float(history.running.mean())}
        for name, history in histories.items()
    },
    corner="a request gets",
    units={
        "tokens": "%",
        "reserved": "%",
        "internal": "%",
        "external": "%",
        "requests": "at once",
    },
)

# %% over-time
ct.series(
    "slots that hold a token",
    x=("steps so far", "steps"),
    y=("share of the pool", "%"),
    lines={
        name: [
            (step, 100 * float(history.tokens[step : step + 25].mean()) / SLOTS)
            for step in range(0, min(1500, len(history.tokens)), 25)
        ]
        for name, history in histories.items()
    },
)

# %% worst
paged = histories["KV blocks of 16"]
ct.facts(
    "KV blocks of 16",
    {
        "most slots that a request never used": paged.worst,
        "requests preempted": paged.preempted,
        "steps": len(paged.tokens),
        "steps, the longest allowed": len(
            histories["the longest allowed"].tokens
        ),
    },
)

# %% sizes
SIZES = (1, 4, 16, 64, 256)
of_size = {size: run(Paged(SLOTS, size), requests) for size in SIZES}
ct.table(
    "blocks of other sizes",
    {
        str(size): {
            "tokens": history.shares()["tokens"],
            "table": 4 * ct.cdiv(4096, size),
            "requests": float(history.running.mean()),
        }
        for size, history in of_size.items()
    },
    corner="tokens of a block",
    units={
        "tokens": "% of the slots",
        "table": "bytes for 4096 tokens",
        "requests": "at once",
    },
)

# %% [markdown]
# NaN in every slot that nobody uses, and behind every last key.

# %% nan
lengths = (1, 31, 33, 500, 513)
NAN, ZERO = 0x7FC0, 0
table = {}
for block_size in (1, 7, 16, 256):
    rng = ct.rng(block_size)
    q = to_bf16(rng.standard_normal((len(lengths), 6, 64)))
    shape = 2, 64  # 2 KV heads of 64
    seen = {}
    for fill in (NAN, ZERO):
        rng = ct.rng(block_size)
        tables, pools, beside = scattered(lengths, block_size, shape, rng, fill)
        arguments = q, pools, lengths, tables, block_size
        seen[fill] = decode_step(*arguments), prefill(*arguments)
    contiguous = decode_step(q, beside, lengths)
    table[str(block_size)] = {
        "unused slots": len(pools[0]) - sum(lengths),
        "decode": int((seen[NAN][0] != seen[ZERO][0]).sum()),
        "flash": int((seen[NAN][1] != seen[ZERO][1]).sum()),
        "decode, contiguous": int((seen[NAN][0] != contiguous).sum()),
    }
    for what, got in zip(("decode", "flash"), seen[NAN]):
        finite = np.isfinite(to_float(got)).all()
        ct.check(
            np.array([finite]),
            [True],
            name=f"{what}, KV blocks of {block_size}: finite",
        )
ct.table(
    "results that differ: NaN against 0 in unused slots, blocks against none",
    table,
    corner="tokens of a block",
)

# %% [markdown]
# What a mask alone would do.

# %% masked
scores = np.array([1.0, 2.0, 5.0])  # the third key isn't there
values = np.array([10.0, 20.0, np.nan])
scores[2] = -np.inf
weights = np.exp(scores - scores[:2].max())
ct.facts(
    "the third key is masked",
    {
        "its weight": float(weights[2]),
        "result, its value is NaN": str(
            float(weights @ values / weights.sum())
        ),
        "result, its value is 0": float(
            weights @ [10.0, 20.0, 0.0] / weights.sum()
        ),
    },
)

# %% [markdown]
# How much the table costs: one step of decoding, then prompts.

# %% bench
sequences = 64
many = 4096  # keys of each
step = Step(sequences, many, 32, 32)
paged_runs = {
    f"KV blocks of {size}": step.paged(size) for size in (1, 4, 16, 64, 256)
}
decoding = ct.bench(
    {"contiguous": step.contiguous, **paged_runs},
    bytes=step.bytes,
    name="decode, 64 sequences of 4096 keys, 32 heads of 128",
)

# %% bench-facts
if not ct.tool.running():
    base = decoding["contiguous"].median_us
    ct.facts(
        "time, in times of the contiguous one",
        {name: decoding[name].median_us / base for name in paged_runs},
    )
del step, paged_runs

# %% flash
prompts = 4
tokens = 4096
q, keys, values = (random_bits(prompts, tokens, h, 128) for h in (32, 8, 8))
out = ct.empty(q.shape, "uint16")
starts = np.arange(prompts + 1, dtype="int32") * tokens
lengths = np.full(prompts, tokens, "int32")
work = ct.to_device(flash.order(starts, lengths, flash.tile_for(128)))
starts, lengths = ct.to_device(starts), ct.to_device(lengths)


def paged_prefill(block_size):
    blocks = ct.rng(1).permutation(prompts * tokens // block_size)
    tables = ct.to_device(blocks.astype("int32").reshape(prompts, -1))
    flat = [
        x.reshape(prompts * tokens, *x.shape[2:])
        for x in (q, keys, values, out)
    ]
    return lambda: flash.paged(*flat, starts, lengths, tables, block_size, work)


prefills = ct.bench(
    {
        "contiguous": lambda: flash.contiguous(
            q, keys, values, out, causal=True
        ),
        **{
            f"KV blocks of {size}": paged_prefill(size) for size in (1, 16, 256)
        },
    },
    name="flash, 4 prompts of 4096 tokens, 32 query heads share 8",
)

# %% flash-facts
if not ct.tool.running():
    base = prefills["contiguous"].median_us
    ct.facts(
        "time, in times of the contiguous one",
        {
            row.name: row.median_us / base
            for row in prefills.rows
            if row.name != "contiguous"
        },
    )

# %% counted
READ, INSTRUCTIONS = "dram__bytes_read.sum", "smsp__inst_executed.sum"
_, *counted = ct.profile_launches(
    "llm/paged_attention",
    kernel="decode",
    metrics=[READ, INSTRUCTIONS],
    launches=4,  # the first is that of the program
) or [None]
if counted:
    tiles = watched * 8 * 4096 / 16  # of 16 keys, each a warp's
    ct.table(
        "the same keys, three ways",
        {
            name: {
                "from memory": got[READ] / 1e6,
                "instructions": got[INSTRUCTIONS] / tiles,
            }
            for name, got in zip(names, counted)
        },
        corner="keys",
        units={"from memory": "MB", "instructions": "per 16 keys"},
    )
