# ---
# jupyter:
#   cudatut:
#     title: {en: "Decoding and the KV cache", zh: "解码与 KV 缓存"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 240
#     sizes:
#       sequences: [64, 2]
#       many: [4096, 100]
#       long: [131072, 300]
#       packed: [16, 2, 16]
#       count: [4096, 100, 4096]
#       shared: [2048, 50]
#       side: [16384, 96]
# ---

# %% [markdown]
# One step of decoding as a whole program: three sequences, a query for each.

# %% program
import math

import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16

from cudatut.book.llm.kernels.attention import decode


def attention(q, k, v):  # in float64: a row of q for each query head
    q, k, v = (to_float(x).astype("float64") for x in (q, k, v))
    scores = q @ k.T / math.sqrt(q.shape[1])
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v


capacity, heads, kv_heads, d = 1000, 8, 2, 64
lengths = np.array([1000, 1, 333], "int32")  # keys in the cache
rng = ct.rng(0)
q = to_bf16(rng.standard_normal((3, heads, d)))
keys, values = (
    to_bf16(rng.standard_normal((3, capacity, kv_heads, d))) for _ in "kv"
)

out = ct.empty((3, heads, d), "uint16")
lse = ct.empty((3, heads), "float32")
need = decode.sizes(3, heads, kv_heads, d, longest=capacity)
partials = ct.empty(need.partials, "float32")
tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
on_gpu = [ct.to_device(x) for x in (q, keys, values, lengths)]
decode.contiguous(*on_gpu, out, lse, partials, tickets, longest=capacity)

group = heads // kv_heads  # query heads that share a KV head
expected = [
    attention(
        q[i, h * group : (h + 1) * group], keys[i, :n, h], values[i, :n, h]
    )
    for i, n in enumerate(lengths)
    for h in range(kv_heads)
]
ct.check(
    to_float(out.get()), np.reshape(expected, out.shape), rtol=0, atol=0.02,
    name="attention of three sequences",
)  # fmt: skip

# %% setup
from functools import partial

from cudatut.book.llm.decoding import rivals as decoding_rivals
from cudatut.book.llm.kernels import gemv
from cudatut.book.llm.decoding.steps import (
    Step,
    random_bits,
    random_blocks,
)
from cudatut.book.llm.kernels.gemv import BF16, Q4_1, Q8_0

# %% [markdown]
# What is read from L2 where four query heads share keys: these two launches are
# counted further down.

# %% packing
packed = 16  # sequences
count = 4096  # keys of each
step = Step(packed, count, 32, 8)
step.contiguous()
step.flash()
kv_mb = step.bytes / 1e6
del step

# %% [markdown]
# What the cache saves, and what a step then reads.

# %% saved
# SmolLM2-135M: weights of the products, by their format in the file.
LAYERS, HEADS, KV_HEADS, HEAD_DIM = 30, 9, 3, 64
DIM, FFN, VOCAB = 576, 1536, 49152
in_layers = (
    LAYERS * DIM * (2 * HEADS * HEAD_DIM + 2 * KV_HEADS * HEAD_DIM + 3 * FFN)
)
in_head = VOCAB * DIM
kv_bytes = 2 * LAYERS * KV_HEADS * HEAD_DIM * 2


def gflop(queries, keys_seen):
    """2 operations for each weight and query token, 4 for each element of a
    head and each key that a query sees; the last product for one token."""
    of_attention = 4 * LAYERS * HEADS * HEAD_DIM * keys_seen
    return (2 * (in_layers * queries + in_head) + of_attention) / 1e9


ct.table(
    "SmolLM2, the token after so many",
    {
        f"{n} tokens": {
            "without the cache": gflop(n, n * (n + 1) // 2),
            "with the cache": gflop(1, n),
            "the cache holds": n * kv_bytes / 1e6,
        }
        for n in (100, 1000, 8000)
    },
    corner="before it",
    units={
        "without the cache": "GFLOP",
        "with the cache": "GFLOP",
        "the cache holds": "MB",
    },
)
ct.facts(
    "keys and values of a token",
    {
        "3 KV heads": (kv_bytes, "bytes"),
        "a KV head for each query head": (
            kv_bytes * HEADS // KV_HEADS,
            "bytes",
        ),
    },
)

# %% bytes
stored = (in_layers * Q4_1.block + in_head * Q8_0.block) / 32
bandwidth = ct.limits.bandwidth() * 1e9
ct.table(
    "SmolLM2, a step for sequences of 1000 tokens",
    {
        str(s): {
            "weights": stored / 1e6,
            "keys and values": s * 1000 * kv_bytes / 1e6,
            "FLOP per byte": s
            * gflop(1, 1000)
            * 1e9
            / (stored + s * 1000 * kv_bytes),
            "at most": s * bandwidth / (stored + s * 1000 * kv_bytes),
        }
        for s in (1, 16, 64, 256)
    },
    corner="sequences",
    units={"weights": "MB", "keys and values": "MB", "at most": "tokens/s"},
)
ct.facts(
    "what this GPU could do",
    {"fp32, FMA": (ct.limits.fma() * 1e12 / bandwidth, "FLOP per byte")},
)

# %% [markdown]
# Two parts of the keys, merged; first by hand, then by the kernel.


# %% merge
def part(scores, of_keys):
    """The result over some keys, with what a merge needs."""
    most = max(scores)
    weights = [math.exp(s - most) for s in scores]
    total = sum(weights)
    result = sum(w * v for w, v in zip(weights, of_keys)) / total
    return {
        "largest score": most,
        "sum of exponentials": total,
        "log-sum-exp": most + math.log(total),
        "result": result,
    }


a, b = part([2, 0], [10, 20]), part([3, 1], [30, 40])
whole = part([2, 0, 3, 1], [10, 20, 30, 40])
ct.table(
    "four keys in two parts",
    {"part a": a, "part b": b, "all four": whole},
    corner="keys",
)
weight = math.exp(a["log-sum-exp"] - b["log-sum-exp"])  # that of b is 1
ct.facts(
    "merged",
    {
        "weight of a, if that of b is 1": weight,
        "result": (weight * a["result"] + b["result"]) / (weight + 1),
        "without weights": (a["result"] + b["result"]) / 2,
    },
)

# %% merge-gpu
kernel = ct.Kernel("llm/kernels/attention/merge.cu", "merge")
rows, dim = 1, 8  # 16 bytes of a row: one thread
results = [ct.to_device(to_bf16(np.full((1, 8), x["result"]))) for x in (a, b)]
sums = [ct.to_device(np.array([x["log-sum-exp"]], "float32")) for x in (a, b)]
merged, merged_lse = ct.empty((1, 8), "uint16"), ct.empty(1, "float32")
kernel(
    results[0], sums[0], results[1], sums[1], merged, merged_lse, rows, dim,
    grid=1, block=256,
)  # fmt: skip
want = np.full((1, 8), whole["result"])
ct.check(to_float(merged.get()), want, rtol=0.01, name="merged by merge.cu")
ct.check(merged_lse, [whole["log-sum-exp"]], name="its log-sum-exp")

# %% [markdown]
# The benchmarks: many sequences, one long sequence.

# %% bench
sequences = 64
many = 4096  # keys of each
step = Step(sequences, many, 32, 32)
batch = ct.bench(
    {
        "flash": step.flash,
        "decode, parts of 512": step.contiguous,
        "decode, long parts": step.long_parts,
        "PyTorch": step.torch(),
    },
    bytes=step.bytes,
    name="64 sequences of 4096 keys, 32 heads of 128",
)

# %% bench-facts
if not ct.tool.running():
    ct.facts(
        "keys and values, read",
        {
            "bytes": (step.bytes / 1e9, "GB"),
            "parts of 512": (batch["decode, parts of 512"].value, "GB/s"),
            "long parts": (batch["decode, long parts"].value, "GB/s"),
            "keys of a long part": step.fast,
        },
    )
del step

# %% long
long = 131072
step = Step(1, long, 32, 8)
one = ct.bench(
    {
        "flash": step.flash,
        "decode, one part": partial(step.contiguous, long),
        "decode, parts of 4096": partial(step.contiguous, 4096),
        "decode, parts of 512": step.contiguous,
        "PyTorch": step.torch(),
    },
    bytes=step.bytes,
    name="one sequence of 131,072 keys, 32 query heads share 8",
)

# %% long-facts
if not ct.tool.running():
    ct.facts(
        "one part against many",
        {
            "blocks, one part": 8,
            "blocks, parts of 512": 8 * decode.parts(long),
            "times as fast": one["decode, one part"].median_us
            / one["decode, parts of 512"].median_us,
        },
    )
del step

# %% counted
READ, FROM_L2 = "dram__bytes_read.sum", "lts__t_sectors_srcunit_tex.sum"
_, *counted = ct.profile_launches(
    "llm/decoding",
    kernel="regex:^(decode|flash)$",
    metrics=[READ, FROM_L2],
    launches=3,  # the first is that of the program
) or [None]
if counted:
    ct.table(
        "32 query heads share 8: megabytes that are read",
        {
            name: {
                "keys and values": kv_mb,
                "from L2": got[FROM_L2] * 32 / 1e6,
                "from memory": got[READ] / 1e6,
            }
            for name, got in zip(("decode", "flash"), counted)
        },
        corner="kernel",
        units=dict.fromkeys(
            ("keys and values", "from L2", "from memory"), "MB"
        ),
    )

# %% [markdown]
# More products, the same bytes.

# %% more
shared = 2048
steps = {h: Step(sequences, shared, 8 * h, 8) for h in (1, 2, 4, 8)}
name = {h: f"{h} to a KV head" for h in steps}
by_group = ct.bench(
    {name[h]: s.long_parts for h, s in steps.items()},
    bytes={name[h]: s.bytes for h, s in steps.items()},
    name="query heads that share keys",
)

# %% more-facts
if not ct.tool.running():
    ct.facts(
        "8 query heads to a KV head, beside 1",
        {
            "operations": (8, "times"),
            "bytes": (1, "times"),
            "time": (
                by_group[name[8]].median_us / by_group[name[1]].median_us,
                "times",
            ),
        },
    )
del steps

# %% [markdown]
# The other half of a step: a row of x and all weights.

# %% predict-gemv
FORMATS = {"bf16": BF16, "Q8_0": Q8_0, "Q4_1": Q4_1}
ct.table(
    "a product of one row with a matrix",
    {
        name: {
            "a block of 32 weights": f.block,
            "16384 x 16384": 16384 * f.row_bytes(16384) / 1e6,
            "operations per byte": 64 / f.block,
        }
        for name, f in FORMATS.items()
    },
    corner="weights",
    units={"a block of 32 weights": "bytes", "16384 x 16384": "MB"},
)

# %% block
d, m, number = 0.25, -1.5, 5  # of a block; and one of its 32 numbers
(as_bf16,) = to_float([0x4300 | number])  # the number under 0x43
ct.facts(
    "one weight of Q4_1, two ways",
    {
        "d q + m": d * number + m,
        "0x4305, as bf16": float(as_bf16),
        "d (q + 128) + (m - 128 d)": d * float(as_bf16) + (m - 128 * d),
    },
)

# %% gemv
side = 16384
x, y = random_bits(1, side), ct.empty((1, side), "float32")
bf16 = random_bits(side, side)
runs, nbytes = {}, {}
for name, format in FORMATS.items():
    if format is BF16:
        w = bf16
    else:
        w = ct.to_device(random_blocks(side, side, format))
    runs[f"gemv, {name}"] = partial(gemv.gemv, x, w, y)
    nbytes[f"gemv, {name}"] = w.nbytes
runs["PyTorch, bf16"] = decoding_rivals.matmul(x, bf16)
nbytes["PyTorch, bf16"] = bf16.nbytes
for name in FORMATS:  # a copy reads half of its bytes and writes the other
    nbytes[f"copy, bytes of {name}"] = nbytes[f"gemv, {name}"]
    half = nbytes[f"gemv, {name}"] // 4  # elements of two bytes
    runs[f"copy, bytes of {name}"] = ct.vendor.copy(
        ct.empty(half, "uint16"), random_bits(half)
    )
large = ct.bench(runs, bytes=nbytes, name="16384 x 16384, one row")

# %% gemv-facts
if not ct.tool.running():
    ct.facts(
        "times as fast as PyTorch's bf16",
        {
            name: large["PyTorch, bf16"].median_us
            / large[f"gemv, {name}"].median_us
            for name in FORMATS
            if "PyTorch, bf16" in [row.name for row in large.rows]
        }
        or {"PyTorch": "none"},
    )
del bf16, w, runs
