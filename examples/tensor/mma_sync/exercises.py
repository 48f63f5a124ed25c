# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Passes of ldmatrix", zh: "ldmatrix 要走几趟"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             A tile lies in shared memory in lines of `pitch` bytes, a multiple of 16. `ldmatrix` reads the piece of 16 bytes
#             number `piece` of eight lines that follow each other. Write `passes(pitch, piece)`: how many passes it takes. There
#             are 32 banks of 4 bytes. Which of the pitches in the check need no swizzle?
#           zh: >-
#             分块在共享内存里按每行 `pitch` 字节存放，`pitch` 是 16 的倍数。`ldmatrix` 读取连续八行里编号为 `piece` 的 16 字节
#             小段。写出 `passes(pitch, piece)`：要走几趟。共有 32 个 4 字节的存储体。检查程序用的哪些行步长不需要重排？
#         fails: "are wrong"
#       2:
#         title: {en: "Weights as they lie", zh: "直接使用权重"}
#         level: medium
#         minutes: 40
#         task:
#           en: >-
#             Weights W often lie as n x k: C = A W^T. The given kernel has brought a tile of W into shared memory, 128 lines of 64
#             steps of depth, swizzled by `place`. Write `load_w`: for 16 columns of C, which are 16 lines of the tile, and 16
#             steps of depth, b[0], b[1] are what `mma` wants for the first 8 columns, b[2], b[3] for the next 8.
#           zh: >-
#             权重 W 常常按 n × k 存放：C = A W^T。题目的 kernel 已把 W 的一个分块取进共享内存，共 128 行，每行深度 64，并按
#             `place` 重排。写出 `load_w`：对于 C 的 16 列（即分块的 16 行）和深度 16，`mma` 算前 8 列要用 b[0]、b[1]，
#             算后 8 列要用 b[2]、b[3]。
#         fails: "are wrong"
# ---
# %% stub-1
def passes(pitch, piece):
    """Passes of ldmatrix for one matrix of eight lines."""
    return 1  # yours: how many of the eight pieces meet in the same banks?


# %% stub-2
LOAD = """
// tile: where the tile of W begins; line: the first of 16 lines; step: 0 to 3.
__device__ __forceinline__ void load_w(unsigned (&b)[4], unsigned tile,
                                       int line, int step) {
  b[0] = b[1] = b[2] = b[3] = 0;  // yours: one ldmatrix
}
"""
