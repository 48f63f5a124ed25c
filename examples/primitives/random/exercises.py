# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Dropout without a mask", zh: "不存掩码的 dropout"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Dropout sets elements to 0 at random, with probability p, and
#             divides the others by 1 - p. Training needs the same choice again
#             in the backward pass, and mostly stores it. Write `dropout` so that
#             nothing is stored: element i is kept if `uniform_of` of word
#             i % 4 of counter i / 4 is at least p. One thread has four
#             elements; n may be any number. The check calls it with the data,
#             and again with the gradient.
#           zh: >-
#             dropout 以概率 p 随机把元素置 0，其余的除以 1 - p。训练在反向时还需要同样的
#             选择，通常的做法是把它存下来。写 `dropout`，什么都不存：计数器 i / 4 的第 i % 4
#             个字经 `uniform_of` 得到的数不小于 p，就保留元素 i。每个线程处理四个元素，n 可以是
#             任意值。检查程序先用数据调用它，再用梯度调用一次。
#         fails: "never written"
#       2:
#         title: {en: "Fair dice", zh: "公平的骰子"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             `word % k` is not uniform where k does not divide 2^32: some
#             numbers have one word more than others. Write `dice(words, k)`
#             with NumPy: for each row of four uint32 words, the integer from 0
#             to k - 1 that the first word w with w * k mod 2^32 >= 2^32 mod k
#             gives as w * k / 2^32, rounded down; -1 where none of the four
#             does. Then each number has as many words as any other. 1 <= k <=
#             2^32 - 1.
#           zh: >-
#             k 不整除 2^32 时，`word % k` 并不均匀：有些数比别的数多对应一个字。用 NumPy 写
#             `dice(words, k)`：每行有四个 uint32 字，取第一个满足 w * k mod 2^32 >= 2^32 mod k
#             的字 w，结果是 w * k / 2^32 向下取整，即 0 到 k - 1 的整数；四个字都不满足时为 -1。
#             这样每个数对应的字一样多。1 <= k <= 2^32 - 1。
#         fails: "are wrong"
#       3:
#         title: {en: "Two paths from one number", zh: "一个数，两条路径"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             If z is normal, so is -z. Of an option's payoff f, the mean of
#             f(z) and f(-z) varies less than that of two independent numbers:
#             where one is high, the other is low. Write `both(z, option)` with
#             NumPy: from normal numbers z the mean of the discounted payoffs of
#             both paths and its standard error, where a pair counts as one
#             sample. The check compares it with the exact price, and its error
#             with that of as many independent paths.
#           zh: >-
#             z 服从正态分布，-z 也一样。设期权的收益为 f，f(z) 与 f(-z) 的平均值，波动小于两个独立
#             的数的平均值：一个高时另一个低。用 NumPy 写 `both(z, option)`：由正态分布的数 z 求两条
#             路径折现收益的均值及其标准误差，一对算一个样本。检查程序把它与精确价格比较，并把误差与
#             同样多的独立路径的误差比较。
#         fails: "are wrong"
# ---


# %% stub-1
source = """
#include "primitives/random/philox.cuh"

extern "C" __global__ void dropout(const float* __restrict__ in,
                                   float* __restrict__ out, int n, float p,
                                   unsigned long long seed) {
  const Stream numbers = {seed, 0};
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  // yours: numbers.words(i, 0) are the words of elements 4 i to 4 i + 3
}
"""
dropout = ct.Kernel(source, "dropout")


# %% stub-2
def dice(words, k):
    """words: uint32 [n, 4]. int64 [n], 0 to k - 1, or -1."""
    return (words[:, 0] % np.uint32(k)).astype("int64")  # yours


# %% stub-3
def both(z, option):
    """Mean and standard error of the discounted payoff, two paths for a z."""
    return 0.0, 1.0  # yours
