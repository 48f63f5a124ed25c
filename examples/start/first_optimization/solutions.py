# ---
# jupyter:
#   cudatut:
#     title: {en: "First optimization: solutions", zh: "第一次优化：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {length: [50000000, 100003]}
# ---
# %% [markdown]
# Solutions to the exercises of the chapter on the first optimization.

# %% given-1
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

# %% solution-1
module = SourceModule("""
__global__ void scale(float a, float *x, int n) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (size_t i = first; i < n; i += stride) x[i] = a * x[i];
}
""")
scale = module.get_function("scale")

# %% check-1
import cudatut as ct

a = np.float32(1.5)
for n in ct.RAGGED:
    for blocks, threads in ((1, 32), (3, 100), (7000, 256)):
        x = ct.rng(n).standard_normal(n, dtype=np.float32)
        d_x = ct.to_device(x)
        scale(a, d_x, np.int32(n), grid=(blocks, 1), block=(threads, 1, 1))
        ct.check(d_x, a * x, name=f"n={n}, grid {blocks}, block {threads}")

# %% given-2
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

# %% solution-2
module = SourceModule("""
__global__ void add2(const float *x, const float *y, float *out, int n) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (size_t i = first; i < n; i += 2 * stride) {
    size_t j = i + stride;
    if (j < n) {
      float a = x[i], b = y[i], c = x[j], d = y[j];
      out[i] = a + b;
      out[j] = c + d;
    } else {
      out[i] = x[i] + y[i];
    }
  }
}
""")
add2 = module.get_function("add2")

# %% check-2
import cudatut as ct

for n in (*ct.RAGGED, 4096):
    x, y = ct.rng(n).standard_normal((2, n), dtype=np.float32)
    d_x, d_y = ct.to_device(x), ct.to_device(y)
    for blocks in (1, 5, 200):
        out = ct.empty(n, "float32")
        add2(d_x, d_y, out, np.int32(n), grid=(blocks, 1), block=(128, 1, 1))
        ct.check(out, x + y, name=f"n={n}, {blocks} blocks")

# %% [markdown]
# What does it gain? The loops with one and with two elements in each turn, on long arrays and with the same grid.

# %% bench-2
module = SourceModule("""
__global__ void add1(const float *x, const float *y, float *out, int n) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (size_t i = first; i < n; i += stride) out[i] = x[i] + y[i];
}
""")
add1 = module.get_function("add1")

length = 50_000_000
x, y = ct.rng(0).standard_normal((2, length), dtype=np.float32)
d_x, d_y, out = ct.to_device(x), ct.to_device(y), ct.empty(length, "float32")
shape = {"grid": (64 * ct.device().sm_count, 1), "block": (256, 1, 1)}


def launch(kernel):
    return lambda: kernel(d_x, d_y, out, np.int32(length), **shape)


ct.bench(
    {
        "one element in each turn": launch(add1),
        "two elements in each turn": launch(add2),
        "copy": lambda: cuda.memcpy_dtod(out.gpudata, d_x.gpudata, x.nbytes),
    },
    bytes={
        "one element in each turn": 12 * length,
        "two elements in each turn": 12 * length,
        "copy": 8 * length,
    },
    name=f"n = {length}",
)
