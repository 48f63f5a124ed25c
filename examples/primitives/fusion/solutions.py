# ---
# jupyter:
#   cudatut:
#     title: {en: "Element-wise kernels: solutions", zh: "逐元素 kernel：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# Bytes counted before anything runs; vectors with a tail; a derivative that the
# fuser makes a kernel of.


# %% given-1
import numpy as np

import cudatut as ct


# %% solution-1
def passes(operations, sizes, kept):
    """Bytes moved by separate kernels, and by one."""
    apart = sum(
        sum(sizes[name] for name in set(inputs)) + sizes[output]
        for inputs, output in operations
    )
    made = {output for _, output in operations}
    used = {name for inputs, _ in operations for name in inputs}
    together = sum(sizes[name] for name in used - made)
    return apart, together + sum(sizes[name] for name in kept)


# %% check-1
big, row = 1_000_000, 4_000
sizes = dict.fromkeys("xystuvw", big) | {"bias": row}
layer = [(("x", "bias"), "s"), (("s",), "t"), (("t", "y"), "out")]
square = [(("x", "x"), "s"), (("s", "x"), "out")]
sizes["out"] = big
found = [
    passes(layer, sizes, {"out"}),
    passes(layer, sizes, {"s", "out"}),
    passes(square, sizes, {"out"}),
    passes(layer[:1], sizes, {"s"}),
]
wanted = [
    (7 * big + row, 3 * big + row),
    (7 * big + row, 4 * big + row),
    (5 * big, 2 * big),
    (2 * big + row, 2 * big + row),
]
ct.check(np.array(found), np.array(wanted), name="bytes")

# %% given-2
import numpy as np

import cudatut as ct

# %% solution-2
source = """
extern "C" __global__ void leaky(const float* __restrict__ in,
                                 float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4) {
    float4 v = reinterpret_cast<const float4*>(in)[i];
    v.x = fmaxf(v.x, 0.01f * v.x);
    v.y = fmaxf(v.y, 0.01f * v.y);
    v.z = fmaxf(v.z, 0.01f * v.z);
    v.w = fmaxf(v.w, 0.01f * v.w);
    reinterpret_cast<float4*>(out)[i] = v;
  }
  if (i < n % 4) {  // the first threads have what is left
    const int k = n / 4 * 4 + i;
    out[k] = fmaxf(in[k], 0.01f * in[k]);
  }
}
"""
leaky = ct.Kernel(source, "leaky")

# %% check-2
for n in (*ct.RAGGED, 2, 3, 4, 1_024, 1_027):
    x = ct.rng(n).standard_normal(n, dtype="float32")
    out = ct.empty(n, "float32")
    grid = max(1, ct.cdiv(n // 4, 256))
    leaky(ct.to_device(x), out, n, grid=grid, block=256)
    ct.check(out, np.where(x > 0, x, np.float32(0.01) * x), name=f"n={n}")

# %% given-3
import cudatut as ct
from cudatut.book.primitives.fusion import fuse


# %% solution-3
def backward(x, dy):
    """dy times the derivative of GELU at x."""
    below = 0.5 * (1.0 + fuse.erf(x * 0.7071067811865476))
    density = 0.3989422804014327 * fuse.exp(-0.5 * x * x)
    return dy * (below + x * density)


# %% check-3
from cudatut.book.numbers.bf16 import to_bf16, to_float

x, dy = 3 * ct.rng(5).standard_normal((2, 1_027), dtype="float32")
kernel = fuse.Fused(backward)
out = ct.empty(1_027, "float32")
kernel(ct.to_device(x), ct.to_device(dy), out=out)


def slope(x):
    """The derivative of GELU in fp64, by a difference."""
    h, x = 1e-5, x.astype("float64")
    return (fuse.gelu(x + h) - fuse.gelu(x - h)) / (2 * h)


ct.check(out, dy * slope(x), name="fp32", rtol=1e-5, atol=1e-5)
x, dy = to_bf16(x), to_bf16(dy)
kernel(ct.to_device(x), ct.to_device(dy), out=out)
wanted = to_float(dy) * slope(to_float(x))
ct.check(out, wanted, name="bf16", rtol=1e-5, atol=1e-5)
