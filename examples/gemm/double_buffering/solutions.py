# ---
# jupyter:
#   cudatut:
#     title: {en: "Double buffering: solutions", zh: "双缓冲：参考答案"}
#     requires: sm_80
#     timeout_s: 60
#     sizes: {length: [131072, 1024]}
# ---

# %% [markdown]
# A schedule simulated before it is run, and a row sum whose chunks arrive
# early.

# %% given-1
CASES = {  # load, multiply, tiles, buffers: when the last tile is done
    (700, 1000, 100, 1): 170_000,
    (700, 1000, 100, 2): 100_700,
    (2500, 1000, 100, 2): 176_000,
    (2500, 1000, 100, 4): 102_500,
}


# %% solution-1
def finish(load, multiply, tiles, buffers):
    """Time at which the last of `tiles` tiles is multiplied."""
    done = []
    for tile in range(tiles):
        # A tile needs the buffer of the tile `buffers` before it.
        free = done[tile - buffers] if tile >= buffers else 0
        ready = max(free + load, done[-1] if done else 0)
        done.append(ready + multiply)
    return done[-1]


# %% check-1
import cudatut as ct

for case, expected in CASES.items():
    load, multiply, tiles, buffers = case
    got = finish(load, multiply, tiles, buffers)
    ct.check([got], [expected], name=f"load {load}, {buffers} buffers")

# %% [markdown]
# How many buffers hide a load?

# %% buffers-1
ct.table(
    "time per tile, multiplication 1000",
    {
        f"load {load}": {
            f"{buffers} buffers": finish(load, 1000, 100, buffers) / 100
            for buffers in (1, 2, 3, 4)
        }
        for load in (700, 2500)
    },
    corner="load",
)

# %% given-2
import numpy as np
import cudatut as ct


def row_sums(x, ahead):
    """Sums of the rows of x, `ahead` chunks on their way."""
    rows, columns = x.shape
    out = ct.empty(rows, "float32")
    kernel = ct.Kernel(ROW_SUMS, "row_sums", defines={"AHEAD": ahead})
    kernel(x, out, columns, grid=rows, block=128)
    return out


# %% solution-2
ROW_SUMS = """
#include <cuda_pipeline.h>

extern "C" __global__ void row_sums(const float* X, float* out,
                                    int columns) {
  __shared__ float chunks[AHEAD][128];
  __shared__ float sums[4];
  const int t = threadIdx.x;
  const float* row = X + (size_t)blockIdx.x * columns;
  const int steps = (columns + 127) / 128;
  const auto copy = [&](int step) {
    const int i = step * 128 + t;
    if (i < columns)
      __pipeline_memcpy_async(&chunks[step % AHEAD][t], row + i, 4);
    __pipeline_commit();  // also of nothing, so that every step has a group
  };
  for (int s = 0; s < AHEAD; ++s) copy(s);
  float sum = 0;
  for (int s = 0; s < steps; ++s) {
    // Of the last AHEAD chunks all but the first may be late.
    __pipeline_wait_prior(AHEAD - 1);
    // Each thread reads the word that it asked for itself: no barrier.
    if (s * 128 + t < columns) sum += chunks[s % AHEAD][t];
    copy(s + AHEAD);
  }
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
  if (t % 32 == 0) sums[t / 32] = sum;
  __syncthreads();
  if (t == 0) out[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}
"""

# %% check-2
import cudatut as ct

for columns in (1, 31, 129, 1000, 4096):
    x = ct.rng(0).standard_normal((33, columns), dtype="float32")
    expected = x.sum(axis=1, dtype="float64")
    most = columns * 1.2e-7 * float(np.abs(x).sum(axis=1).max())
    for ahead in (1, 2, 4, 8):
        got = row_sums(ct.to_device(x), ahead)
        name = f"{ahead} ahead, {columns} columns"
        ct.check(got, expected, name=name, rtol=0, atol=most)

# %% [markdown]
# One block per SM, so that no other block hides what this one waits for.

# %% bench-2
length = 131_072
rows = ct.device().sm_count
x = ct.to_device(ct.rng(1).standard_normal((rows, length), dtype="float32"))
out = ct.empty(rows, "float32")
kernels = {
    f"{ahead} ahead": ct.Kernel(ROW_SUMS, "row_sums", defines={"AHEAD": ahead})
    for ahead in (1, 2, 4, 8)
}


def launcher(kernel):
    return lambda: kernel(x, out, length, grid=rows, block=128)


times = ct.bench(
    {name: launcher(kernel) for name, kernel in kernels.items()},
    bytes=x.nbytes,
    rounds=15,
    name="row sums, one block per SM",
)
eight = times["8 ahead"]
ct.facts(
    "eight chunks ahead",
    {
        "times as fast as one": times["1 ahead"].median_us / eight.median_us,
        "chunks for the limit, in proportion": 8 / (eight.of_peak or 1),
    },
)
