# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts: solutions", zh: "存储体冲突：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# A tile without padding and without conflicts, and a sum of complex numbers.

# %% setup
import numpy as np

import cudatut as ct

rng = ct.rng(0)


def wavefronts(words):
    """Passes of one 4-byte access: the most different words that fall into one bank."""
    return int(max(np.bincount([word % 32 for word in set(words)])))


# %% solution-1
def place(row, column):
    """Word of element (row, column) in a tile of 32 x 32: the columns of each row in an order of its own."""
    return 32 * row + (column ^ row)


ct.facts(
    "wavefronts per access",
    {
        "rows, most": max(
            wavefronts([place(r, c) for c in range(32)]) for r in range(32)
        ),
        "columns, most": max(
            wavefronts([place(r, c) for r in range(32)]) for c in range(32)
        ),
        "words": len({place(r, c) for r in range(32) for c in range(32)}),
    },
)
transpose = ct.Kernel(
    """
__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32 * 32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  int r = threadIdx.y, c = threadIdx.x;
  if (y < rows && x < columns) tile[32 * r + (c ^ r)] = in[(long long)y * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  r = threadIdx.x, c = threadIdx.y;
  if (y < columns && x < rows) out[(long long)y * rows + x] = tile[32 * r + (c ^ r)];
}
""",
    "transpose",
)
for rows, columns in ((1, 1), (31, 33), (33, 31), (1111, 1001)):
    x_host = rng.standard_normal((rows, columns), dtype="float32")
    out = ct.empty((columns, rows), "float32")
    grid = ct.cdiv(columns, 32), ct.cdiv(rows, 32)
    transpose(
        ct.to_device(x_host), out, rows, columns, grid=grid, block=(32, 32)
    )
    ct.check(out, x_host.T, name=f"{rows} x {columns}", rtol=0)

# %% solution-2
lane = range(32)
ct.facts(
    "wavefronts of a warp's loads, per round",
    {
        "pairs, two loads of 4 bytes": 2 * wavefronts([2 * k for k in lane]),
        "two arrays, two loads of 4 bytes": 2 * wavefronts(list(lane)),
        # 8 bytes per lane are served in two groups of 16 lanes
        "pairs, one load of 8 bytes": 2
        * wavefronts([w for k in range(16) for w in (2 * k, 2 * k + 1)]),
    },
)
complex_sums = ct.Kernel(
    """
__global__ void complex_sums(const float2* in, float2* out, int n) {
  __shared__ float2 sums[256];  // aligned to 8 bytes: one load brings both parts
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  sums[t] = i < n ? in[i] : make_float2(0, 0);
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) {
      float2 a = sums[t], b = sums[t + half];
      sums[t] = make_float2(a.x + b.x, a.y + b.y);
    }
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "complex_sums",
)


def complex_sum(x):
    """Sum of an array of shape (n, 2) of float32: real and imaginary parts."""
    while True:
        n = x.shape[0]
        blocks = ct.cdiv(n, 256)
        out = ct.empty((blocks, 2), "float32")
        complex_sums(x, out, n, grid=blocks, block=256)
        if blocks == 1:
            return out
        x = out


for m in ct.RAGGED:
    x_host = rng.standard_normal((m, 2), dtype="float32")
    expected = x_host.sum(axis=0, dtype="float64", keepdims=True)
    atol = 1e-6 * float(np.abs(x_host).sum(axis=0).max())
    ct.check(
        complex_sum(ct.to_device(x_host)), expected, name=f"n={m}", atol=atol
    )
