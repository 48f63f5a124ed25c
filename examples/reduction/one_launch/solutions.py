# ---
# jupyter:
#   cudatut:
#     title: {en: "One launch, and the limit: solutions", zh: "一次启动，直达极限：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [67108864, 16384]}
# ---

# %% [markdown]
# Rung 8 with loads of 16 bytes; and a sum by atomics that is the same in every
# run.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
reduce_wide = ct.Kernel(
    """
#include "reduction/ladder/one_launch.cu"  // block_sum, last_block

extern "C" __global__ void reduce_wide(const float* in, float* out, long long n,
                                       float* partials, unsigned* ticket) {
  long long me = blockIdx.x * 256ll + threadIdx.x;
  long long stride = gridDim.x * 256ll;
  float sum = 0;
  const float4* wide = reinterpret_cast<const float4*>(in);
  for (long long i = me; i < n / 4; i += stride) {
    float4 v = wide[i];
    sum += (v.x + v.y) + (v.z + v.w);
  }
  long long tail = n / 4 * 4 + me;  // the last one to three
  if (tail < n) sum += in[tail];
  sum = block_sum(sum);
  if (last_block(sum, partials, ticket)) {
    sum = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += 256)
      sum += __ldcg(partials + b);
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[0] = sum;
  }
}
""",
    "reduce_wide",
)

# %% check-1
import cudatut as ct

for m in (*ct.RAGGED, 2, 3, 1022, 1023, 1024, 1025):
    x = ct.rng(m).standard_normal(m, dtype="float32")
    grid = min(ct.cdiv(m, 1024), 64)
    out, partials = ct.empty(1, "float32"), ct.empty(grid, "float32")
    ticket = ct.to_device(np.zeros(1, "uint32"))
    data, most = ct.to_device(x), 1e-6 * float(np.abs(x).sum(dtype="float64"))
    for launch in ("first", "second"):
        reduce_wide(data, out, m, partials, ticket, grid=grid, block=256)
        name, expected = f"n={m}, {launch} launch", [x.sum(dtype="float64")]
        ct.check(out, expected, name=name, rtol=0, atol=most)

# %% [markdown]
# The same kernel as a rung, beside its neighbors.

# %% bench-1
from cudatut.book.reduction.ladder.ladder import LADDER

n = 67_108_864
mine = ct.read_rung("reduction/one_launch/one_launch_solutions.cu")
for trial in LADDER.trials:
    LADDER.problem(**trial).check(mine)
ct.show(mine.compile(BLOCK=256, ELEMENT="float").resources(256))
bench = LADDER.bench(
    ["one_launch", mine, "limit"], n=n, name=f"sum of {n} float32"
)

# %% given-2
import numpy as np
import cudatut as ct


def fixed_sum(x):
    """Sum of x, |x[i]| < 2, as one float64."""
    total = ct.to_device(np.zeros(1, "uint64"))
    grid = min(ct.cdiv(x.size, 256), 1024)
    fixed_point(x, total, x.size, grid=grid, block=256)
    return total.get().view("int64") / 2.0**32


# %% solution-2
fixed_point = ct.Kernel(
    """
// total += the sum of in[0 .. n), in units of 2^-32
__global__ void fixed_point(const float* in, unsigned long long* total,
                            long long n) {
  long long i = blockIdx.x * 256ll + threadIdx.x, sum = 0;
  for (; i < n; i += gridDim.x * 256ll)  // the product is exact: a power of two
    sum += __float2ll_rn(in[i] * 4294967296.0f);
  for (int half = 16; half > 0; half /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, half);
  // One addition per warp; integers may be added in any order.
  if (threadIdx.x % 32 == 0) atomicAdd(total, (unsigned long long)sum);
}
""",
    "fixed_point",
)

# %% check-2
import cudatut as ct

for m in ct.RAGGED:
    x = ct.rng(m).uniform(-1, 1, m).astype("float32")
    expected, most = [x.sum(dtype="float64")], m * 2.0**-33
    got = fixed_sum(ct.to_device(x))
    ct.check(got, expected, name=f"n={m}", rtol=0, atol=most)
data = ct.to_device(x)
sums = {fixed_sum(data).item() for run in range(20)}
ct.check([len(sums)], [1], name="different sums of 20 runs", rtol=0)
