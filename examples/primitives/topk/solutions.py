# ---
# jupyter:
#   cudatut:
#     title: {en: "Top-k and selection: solutions", zh: "Top-k 与选择：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# The order of doubles; the largest of a row and its place in one word; and the
# k-th largest, bit by bit.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
order64 = ct.Kernel(
    """
__global__ void order64(const double* x, unsigned long long* order, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const double y = x[i] + 0.0;  // -0.0 becomes 0.0
  const unsigned long long bits = __double_as_longlong(y);
  order[i] = y != y ? ~0ull : bits >> 63 ? ~bits : bits | 1ull << 63;
}
""",
    "order64",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).standard_normal(n)
    x[::5], x[1::7], x[2::11] = -0.0, np.nan, 0.0
    x[3::13], x[4::17] = np.inf, -np.inf
    out = ct.empty(n, "uint64")
    ct.poison(out)
    order64(ct.to_device(x), out, n, grid=ct.cdiv(n, 256), block=256)
    # A stable sort by these numbers is NumPy's stable sort.
    mine = np.argsort(out.get(), kind="stable")
    ct.check(mine, np.argsort(x, kind="stable"), name=f"n={n}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
row_best = ct.Kernel(
    """
#include "primitives/topk/select.cuh"  // candidate, index_of

extern "C" __global__ void row_best(const float* x, int* index, int n) {
  const float* row = x + (long long)blockIdx.x * n;
  __shared__ Word best[8];
  Word mine = 0;
  for (int i = threadIdx.x; i < n; i += 256)
    mine = max(mine, candidate(row[i], i));
  for (int half = 16; half > 0; half /= 2)
    mine = max(mine, __shfl_xor_sync(ALL, mine, half));
  if (threadIdx.x % 32 == 0) best[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < 8; ++w) mine = max(mine, best[w]);
  index[blockIdx.x] = index_of(mine);
}
""",
    "row_best",
)

# %% check-2
import cudatut as ct

for n in ct.RAGGED:
    x = np.round(ct.rng(n).standard_normal((3, n), dtype="float32"))
    index = ct.empty(3, "int32")
    ct.poison(index)
    row_best(ct.to_device(x), index, n, grid=3, block=256)
    ct.check(index, x.argmax(axis=1), name=f"n={n}", rtol=0)

# %% given-3
import numpy as np
import cudatut as ct

# %% solution-3
kth_largest = ct.Kernel(
    """
#include "primitives/topk/select.cuh"  // order, number_of

extern "C" __global__ void kth_largest(const float* x, float* out, int n,
                                       int k) {
  const int i = threadIdx.x;
  const bool has = i < n;
  const unsigned mine = has ? order(x[(long long)blockIdx.x * n + i]) : 0;
  unsigned found = 0;
  for (unsigned bit = 1u << 31; bit; bit >>= 1) {
    const unsigned more = found | bit;
    if (__syncthreads_count(has && mine >= more) >= k) found = more;
  }
  if (i == 0) out[blockIdx.x] = number_of(found);
}
""",
    "kth_largest",
)

# %% check-3
import cudatut as ct

for n in (1, 31, 33, 100, 255, 256):
    x = np.round(ct.rng(n).standard_normal((5, n), dtype="float32"), 1)
    x += np.float32(0)  # no -0.0, which number_of does not give back
    data = ct.to_device(x)
    for k in sorted({1, (n + 1) // 2, n}):
        out = ct.empty(5, "float32")
        ct.poison(out)
        kth_largest(data, out, n, k, grid=5, block=256)
        expected = np.sort(x, axis=1)[:, n - k]
        ct.check(out, expected, name=f"n={n}, k={k}", rtol=0, atol=0)
