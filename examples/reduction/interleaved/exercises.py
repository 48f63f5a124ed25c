# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Constants", zh: "换成常量"}
#         level: easy
#         minutes: 20
#         task:
#           en: >-
#             Write the loop of rung 1, with its modulo, so that the compiler can unroll it: 256 is a
#             constant, so `step` is a constant in every copy of the body. First predict: which of the three
#             kernels of this chapter will it resemble? `#pragma unroll` stands directly before a loop.
#           zh: >-
#             写出第一级的循环，保留取模，但要让编译器能把它展开：256 是常量，所以循环体的每一份里 `step`
#             也是常量。先预测：这样写会像本章三个 kernel 里的哪一个？`#pragma unroll` 写在循环的正前方。
#         fails: "n=31"
#       2:
#         title: {en: "Rows of any width", zh: "任意宽度的行"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Sum each row of a matrix, with one block per row and one thread per element, for widths up to
#             1024 that need not be powers of two. Use the strided index of this chapter. Which test does
#             the loop need now, and why is `left < width` not enough?
#           zh: >-
#             对矩阵的每一行求和，一行一个线程块，一个元素一个线程；宽度最大 1024，不必是 2 的幂。用本章的跨步索引。循环里的
#             判断要怎么改？为什么只判断 `left < width` 不够？
#         fails: "width=2:"
# ---
# %% stub-1
CONSTANT = ct.Kernel(
    """
__global__ void reduce_constant(const int* in, int* out, int n) {
  __shared__ int sums[256];
  const unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
  // yours: the loop of the tree
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "reduce_constant",
)

# %% stub-2
row_sums = ct.Kernel(
    """
extern "C" __global__ void row_sums(const float* in, float* out, int width) {
  extern __shared__ float sums[];  // one element per thread
  int t = threadIdx.x;
  sums[t] = in[(long long)blockIdx.x * width + t];
  __syncthreads();
  for (int step = 1; step < width; step *= 2) {
    // yours: which thread adds which pair, if there is one?
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "row_sums",
)
