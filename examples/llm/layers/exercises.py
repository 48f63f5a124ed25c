# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "From halves to neighbors", zh: "从两半到相邻"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             `to_pairs` gets the weights of Q or K, [heads * d, inputs], for RoPE in halves, and returns them for
#             RoPE in neighbors: in each head, row i becomes row 2i and row i + d/2 becomes row 2i + 1. The check
#             compares the scores of both.
#           zh: >-
#             传给 `to_pairs` 的是 Q 或 K 的权重 [heads * d, inputs]，适用于按两半旋转的 RoPE；请返回适用于相邻成对旋转的权重：
#             在每个头里，第 i 行变成第 2i 行，第 i + d/2 行变成第 2i + 1 行。检查程序比较两者的分数。
#         fails: "scores"
#       2:
#         title: {en: "The variance of two parts", zh: "合并两部分的方差"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A row that is read only once has no second pass over its differences to the mean. Each of two parts
#             has (count, mean, sum of squared differences to that mean). `join` returns the same of both parts
#             together. The check cuts rows with a mean of 10,000 at random places; some parts are empty.
#           zh: >-
#             一行如果只读一遍，就不能再回头求与均值之差。两部分各有（个数，均值，与该均值之差的平方和），`join`
#             返回两部分合在一起的这三个数。检查程序把均值为 10,000 的行从随机的位置切开，有的部分是空的。
#         fails: "squares"
#       3:
#         title: {en: "RMSNorm by a warp", zh: "用一个线程束做 RMSNorm"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             Write `rms_norm_warp`: a block of 32 threads has a row of `width` floats, of any length. Sum the
#             squares, each lane over columns lane, lane + 32, ..., give all lanes the sum, then write the results.
#           zh: >-
#             编写 `rms_norm_warp`：一个 32 线程的线程块处理一行，共 `width` 个 float，长度任意。先求平方和，每个 lane 负责第
#             lane、lane + 32……列；让所有 lane 都得到这个总和，再写出结果。
#         fails: "rms_norm_warp"
# ---
# %% stub-1
def to_pairs(weights, heads):
    """The same rows in the order for neighbors."""
    return weights  # yours: in each head, i to 2i, i + d/2 to 2i + 1


# %% stub-2
def join(a, b):
    """(count, mean, squares) of two parts, from those of each."""
    count = a[0] + b[0]
    mean = (a[0] * a[1] + b[0] * b[1]) / max(count, 1)
    return count, mean, a[2] + b[2]  # yours: the means differ


# %% stub-3
code = r"""
__global__ void rms_norm_warp(const float *x, const float *weight, float *out,
                              int width, float eps) {
  x += (size_t)blockIdx.x * width, out += (size_t)blockIdx.x * width;
  float squares = 0.0f;
  // yours: the sum of all squares, in every lane
  const float scale = rsqrtf(squares / width + eps);
  for (int c = threadIdx.x; c < width; c += 32)
    out[c] = x[c] * scale * weight[c];
}
"""
