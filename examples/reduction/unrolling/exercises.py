# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "One __syncwarp a step", zh: "每步一个 __syncwarp"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write the last warp with a single `__syncwarp()` in each step, so that no race is left. The lower
#             half of the figure above shows how. The check sums random integers of several lengths. It cannot
#             see a race, so run your file under `compute-sanitizer --tool racecheck` too.
#           zh: >-
#             写出最后一个线程束的代码：每一步只用一个 `__syncwarp()`，而且没有数据竞争。上图的下半部分就是提示。
#             检查程序会对几种长度的随机整数求和。竞争却检查不出来，所以还要用
#             `compute-sanitizer --tool racecheck` 运行你的文件。
#         fails: "n=31"
#       2:
#         title: {en: "A leaner last warp", zh: "更省的最后一个线程束"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Write the last warp without `%`, and let no lane leave its 32 words. In rung 5 warp 0 executes 62
#             instructions after the third round. How many can you save, and how much time do you expect of it?
#             As a rung in a file of your own, with a line `// @rung kernel=lean block=256 per_thread=2`,
#             `python -m cudatut try reduction my_reduce.cu` times it beside the ladder.
#           zh: >-
#             不用 `%` 写出最后一个线程束的代码，而且任何 lane 都不能超出那 32 个元素。第五级里，线程束 0 在第三轮之后执行
#             62 条指令。你能省下多少条？预计能省多少时间？把代码写成阶梯上的一个 kernel，放进你自己的文件，加上一行
#             `// @rung kernel=lean block=256 per_thread=2`，`python -m cudatut try reduction my_reduce.cu`
#             就会把它和整个阶梯放在一起计时。
#         fails: "n=31"
# ---
# %% stub-1
one_wait = ct.Kernel(
    """
__global__ void one_wait(const int* in, int* out, int n) {
  __shared__ int sums[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = 128; half > 32; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  // yours: the first warp adds up the 64 words that are left
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "one_wait",
)

# %% stub-2
lean = ct.Kernel(
    """
__global__ void lean(const int* in, int* out, int n) {
  __shared__ int sums[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  int sum = i < n ? in[i] : 0;
  sums[t] = sum;
  __syncthreads();
  for (int half = 128; half >= 32; half /= 2) {
    if (t < half) sums[t] = sum = sum + sums[t + half];
    __syncthreads();
  }
  // yours: the first warp adds up the 32 words that are left, without %
  if (t == 0) out[blockIdx.x] = sum;
}
""",
    "lean",
)
