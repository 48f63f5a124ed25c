# ---
# jupyter:
#   cudatut:
#     title: {en: "Which thread am I: solutions", zh: "我是哪个线程：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 60
# ---

# %% [markdown]
# One formula for every grid and block, and warps that cover patches of 8 x 4 pixels.

# %% setup
import itertools

import numpy as np

import cudatut as ct

# %% solution-1
linear_id = ct.Kernel(
    """
__global__ void linear_id(int *out) {
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * threads + thread] = block * threads + thread;
}
""",
    "linear_id",
)
GRIDS, BLOCKS = ((5, 1, 1), (5, 3, 1), (5, 3, 2)), ((33, 1, 1), (7, 9, 1), (4, 5, 3))
for grid, block in itertools.product(GRIDS, BLOCKS):
    n = int(np.prod(grid) * np.prod(block))
    out = ct.empty(n, "int32")  # poisoned: a slot that no thread writes is found
    linear_id(out, grid=grid, block=block)
    ct.check(out, np.arange(n), name=f"grid {grid}, block {block}")

# %% solution-2
patches = ct.Kernel(
    """
__global__ void patches(int *warp_of, int width, int height) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // Four patches of 8 columns make the block's 32 columns; two rows of them make its 8 rows.
  const int x = blockIdx.x * 32 + warp % 4 * 8 + lane % 8;
  const int y = blockIdx.y * 8 + warp / 4 * 4 + lane / 8;
  if (x < width && y < height) warp_of[y * width + x] = warp;
}
""",
    "patches",
)
for width, height in ((32, 8), (1, 1), (31, 33), (33, 31), (1111, 1001)):
    out = ct.empty((height, width), "int32")
    patches(out, width, height, grid=(ct.cdiv(width, 32), ct.cdiv(height, 8)), block=256)
    y, x = np.indices((height, width))
    ct.check(out, y % 8 // 4 * 4 + x % 32 // 8, name=f"{width} x {height}")
