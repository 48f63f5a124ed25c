# ---
# jupyter:
#   cudatut:
#     title: {en: "Decoding and the KV cache: its products", zh: "解码与 KV 缓存：其中的乘法"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
# ---

# %% [markdown]
# Products of one row with quantized weights: right for any shape, and how fast
# for the matrices of SmolLM2.

# %% setup
from functools import partial

import numpy as np

import cudatut as ct
from cudatut.book.llm.decoding import rivals as decoding_rivals
from cudatut.book.llm.decoding.steps import random_bits, random_blocks
from cudatut.book.llm.kernels import gemv
from cudatut.book.llm.kernels.gemv import Q4_1, Q8_0
from cudatut.book.numbers.bf16 import to_bf16, to_float

# %% check-gemv
from gguf import GGMLQuantizationType, quants


def with_room(w):
    """w on the GPU and 16 bytes behind it: a sanitizer takes a copy for one of
    16 bytes, even where fewer are asked for."""
    room = np.append(w.reshape(-1), np.zeros(16, "uint8"))
    return ct.to_device(room)[: w.size].reshape(w.shape)


for format, kind in (
    (Q4_1, GGMLQuantizationType.Q4_1),
    (Q8_0, GGMLQuantizationType.Q8_0),
):
    for n, outputs, inputs in ((1, 1, 32), (3, 33, 96), (9, 576, 1536)):
        rng = ct.rng(n)
        w = random_blocks(outputs, inputs, format, rng)
        x = to_bf16(rng.standard_normal((n, inputs), dtype="float32"))
        y = ct.empty((n, outputs), "float32")
        gemv.gemv(ct.to_device(x), with_room(w), y)
        exact = to_float(x).astype("float64") @ quants.dequantize(w, kind).T
        ct.check(
            y, exact, rtol=0, atol=2e-3,
            name=f"{format.name}, {outputs} x {inputs}, {n} rows",
        )  # fmt: skip

# %% model
SHAPES = {
    "q, k, v": (960, 576, Q4_1),
    "o": (576, 576, Q4_1),
    "gate, up": (3072, 576, Q4_1),
    "down": (576, 1536, Q4_1),
    "vocabulary": (49152, 576, Q8_0),
}
runs, nbytes = {}, {}
for name, (outputs, inputs, format) in SHAPES.items():
    w = ct.to_device(random_blocks(outputs, inputs, format))
    x, y = random_bits(1, inputs), ct.empty((1, outputs), "float32")
    runs[name] = partial(gemv.gemv, x, w, y)
    runs[f"{name}: PyTorch, bf16"] = decoding_rivals.matmul(
        x, random_bits(outputs, inputs)
    )
    nbytes[name] = w.nbytes
    nbytes[f"{name}: PyTorch, bf16"] = 2 * outputs * inputs
small = ct.bench(runs, bytes=nbytes, name="the products of SmolLM2, one row")

# %% share
if not ct.tool.running():
    bandwidth = ct.limits.bandwidth() * 1e9
    ct.table(
        "SmolLM2, one row",
        {
            name: {
                "weights": nbytes[name] / 1e6,
                "at the bandwidth": nbytes[name] / bandwidth * 1e6,
                "time": small[name].median_us,
                "of the bandwidth": 100 * (small[name].of_peak or 0),
            }
            for name in SHAPES
        },
        corner="product",
        units={
            "weights": "MB",
            "at the bandwidth": "µs",
            "time": "µs",
            "of the bandwidth": "%",
        },
    )
