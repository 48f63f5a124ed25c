# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention: the principle", zh: "FlashAttention：原理"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       counted: [2048, 128, 2048]
#       heads: [16, 2, 16]
#       n: [4096, 192]
# ---

# %% [markdown]
# Attention tile by tile: one query by hand, then in NumPy in two orders of
# loops, then a kernel in fp32. First the kernel as a whole program.

# %% program
import numpy as np

import cudatut as ct

heads, n, d = 4, 1000, 64
rng = ct.rng(0)
q, k, v = (
    rng.standard_normal((heads, n, d), dtype="float32") for _ in range(3)
)
on_gpu = [ct.to_device(x) for x in (q, k, v)]
out = ct.empty((heads, n, d), "float32")

kernel = ct.Kernel("llm/flash_principle/flash_principle.cu", "flash_principle")
grid = ct.cdiv(n, 64), heads
kernel(*on_gpu, out, n, d**-0.5, 1, grid=grid, block=256)

scores = q.astype("float64") @ k.swapaxes(1, 2) * d**-0.5
scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf  # later keys
weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
weights /= weights.sum(axis=-1, keepdims=True)
ct.check(out, weights @ v, atol=2e-5, name="4 heads, 1000 tokens, causal")

# %% counted
# The launch that the profiler counts, later on: the second of this kernel.
counted = 2048
heads = 16
alike = [ct.to_device(ct.rng(i).standard_normal((heads, counted, d), "float32"))
         for i in range(3)]  # fmt: skip
result = ct.empty((heads, counted, d), "float32")
grid = ct.cdiv(counted, 64), heads
kernel(*alike, result, counted, d**-0.5, 0, grid=grid, block=256)

# %% [markdown]
# One query, four keys, two tiles. Scores are given in units of ln 2, so that
# every exponential is a power of two.

# %% by-hand
scores, values = [1, 1, 3, 2], [4, 8, 2, 6]
base, total, o, steps = -np.inf, 0.0, 0.0, {}
for tile in (slice(0, 2), slice(2, 4)):
    s, x = np.array(scores[tile]), np.array(values[tile])
    most = max(base, s.max())
    factor = 2.0 ** (base - most)  # what the sums so far are worth
    p = 2.0 ** (s - most)
    total, o, base = total * factor + p.sum(), o * factor + p @ x, most
    steps[f"after tile {len(steps) + 1}"] = {
        "base": base, "factor": factor, "sum": total, "o": o,
        "o / sum": o / total,
    }  # fmt: skip
ct.table("one query, two tiles", steps, corner="state")
whole = 2.0 ** (np.array(scores) - max(scores))
ct.check(o / total, whole @ values / whole.sum(), name="by hand")

# %% [markdown]
# The same for tiles of queries. `moved` counts the elements that pass between
# global memory and the SM.


# %% outer-queries
def queries_outside(q, k, v, bm, bn):
    n, d = q.shape
    out, moved = np.empty_like(q), 0
    for i in range(0, n, bm):
        rows = q[i : i + bm]
        moved += rows.size
        base, total = np.full(len(rows), -np.inf), np.zeros(len(rows))
        o = np.zeros_like(rows)
        for j in range(0, n, bn):
            keys, values = k[j : j + bn], v[j : j + bn]
            moved += keys.size + values.size
            s = rows @ keys.T * d**-0.5
            most = np.maximum(base, s.max(axis=1))
            factor, p = np.exp(base - most), np.exp(s - most[:, None])
            total = total * factor + p.sum(axis=1)
            o = o * factor[:, None] + p @ values
            base = most
        out[i : i + bm] = o / total[:, None]
        moved += o.size
    return out, moved


# %% outer-keys
def keys_outside(q, k, v, bm, bn):
    n, d = q.shape
    out, moved = np.zeros_like(q), 0
    base, total = np.full(n, -np.inf), np.zeros(n)
    for j in range(0, n, bn):
        keys, values = k[j : j + bn], v[j : j + bn]
        moved += keys.size + values.size
        for i in range(0, n, bm):
            at = slice(i, i + bm)
            rows = q[at]
            moved += rows.size + out[at].size + base[at].size + total[at].size
            s = rows @ keys.T * d**-0.5
            most = np.maximum(base[at], s.max(axis=1))
            factor, p = np.exp(base[at] - most), np.exp(s - most[:, None])
            before = total[at] * factor
            total[at] = before + p.sum(axis=1)
            out[at] = before[:, None] * out[at] + p @ values
            out[at] /= total[at][:, None]
            base[at] = most
            moved += out[at].size + base[at].size + total[at].size
    return out, moved


# %% check-orders
def as_written(q, k, v):
    s = q @ k.T * q.shape[1] ** -0.5
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p @ v, q.size + k.size + v.size + 4 * s.size + q.size


a, b, c = ct.rng(7).standard_normal((3, 301, 64))
expected, _ = as_written(a, b, c)
for bm, bn in ((64, 32), (7, 100), (301, 1)):
    for order in (queries_outside, keys_outside):
        got, _ = order(a, b, c, bm, bn)
        label = order.__name__.replace("_", " ")
        ct.check(got, expected, name=f"{label}, tiles of {bm} x {bn}")


# %% [markdown]
# Bytes of one head in fp32, by formulas, which are compared with the loops.


# %% predict
def elements(n, d, bm, bn):
    """That move, for S x S scores in memory, and in both orders of loops."""
    return {
        "scores in memory": 4 * n * d + 4 * n * n,
        "K, V outside": 2 * n * d + ct.cdiv(n, bn) * (3 * n * d + 4 * n),
        "Q outside": 2 * n * d + ct.cdiv(n, bm) * 2 * n * d,
    }


a, b, c = ct.rng(8).standard_normal((3, 200, 16))
counts = [f(a, b, c, 48, 32)[1] for f in (keys_outside, queries_outside)]
ct.check(
    np.array([as_written(a, b, c)[1], *counts]),
    np.array([*elements(200, 16, 48, 32).values()]),
    name="elements that the loops moved",
)
S, MB, WRITTEN = 8192, 4 / 1e6, "scores in memory"
sizes = {}
for kilobytes in (16, 48, 100, 227):
    rows = kilobytes * 1024 // 4 // d  # of d floats that fit
    # K, V outside: four tiles of equal size, of Q, K, V, O, and no more than d
    # queries. Q outside: 16 keys, 16 values, and equal tiles of Q and O.
    outside = elements(S, d, min(rows // 4, d), rows // 4)["K, V outside"]
    inside = elements(S, d, (rows - 2 * 16) // 2, 16)["Q outside"]
    sizes[f"{kilobytes} KB"] = {
        WRITTEN: elements(S, d, 1, 1)[WRITTEN] * MB,
        "K, V outside": outside * MB,
        "Q outside": inside * MB,
    }
ct.table(
    "bytes of a head, S = 8192, D = 64, fp32",
    sizes,
    corner="shared memory",
    units=dict.fromkeys((WRITTEN, "K, V outside", "Q outside"), "MB"),
)
ours = elements(S, d, 64, 32)
ct.facts(
    "the kernel of this chapter, S = 8192, a head",
    {
        WRITTEN: (ours[WRITTEN] * MB, "MB"),
        "Q outside, 64 queries": (ours["Q outside"] * MB, "MB"),
        "times fewer bytes": (ours[WRITTEN] / ours["Q outside"], "×"),
        "scores in memory, written": (S * S * MB, "MB"),
        "FLOPs, scores in memory": (4 * S * S * d / 1e9, "GFLOP"),
        "FLOPs, tiles": (4 * S * S * d / 1e9, "GFLOP"),
        "multiplications to rescale": (
            100 * ct.cdiv(S, 32) * S * (d + 1) / (4 * S * S * d),
            "%",
        ),
    },
)

# %% [markdown]
# The kernel: right for lengths that fit no tile, then timed.


# %% check
def reference(q, k, v, causal):
    q, k, v = (x.astype("float64") for x in (q, k, v))
    s = q @ k.swapaxes(1, 2) * d**-0.5
    if causal:
        s[:, np.triu(np.ones(s.shape[1:], bool), 1)] = -np.inf
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p @ v / p.sum(axis=-1, keepdims=True)


for length in (1, 31, 33, 63, 64, 65, 257, 777):
    rng = ct.rng(length)
    q, k, v = (rng.standard_normal((3, length, d), "float32") for _ in range(3))
    q *= 3  # so that some keys weigh much more than others
    on_gpu = [ct.to_device(x) for x in (q, k, v)]
    for causal in (0, 1):
        out = ct.empty((3, length, d), "float32")
        grid = ct.cdiv(length, 64), 3
        kernel(*on_gpu, out, length, d**-0.5, causal, grid=grid, block=256)
        ct.check(
            out,
            reference(q, k, v, causal),
            atol=5e-5,
            name=f"n = {length}, {'causal' if causal else 'no mask'}",
        )


# %% bench
from functools import partial

from cudatut.book.llm.attention import steps
from cudatut.book.numbers.bf16 import to_bf16
from cudatut.book.rivals import sdpa

HERE, MATH = "three launches, attention.cu", "S x S in memory, PyTorch"
TILED = "tiles, flash_principle.cu"
n = 4096
rng = ct.rng(2)
q, k, v = (
    ct.to_device(rng.standard_normal((heads, n, d), "float32"))
    for _ in range(3)
)
out = ct.empty((heads, n, d), "float32")
# The three launches of the last chapter take their arrays in bf16, and multiply
# in fp32 as we do; how large the numbers are makes no difference.
halves = [ct.to_device(to_bf16(x.get())) for x in (q, k, v)]
half_out, room = ct.empty(out.shape, "uint16"), steps.Room(heads, n, n)


def tiled(causal):
    grid = ct.cdiv(n, 64), heads
    kernel(q, k, v, out, n, d**-0.5, int(causal), grid=grid, block=256)


def contest(causal):
    return {
        HERE: partial(steps.attention, *halves, half_out, room, causal),
        MATH: sdpa.rival("MATH", q, k, v, causal),
        "tiles, PyTorch": sdpa.rival("EFFICIENT_ATTENTION", q, k, v, causal),
        TILED: partial(tiled, causal),
    }


flops = 4 * heads * n * n * d
full = ct.bench(
    contest(False),
    flops=flops,
    name="16 heads of 64, 4096 tokens, fp32, no mask",
)
causal = ct.bench(
    contest(True),
    flops=flops // 2,
    name="16 heads of 64, 4096 tokens, fp32, causal",
)

# %% gain
ct.table(
    "tiles beside scores in memory",
    {
        written: {
            name: bench[written].median_us / bench[TILED].median_us
            for name, bench in (("no mask", full), ("causal", causal))
        }
        for written in (HERE, MATH)
        if written in [row.name for row in full.rows]
    },
    corner="times as fast as",
)

# %% memory
# Beyond inputs, result included; of PyTorch, what it allocates for one call.
used = {
    HERE: ((room.nbytes + half_out.nbytes) / 1e6, "MB"),
    TILED: (out.nbytes / 1e6, "MB"),
}
if MATH in [row.name for row in full.rows]:
    import torch

    backends = {MATH: "MATH", "tiles, PyTorch": "EFFICIENT_ATTENTION"}
    for name, backend in backends.items():
        run = sdpa.rival(backend, q, k, v)
        run()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
        used[name] = (peak / 1e6, "MB")
ct.facts("memory of a call, beside q, k and v", used)

# %% [markdown]
# Counted by the hardware: bytes, and floating-point operations.

# %% count
FROM_MEMORY = "dram__bytes_read.sum"
FROM_L2 = "lts__t_sectors_srcunit_tex_op_read.sum"
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
FMUL = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"
FADD = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
# The first launch is that of the program.
(got,) = ct.profile_launches(
    "llm/flash_principle",
    kernel="flash_principle",
    metrics=[FROM_MEMORY, FROM_L2, FFMA, FMUL, FADD],
    launches=1,
    skip=1,
) or [None]
if got:
    moved = elements(counted, d, 64, 32)["Q outside"] - counted * d
    once = 3 * heads * counted * d * 4
    scores = 2 * heads * counted * counted * 4
    ct.table(
        "bytes that were read, 16 heads, 2048 tokens",
        {
            "through L2": {
                "computed": heads * moved * 4 / 1e6,
                "counted": 32 * got[FROM_L2] / 1e6,
            },
            "from memory": {
                "computed": once / 1e6,
                "counted": got[FROM_MEMORY] / 1e6,
            },
            "from memory, scores in memory": {
                "computed": (once + scores) / 1e6,
                "counted": None,
            },
        },
        corner="read",
        units={"computed": "MB", "counted": "MB"},
    )

# %% flops
# Two products of S x S x D: each FMA counts as two operations.
if got:
    products = 4 * heads * counted * counted * d
    others = got[FMUL] + got[FADD] + 2 * got[FFMA] - products
    ct.facts(
        "floating-point operations, 16 heads, 2048 tokens",
        {
            "both products, computed": (products / 1e9, "GFLOP"),
            "FMAs of the kernel, counted": (2 * got[FFMA] / 1e9, "GFLOP"),
            "all of the kernel, counted": (
                (products + others) / 1e9,
                "GFLOP",
            ),
            "more than the two products": (100 * others / products, "%"),
        },
    )
    assert 2 * got[FFMA] >= products  # not one FMA less
