# ---
# jupyter:
#   cudatut:
#     title: {en: "One launch, and the limit: solutions", zh: "一次启动，直达极限：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Rung 8 with loads of 16 bytes; and a sum by atomics that is the same in every run.

# %% setup
import numpy as np
import pycuda.driver as cuda
from ladder import LADDER

import cudatut as ct
from cudatut.ladder import read_rung

rng = ct.rng(0)
sms = ct.device().sm_count

# %% solution-1
mine = read_rung("reduction/one_launch_solutions.cu")
for trial in LADDER.trials:
    LADDER.problem(**trial).check(mine)
ct.show(mine.compile(BLOCK=256, ELEMENT="float").resources(256))
bench = LADDER.bench(["one_launch", mine, "limit"], n=ct.size(1 << 26, 1 << 14))

# %% solution-2
fixed_point = ct.Kernel(
    """
// total += sum of in[0 .. n) in units of 2^-32; |in[i]| < 2, n < 2^30. Integers may be added in any
// order.
extern "C" __global__ void fixed_point(const float* in, unsigned long long* total, long long n) {
  long long sum = 0;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll)
    sum += __float2ll_rn(in[i] * 4294967296.0f);  // a power of two: the product does not round
  for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
  // One addition per warp, modulo 2^64: right for negative numbers too.
  if (threadIdx.x % 32 == 0) atomicAdd(total, (unsigned long long)sum);
}
""",
    "fixed_point",
)


def fixed_sum(x):
    total = ct.empty(1, "uint64")
    cuda.memset_d32(total.gpudata, 0, 2)
    fixed_point(x, total, x.size, grid=8 * sms, block=256)
    return total.get().view("int64") / 2.0**32


for m in ct.RAGGED:
    x_host = rng.uniform(-1, 1, m).astype("float32")
    expected = np.array([x_host.sum(dtype="float64")])
    ct.check(
        fixed_sum(ct.to_device(x_host)),
        expected,
        name=f"n={m}",
        rtol=0,
        atol=m * 2.0**-33,
    )
x = ct.to_device(x_host)
ct.facts(
    "20 runs",
    {
        "distinct sums": len(
            {fixed_sum(x).tobytes() for _ in range(ct.size(20, 2))}
        )
    },
)
