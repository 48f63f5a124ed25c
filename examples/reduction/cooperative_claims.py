# ---
# jupyter:
#   cudatut:
#     title: {en: "Few blocks that walk: claims", zh: "少量线程块，走遍整个数组：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
#     sizes: {length: [1048576, 4096], delay: [2000000, 100000]}
# ---

# %% [markdown]
# What the notes on *Learn CUDA Programming* do with the launches of a sum,
# tried.

# %% setup
import cudatut as ct

from ladder import LADDER, Sum

# %% in-place-claim
IN_PLACE = """
__global__ void sum_in_place(int* data, int n, long long delay) {
  __shared__ int sums[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  if (blockIdx.x == 0) {  // late; nothing in CUDA promises that it is not
    const long long begin = clock64();
    while (clock64() - begin < delay) {}
  }
  __syncthreads();
  sums[t] = i < n ? data[i] : 0;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  // Where block blockIdx.x / 256 reads, or will read.
  if (t == 0) data[blockIdx.x] = sums[0];
}
"""
sum_in_place = ct.Kernel(IN_PLACE, "sum_in_place")
# In cycles: about a millisecond.
delay = 2_000_000
pieces = 256
numbers = ct.rng(1).integers(0, 1000, pieces * 256, dtype="int32")


def in_place(delay):
    """Two launches that write where they read."""
    data = ct.to_device(numbers)
    sum_in_place(data, data.size, delay, grid=pieces, block=256)
    sum_in_place(data, pieces, 0, grid=1, block=256)
    return int(data.get()[0])


right, late = int(numbers.sum()), in_place(delay)
ct.claim(
    id="reduction-in-place",
    source="Learn CUDA Programming, notes: sharedReduction",
    statement={
        "en": "A reduction may write its partial sums over its own input, with one launch for several blocks: "
        "reduce(output, output).",
        "zh": "规约可以把部分和写回自己的输入，一次启动多个线程块：reduce(output, output)。",
    },
    predicted=right,
    measured=late,
    verdict="confirmed" if late == right else "refuted",
)

# %% second-launch-claim
length = 1_048_576
integers = Sum(length, "int32")
walk_int = LADDER["few_blocks"].compile(BLOCK=256, ELEMENT="int")
resident = walk_int.resources(256).blocks_per_sm * ct.device().sm_count
blocks = min(resident, ct.cdiv(length, 256))
partial, total = ct.empty(blocks, "int32"), ct.empty(1, "int32")
walk_int(integers.x, partial, length, grid=blocks, block=256)
# The slip: `integers.x`, not `partial`.
walk_int(integers.x, total, blocks, grid=1, block=256)
slip = int(total.get()[0])
ct.claim(
    id="reduction-second-launch",
    source="Learn CUDA Programming, notes: warplevelPrimitiveReduction",
    statement={
        "en": "The second launch of the few-blocks sum is called with the input again, and leaves the total.",
        "zh": "少量线程块求和的第二次启动，仍把输入数组传进去，得到的就是总和。",
    },
    predicted=int(integers.expected[0]),
    measured=slip,
    verdict="confirmed" if slip == int(integers.expected[0]) else "refuted",
)
