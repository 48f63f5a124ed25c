# ---
# jupyter:
#   cudatut:
#     title: {en: "A program that waits", zh: "一个在等待的程序"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
#     sizes:
#       n: [1000000, 10000]
# ---
# %% [markdown]
# Three allocations, two copies in, one slow kernel, one copy out. `python -m cudatut trace` shows where its time goes.

# %% program
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

slow_add = SourceModule("""
__global__ void slow_add(const float *x, const float *y, float *out, int n) {
  for (int i = 0; i < n; ++i) out[i] = x[i] + y[i];
}
""").get_function("slow_add")
n = 1_000_000
x, y = np.random.default_rng(1).random((2, n), dtype=np.float32)
out = np.ones(n, np.float32)

d_x, d_y, d_out = (cuda.mem_alloc(x.nbytes) for _ in range(3))
cuda.memcpy_htod(d_x, x)
cuda.memcpy_htod(d_y, y)
slow_add(d_x, d_y, d_out, np.int32(n), grid=(1, 1), block=(1, 1, 1))
cuda.memcpy_dtoh(out, d_out)
print("correct:", np.array_equal(out, x + y))
