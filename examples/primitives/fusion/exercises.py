# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "What fusion saves", zh: "融合省下多少"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             A list of operations, each (its inputs, its output), names as
#             strings, runs one after the other. `sizes` has the bytes of each
#             array. Write `passes(operations, sizes, kept)`, which returns two
#             numbers: the bytes read and written if each operation is a kernel,
#             and if all are one kernel. One kernel reads an array once, however
#             often it is used, and writes the arrays in `kept` alone. Assume
#             that each separate kernel reads its inputs from memory.
#           zh: >-
#             一串运算依次执行，每个运算是（输入，输出），名字是字符串。`sizes` 是各数组的
#             字节数。写 `passes(operations, sizes, kept)`，返回两个数：每个运算各用一个
#             kernel 时读写的字节数，以及全部合成一个 kernel 时读写的字节数。合成之后，一个
#             数组不管用几次都只读一次，写出的只有 `kept` 里的数组。分开的 kernel 每次都从显存
#             读输入。
#         fails: "are wrong"
#       2:
#         title: {en: "Vectors for every length", zh: "任意长度的向量访问"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             `leaky` computes x where x > 0, and x / 100 elsewhere. Write it with
#             loads and stores of 16 bytes, for every n. Both arrays begin at
#             multiples of 16 bytes. Blocks have 256 threads, and there are enough
#             of them to give each vector a thread. The elements behind the last
#             whole vector are yours, too.
#           zh: >-
#             `leaky` 在 x > 0 处取 x，其余取 x / 100。用 16 字节的读写完成，n 可以是任意值。两个
#             数组的起点都是 16 字节的整数倍。每个线程块 256 个线程，线程块足够多，每个向量都有
#             一个线程。最后一个完整向量之后的元素也要处理。
#         fails: "never written"
#       3:
#         title: {en: "The derivative of GELU", zh: "GELU 的导数"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Training needs dx = dy · gelu'(x), with gelu'(x) = Φ(x) + x φ(x),
#             where Φ(x) = (1 + erf(x / √2)) / 2 and φ(x) = exp(-x² / 2) / √(2π).
#             Write `backward(x, dy)` as an expression of the chapter's fuser, so
#             that one kernel computes it. The check runs it on both types.
#           zh: >-
#             训练需要 dx = dy · gelu'(x)，其中 gelu'(x) = Φ(x) + x φ(x)，
#             Φ(x) = (1 + erf(x / √2)) / 2，φ(x) = exp(-x² / 2) / √(2π)。用本章的融合器把
#             `backward(x, dy)` 写成表达式，由一个 kernel 算出。检查程序会用两种类型运行它。
#         fails: "are wrong"
# ---


# %% stub-1
def passes(operations, sizes, kept):
    """Bytes moved by separate kernels, and by one."""
    return 0, 0  # yours


# %% stub-2
source = """
extern "C" __global__ void leaky(const float* __restrict__ in,
                                 float* __restrict__ out, int n) {
  // yours: a vector per thread, and what is left
}
"""
leaky = ct.Kernel(source, "leaky")


# %% stub-3
def backward(x, dy):
    """dy times the derivative of GELU at x."""
    return dy  # yours
