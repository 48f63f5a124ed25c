# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "The last wave", zh: "最后一波"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `last_wave(m, n, tile_m, tile_n)`: the share of the SMs that work in the last wave, if each
#             SM takes one tile at a time. Which tile suits a product of 4096 x 4096 better, 128 x 128 or
#             64 x 128?
#           zh: >-
#             写出 `last_wave(m, n, tile_m, tile_n)`：每个 SM 一次处理一个分块时，最后一波里有多大比例的 SM 在工作。
#             对 4096 x 4096 的矩阵乘法，128 x 128 和 64 x 128 的分块哪个更合适？
#         fails: "last wave"
#       2:
#         title: {en: "A rung for small matrices", zh: "给小矩阵写一个 kernel"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             At 256 the rungs with tiles of 128 x 128 have four blocks. Write the loop of a kernel with tiles
#             of 32 x 32, as simple as you can: load both tiles, with zeros outside, and multiply. Predict: at
#             which size does it lose to a good kernel with few blocks? In a file of its own, with the rungs'
#             parameters and a line `// @rung kernel=small_tiles block=32x32 tile=32x32`,
#             `python -m cudatut try gemm my_sgemm.cu` ranks it.
#           zh: >-
#             256 时，128 x 128 分块的各级只有四个线程块。请为 32 x 32 分块的 kernel 写出循环，越简单越好：
#             读入两个分块，矩阵之外填 0，再相乘。先预测：从多大的尺寸起，会慢于线程块较少的那些 kernel？把写好的 kernel 放进单独的
#             文件，参数与各级相同，再加一行 `// @rung kernel=small_tiles block=32x32 tile=32x32`，就可以用
#             `python -m cudatut try gemm my_sgemm.cu` 排名。
#         fails: "1 x 1 x 1"
# ---
# %% stub-1
def last_wave(m, n, tile_m, tile_n):
    """Share of the SMs that the last wave of tiles keeps busy, 0 to 1."""
    return 1.0  # yours


# %% stub-2
small_tiles = ct.Kernel(
    """
// C = A B; a block of 32 x 32 threads has a tile of 32 x 32 results.
__global__ void small_tiles(const float* A, const float* B, float* C,
                            int m, int n, int k) {
  __shared__ float a[32][32], b[32][32];
  int x = threadIdx.x, y = threadIdx.y;
  int column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
  float sum = 0;
  // yours: walk along the depth k in steps of 32
  if (row < m && column < n) C[(size_t)row * n + column] = sum;
}
""",
    "small_tiles",
)
