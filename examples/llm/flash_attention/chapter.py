# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention: the kernel", zh: "FlashAttention：实现"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 240
#     sizes:
#       tokens: [8192, 256]
#       SHAPES: [[113, 203, 1, 239, 127, 513, 1023, 1024, 2048, 2048], [65, 97]]
#       side: [4096, 256]
# ---

# %% [markdown]
# The tensor cores, then attention on them. First one product by one warp.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16

a = to_bf16(ct.rng(0).standard_normal((16, 16)))
b = to_bf16(ct.rng(1).standard_normal((8, 16)))  # a row is a column of B
d = ct.empty((16, 8), "float32")

kernel = ct.Kernel("llm/flash_attention/first_mma.cu", "first_mma")
kernel(ct.to_device(a), ct.to_device(b), d, grid=1, block=32)

ct.check(d, to_float(a) @ to_float(b).T, atol=1e-4, name="16 x 8 results")

# %% use
# Attention: 8 heads of queries share 2 of keys and values.
from cudatut.book.llm.kernels.attention import flash

rng = ct.rng(2)
q = to_bf16(rng.standard_normal((1, 300, 8, 64)))
keys, values = (to_bf16(rng.standard_normal((1, 500, 2, 64))) for _ in "kv")
out = ct.empty((1, 300, 8, 64), "uint16")
on_gpu = [ct.to_device(x) for x in (q, keys, values)]
flash.contiguous(*on_gpu, out, causal=True)

# %% lanes
# Which lane holds what of A: row by row, two elements in a word.
rows, columns = np.indices((16, 16))
lane = rows % 8 * 4 + columns % 8 // 2
word = rows // 8 + columns // 8 * 2
ct.table(
    "where elements of A are",
    {
        f"row {r}, column {c}": {
            "lane": lane[r, c],
            "word": f"a[{word[r, c]}]",
            "half": "upper" if c % 2 else "lower",
        }
        for r, c in ((0, 0), (0, 3), (5, 10), (13, 15))
    },
    corner="element",
)


# %% [markdown]
# Predictions: passes of ldmatrix, work of a step, cycles of a tile.


# %% swizzle
def place(d, row, chunk, swizzled=True):
    """Byte at which 16 bytes of a row of d elements stand, as `Layout` says."""
    chunks = d // 8
    group = 8 if chunks % 8 == 0 else 4 if chunks % 4 == 0 else 2
    moved = chunk ^ row // (8 // group) % group if swizzled else chunk
    return row * d * 2 + moved * 16


def passes(d, swizzled):
    """Of ldmatrix for 8 rows of one chunk: two rows in the same 4 banks wait
    for each other. The worst of all chunks."""
    return max(
        max(np.bincount([place(d, row, chunk, swizzled) // 16 % 8
                         for row in range(first, first + 8)]))
        for chunk in range(d // 8)
        for first in (0, 8)
    )  # fmt: skip


ct.table(
    "passes of ldmatrix for 8 rows",
    {
        f"D = {d}": {
            "as they lie": passes(d, False),
            "swizzled": passes(d, True),
        }
        for d in (32, 64, 80, 96, 128, 256)
    },
    corner="head",
)
for d in (32, 64, 80, 96, 128, 256):  # no two pieces in one place
    places = {place(d, r, c) for r in range(64) for c in range(d // 8)}
    assert len(places) == 64 * d // 8

# %% predict
# A warp has 32 queries and takes 64 keys at a time. Each mma of 16 x 8 x 16
# does 4096 FLOPs. ldmatrix brings 16 x 16 elements: queries anew for each step
# if they do not stay in registers.
WARP_QUERIES, KEYS = 32, 64
work = {}
for d in (64, 128):
    products = 2 * (2 * WARP_QUERIES * KEYS * d)
    loads = 2 * KEYS * d // 256 + (WARP_QUERIES * d // 256 if d == 128 else 0)
    work[f"D = {d}"] = {
        "mma": products // 4096,
        "ldmatrix": loads,
        "exponentials": WARP_QUERIES * KEYS // 32,
    }
ct.table("instructions of a warp in one step", work, corner="head")

# %% cycles
# Of an SM of the H100 for 64 x 64 scores: 4096 FLOPs in bf16 and 16
# exponentials per cycle.
ct.table(
    "cycles of an SM for 64 x 64 scores",
    {
        f"D = {d}": {
            "both products": 4 * d * 64 * 64 / 4096,
            "exponentials": 64 * 64 / 16,
        }
        for d in (64, 128, 256)
    },
    corner="head",
)

# %% [markdown]
# Lengths and heads of other projects' tests, against float64. Weights and
# results are rounded to bf16: an error of 2^-8 of the mean of |values|, and of
# the result.

# %% check
from cudatut.book.llm.kernels.attention import exact


def compare(q_len, k_len, heads, kv_heads, d, **how):
    rng = ct.rng(q_len + k_len + d)
    q = to_bf16(rng.standard_normal((1, q_len, heads, d)))
    keys, values = (
        to_bf16(rng.standard_normal((1, k_len, kv_heads, d))) for _ in "kv"
    )
    out = ct.empty(q.shape, "uint16")
    on_gpu = [ct.to_device(x) for x in (q, keys, values)]
    flash.contiguous(*on_gpu, out, **how)
    expected, mean = exact.attention(q[0], keys[0], values[0], **how)
    label = f"D = {d}, {q_len} queries, {k_len} keys"
    options = ", ".join(
        name if value is True else f"{name} {value:.0f}"
        for name, value in how.items()
        if value
    )
    ct.check(
        to_float(out.get()[0]),
        expected,
        name=f"{label}, {options}" if options else label,
        **exact.bounds(mean),
    )


names = [
    f"flash<{','.join(map(str, flash.tile_for(d)))},false,true,{softcap}>"
    for d in (64, 128)
    for softcap in ("false", "true")
]
ct.compile_ahead([("llm/kernels/attention/flash.cu", name) for name in names])
SHAPES = (113, 203, 1, 239, 127, 513, 1023, 1024, 2048, 2048)
for q_len, k_len in zip(SHAPES[::2], SHAPES[1::2]):
    for d in (64, 128):
        for causal in (False, True):
            compare(q_len, k_len, 6, 2, d, causal=causal)
compare(300, 417, 4, 2, 64, causal=True, window=37)
compare(300, 417, 4, 2, 128, causal=True, window=128, softcap=15.0)
compare(300, 417, 4, 2, 64, softcap=50.0)

# %% [markdown]
# Timed beside PyTorch's FlashAttention-2, cuDNN and FlashAttention-3, at 8192
# tokens.

# %% bench
import functools

from cudatut.book.rivals import fa3
from cudatut.book.rivals import sdpa

tokens = 8192
BATCH = 2
contests = {}
for d, heads in ((128, 16), (64, 32)):
    rng = ct.rng(d)
    q, keys, values = (
        ct.to_device(
            to_bf16(rng.standard_normal((BATCH, tokens, heads, d), "float32"))
        )
        for _ in range(3)
    )
    out = ct.empty(q.shape, "uint16")
    for causal in (False, True):
        mask = "causal" if causal else "no mask"
        flops = 4 * BATCH * heads * d * tokens * tokens
        contests[f"D = {d}, {mask}"] = (
            ct.bench(
                {
                    "FlashAttention-2": sdpa.rival(
                        "FLASH_ATTENTION", q, keys, values, causal
                    ),
                    "cuDNN": sdpa.rival(
                        "CUDNN_ATTENTION", q, keys, values, causal
                    ),
                    "FlashAttention-3": fa3.rival(q, keys, values, causal),
                    "flash.cu": functools.partial(
                        flash.contiguous, q, keys, values, out, causal=causal
                    ),
                },
                name=f"{heads} heads of {d}, 8192 tokens, {mask}",
            ),
            flops // (2 if causal else 1),
        )

# %% speeds
NAMES = ("FlashAttention-2", "cuDNN", "FlashAttention-3", "flash.cu")
speeds = {}
for name, (bench, flops) in contests.items():
    rates = {row.name: flops / row.median_us / 1e6 for row in bench.rows}
    speeds[name] = {contestant: rates.get(contestant) for contestant in NAMES}
    if "FlashAttention-2" in rates:
        share = rates["flash.cu"] / rates["FlashAttention-2"]
        speeds[name]["flash.cu / FlashAttention-2"] = share
units = dict.fromkeys(NAMES, "TFLOP/s")
ct.table("attention, 8192 tokens, bf16", speeds, corner="heads", units=units)

# %% linear
# The product of a linear layer, y = x W^T, beside cuBLAS.
from cudatut.book.rivals import torch_rival
from cudatut.book.llm.kernels.linear import linear

side = 4096
rng = ct.rng(4)
x, weights = (
    ct.to_device(to_bf16(rng.standard_normal((side, side), "float32")))
    for _ in "xW"
)
y = ct.empty((side, side), "uint16")
linear_bench = ct.bench(
    {
        "cuBLAS, through PyTorch": torch_rival.rival(
            lambda torch, x, w: lambda: torch.matmul(x, w.T), x, weights
        ),
        "linear.cu": lambda: linear(x, weights, y),
    },
    name="bf16, 4096 x 4096 x 4096",
)
ct.facts(
    "rates of the product",
    {
        row.name: (2 * side**3 / row.median_us / 1e6, "TFLOP/s")
        for row in linear_bench.rows
    },
)

# %% [markdown]
# The main loop in machine code, and what a block needs.

# %% loop
from cudatut.book.measure import loops


def kernel_of(d):
    return flash.instance(flash.tile_for(d), False, True, False)


def main_loop(code):
    """The longest loop that holds products on the tensor cores."""
    found = loops.loops_of(code)
    return max(
        (loop for loop in found if any(i.op == "HMMA" for i in loop)), key=len
    )


counted = {}
for d in (64, 128):
    loop = main_loop(loops.disassemble(kernel_of(d)))
    exponentials = sum(i.name.startswith("MUFU.EX2") for i in loop)
    counted[f"D = {d}"] = {
        "HMMA": sum(i.op == "HMMA" for i in loop),
        "LDSM": sum(i.op == "LDSM" for i in loop),
        "MUFU.EX2": exponentials,
    }
ct.table("machine code of one step", counted, corner="head")

# %% resources
for d in (64, 128):
    tile = flash.tile_for(d)
    ct.show(kernel_of(d).resources(32 * tile.warps, tile.shared(False)))

# %% [markdown]
# Does the base have to be the largest score? Weights 2^(s - base), rounded to
# bf16, from bases that are too low or too high by so many powers of two.


# %% base
def rounded(x):
    """To bf16 and back."""
    return to_float(to_bf16(x)).astype("float64")


s = 3 * ct.rng(5).standard_normal((256, 512))  # scores, in powers of two
v = rounded(ct.rng(6).standard_normal((512, 64)))
in_float64 = np.exp2(s - s.max(axis=1, keepdims=True))
in_float64 = in_float64 @ v / in_float64.sum(axis=1, keepdims=True)
errors = {}
for off in (0, -4, -8, -60, -130, 60, 150):
    base = s.max(axis=1, keepdims=True) + off
    with np.errstate(all="ignore"):
        p = np.exp2(s - base).astype("float32")
        p[p < 2.0**-126] = 0  # the GPU's exponential flushes these
        weights = rounded(np.where(np.isinf(p), 0, p))
        got = weights @ v / p.astype("float64").sum(axis=1, keepdims=True)
        bad = not np.isfinite(got).all() or np.isinf(p).any()
    side_of = "above" if off > 0 else "below"
    name = f"{abs(off)} {side_of}" if off else "the largest score"
    errors[name] = {
        "largest weight": f"2^{-off}",
        "error": None if bad else float(abs(got - in_float64).max()),
    }
ct.table("results from another base", errors, corner="base")

# %% rises
# How often must sums be multiplied, if the base follows every larger score, and
# if it follows only those that are larger by more than 8? A warp multiplies if
# one of its 32 queries has to.
tops = 1.5 * ct.rng(9).standard_normal((1024, 8192 // 64, 64)).max(axis=2)


def shares(slack):
    base, up = tops[:, 0].copy(), []
    for tile in range(1, tops.shape[1]):
        up.append(tops[:, tile] > base + slack)
        base[up[-1]] = tops[up[-1], tile]
    up = np.array(up)
    return 100 * up.mean(), 100 * up.reshape(len(up), -1, 32).any(axis=2).mean()


ct.table(
    "steps in which sums are multiplied, 8192 keys",
    {
        "the largest score": dict(zip(("a query", "a warp"), shares(0))),
        "up to 8 less": dict(zip(("a query", "a warp"), shares(8))),
    },
    corner="base",
    units={"a query": "%", "a warp": "%"},
)
