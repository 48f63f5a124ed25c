# ---
# jupyter:
#   cudatut:
#     title: {en: "Grouped products: solutions", zh: "分组乘法：参考答案"}
#     requires: sm_75
# ---

# %% [markdown]
# The group of a tile, and the ends of the groups, made on the GPU.

# %% given-1
import numpy as np


# %% solution-1
def place(ends, n, tile):
    """Group, first row and first column of a tile."""
    begin = 0
    for group, end in enumerate(ends):
        down, right = -(-(end - begin) // 128), -(-n // 256)
        if tile < down * right:
            return group, begin + tile % down * 128, tile // down * 256
        tile -= down * right
        begin = end
    raise IndexError("there are fewer tiles")


# %% check-1
import numpy as np
import cudatut as ct

for n, counts in (
    (256, [3]),
    (520, [0, 300, 0, 128, 1, 0, 257]),
    (8, [129, 5]),
):
    ends = np.cumsum(counts).tolist()
    owner = np.repeat(np.arange(len(counts)), counts)
    tiles = sum(-(-count // 128) for count in counts) * -(-n // 256)
    seen = np.zeros((ends[-1], n), "int32")
    for tile in range(tiles):
        group, row, column = place(ends, n, tile)
        bottom = min(row + 128, ends[group])
        part = seen[row:bottom, column : column + 256]
        part += 1 + 1000 * (owner[row:bottom, None] != group)
    ct.check(seen, np.ones_like(seen), name=f"{len(counts)} groups, n = {n}")

# %% given-2
import numpy as np

# %% solution-2
SOURCE = """
extern "C" __global__ void count_rows(const int *expert, int rows, int *ends,
                                      int experts) {
  __shared__ int count[1024];
  for (int g = threadIdx.x; g < experts; g += blockDim.x) count[g] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < rows; i += blockDim.x)
    atomicAdd(&count[expert[i]], 1);
  __syncthreads();
  if (threadIdx.x == 0)
    for (int g = 1; g < experts; ++g) count[g] += count[g - 1];
  __syncthreads();
  for (int g = threadIdx.x; g < experts; g += blockDim.x) ends[g] = count[g];
}
"""

# %% check-2
import cudatut as ct

kernel = ct.Kernel(SOURCE, "count_rows")
for rows, experts in ((0, 3), (1, 1), (1000, 8), (16384, 128), (5000, 1024)):
    chosen = ct.rng(rows).integers(0, experts, rows).astype("int32")
    ends = ct.empty(experts, "int32")
    on_gpu = ct.to_device(np.append(chosen, 0).astype("int32"))
    kernel(on_gpu, rows, ends, experts, grid=1, block=256)
    want = np.cumsum(np.bincount(chosen, minlength=experts))
    name = f"{rows} rows, {experts} experts"
    ct.check(ends, want.astype("int32"), name=name)
