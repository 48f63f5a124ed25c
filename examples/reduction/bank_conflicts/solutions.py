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

# %% given-1
import numpy as np
import cudatut as ct


def wavefronts(words):
    """Passes of one 4-byte access: most different words in one bank."""
    return int(max(np.bincount([word % 32 for word in set(words)])))


# %% solution-1
def place(row, column):
    """Word, 0 to 1023, of element (row, column) of a tile of 32 x 32."""
    return 32 * row + (column ^ row)


# %% check-1
import cudatut as ct

for fixed in range(32):
    row = [place(fixed, k) for k in range(32)]
    column = [place(k, fixed) for k in range(32)]
    passes = [wavefronts(row), wavefronts(column)]
    ct.check(passes, [1, 1], name=f"row and column {fixed}")

# %% [markdown]
# The place is used in a transpose.

# %% transpose-1
transpose = ct.Kernel(
    """
#define PLACE (32 * r + (c ^ r))
__global__ void transpose(const float* in, float* out, int rows,
                          int columns) {
  __shared__ float tile[32 * 32];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  int r = threadIdx.y, c = threadIdx.x;
  if (y < rows && x < columns)
    tile[PLACE] = in[(long long)y * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  r = threadIdx.x, c = threadIdx.y;
  if (y < columns && x < rows) out[(long long)y * rows + x] = tile[PLACE];
}
""",
    "transpose",
)
for rows, columns in ((1, 1), (31, 33), (33, 31), (1111, 1001)):
    x = ct.rng(0).standard_normal((rows, columns), dtype="float32")
    out = ct.empty((columns, rows), "float32")
    grid = ct.cdiv(columns, 32), ct.cdiv(rows, 32)
    transpose(ct.to_device(x), out, rows, columns, grid=grid, block=(32, 32))
    ct.check(out, x.T, name=f"{rows} x {columns}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct


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


# %% solution-2
complex_sums = ct.Kernel(
    """
__global__ void complex_sums(const float2* in, float2* out, int n) {
  __shared__ float2 sums[256];  // one load of 8 bytes brings both parts
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

# %% check-2
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).standard_normal((n, 2), dtype="float32")
    expected = x.sum(axis=0, dtype="float64", keepdims=True)
    most = 1e-6 * float(np.abs(x).sum(axis=0).max())
    got = complex_sum(ct.to_device(x))
    ct.check(got, expected, name=f"n={n}", rtol=0, atol=most)

# %% [markdown]
# Why pairs are read whole: the passes of a warp, per round.

# %% passes-2
lane = range(32)


def passes(words):
    return int(max(np.bincount([word % 32 for word in set(words)])))


ct.facts(
    "wavefronts of a warp's loads, per round",
    {
        "pairs, two loads of 4 bytes": 2 * passes([2 * k for k in lane]),
        "two arrays, two loads of 4 bytes": 2 * passes(lane),
        # 8 bytes per lane are served in two groups of 16 lanes
        "pairs, one load of 8 bytes": 2 * passes(range(32)),
    },
)
