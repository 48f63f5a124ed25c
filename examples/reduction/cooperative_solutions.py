# ---
# jupyter:
#   cudatut:
#     title: {en: "Few blocks that walk: solutions", zh: "少量线程块，走遍整个数组：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Least and largest element in one walk; and a walk whose four sums do not wait for each other.

# %% setup
from dataclasses import replace

import numpy as np
from ladder import LADDER

import cudatut as ct
from cudatut.ladder import read_rung

rng = ct.rng(0)

# %% solution-1
extremes = ct.Kernel(
    """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// least[b], largest[b]: of the elements that block b meets. The second launch reads the first one's.
extern "C" __global__ void extremes(const float* low, const float* high, float* least,
                                    float* largest, long long n) {
  __shared__ float lows[8], highs[8];
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  float a = INFINITY, b = -INFINITY;  // what changes no minimum and no maximum
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) {
    a = fminf(a, low[i]);
    b = fmaxf(b, high[i]);
  }
  a = cg::reduce(warp, a, cg::less<float>());
  b = cg::reduce(warp, b, cg::greater<float>());
  if (warp.thread_rank() == 0) {
    lows[warp.meta_group_rank()] = a;
    highs[warp.meta_group_rank()] = b;
  }
  block.sync();
  if (warp.meta_group_rank() > 0) return;
  const bool have = warp.thread_rank() < 8;
  a = cg::reduce(warp, have ? lows[warp.thread_rank()] : INFINITY, cg::less<float>());
  b = cg::reduce(warp, have ? highs[warp.thread_rank()] : -INFINITY, cg::greater<float>());
  if (warp.thread_rank() == 0) {
    least[blockIdx.x] = a;
    largest[blockIdx.x] = b;
  }
}
""",
    "extremes",
)
resident = extremes.resources(256).blocks_per_sm * ct.device().sm_count


def least_and_largest(x):
    blocks = min(resident, ct.cdiv(x.size, 256))
    low, high, result = (
        ct.empty(count, "float32") for count in (blocks, blocks, 2)
    )
    extremes(x, x, low, high, x.size, grid=blocks, block=256)
    extremes(low, high, result[:1], result[1:], blocks, grid=1, block=256)
    return result


for m in ct.RAGGED:
    x_host = 5 + rng.standard_normal(m, dtype="float32")
    expected = np.array([x_host.min(), x_host.max()])
    ct.check(
        least_and_largest(ct.to_device(x_host)), expected, name=f"n={m}", rtol=0
    )

# %% solution-2
mine = replace(
    read_rung("reduction/cooperative_solutions.cu"), name="four_sums"
)
for trial in LADDER.trials:
    LADDER.problem(**trial).check(mine)
ct.show(mine.compile(BLOCK=256, ELEMENT="float").resources(256))
n = ct.size(1 << 26, 1 << 14)
bench = LADDER.bench(
    ["few_blocks", mine, "one_launch", "limit"], n=n, name=f"sum of {n} float32"
)
