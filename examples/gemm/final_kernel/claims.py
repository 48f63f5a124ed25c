# ---
# jupyter:
#   cudatut:
#     title: {en: "The final kernel: claims", zh: "最终的 kernel：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# What may stand past the end of the depth, and whether a right result has to
# equal that of the CPU.

# %% setup
import numpy as np

import cudatut as ct

# %% [markdown]
# One thread per result. The depth is rounded up to 32; the words of B past its
# end are zeros, those of A what stands there, or zeros as well.

# %% zeroed-tail
TAIL = """
template <bool BOTH>
__global__ void zeroed_tail(const float* A, const float* B, float* C, int m,
                            int n, int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < (k + 31) / 32 * 32; ++i) {
    const int place = row * k + i;  // past the row's end: in the next row
    const bool read = BOTH ? i < k : place < m * k;
    const float a = read ? A[place] : 0.0f;
    const float b = i < k ? B[i * n + column] : 0.0f;
    sum += a * b;
  }
  C[row * n + column] = sum;
}
"""
right = ct.rng(9).random((40, 20), dtype="float32")
b = ct.to_device(right)


def rows_with_nan(both):
    """Rows of C that have a NaN, when A has one in row 10; finite data first."""
    tail = ct.Kernel(TAIL, f"zeroed_tail<{both}>")
    left = ct.rng(8).random((20, 40), dtype="float32")
    for bad in (0.0, np.nan):
        left[10, 3] = bad
        c = ct.empty((20, 20), "float32")
        tail(ct.to_device(left), b, c, 20, 20, 40, grid=(1, 20), block=32)
        if not bad:
            exact = left.astype("float64") @ right
            ct.check(c, exact, name="zeroed tail, finite data", rtol=1e-5)
    return int(np.isnan(c.get()).any(axis=1).sum())


touched = rows_with_nan("false")
ct.facts(
    "one NaN in row 10 of A",
    {"rows of C with NaN": touched, "rows by IEEE arithmetic": 1},
)

# %% [markdown]
# The same sums in the same order as on the CPU. There each operation is
# rounded; an FMA is rounded once.

# %% exact-compare
NAIVE = """
__global__ void naive(const float* A, const float* B, float* C, int n) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += A[row * n + i] * B[i * n + column];
  C[row * n + column] = sum;
}
"""
naive, n = ct.Kernel(NAIVE, "naive"), 256


def equal(left, right):
    """Elements (%) that are == those of a loop on the CPU."""
    c = ct.empty((n, n), "float32")
    a, b = ct.to_device(left), ct.to_device(right)
    naive(a, b, c, n, grid=(1, n), block=n)
    ct.check(c, left.astype("float64") @ right, name="in fp32", rtol=1e-5)
    on_cpu = np.zeros((n, n), "float32")
    for i in range(n):
        on_cpu += left[:, i : i + 1] * right[i : i + 1]
    return 100 * float((c.get() == on_cpu).mean())


rng = ct.rng(10)
whole = [rng.integers(0, 100, (n, n)).astype("float32") for _ in range(2)]
fractions = [rng.random((n, n), dtype="float32") for _ in range(2)]
ct.facts(
    "elements that equal those of the CPU, n = 256",
    {
        "whole numbers below 100": (equal(*whole), "%"),
        "random numbers in [0, 1)": (equal(*fractions), "%"),
    },
)
