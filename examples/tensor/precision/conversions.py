# ---
# jupyter:
#   cudatut:
#     title: {en: "Precision: conversions", zh: "精度：转换"}
#     requires: sm_80
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# All words of each type, decoded on the GPU and here; and numbers at every
# place where rounding decides: each number of the type, the middle of two, and
# the fp32 numbers next to the middle.

# %% setup
import numpy as np

from cudatut.book.numbers.formats import FORMATS

import cudatut as ct

SOURCE = "tensor/precision/precision.cu"
TYPES = {  # name on the page -> template argument
    "fp16": "F16",
    "bf16": "B16",
    "TF32": "T32",
    "e4m3": "E4M3",
    "e5m2": "E5M2",
}

# %% decode
for name, type_ in TYPES.items():
    form = FORMATS[name]
    words = np.arange(2**form.bits, dtype="uint32")
    out = ct.empty(len(words), "float32")
    decode = ct.Kernel(SOURCE, f"decode<{type_}>")
    grid = ct.cdiv(len(words), 256)
    decode(ct.to_device(words), out, len(words), grid=grid, block=256)
    ct.check(out, form.decode(words), name=f"{name}: all words", rtol=0)

# %% round
for name, type_ in TYPES.items():
    form = FORMATS[name]
    values = form.decode(np.arange(2 ** (form.bits - 1)))
    values = np.sort(values[np.isfinite(values)])
    middle = ((values[1:] + values[:-1]) / 2).astype("float32")
    inputs = np.concatenate(
        [
            values.astype("float32"),
            middle,
            np.nextafter(middle, np.float32(0)),
            np.nextafter(middle, np.float32(np.inf)),
            np.float32([3e38, 1e5, 449.0, 464.0, 465.0, 1e-40, 1e-10]),
        ]
    )
    inputs = np.concatenate([inputs, -inputs])
    out = ct.empty(len(inputs), "float32")
    round_to = ct.Kernel(SOURCE, f"round_to<{type_}>")
    grid = ct.cdiv(len(inputs), 256)
    round_to(ct.to_device(inputs), out, len(inputs), grid=grid, block=256)
    ct.check(out, form.round(inputs), name=f"{name}: rounding", rtol=0)
