# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "A schedule", zh: "排一张时间表"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `finish(load, multiply, tiles, buffers)`: the time at which the last tile is multiplied.
#             Tiles are multiplied one after the other. A load begins as soon as a buffer is free, and loads do
#             not slow each other down. `CASES` has four results. With how many buffers does a load of 2500
#             disappear behind multiplications of 1000?
#           zh: >-
#             写出 `finish(load, multiply, tiles, buffers)`，返回最后一个分块乘完的时刻。分块依次相乘；只要有缓冲区
#             空出来就开始读取，各次读取互不影响。`CASES` 里有四个结果。读取要 2500、相乘要 1000 时，需要几个缓冲区
#             才能把读取完全掩盖？
#         fails: "load 700, 1 buffers"
#       2:
#         title: {en: "Chunks that arrive early", zh: "提前到达的数据段"}
#         level: hard
#         minutes: 40
#         task:
#           en: >-
#             Write the kernel `row_sums`: each block of 128 threads sums one row of `X`, a matrix with any number of
#             `columns`, into `out[blockIdx.x]`. It brings its row in chunks of 128 words with `cp.async`; the macro
#             `AHEAD` says how many chunks ahead. Where do you need a barrier? How many chunks must be on their way if
#             each SM has only one such block?
#           zh: >-
#             写出 kernel `row_sums`：每个 128 线程的线程块对矩阵 `X` 的一行求和，写到 `out[blockIdx.x]`，列数 `columns`
#             任意。用 `cp.async` 分段读取这一行，每段 128 个元素，宏 `AHEAD` 是提前的段数。哪里需要屏障？如果每个 SM 上
#             只有一个这样的线程块，要有几段在路上？
#         fails: "never written"
# ---
# %% stub-1
def finish(load, multiply, tiles, buffers):
    """Time at which the last of `tiles` tiles is multiplied."""
    return 0  # yours


# %% stub-2
ROW_SUMS = """
#include <cuda_pipeline.h>

extern "C" __global__ void row_sums(const float* X, float* out,
                                    int columns) {
  // yours: __pipeline_memcpy_async, __pipeline_commit, __pipeline_wait_prior
}
"""
