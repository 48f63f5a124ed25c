# ---
# jupyter:
#   cudatut:
#     title: {en: "First kernel: solutions", zh: "第一个 kernel：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
# ---
# %% [markdown]
# Solutions to the two exercises of the chapter on the first kernel.

# %% setup
import numpy as np
import pycuda.autoprimaryctx  # noqa: F401
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

import cudatut as ct

n = ct.size(1_111_111, 1_000)
rng = ct.rng(0)
x = rng.standard_normal(n, dtype=np.float32)
y = rng.standard_normal(n, dtype=np.float32)
a = np.float32(0.7)

# %% solution-1
axpy = SourceModule("""
__global__ void axpy(float a, const float *x, const float *y, float *out, int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = a * x[i] + y[i];
  }
}
""").get_function("axpy")

d_x, d_y = ct.to_device(x), ct.to_device(y)
out = ct.empty(n, "float32")
axpy(a, d_x, d_y, out, np.int32(n), block=(1, 1, 1), grid=(1, 1))
ct.check(out, a * x + y, name="axpy")

# %% rounding
once = (float(a) * x.astype(np.float64) + y).astype(np.float32)  # rounded at the end
twice = a * x + y  # rounded after the product and after the sum
ct.facts(
    "elements that differ",
    {
        "from_two_roundings": np.count_nonzero(out.get() != twice),
        "from_one_rounding": np.count_nonzero(out.get() != once),
    },
)

# %% solution-2
k = min(1_000, n)
d_copy = cuda.mem_alloc(x.nbytes)
cuda.memcpy_htod(d_copy, x)

tail = np.empty(k, np.float32)  # the host array says how many bytes to copy
cuda.memcpy_dtoh(tail, int(d_copy) + (n - k) * x.itemsize)  # an address counts bytes
ct.check(tail, x[-k:], name="tail", rtol=0, atol=0)
