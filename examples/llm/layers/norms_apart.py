# ---
# jupyter:
#   cudatut:
#     title: {en: "RMSNorm, LayerNorm, RoPE, SwiGLU: norms of other rows", zh: "RMSNorm、LayerNorm、RoPE 与 SwiGLU：其他行的归一化"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       SHAPES:
#         - [[65536, 576], [16384, 4096], [4096, 8192], [8192, 5125]]
#         - [[64, 576], [8, 4096], [4, 8192], [4, 5125]]
# ---

# %% [markdown]
# Norms of ragged widths, and of rows that lie apart; what a variance in one pass
# loses; and their speed for rows of other lengths.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.norms import add_rms_norm, layer_norm, rms_norm
from cudatut.book.llm.layers import rivals
from cudatut.book.llm.layers.arrays import EPS, ROUNDED, random
from cudatut.book.llm.model import reference
from cudatut.book.numbers.bf16 import to_float
from cudatut.book.measure.spread import medians
from cudatut.book.rivals.torch_rival import rival

# %% check-norms
for n, dim in ((83, 768), (7, 769)):
    x, weight, bias = random((n, dim), 6), random(dim, 7), random(dim, 8)
    wide, w, b = (
        to_float(a.get()).astype("float64") for a in (x, weight, bias)
    )
    out = ct.empty((n, dim), "uint16")
    rms_norm(x, weight, out, EPS)
    want = reference.rms_norm(wide, w, EPS)
    name = f"{n} x {dim}"
    ct.check(to_float(out.get()), want, f"RMSNorm, {name}", ROUNDED, 1e-5)
    layer_norm(x, weight, bias, out, EPS)
    centered = wide - wide.mean(axis=1, keepdims=True)
    want = reference.rms_norm(centered, w, EPS) + b
    ct.check(to_float(out.get()), want, f"LayerNorm, {name}", ROUNDED, 1e-5)

# %% check-apart
# Rows of 576 in an array of 600 columns; the others are NaN, and stay so.
n, dim = 83, 576
host = np.full((n, 600), np.nan, "float32")
host[:, :dim] = ct.rng(9).standard_normal((n, dim))
whole = ct.to_device(host)
view, added = whole[:, :dim], random((n, dim), 10)
weight, out = random(dim, 11), ct.empty((n, dim), "uint16")
add_rms_norm(view, added, weight, out, EPS)
host[:, :dim] += to_float(added.get())
ct.check(whole.get(), host, name="x, rows apart", rtol=0, atol=0)
want = reference.rms_norm(
    host[:, :dim].astype("float64"), to_float(weight.get()), EPS
)
ct.check(to_float(out.get()), want, "norm, rows apart", ROUNDED, 1e-5)

# %% variance
noise = ct.rng(16).standard_normal(4096)
noise = (noise - noise.mean()) / noise.std()
table = {}
for mean in (0, 1000, 10000, 100000):
    row = (noise + mean).astype("float32")
    table[f"mean {mean}"] = {
        "one pass": float((row * row).mean() - row.mean() ** 2),
        "two passes": float(((row - row.mean()) ** 2).mean()),
    }
ct.table("variance of 4096 numbers in fp32: 1 is right", table, corner="row")

# %% shapes
SHAPES = ((65536, 576), (16384, 4096), (4096, 8192), (8192, 5125))


def beside_copy(n, dim):
    x, out = random((n, dim), 22), ct.empty((n, dim), "uint16")
    weight, bias = random(dim, 23), random(dim, 24)
    runs = {
        "copy": ct.vendor.copy(out, x),
        "rms_norm": lambda: rms_norm(x, weight, out, EPS),
        "PyTorch, RMSNorm": rival(rivals.rms_norm, x, weight),
        "layer_norm": lambda: layer_norm(x, weight, bias, out, EPS),
        "PyTorch, LayerNorm": rival(rivals.layer_norm, x, weight, bias),
    }
    us = medians(runs)
    return {
        n: us["copy"] / us[n] if {n, "copy"} <= us.keys() else None
        for n in list(runs)[1:]
    }


table = {f"{n} x {dim}": beside_copy(n, dim) for n, dim in SHAPES}
if not ct.tool.running():
    ct.table("speed in bf16, in times of that of a copy", table, corner="rows")
