# ---
# jupyter:
#   cudatut:
#     title: {en: "The tensor memory accelerator: solutions", zh: "张量内存加速器：参考答案"}
#     requires: sm_90
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# Where a swizzled copy puts its words, and a stencil that reads without a test
# for the edge.

# %% given-1
import numpy as np
import cudatut as ct

x_host = np.arange(8 * 32, dtype="float32").reshape(8, 32)
x = ct.to_device(x_host)
found = ct.empty((8, 32), "float32")  # the words of shared memory, in order
show_box = ct.Kernel("gemm/tma/tma_box.cu", "show_box<8, 32>")
box = ct.tensor_map(x, (8, 32), swizzle=128)
show_box(box, found, 0, 0, grid=1, block=32)


# %% solution-1
def place(row, column):
    """Word of shared memory that holds element (row, column)."""
    piece = column // 4  # of 16 bytes
    return 32 * row + 4 * (piece ^ row % 8) + column % 4


# %% check-1
import cudatut as ct

expected = np.zeros(8 * 32)
for row in range(8):
    for column in range(32):
        expected[place(row, column)] = x_host[row, column]
ct.check(found, expected.reshape(8, 32), name="swizzle=128", rtol=0)

# %% [markdown]
# What it is good for: eight lanes read the same piece of eight rows.


# %% passes-1
def passes(words):
    """Passes of eight lanes that read these words: the most in one bank."""
    return int(np.bincount([word % 32 for word in set(words)]).max())


column = [(row, word) for row in range(8) for word in range(4)]
ct.facts(
    "passes for eight rows, four words each",
    {
        "as in global memory": passes([32 * r + w for r, w in column]),
        "swizzle=128": passes([place(r, w) for r, w in column]),
    },
)

# %% given-2
import cudatut as ct

HIGH, WIDE = 32, 32  # results of a block of (32, 8) threads


def smoothed(x):
    rows, columns = x.shape
    out = ct.empty(x.shape, "float32")
    kernel = ct.Kernel(SMOOTH, "smooth<32, 32>")
    box = ct.tensor_map(x, BOX)
    grid = ct.cdiv(columns, WIDE), ct.cdiv(rows, HIGH)
    kernel(box, out, rows, columns, grid=grid, block=(WIDE, 8))
    return out


# %% solution-2
# A word more on either side; four on the left and right, because a box begins
# at a multiple of four columns.
BOX = HIGH + 2, WIDE + 8
SMOOTH = """
// Barrier, init, arrive_and_expect, copy_box, wait:
#include "gemm/ladder/tma.cu"

template <int HIGH, int WIDE>
__global__ void smooth(const __grid_constant__ CUtensorMap X, float* out,
                       int rows, int columns) {
  __shared__ __align__(128) float in[HIGH + 2][WIDE + 8];
  __shared__ Barrier arrived;
  const int left = blockIdx.x * WIDE, top = blockIdx.y * HIGH, x = threadIdx.x;
  if (x == 0 && threadIdx.y == 0) {
    init(&arrived);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    arrive_and_expect(&arrived, sizeof(in));
    copy_box(&in[0][0], X, top - 1, left - 4, &arrived);
  }
  __syncthreads();
  wait(&arrived, 0);
  for (int y = threadIdx.y; y < HIGH; y += blockDim.y)
    if (top + y < rows && left + x < columns)
      out[(size_t)(top + y) * columns + left + x] =
          (in[y + 1][x + 4] + in[y][x + 4] + in[y + 2][x + 4] +
           in[y + 1][x + 3] + in[y + 1][x + 5]) / 5;
}
"""

# %% check-2
import numpy as np
import cudatut as ct

for rows, columns in ((1, 4), (31, 36), (33, 32), (100, 200), (257, 132)):
    x = ct.rng(0).standard_normal((rows, columns), dtype="float32")
    sea = np.pad(x.astype("float64"), 1)
    around = sea[:-2, 1:-1] + sea[2:, 1:-1] + sea[1:-1, :-2] + sea[1:-1, 2:]
    expected = (sea[1:-1, 1:-1] + around) / 5
    got = smoothed(ct.to_device(x))
    ct.check(got, expected, name=f"{rows} x {columns}")
