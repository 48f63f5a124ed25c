# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Every thread gets the sum", zh: "每个线程都拿到总和"}
#         level: easy
#         minutes: 20
#         task:
#           en: >-
#             Each block of 256 threads divides its elements by their sum, as a softmax does. All 256 threads
#             need the sum. Finish the kernel `shares` with one barrier and the eight words of shared memory.
#           zh: >-
#             每个线程块有 256 个线程，每个元素都要除以本块元素的总和，softmax 就是这样做的。256 个线程都需要这个总和。
#             请补完 kernel `shares`，只用一次屏障，共享内存也只用这八个元素。
#         fails: "n=31"
#       2:
#         title: {en: "A block of any size", zh: "任意大小的线程块"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             Make the block's sum right for every block from 1 to 1024 threads. Warps may have fewer than 32
#             lanes, and the number of warps may be any number up to 32. Which mask names only lanes that
#             exist? Which values may be added?
#           zh: >-
#             请修改线程块的求和，让线程块无论有几个线程（1 到 1024），结果都正确。线程束可以不满 32 个 lane，线程束的个数可以是
#             不超过 32 的任何数。哪个掩码只包含存在的 lane？哪些值可以加进来？
#         fails: "block=31"
# ---
# %% stub-1
shares = ct.Kernel(
    """
__global__ void shares(const float* x, float* out, int n) {
  __shared__ float of_warp[8];
  int i = blockIdx.x * 256 + threadIdx.x;
  float mine = i < n ? x[i] : 0.0f;
  float sum = mine;  // yours: the sum over the block, in every thread
  if (i < n) out[i] = mine / sum;
}
""",
    "shares",
)

# %% stub-2
any_block = ct.Kernel(
    """
// Sum over the first `lanes` lanes of a warp; only lane 0 holds it.
__device__ int warp_sum(int sum, int lanes) {
  return sum;  // yours
}

__global__ void any_block(const int* in, int* out, int n) {
  __shared__ int of_warp[32];
  int t = threadIdx.x;
  long long i = 2ll * blockDim.x * blockIdx.x + t;
  int sum = i < n ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  // yours: the sum over the block, in thread 0
  if (t == 0) out[blockIdx.x] = sum;
}
""",
    "any_block",
)
