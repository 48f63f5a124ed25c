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
#             Points are stored as x, y, z, x, y, z, and so on. The kernel that is given computes their lengths. Store the
#             points as three arrays instead and write the kernel length_of_arrays(xs, ys, zs, out, n) for them:
#             out[i] is the square root of xs[i]² + ys[i]² + zs[i]². Before you run it, predict for both kernels how many
#             sectors a warp's load of x touches, and which kernel is faster. The check compares the lengths for several n
#             and then times both kernels.
#           zh: >-
#             一批点按 x、y、z、x、y、z……的次序存放，已给出的 kernel 计算它们到原点的距离。请把这些点改存成三个数组，
#             并为它写出 kernel length_of_arrays(xs, ys, zs, out, n)：out[i] 等于 xs[i]² + ys[i]² + zs[i]² 的平方根。
#             运行之前先预测：两个 kernel 里，一个线程束读 x 各碰到几个扇区，哪个更快。检查程序用几种 n 核对结果，然后给两者计时。
#         fails: "never written"
#       2:
#         title: {en: "A transpose", zh: "转置"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             out[column][row] = in[row][column]. In the kernel that is given, threadIdx.x walks along a row of in: the
#             loads are coalesced and the stores are not. Write along_output, in which threadIdx.x walks along a row of
#             out. Predict for both the sectors per request of load and store. Which one will be faster, and can any choice
#             make both sides coalesced? The check transposes matrices of odd shapes, then times both kernels beside a copy.
#           zh: >-
#             转置：out[column][row] = in[row][column]。已给出的 kernel 让 threadIdx.x 沿着 in 的行走，读是合并的，写则不是。
#             请写出 along_output，让 threadIdx.x 沿着 out 的行走。分别预测两者的读和写每次请求碰到几个扇区。
#             哪个更快？有没有哪种选法能让两边都合并？检查程序先转置各种大小的矩阵，再把两个 kernel 与复制放在一起计时。
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
