# ---
# jupyter:
#   cudatut:
#     title: {en: "RMSNorm, LayerNorm, RoPE, SwiGLU", zh: "RMSNorm、LayerNorm、RoPE 与 SwiGLU"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       WIDE: [[16384, 4096], [8, 4096]]
#       SMALL: [[65536, 576], [64, 576], [65536, 576]]
#       FFN: [[8192, 11008], [8, 11008], [8192, 11008]]
# ---

# %% [markdown]
# What stands between the products of a layer. First RMSNorm as a whole program.

# %% program
import numpy as np
import cudatut as ct

n, dim = 1000, 576  # tokens; numbers of a token in SmolLM2
x = ct.to_device(ct.rng(0).standard_normal((n, dim), dtype="float32"))
weight = ct.to_device(ct.rng(1).random(dim, dtype="float32"))
out = ct.empty((n, dim), "uint16")  # bf16: NumPy has no such type

# A warp has a row, and each lane 5 vectors of 4 floats.
kernel = ct.Kernel("llm/kernels/norms.cu", "rms_norm<float,float,4,32,5>")
kernel(
    x, dim, weight, out, dim, n, dim, 1e-5,
    grid=ct.cdiv(n * 32, 128), block=128,
)  # fmt: skip

wide = x.get().astype("float64")
mean_square = (wide**2).mean(axis=1, keepdims=True)
want = wide / np.sqrt(mean_square + 1e-5) * weight.get()
got = (out.get().astype("uint32") << 16).view("float32")
ct.check(got, want, rtol=1.01 * 2.0**-8, atol=1e-6)

# %% setup
from cudatut.book.llm.kernels.activation import swiglu
from cudatut.book.llm.kernels.norms import add_rms_norm, layer_norm, rms_norm
from cudatut.book.llm.kernels.rope import rope_and_store, rope_table
from cudatut.book.llm.layers import rivals
from cudatut.book.llm.layers.arrays import EPS, ROUNDED, copy_of, random
from cudatut.book.llm.layers.separate import add, two_steps
from cudatut.book.llm.model import reference
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.rivals.torch_rival import rival

WIDE = (16384, 4096)  # tokens, numbers of a token
SMALL = (65536, 576)
FFN = (8192, 11008)

# %% launch
# The profiler counts these launches.
small_x, small_added = random(SMALL, 2, "float32"), random(SMALL, 3)
small_weight, small_out = random(SMALL[1], 4), ct.empty(SMALL, "uint16")
add(small_x, small_added)
rms_norm(small_x, small_weight, small_out, EPS)
add_rms_norm(small_x, small_added, small_weight, small_out, EPS)
ffn_in, ffn_out = random((FFN[0], 2 * FFN[1]), 5), ct.empty(FFN, "uint16")
two_steps(ffn_in, ffn_out)
swiglu(ffn_in, ffn_out)

# %% [markdown]
# The bytes of a token in SmolLM2, with a kernel for each operation and fused.

# %% predict
dim, heads, kv_heads, d, ffn = 576, 9, 3, 64, 1536
FP32, BF16 = 4, 2
turned = (heads + kv_heads) * d  # numbers that RoPE turns
stored = 2 * kv_heads * d  # that go into the cache
# Bytes of each launch, read and written.
steps = {
    "RMSNorm": [
        dim * (FP32 + FP32),  # squares
        dim * FP32,  # their mean
        dim * (FP32 + FP32),  # times 1 / root
        dim * (FP32 + BF16),  # times weight
    ],
    "addition, RMSNorm": [dim * (2 * FP32 + BF16), dim * (FP32 + BF16)],
    "RoPE, store": [turned * 2 * BF16, stored * 2 * BF16],
    "SwiGLU": [ffn * 2 * BF16, ffn * 3 * BF16],
}
fused = {
    "RMSNorm": dim * (FP32 + BF16),
    "addition, RMSNorm": dim * (2 * FP32 + 2 * BF16),
    "RoPE, store": (heads + 2 * kv_heads) * d * 2 * BF16,
    "SwiGLU": ffn * 3 * BF16,
}
ct.table(
    "bytes of a token",
    {
        name: {
            "launches": len(each),
            "separate": sum(each),
            "fused": fused[name],
            "separate / fused": sum(each) / fused[name],
        }
        for name, each in steps.items()
    },
    corner="operation",
    units={"separate": "bytes", "fused": "bytes"},
)

# %% predict-layer
weights = dim * (heads + 2 * kv_heads) * d + heads * d * dim + 3 * dim * ffn
# Two norms, each behind an addition; attention is another chapter.
OF_LAYER = ("addition, RMSNorm", "addition, RMSNorm", "RoPE, store", "SwiGLU")
of_token = sum(fused[name] for name in OF_LAYER)
ct.facts(
    "a layer of SmolLM2",
    {
        "weights in bf16": (weights * BF16 / 1e6, "MB"),
        "between the products, a token": (of_token / 1e3, "kB"),
        "the same, separate": (
            sum(sum(steps[name]) for name in OF_LAYER) / 1e3,
            "kB",
        ),
        "tokens with as many bytes as the weights": weights * BF16 / of_token,
    },
)

# %% [markdown]
# Right before fast: ragged widths.

# %% check-swiglu
for n, ffn in ((83, 768), (5, 1537)):
    gate_up, act = random((n, 2 * ffn), 12), ct.empty((n, ffn), "uint16")
    swiglu(gate_up, act)
    gate, up = np.split(to_float(gate_up.get()).astype("float64"), 2, axis=1)
    want = reference.silu(gate) * up
    ct.check(to_float(act.get()), want, f"SwiGLU, {n} x {ffn}", ROUNDED, 1e-30)

# %% [markdown]
# What RoPE does to a score.

# %% relative
q, k = ct.rng(13).standard_normal((2, 1, 1, 64), dtype="float32")


def score(of_q, of_k):
    """Of a query and a key at two positions."""
    one = reference.rotate(q, np.array([of_q]), 1e5)
    other = reference.rotate(k, np.array([of_k]), 1e5)
    return float((one * other).sum())


ct.table(
    "score of one query and one key",
    {
        f"key at {p}": {
            f"query {away} further": score(p + away, p) for away in (0, 1, 100)
        }
        for p in (0, 1000, 8000)
    },
    corner="positions",
)

# %% [markdown]
# The two styles of RoPE, on the GPU.

# %% styles
n, heads, kv_heads, d = 40, 9, 3, 64
host = ct.rng(14).standard_normal((n, heads + 2 * kv_heads, d), dtype="float32")
positions = np.arange(n, dtype="int32")
# The new element 2i is the old i, the new 2i + 1 the old i + d / 2.
order = np.arange(d).reshape(2, d // 2).T.reshape(-1)
permuted = host.copy()
permuted[:, : heads + kv_heads] = host[:, : heads + kv_heads, order]


def turn(host, halves):
    """Queries and keys at their positions, and the values of the cache."""
    qkv = ct.to_device(to_bf16(host.reshape(n, -1)))
    at, table = ct.to_device(positions), ct.to_device(rope_table(n, d, 1e5))
    q = ct.empty((n, heads * d), "uint16")
    keys, values = (ct.empty((n, kv_heads, d), "uint16") for _ in range(2))
    rope_and_store(qkv, at, at, table, keys, values, q, halves)
    q = to_float(q.get()).reshape(n, heads, d).astype("float64")
    return q, to_float(keys.get()).astype("float64"), values.get()


def scores(q, k):
    """[heads, queries, keys]; 3 heads of queries share one of keys."""
    return np.einsum("nhd,mhd->hnm", q, k.repeat(heads // kv_heads, axis=1))


by_halves, by_pairs = turn(host, True), turn(permuted, False)
mixed_up = turn(host, False)
turned = host[:, : heads + kv_heads]
exact = reference.rotate(
    to_float(to_bf16(turned[..., order])).astype("float64"), positions, 1e5
)
ct.check(by_pairs[0], exact[:, :heads], "pairs, permuted", ROUNDED, 1e-5)
ct.check(by_halves[0][..., order], by_pairs[0], "halves", ROUNDED, 1e-5)
ct.check(
    by_pairs[2], to_bf16(host[:, heads + kv_heads :]), "values, as they were"
)

# %% mixed-up
right = scores(*by_halves[:2])
away = ~np.eye(n, dtype=bool)
ct.table(
    "largest difference to the scores of halves",
    {
        name: {
            "a token with itself": np.abs(one - right)[:, ~away].max(),
            "with another token": np.abs(one - right)[:, away].max(),
        }
        for name, one in (
            ("pairs, rows permuted", scores(*by_pairs[:2])),
            ("pairs, rows as they were", scores(*mixed_up[:2])),
        )
    },
    corner="RoPE",
)

# %% [markdown]
# Where numbers are rounded.

# %% rounding
n, ffn = 64, 1536
gate_up, once = random((n, 2 * ffn), 15), ct.empty((n, ffn), "uint16")
twice = ct.empty((n, ffn), "uint16")
swiglu(gate_up, once)
two_steps(gate_up, twice)
gate, up = np.split(to_float(gate_up.get()).astype("float64"), 2, axis=1)
exact = reference.silu(gate) * up
ct.table(
    "results of SwiGLU in bf16",
    {
        name: {
            "not the nearest": 100 * float((found != to_bf16(exact)).mean()),
            "largest error": 100
            * float(np.abs(to_float(found) / exact - 1).max()),
        }
        for name, found in (
            ("rounded once", once.get()),
            ("rounded twice", twice.get()),
        )
    },
    corner="kernel",
    units={"not the nearest": "%", "largest error": "%"},
)

# %% [markdown]
# The counters, and the clock.

# %% count
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
KERNELS = {
    "add_rows": SMALL[0] * SMALL[1] * 10,
    "rms_norm": SMALL[0] * SMALL[1] * 6,
    "add_rms_norm": SMALL[0] * SMALL[1] * 12,
    "silu_rows": FFN[0] * FFN[1] * 4,
    "multiply_rows": FFN[0] * FFN[1] * 6,
    "swiglu": FFN[0] * FFN[1] * 6,
}
# The first launch is that of the program.
counted = ct.profile_launches(
    "llm/layers",
    kernel=f"regex:^({'|'.join(KERNELS)})$",
    metrics=[READ, WRITTEN],
    launches=len(KERNELS),
    skip=1,
)
table = {
    name: {
        "predicted": nbytes / 1e6,
        "read from memory": got[READ] / 1e6,
        "written to memory": got[WRITTEN] / 1e6,
    }
    for (name, nbytes), got in zip(KERNELS.items(), counted)
}
if table:
    units = dict.fromkeys(next(iter(table.values())), "MB")
    ct.table("bytes of the memory", table, corner="kernel", units=units)

# %% bench
n, dim = WIDE
x, out = random(WIDE, 17), ct.empty(WIDE, "uint16")
weight, bias = random(dim, 18), random(dim, 19)

ct.bench(
    {
        "copy": ct.vendor.copy(out, x),
        "rms_norm": lambda: rms_norm(x, weight, out, EPS),
        "layer_norm": lambda: layer_norm(x, weight, bias, out, EPS),
        "PyTorch, RMSNorm": rival(rivals.rms_norm, x, weight),
        "PyTorch, LayerNorm": rival(rivals.layer_norm, x, weight, bias),
    },
    bytes=2 * x.nbytes,
    name="{} x {}, bf16".format(*WIDE),
)

# %% bench-add
n, dim = SMALL
x, added, weight, normed = small_x, small_added, small_weight, small_out


def one_by_one():
    add(x, added)
    rms_norm(x, weight, normed, EPS)


def add_rms(torch, x, added, weight):
    weight = weight.float()

    def call():
        x.add_(added)
        y = torch.nn.functional.rms_norm(x, (dim,), weight, EPS)
        return y.to(torch.bfloat16)

    return call


add_times = ct.bench(
    {
        "copy": copy_of(12 * x.size),
        "addition, then rms_norm": one_by_one,
        "add_rms_norm": lambda: add_rms_norm(x, added, weight, normed, EPS),
        "PyTorch": rival(add_rms, x, added, weight),
    },
    bytes=12 * x.size,
    name="addition and RMSNorm, {} x {}".format(*SMALL),
)

# %% bench-swiglu
n, ffn = FFN
gate_up, act = ffn_in, ffn_out


def silu_times(torch, x):
    gate, up = x[:, :ffn], x[:, ffn:]
    return lambda: torch.nn.functional.silu(gate) * up


swiglu_times = ct.bench(
    {
        "copy": copy_of(6 * act.size),
        "silu, then multiply": lambda: two_steps(gate_up, act),
        "swiglu": lambda: swiglu(gate_up, act),
        "PyTorch": rival(silu_times, gate_up),
    },
    bytes=6 * act.size,
    name="SwiGLU, {} x {}".format(*FFN),
)

# %% compare
ct.table(
    "time, separate / fused",
    {
        name: {
            "predicted": sum(steps[name]) / fused[name],
            "measured": times[slow].median_us / times[fast].median_us,
        }
        for name, times, slow, fast in (
            (
                "addition, RMSNorm",
                add_times,
                "addition, then rms_norm",
                "add_rms_norm",
            ),
            ("SwiGLU", swiglu_times, "silu, then multiply", "swiglu"),
        )
    },
    corner="operation",
)
