# ---
# jupyter:
#   cudatut:
#     title: {en: "wgmma: solutions", zh: "wgmma：参考答案"}
#     requires: sm_90a
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# Where an element of a swizzled box stands, and a product of two factors whose
# lines run along the depth.

# %% given-1
import numpy as np
import cudatut as ct

host = np.arange(64 * 64, dtype="uint16").reshape(64, 64)
# A kernel of the chapter on the TMA writes a box out as it lies in shared
# memory: 64 lines of 32 words, which are two elements each.
words = ct.empty((64, 32), "float32")
show_box = ct.Kernel("gemm/tma/tma_box.cu", "show_box<64, 32>")
box = ct.tensor_map(ct.to_device(host.view("float32")), (64, 32), swizzle=128)
show_box(box, words, 0, 0, grid=1, block=32)
memory = words.get().view("uint8").reshape(-1)


# %% solution-1
def byte_of(row, column):
    """Byte of `memory` at which element (row, column) begins."""
    piece = column // 8  # of 16 bytes
    return 128 * row + 16 * (piece ^ row % 8) + 2 * (column % 8)


# %% check-1
import cudatut as ct

found = np.empty((64, 64), "uint16")
for row in range(64):
    for column in range(64):
        at = byte_of(row, column)
        found[row, column] = memory[at : at + 2].view("uint16")[0]
ct.check(found, host, name="the box, element by element")

# %% given-2
import numpy as np
import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float


def product(a, w):
    (m, k), n = a.shape, w.shape[0]
    c = ct.empty((m, n), "uint16")
    on_gpu = [ct.to_device(to_bf16(x)) for x in (a, w)]
    maps = [ct.tensor_map(x, (64, 64), swizzle=128) for x in on_gpu]
    kernel = ct.Kernel(SOURCE, "gemm_nt", arch="sm_90a")
    grid = ct.cdiv(n, 128), ct.cdiv(m, 64)
    kernel(*maps, c, m, n, k, grid=grid, block=128)
    return to_float(c.get())


# %% solution-2
# A box begins at a row of W, which is a column of C, and at the depth. Its
# lines run along the depth: so does the descriptor, 32 bytes at a time.
SOURCE = """
#include "tensor/ladder/products.cuh"
#include "ptx/tma.cuh"

extern "C" __global__ void __launch_bounds__(128)
    gemm_nt(const __grid_constant__ CUtensorMap A,
            const __grid_constant__ CUtensorMap W, __nv_bfloat16* C, int m,
            int n, int k) {
  __shared__ __align__(1024) unsigned char tile_a[BOX], tile_w[2 * BOX];
  __shared__ Barrier arrived;
  const int top = blockIdx.y * 64, left = blockIdx.x * 128;
  if (threadIdx.x == 0) {
    init(&arrived, 1);
    fence_init();
  }
  __syncthreads();
  float sum[64];
  for (int start = 0, parity = 0; start < k; start += BK, parity ^= 1) {
    if (threadIdx.x == 0) {
      arrive_and_expect(&arrived, 3 * BOX);
      copy_box(tile_a, A, top, start, &arrived);
      for (int box = 0; box < 2; ++box)
        copy_box(tile_w + box * BOX, W, left + box * 64, start, &arrived);
    }
    wait(&arrived, parity);
    const Descriptor of_a(shared_address(tile_a));
    const Descriptor of_w(shared_address(tile_w));
    fence_sums();
    for (int i = 0; i < BK / 16; ++i)
      wgmma<true, true>(sum, of_a.at(i * 32), of_w.at(i * 32), start + i > 0);
    close_products();
    wait_for_products<0>();
    __syncthreads();
  }
  store_sums(sum, C, top, left, m, n);
}
"""

# %% check-2
import numpy as np
import cudatut as ct

for m, n, k in ((64, 128, 64), (100, 200, 136), (257, 264, 520)):
    rng = ct.rng(m)
    a, w = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (n, k))
    exact = (a @ w.T).astype("float32")
    # bf16 keeps 8 significant bits.
    ct.check(product(a, w), exact, rtol=2**-8, name=f"{m} x {n} x {k}")
