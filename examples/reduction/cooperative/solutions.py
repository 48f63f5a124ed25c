# ---
# jupyter:
#   cudatut:
#     title: {en: "Few blocks that walk: solutions", zh: "少量线程块，走遍整个数组：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [67108864, 16384]}
# ---

# %% [markdown]
# Least and largest element in one walk, and a walk whose four sums do not wait
# for each other.

# %% given-1
import numpy as np
import cudatut as ct


def least_and_largest(x):
    resident = extremes.resources(256).blocks_per_sm * ct.device().sm_count
    blocks = min(resident, ct.cdiv(x.size, 256))
    low, high = ct.empty(blocks, "float32"), ct.empty(blocks, "float32")
    extremes(x, x, low, high, x.size, grid=blocks, block=256)
    result = ct.empty(2, "float32")
    extremes(low, high, result[:1], result[1:], blocks, grid=1, block=256)
    return result


# %% solution-1
extremes = ct.Kernel(
    """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void extremes(const float* low, const float* high,
                                    float* least, float* largest,
                                    long long n) {
  __shared__ float lows[8], highs[8];
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  float a = INFINITY, b = -INFINITY;  // they change no minimum, no maximum
  const long long stride = gridDim.x * 256ll;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += stride) {
    a = fminf(a, low[i]);
    b = fmaxf(b, high[i]);
  }
  a = cg::reduce(warp, a, cg::less<float>());
  b = cg::reduce(warp, b, cg::greater<float>());
  const int lane = warp.thread_rank();
  if (lane == 0) {
    lows[warp.meta_group_rank()] = a;
    highs[warp.meta_group_rank()] = b;
  }
  block.sync();
  if (warp.meta_group_rank() > 0) return;
  a = cg::reduce(warp, lane < 8 ? lows[lane] : INFINITY, cg::less<float>());
  b = cg::reduce(warp, lane < 8 ? highs[lane] : -INFINITY,
                 cg::greater<float>());
  if (lane == 0) {
    least[blockIdx.x] = a;
    largest[blockIdx.x] = b;
  }
}
""",
    "extremes",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    x = 5 + ct.rng(n).standard_normal(n, dtype="float32")
    expected = np.array([x.min(), x.max()])
    # A view: who reads past an end finds a smaller or a larger number.
    between = np.pad(x, 1, constant_values=(-1e9, 1e9))
    got = least_and_largest(ct.to_device(between)[1:-1])
    ct.check(got, expected, name=f"n={n}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
four_sums = ct.Kernel(
    """
__global__ void four_sums(const float* in, float* out, long long n) {
  long long stride = (long long)gridDim.x * blockDim.x;
  long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  float sums[4] = {};
  long long i = thread;
  for (; i + 3 * stride < n; i += 4 * stride) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] += in[i + k * stride];
  }
  for (; i < n; i += stride) sums[0] += in[i];  // fewer than four are left
  out[thread] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
""",
    "four_sums",
)

# %% check-2
import cudatut as ct

for n in ct.RAGGED:
    x = 1 - 2 * ct.rng(n).random(n, dtype="float32")
    out = ct.empty(4 * 256, "float32")  # one sum per thread
    four_sums(ct.to_device(x), out, n, grid=4, block=256)
    turns = np.zeros((ct.cdiv(n, out.size), out.size))
    turns.flat[:n] = x
    ct.check(out, turns.sum(axis=0), name=f"n={n}", rtol=0, atol=1e-3)

# %% [markdown]
# The same walk as a rung: what `python -m cudatut try reduction` does with such
# a file.

# %% rung-2
from dataclasses import replace

from cudatut.book.reduction.ladder.ladder import LADDER

rung = ct.read_rung("reduction/cooperative/cooperative_solutions.cu")
rung = replace(rung, name="four_sums")
for trial in LADDER.trials:
    LADDER.problem(**trial).check(rung)
n = 67_108_864
LADDER.bench(
    ["few_blocks", rung, "one_launch", "limit"],
    n=n,
    name=f"sum of {n} float32",
)
