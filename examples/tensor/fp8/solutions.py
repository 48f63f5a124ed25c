# ---
# jupyter:
#   cudatut:
#     title: {en: "FP8: solutions", zh: "FP8：参考答案"}
#     requires: sm_80
# ---

# %% [markdown]
# Codes and scales back to fp32, and a model of the adder.

# %% given-1
import numpy as np

# %% solution-1
SOURCE = """
#include <cuda_fp8.h>

extern "C" __global__ void dequantize(const unsigned char *codes,
                                      const float *scales, float *out,
                                      int columns, int pitch) {
  const int row = blockIdx.x;
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    const unsigned char code = codes[(size_t)row * columns + column];
    const __half value = __nv_cvt_fp8_to_halfraw(code, __NV_E4M3);
    const float scale = scales[(size_t)(column / 128) * pitch + row];
    out[(size_t)row * columns + column] = scale * __half2float(value);
  }
}
"""

# %% check-1
import cudatut as ct

from cudatut.book.numbers import e4m3

kernel = ct.Kernel(SOURCE, "dequantize")
for rows, columns in ((1, 16), (7, 128), (130, 304)):
    x = 20 * ct.rng(rows).standard_normal((rows, columns), dtype="float32")
    codes, scales = e4m3.quantize(x, "rows")
    padded = np.pad(scales, ((0, 0), (0, 3)))
    out = ct.empty((rows, columns), "float32")
    kernel(
        ct.to_device(codes),
        ct.to_device(padded),
        out,
        columns,
        rows + 3,
        grid=rows,
        block=96,
    )
    each = e4m3.spread(scales.T, x.shape, (1, 128))
    want = e4m3.from_e4m3(codes) * each
    ct.check(out, want, name=f"{rows} x {columns}", rtol=1e-6)

# %% given-2
import numpy as np


# %% solution-2
def add_up(numbers, bits):
    """Sums along the last axis, by an adder of this width; in float64."""
    largest = np.abs(numbers).max(axis=-1, keepdims=True)
    exponent = np.frexp(largest)[1] - 1  # 2^exponent <= largest
    unit = np.ldexp(1.0, exponent - bits)
    return (np.trunc(numbers / unit) * unit).sum(axis=-1)


# %% check-2
import cudatut as ct


def by_integers(row, bits):
    """The same for one row, with Python's integers."""
    whole = [int(x * 2**60) for x in row]  # all are multiples of 2^-60
    most = max(map(abs, whole))
    if not most:
        return 0.0
    cut = max(most.bit_length() - 1 - bits, 0)
    kept = sum((abs(x) >> cut) * (1 if x > 0 else -1) for x in whole)
    return (kept << cut) / 2**60


rng_2 = ct.rng(3)
rows_2 = np.ldexp(
    rng_2.integers(-255, 256, (400, 33)).astype("float64"),
    rng_2.integers(-20, 10, (400, 33)),
)
rows_2[7] = 0
rows_2[8, 1:] = 0
for bits_2 in (7, 13, 23):
    ct.check(
        np.asarray(add_up(rows_2, bits_2), "float64"),
        np.array([by_integers(row, bits_2) for row in rows_2]),
        name=f"sums of the adder, {bits_2} bits",
        rtol=0,
    )

# %% [markdown]
# What such an adder does to long sums of products.


# %% model-2
def product(a, b, every):
    """A B^T, 32 products and the sum so far in a step; the sums are added to
    others, in float64, after `every` products."""
    total = np.zeros((len(a), len(b)))
    for first in range(0, a.shape[1], every):
        part = np.zeros((len(a), len(b), 1))
        for i in range(first, min(first + every, a.shape[1]), 32):
            terms = a[:, None, i : i + 32] * b[None, :, i : i + 32]
            both = np.concatenate([part, terms], axis=2)
            part = add_up(both, 13)[..., None]
        total += part[..., 0]
    return total


table = {}
for k in (256, 1024, 4096, 16384):
    rng_2 = ct.rng(k)
    a, b = (
        e4m3.from_e4m3(e4m3.quantize(rng_2.random((16, k)), "tensor")[0])
        for _ in "ab"
    )
    want = a @ b.T
    typical = np.sqrt(np.mean(want**2))
    table[f"k = {k}"] = {
        name: 100
        * np.sqrt(np.mean((product(a, b, every) - want) ** 2))
        / typical
        for name, every in (("one level", k), ("two levels", 128))
    }
units = {"one level": "%", "two levels": "%"}
ct.table("an adder of 13 bits", table, corner="depth", units=units)
