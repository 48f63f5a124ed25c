# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Wide loads for rung 8", zh: "给第八级换上宽读取"}
#         level: easy
#         minutes: 20
#         task:
#           en: >-
#             Give rung 8 loads of 16 bytes and leave the rest as it is. The stub includes the source of rung 8
#             and may call its `block_sum` and `last_block`. Mind the last one to three elements.
#           zh: >-
#             把第八级的读取改成每次 16 字节，其余不动。下面的代码包含了第八级的源码，可以调用其中的 `block_sum` 和
#             `last_block`。注意末尾的一到三个元素。
#         fails: "n=1"
#       2:
#         title: {en: "Atomics that repeat", zh: "结果可重复的原子加"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Sum floats of magnitude below 2 by atomics so that twenty runs give one result. Integers add
#             exactly: use 64-bit integers in units of 2^-32. `__float2ll_rn(y)` rounds a float to the nearest
#             integer. `atomicAdd` takes `unsigned long long`; modulo 2^64 it is right for negative numbers too.
#             What is the largest error, and how many elements may there be?
#           zh: >-
#             对绝对值小于 2 的 float 用原子操作求和，要求运行二十次只有一种结果。请换用相加时没有舍入的数：以
#             2^-32 为单位的 64 位整数。`__float2ll_rn(y)` 把 float 舍入为最近的 64 位整数。`atomicAdd` 接受
#             `unsigned long long`；它按模 2^64 计算，对负数同样正确。误差最大是多少？最多能有多少个元素？
#         fails: "n=1"
# ---
# %% stub-1
reduce_wide = ct.Kernel(
    """
#include "reduction/ladder/one_launch.cu"  // block_sum, last_block

extern "C" __global__ void reduce_wide(const float* in, float* out, long long n,
                                       float* partials, unsigned* ticket) {
  long long me = blockIdx.x * 256ll + threadIdx.x;
  long long stride = gridDim.x * 256ll;
  float sum = 0;
  // yours: this thread's elements, by loads of float4
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

# %% stub-2
fixed_point = ct.Kernel(
    """
// total += the sum of in[0 .. n), in units of 2^-32
__global__ void fixed_point(const float* in, unsigned long long* total,
                            long long n) {
  // yours
}
""",
    "fixed_point",
)
