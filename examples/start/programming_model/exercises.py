# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Make them agree", zh: "让线程束内部一致"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             The kernel treats even and odd elements differently, so every warp runs both sides of the branch. Change
#             only the line that computes `i`: give the elements of a block to other threads of the same block, so that
#             all threads of a warp take the same side. The block has 256 threads. The check compares the results, and
#             then the time with that of a kernel without a branch.
#           zh: >-
#             这个 kernel 对奇数元素和偶数元素做不同的处理，所以每个线程束都要执行分支的两边。
#             请只改计算 `i` 的那一行：在线程块内部重新分配哪个线程处理哪个元素，让同一个线程束的所有线程都走同一边。
#             线程块有 256 个线程。检查程序先比较结果，再与一个没有分支的 kernel 比较时间。
#         fails: "check time / time without a branch"
#       2:
#         title: {en: "Three kernels or one", zh: "三个 kernel 还是一个"}
#         level: medium
#         minutes: 15
#         given: ["1 %", "1%"]
#         task:
#           en: >-
#             Three kernels compute `t = a * x + b`, then `u = t * t`, then `z = u + x`. Each reads its inputs from
#             memory and writes its result to memory. Write one kernel that computes `z` from `x`. All of them are
#             memory bound: count the bytes for each element, and set `predicted` to the time of the three kernels
#             divided by the time of yours that follows from the bytes. The check wants that number to 1 %, and prints
#             what was measured beside it.
#           zh: >-
#             三个 kernel 依次计算 `t = a * x + b`、`u = t * t`、`z = u + x`，各自从内存读全部输入，把结果写回内存。
#             请写一个直接由 `x` 算出 `z` 的 kernel。这几个 kernel 都访存受限：数一数每个元素要搬运多少字节，
#             由此算出三个 kernel 的总时间与你的 kernel 的时间之比，填入 `predicted`。检查程序要求这个比值的误差不超过 1%，
#             并把实测的比值打印在旁边。
#         fails: "were never written"
# ---
# %% stub-1
sides = SourceModule("""
__global__ void sides(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;  // yours: another i
  if (i >= n) return;
  float v = x[i];
  if (i % 2 == 0)
    for (int k = 0; k < 512; ++k) v = 0.999f * v + 0.001f;
  else
    for (int k = 0; k < 512; ++k) v = -0.999f * v + 0.001f;
  out[i] = v;
}
""").get_function("sides")

# %% stub-2
fused = SourceModule("""
__global__ void fused(const float *x, float *z, float a, float b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  // yours
}
""").get_function("fused")
predicted = 1.0  # yours: time of the three kernels / time of this one
