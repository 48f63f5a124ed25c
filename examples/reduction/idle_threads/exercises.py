# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "More than two", zh: "不止两个"}
#         level: easy
#         minutes: 20
#         task:
#           en: >-
#             If two elements per thread are good, what about eight? Let each thread add eight elements while
#             it loads them, each with a bound of its own, and `sum` holds the result. First predict: a tree
#             costs about 800 warp instructions per block, each further element of a thread about 6 per warp.
#             How much does eight gain over two? As a rung in a file of your own, with a line
#             `// @rung kernel=several block=256 per_thread=8`, `python -m cudatut try reduction my_reduce.cu`
#             times it beside the ladder.
#           zh: >-
#             每个线程两个元素有好处，八个呢？让每个线程边读边加八个元素，每个元素各自判断边界，结果放在 `sum`
#             里。先预测：一棵树每个线程块大约 800 条线程束指令，线程每多一个元素，每个线程束大约多 6 条。八个比
#             两个能快多少？把它放进单独的文件，加上一行 `// @rung kernel=several block=256 per_thread=8`，
#             `python -m cudatut try reduction my_reduce.cu` 就会让它和整个阶梯一起计时。
#         fails: "n=1"
#       2:
#         title: {en: "Any number of threads", zh: "任意多个线程"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             The tree halves the number of words, which loses one when the number is odd. Change it so that
#             it is right for every block from 1 to 1024 threads.
#           zh: >-
#             这棵树不断把元素个数对半分，遇到奇数就会漏掉一个元素。请修改它，让 1 到 1024 个线程的任何线程块都正确。
#         fails: "block=31"
# ---
# %% stub-1
several = ct.Kernel(
    """
__global__ void several(const int* in, int* out, int n) {
  __shared__ int sums[256];
  int t = threadIdx.x;
  long long i = (long long)blockIdx.x * (8 * 256) + t;
  int sum = 0;  // yours: eight elements, 256 apart
  sums[t] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "several",
)

# %% stub-2
any_block = ct.Kernel(
    """
__global__ void any_block(const int* in, int* out, int n) {
  extern __shared__ int sums[];
  int t = threadIdx.x;
  long long i = 2ll * blockDim.x * blockIdx.x + t;
  int sum = i < n ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  sums[t] = sum;
  __syncthreads();
  for (int left = blockDim.x; left > 1;) {
    int half = left / 2;  // yours: what if left is odd?
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
    left = half;
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "any_block",
)
