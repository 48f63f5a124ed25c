# ---
# jupyter:
#   cudatut:
#     title: {en: "RMSNorm, LayerNorm, RoPE, SwiGLU: RoPE, its angles and its time", zh: "RMSNorm、LayerNorm、RoPE 与 SwiGLU：RoPE 的角度与时间"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       LONG: [16384, 16]
# ---

# %% [markdown]
# How exact the angles of RoPE have to be, and how long it takes.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.rope import rope_and_store, rope_table
from cudatut.book.llm.layers.arrays import copy_of, random
from cudatut.book.numbers.bf16 import to_bf16
from cudatut.book.rivals.torch_rival import rival

LONG = 16384  # tokens

# %% angles
frequencies = 1e5 ** (-np.arange(0, 64, 2) / 64)
table = {}
for p in (100, 1000, 8191):
    exact = np.cos(p * frequencies)
    angle = np.float32(p) * frequencies.astype("float32")
    table[f"position {p}"] = {
        "angles in fp32": np.abs(np.cos(angle.astype("float64")) - exact).max(),
        "angles in fp64": np.abs(
            rope_table(p + 1, 64, 1e5)[p, :, 0] - exact
        ).max(),
    }
ct.table("largest error of a cosine, theta = 100000", table, corner="position")

# %% bench-rope
n, heads, kv_heads, d = LONG, 32, 8, 128
qkv = random((n, (heads + 2 * kv_heads) * d), 20)
q = ct.empty((n, heads * d), "uint16")
keys, values = (ct.empty((n, kv_heads, d), "uint16") for _ in range(2))
positions = np.arange(n) % 8192
slots = ct.rng(21).permutation(n)
at, to = (ct.to_device(a.astype("int32")) for a in (positions, slots))
turns = rope_table(8192, d, 1e5)
table = ct.to_device(turns)
# What PyTorch gets: a cosine and a sine for each element of a head.
cos, sin = (
    ct.to_device(to_bf16(np.tile(turns[positions, :, i], 2)[:, None]))
    for i in (0, 1)
)
index = ct.to_device(slots.astype("int64"))


def one_operation_each(torch, qkv, cos, sin, index, keys, values):
    q, k, v = qkv.view(n, -1, d).split((heads, kv_heads, kv_heads), dim=1)

    def turned(x):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    def call():
        keys[index] = turned(k)
        values[index] = v
        return turned(q)

    return call


nbytes = 2 * qkv.nbytes + min(n, 8192) * d * 4
ct.bench(
    {
        "copy": copy_of(nbytes),
        "adjacent pairs": lambda: rope_and_store(
            qkv, at, to, table, keys, values, q
        ),
        "halves": lambda: rope_and_store(
            qkv, at, to, table, keys, values, q, True
        ),
        "PyTorch, separate": rival(
            one_operation_each, qkv, cos, sin, index, keys, values
        ),
    },
    bytes=nbytes,
    name=f"RoPE and store, {n} tokens",
)
