# ---
# jupyter:
#   cudatut:
#     title: {en: "Decoding: solutions", zh: "解码：参考答案"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# The merge of two parts of the keys, and weights out of 20 bytes.

# %% given-1
import numpy as np


def part(scores, values):
    """Attention over some keys: scores [rows, n], values [n, d]."""
    if not scores.shape[1]:
        rows, d = len(scores), values.shape[1]
        return np.full((rows, d), np.nan), np.full(rows, -np.inf)
    most = scores.max(axis=1, keepdims=True)
    p = np.exp(scores - most)
    total = p.sum(axis=1, keepdims=True)
    return p / total @ values, (most + np.log(total))[:, 0]


# %% solution-1
def merge(out_a, lse_a, out_b, lse_b):
    """Attention over both parts: out and lse."""
    most = np.maximum(lse_a, lse_b)
    base = np.where(np.isneginf(most), 0, most)  # -inf minus -inf is NaN
    sums, out = np.zeros(len(lse_a)), np.zeros(out_a.shape)
    for part_out, part_lse in ((out_a, lse_a), (out_b, lse_b)):
        weight = np.exp(part_lse - base)
        there = weight > 0
        out[there] += weight[there, None] * part_out[there]
        sums += weight
    with np.errstate(divide="ignore"):
        lse = base + np.log(sums)
    return out / np.where(sums == 0, 1, sums)[:, None], lse


# %% check-1
import cudatut as ct

rng = ct.rng(0)
scores, values = rng.standard_normal((4, 10)) * 3, rng.standard_normal((10, 8))
for offset in (0, 1000):
    whole = part(scores + offset, values)
    for cut in (0, 3, 10):
        a = part(scores[:, :cut] + offset, values[:cut])
        b = part(scores[:, cut:] + offset, values[cut:])
        merged = merge(*a, *b)
        label = f"merged, {cut} keys in the first part, scores + {offset}"
        ct.check(merged[0], whole[0], name=label, rtol=1e-9)
        ct.check(merged[1], whole[1], name=f"LSE, {label}", rtol=1e-9)
none = part(scores[:, :0], values[:0])
out, lse = merge(*none, *none)
ct.check(out, np.zeros((4, 8)), name="merged, no keys at all")
ct.check(lse, np.full(4, -np.inf), name="LSE, no keys at all")

# %% given-2
import numpy as np


def pack(d, m, q):
    """Q4_1 blocks from scales and minima [rows, n], numbers [rows, n, 32]."""
    halves = (q[..., :16] | q[..., 16:] << 4).astype("uint8")
    heads = [x.astype("float16")[..., None].view("uint8") for x in (d, m)]
    return np.concatenate([*heads, halves], axis=-1).reshape(len(q), -1)


# %% solution-2
def unpack(blocks):
    """float32 weights of rows of Q4_1 blocks."""
    rows, length = blocks.shape
    blocks = blocks.reshape(rows, length // 20, 20)
    both = np.ascontiguousarray(blocks[..., :4]).view("float16")
    d, m = both.astype("float32")[..., None].transpose(2, 0, 1, 3)
    q = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], axis=-1)
    return (d * q + m).reshape(rows, -1)


# %% check-2
import cudatut as ct

rng = ct.rng(0)
for rows, n in ((1, 1), (3, 2), (7, 18)):
    d = rng.uniform(0.01, 1, (rows, n)).astype("float16")
    m = rng.uniform(-2, 0, (rows, n)).astype("float16")
    q = rng.integers(0, 16, (rows, n, 32), dtype="uint8")
    scales, minima = (x.astype("float32")[..., None] for x in (d, m))
    weights = (scales * q + minima).reshape(rows, -1)
    found = unpack(pack(d, m, q))
    ct.check(found, weights, name=f"weights of {rows} x {32 * n}")
