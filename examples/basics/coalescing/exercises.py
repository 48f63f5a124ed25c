# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Structures or arrays", zh: "结构体数组还是数组结构体"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Points are stored as x, y, z, x, y, z, and so on, and the kernel that is given computes their lengths. Write
#             length_of_arrays(xs, ys, zs, out, n) for points in three arrays. Predict for both how many sectors a warp's
#             load of x touches, and which kernel is faster. The check compares the lengths for several n and times both.
#           zh: >-
#             一批点按 x、y、z、x、y、z……的次序存放，题目中的 kernel 计算各点到原点的距离。
#             如果点的三个坐标分别存成三个数组，请写出 length_of_arrays(xs, ys, zs, out, n)。
#             先预测：两个 kernel 里，一个线程束读 x 各要访问几个扇区，哪个更快。检查程序用几种 n 核对结果，然后给两者计时。
#         fails: "never written"
#       2:
#         title: {en: "A transpose", zh: "转置"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             out[column][row] = in[row][column]. In the kernel that is given, threadIdx.x walks along a row of in: the
#             loads are coalesced and the stores are not. Write along_output, in which threadIdx.x walks along a row of
#             out. Predict the sectors per request of load and store. Which kernel is faster? Can both sides be coalesced?
#             The check transposes matrices of odd shapes and times both kernels beside a copy.
#           zh: >-
#             转置：out[column][row] = in[row][column]。题目中的 kernel 让 threadIdx.x 沿着 in 的一行前进，读是合并的，写则不是。
#             请写出 along_output，让 threadIdx.x 沿着 out 的一行前进。分别预测两者的读和写每次请求要访问几个扇区。
#             哪个更快？有没有哪种选法能让读和写都合并访问？检查程序先转置各种大小的矩阵，再把两个 kernel 与复制放在一起计时。
#         fails: "never written"
# ---

# %% stub-1
source = """
__global__ void length_of_arrays(const float* __restrict__ xs,
                                 const float* __restrict__ ys,
                                 const float* __restrict__ zs,
                                 float* __restrict__ out, int n) {
  // yours: one thread per point
}
"""
arrays = ct.Kernel(source, "length_of_arrays")

# %% stub-2
source = """
__global__ void along_output(const float* __restrict__ in,
                             float* __restrict__ out,
                             int rows, int columns) {
  // yours: blockIdx.x and threadIdx.x choose the row, the y parts the column
}
"""
along_output = ct.Kernel(source, "along_output")
