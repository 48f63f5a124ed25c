# ---
# jupyter:
#   cudatut:
#     title: {en: "A sum as a tree: solutions", zh: "用一棵树求和：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# The same tree for a maximum, and for a dot product.

# %% given-1
import numpy as np
import cudatut as ct


def maximum(x):
    left = x.size
    while True:
        blocks = ct.cdiv(left, 256)
        out = ct.empty(blocks, "float32")
        largest(x, out, left, grid=blocks, block=256)
        if blocks == 1:
            return out
        x, left = out, blocks


# %% solution-1
largest = ct.Kernel(
    """
__global__ void largest(const float* in, float* out, int n) {
  __shared__ float best[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  best[t] = i < n ? in[i] : -INFINITY;  // changes no maximum; 0 might
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    if (t % (2 * step) == 0) best[t] = fmaxf(best[t], best[t + step]);
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = best[0];
}
""",
    "largest",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    x = -1 - ct.rng(n).random(n, dtype="float32")  # all below zero
    expected = x.max(keepdims=True)
    # A view between two zeros: who reads past an end finds a larger number.
    between = ct.to_device(np.pad(x, 1))[1:-1]
    ct.check(maximum(between), expected, name=f"n={n}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct

sums = ct.Kernel("reduction/ladder/naive.cu", "reduce_naive")

# %% solution-2
products = ct.Kernel(
    """
__global__ void products(const float* x, const float* y, float* out, int n) {
  __shared__ float sums[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  sums[t] = i < n ? x[i] * y[i] : 0.0f;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    if (t % (2 * step) == 0) sums[t] += sums[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "products",
)


def dot(x, y):
    blocks = ct.cdiv(x.size, 256)
    partial = ct.empty(blocks, "float32")
    products(x, y, partial, x.size, grid=blocks, block=256)
    while (
        partial.size > 1
    ):  # what is left are sums already: nothing more to multiply
        blocks = ct.cdiv(partial.size, 256)
        out = ct.empty(blocks, "float32")
        sums(partial, out, partial.size, grid=blocks, block=256)
        partial = out
    return partial


# %% check-2
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).standard_normal(n, dtype="float32")
    y = ct.rng(n + 1).standard_normal(n, dtype="float32")
    terms = x.astype("float64") * y
    got = dot(ct.to_device(x), ct.to_device(y))
    most = 1e-6 * np.abs(terms).sum()
    ct.check(got, [terms.sum()], name=f"n={n}", rtol=0, atol=most)
