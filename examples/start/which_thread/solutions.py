# ---
# jupyter:
#   cudatut:
#     title: {en: "Which thread am I: solutions", zh: "我是哪个线程：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 60
# ---
# %% [markdown]
# Solutions to the exercises of the chapter on threads, blocks and the index formula.

# %% given-1
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

# %% solution-1
module = SourceModule("""
__global__ void numbers(int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = 10 * blockIdx.x + threadIdx.x;
}
""")
numbers = module.get_function("numbers")

# %% check-1
import cudatut as ct

for blocks, threads in ((3, 5), (1, 1), (7, 32), (100, 9)):
    out = ct.empty(blocks * threads, "int32")
    numbers(out, grid=(blocks, 1), block=(threads, 1, 1))
    expected = [10 * b + t for b in range(blocks) for t in range(threads)]
    ct.check(out, np.array(expected), name=f"grid {blocks}, block {threads}")

# %% given-2
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

# %% solution-2
module = SourceModule("""
__global__ void backwards(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = x[n - 1 - i];
  }
}
""")
backwards = module.get_function("backwards")


def launch_shape(n):
    """Number of blocks, and threads in each of them."""
    return (n + 255) // 256, 256


# %% check-2
import cudatut as ct

for n in (*ct.RAGGED, 512):
    x = ct.rng(n).standard_normal(n, dtype=np.float32)
    d_x, out = ct.to_device(x), ct.empty(n, "float32")
    blocks, threads = launch_shape(n)
    backwards(d_x, out, np.int32(n), grid=(blocks, 1), block=(threads, 1, 1))
    ct.check(out, x[::-1], name=f"backwards, n={n}")
    ct.check(np.array([blocks]), np.array([-(-n // threads)]), name="blocks")

# %% given-3
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule


def launch(kernel, x, y, out, n):
    """Start half as many threads as there are elements, rounded up."""
    blocks = ((n + 1) // 2 + 255) // 256
    kernel(x, y, out, np.int32(n), grid=(blocks, 1), block=(256, 1, 1))


# %% solution-3
module = SourceModule("""
__global__ void add_pairs(const float *x, const float *y, float *out, int n) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    out[i] = x[i] + y[i];
  }
  if (i + 1 < n) {
    out[i + 1] = x[i + 1] + y[i + 1];
  }
}
""")
add_pairs = module.get_function("add_pairs")

# %% check-3
import cudatut as ct

for n in (*ct.RAGGED, 1024):
    x, y = ct.rng(n).standard_normal((2, n), dtype=np.float32)
    d_x, d_y, out = ct.to_device(x), ct.to_device(y), ct.empty(n, "float32")
    launch(add_pairs, d_x, d_y, out, n)
    ct.check(out, x + y, name=f"pairs, n={n}")
