# ---
# jupyter:
#   cudatut:
#     title: {en: "vLLM's paged attention kernel, beside ours: solutions", zh: "vLLM 的分页注意力 kernel，与本书的对照：参考答案"}
#     requires: sm_75
# ---

# %% [markdown] about
# (to write: what the exercises are about, in a sentence)

# %% given-1
import numpy as np

x_host = np.arange(1, 1_111_112, dtype="float32")

# %% solution-1
source = """
__global__ void twice(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i];
}
"""

# %% check-1
import cudatut as ct

twice = ct.Kernel(source, "twice")
for n in ct.RAGGED:
    x, out = ct.to_device(x_host[:n]), ct.empty(n, "float32")
    twice(x, out, n, grid=ct.cdiv(n, 256), block=256)
    ct.check(out, 2 * x_host[:n], name=f"n = {n}")

# %% given-2
import numpy as np

x_host = np.arange(1, 1_111_112, dtype="float32")

# %% solution-2
source = """
__global__ void reverse(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[n - 1 - i];
}
"""

# %% check-2
import cudatut as ct

reverse = ct.Kernel(source, "reverse")
for n in ct.RAGGED:
    x, out = ct.to_device(x_host[:n]), ct.empty(n, "float32")
    reverse(x, out, n, grid=ct.cdiv(n, 256), block=256)
    ct.check(out, x_host[:n][::-1], name=f"n = {n}")
