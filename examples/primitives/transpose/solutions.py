# ---
# jupyter:
#   cudatut:
#     title: {en: "Transpose: solutions", zh: "转置：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       pixels: [67_108_864, 4_096]
#       batch: [[4_096, 512, 64], [8, 16, 64]]
# ---

# %% [markdown]
# A tile whose rows are rotated; a picture into planes; and two axes of a tensor
# that change places.

# %% given-1
import numpy as np

import cudatut as ct

KERNELS = """
#ifndef PLACE
#define PLACE(y, x) (x)
#endif

extern "C" __global__ void places(int* at) {
  at[32 * threadIdx.y + threadIdx.x] =
      PLACE(threadIdx.y, threadIdx.x);
}

extern "C" __global__ void turn(const float* in, float* out, int n) {
  __shared__ float tile[32][32];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = 32 * blockIdx.y, column = 32 * blockIdx.x;
  if (row + y < n && column + x < n)
    tile[y][PLACE(y, x)] = in[(size_t)(row + y) * n + column + x];
  __syncthreads();
  if (column + y < n && row + x < n)
    out[(size_t)(column + y) * n + row + x] = tile[x][PLACE(x, y)];
}
"""

# %% solution-1
place = "(x + y) % 32"  # each row is rotated by one word more

# %% check-1
source = f"#define PLACE(y, x) ({place})\n" + KERNELS
at = ct.empty((32, 32), "int32")
ct.Kernel(source, "places")(at, grid=1, block=(32, 32))
found = at.get()
ct.check(
    np.sort(found, axis=1),
    np.tile(np.arange(32, dtype="int32"), (32, 1)),
    name="rows",
    rtol=0,
)
banks = [len(set(column.tolist())) for column in found.T]
ct.check(np.array(banks), np.full(32, 32), name="banks of the columns", rtol=0)
turn = ct.Kernel(source, "turn")
for n in (1, 31, 33, 257):
    numbers = ct.rng(n).random((n, n), dtype="float32")
    out = ct.empty((n, n), "float32")
    tiles = ct.cdiv(n, 32)
    turn(ct.to_device(numbers), out, n, grid=(tiles, tiles), block=(32, 32))
    ct.check(out, numbers.T, name=f"{n} x {n}", rtol=0)

# %% given-2
import numpy as np

import cudatut as ct

# %% solution-2
planes = ct.Kernel(
    """
extern "C" __global__ void planes(const float* in, float* out, int n) {
  __shared__ float tile[3 * 256];
  const int t = threadIdx.x;
  const long long first = 256ll * blockIdx.x;
  for (int k = t; k < 3 * 256; k += 256)
    if (3 * first + k < 3ll * n) tile[k] = in[3 * first + k];
  __syncthreads();
  // Lanes read words that lie three apart. Three and 32 have no common divisor,
  // so these are in 32 banks.
  for (int c = 0; c < 3; ++c)
    if (first + t < n) out[(long long)c * n + first + t] = tile[3 * t + c];
}
""",
    "planes",
)

# %% check-2
for n in (1, 31, 255, 257, 100_003):
    numbers = ct.rng(n).random((n, 3), dtype="float32")
    out = ct.empty((3, n), "float32")
    planes(ct.to_device(numbers), out, n, grid=ct.cdiv(n, 256), block=256)
    ct.check(out, numbers.T, name=f"{n} pixels", rtol=0)

pixels = 67_108_864
picture = ct.to_device(ct.rng(0).random(3 * pixels, dtype="float32"))
parts = ct.empty(3 * pixels, "float32")
ct.bench(
    {
        "planes": lambda: planes(
            picture, parts, pixels, grid=ct.cdiv(pixels, 256), block=256
        ),
        "copy": ct.vendor.copy(parts, picture),
    },
    bytes=2 * picture.nbytes,
    name=f"{pixels} pixels",
)

# %% given-3
import numpy as np

import cudatut as ct

# %% solution-3
exchange = ct.Kernel(
    """
extern "C" __global__ void exchange(const float4* in, float4* out, int a, int b,
                                    int c) {
  const long long all = (long long)a * b * c, step = 256ll * gridDim.x;
  for (long long k = 256ll * blockIdx.x + threadIdx.x; k < all; k += step) {
    const int z = k % c;  // of out[y][x][z]
    const long long rows = k / c;
    const long long x = rows % a, y = rows / a;
    out[k] = in[(x * b + y) * c + z];
  }
}
""",
    "exchange",
)


def launch_exchange(x, out, a, b, c):
    # Whole rows of c numbers move, so nothing has to be turned: no tile.
    grid = min(ct.cdiv(a * b * c, 4 * 256), 1 << 30)
    exchange(x, out, a, b, c // 4, grid=grid, block=256)


# %% check-3
for a, b, c in ((1, 1, 4), (3, 5, 4), (33, 31, 64), (7, 257, 12)):
    numbers = ct.rng(a).random((a, b, c), dtype="float32")
    out = ct.empty((b, a, c), "float32")
    launch_exchange(ct.to_device(numbers), out, a, b, c)
    wanted = numbers.transpose(1, 0, 2)
    ct.check(out, wanted, name=f"{a} x {b} x {c}", rtol=0)

batch = (4_096, 512, 64)
a, b, c = batch
x = ct.to_device(ct.rng(1).random(batch, dtype="float32"))
out = ct.empty((b, a, c), "float32")
ct.bench(
    {
        "exchange": lambda: launch_exchange(x, out, a, b, c),
        "copy": ct.vendor.copy(out, x),
    },
    bytes=2 * x.nbytes,
    name="two axes",
)
