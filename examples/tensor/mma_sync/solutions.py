# ---
# jupyter:
#   cudatut:
#     title: {en: "mma.sync: solutions", zh: "mma.sync：参考答案"}
#     requires: sm_80
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# Passes of ldmatrix by the pitch, and a product with weights as they lie.

# %% given-1
import numpy as np


# %% solution-1
def passes(pitch, piece):
    """Passes of ldmatrix for one matrix of eight lines."""
    # 16 bytes are four banks: there are eight such groups.
    groups = [(line * pitch // 16 + piece) % 8 for line in range(8)]
    return max(groups.count(group) for group in groups)


# %% check-1
import numpy as np
import cudatut as ct

PITCHES = (16, 32, 48, 64, 80, 96, 112, 128, 144, 256, 272)
found, wanted = [], []
for pitch in PITCHES:
    for piece in range(8):
        words = [
            [(line * pitch + piece * 16) // 4 % 32 + i for i in range(4)]
            for line in range(8)
        ]
        wanted.append(int(np.bincount(np.ravel(words)).max()))
        found.append(passes(pitch, piece))
ct.check(np.array(found), np.array(wanted), name="passes")

# %% given-2
import numpy as np
import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float

KERNEL = """
#include "tensor/ladder/warps.cuh"

#ifndef LOAD_W  // yours stands in front
__device__ void load_w(unsigned (&b)[4], unsigned tile, int line, int step) {}
#endif

extern "C" __global__ void __launch_bounds__(256)
    gemm_nt(const __nv_bfloat16* A, const __nv_bfloat16* W, __nv_bfloat16* C,
            int m, int n, int k) {
  __shared__ __align__(1024) unsigned char memory[2 * 128 * 128];
  const unsigned tile_a = shared_address(memory), tile_w = tile_a + 128 * 128;
  const int top = blockIdx.y * 128, left = blockIdx.x * 128;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp / 4 * 64, column = warp % 4 * 32;
  float sum[4][4][4] = {};
  for (int start = 0; start < k; start += BK) {
    copy_lines<128, 256>(tile_a, A, m, k, top, start);
    copy_lines<128, 256>(tile_w, W, n, k, left, start);
    commit();
    wait_for_all_but<0>();
    __syncthreads();
    for (int step = 0; step < 4; ++step) {
      unsigned a[4][4], b[2][4];
      for (int i = 0; i < 4; ++i)
        ldmatrix(a[i], tile_a + place(row + i * 16 + lane % 16,
                                      step * 2 + lane / 16));
      for (int j = 0; j < 2; ++j)
        load_w(b[j], tile_w, column + j * 16, step);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          mma(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
    __syncthreads();
  }
  store_warp(sum, C, top + row, left + column, m, n);
}
"""


def product(a, w):
    (m, k), n = a.shape, w.shape[0]
    c = ct.to_device(np.zeros((m, n), "uint16"))
    on_gpu = [ct.to_device(to_bf16(x)) for x in (a, w)]
    head = '#include "tensor/ladder/warps.cuh"\n#define LOAD_W\n'
    kernel = ct.Kernel(head + LOAD + KERNEL, "gemm_nt")
    grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
    kernel(*on_gpu, c, m, n, k, grid=grid, block=256)
    return to_float(c.get())


# %% solution-2
# A line of W is a column of W^T: two elements side by side in a line follow
# each other in depth, as `mma` wants them. So nothing is turned. The matrices
# are: lines 0 to 7 with both halves of the depth, then lines 8 to 15.
LOAD = """
// tile: where the tile of W begins; line: the first of 16 lines; step: 0 to 3.
__device__ __forceinline__ void load_w(unsigned (&b)[4], unsigned tile,
                                       int line, int step) {
  const unsigned lane = threadIdx.x % 32;
  ldmatrix(b, tile + place(line + lane / 16 * 8 + lane % 8,
                           step * 2 + lane / 8 % 2));
}
"""

# %% check-2
import cudatut as ct

for m, n, k in ((128, 128, 64), (100, 200, 136), (257, 264, 520)):
    rng = ct.rng(m)
    a, w = rng.integers(1, 4, (m, k)), rng.integers(-3, 4, (n, k))
    exact = (a @ w.T).astype("float32")
    # bf16 keeps 8 significant bits.
    ct.check(product(a, w), exact, rtol=2**-8, name=f"{m} x {n} x {k}")
