# ---
# jupyter:
#   cudatut:
#     title: {en: "First kernel: solutions", zh: "第一个 kernel：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
# ---
# %% [markdown]
# Solutions to the exercises of the chapter on the first kernel.

# %% given-1
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

# %% solution-1
module = SourceModule("""
__global__ void axpy(float a, const float *x, const float *y, float *out,
                     int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = a * x[i] + y[i];
  }
}
""")
axpy = module.get_function("axpy")

# %% check-1
import cudatut as ct

rng = ct.rng(0)
a = np.float32(0.7)
for n in ct.RAGGED:
    x, y = rng.standard_normal((2, n), dtype=np.float32)
    d_x, d_y, out = ct.to_device(x), ct.to_device(y), ct.empty(n, "float32")
    axpy(a, d_x, d_y, out, np.int32(n), grid=(1, 1), block=(1, 1, 1))
    ct.check(out, a * x + y, name=f"axpy, n={n}")

# %% [markdown]
# NumPy rounds the product and then the sum. The GPU rounds once. How many elements differ from each of the two?

# %% rounding
once = (float(a) * x.astype(np.float64) + y).astype(np.float32)
twice = a * x + y
ct.facts(
    "elements that differ",
    {
        "elements": n,
        "from NumPy, which rounds twice": np.count_nonzero(out.get() != twice),
        "from a result rounded once": np.count_nonzero(out.get() != once),
    },
)

# %% given-2
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda


# %% solution-2
def tail(d_x, n, k):
    """The last k of the n floats at d_x, as a NumPy array."""
    out = np.zeros(k, np.float32)
    cuda.memcpy_dtoh(out, int(d_x) + (n - k) * out.itemsize)
    return out


# %% check-2
import cudatut as ct

for n, k in ((1_000_000, 1_000), (1_111_111, 7), (33, 33)):
    x = ct.rng(n).standard_normal(n, dtype=np.float32)
    d_x = cuda.mem_alloc(x.nbytes)
    cuda.memcpy_htod(d_x, x)
    ct.check(tail(d_x, n, k), x[-k:], name=f"tail, n={n}, k={k}", rtol=0)
