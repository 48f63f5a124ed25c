# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Any grid will do", zh: "多大的网格都行"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             The kernel `scale` multiplies each element of x by a, but only works if the grid has a thread for every
#             element. Change it so that it is right with any grid, even with a single block.
#           zh: >-
#             kernel `scale` 把 x 的每个元素乘以 a，但只有在网格里的线程数不少于元素数时才正确。
#             请修改 kernel，用任何网格启动都能得到正确结果，哪怕只有一个线程块。
#         fails: "elements are wrong"
#       2:
#         title: {en: "Two elements in each turn", zh: "每一轮处理两个元素"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Write `add2`, a grid-stride loop in which each thread takes the elements i and i + stride in one turn and
#             reads all four numbers before it writes the two results. Then each thread waits for four numbers at the
#             same time, not for two. n may be any number, so i + stride may lie past the end.
#           zh: >-
#             编写 `add2`：在网格跨步循环里，每个线程每一轮处理元素 i 和 i + stride，先读取全部四个数，再写入两个结果。
#             这样每个线程同时等待四个数，而不是两个。n 可以是任意长度，所以 i + stride 可能超出末尾。
#         fails: "never written"
# ---
# %% stub-1
module = SourceModule("""
__global__ void scale(float a, float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = a * x[i];  // yours: any grid
}
""")
scale = module.get_function("scale")

# %% stub-2
module = SourceModule("""
__global__ void add2(const float *x, const float *y, float *out, int n) {
  // yours
}
""")
add2 = module.get_function("add2")
