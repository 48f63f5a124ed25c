# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Who holds this element?", zh: "元素在哪个 lane 里？"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             An `mma` leaves its 16 x 8 results in the registers d[0] to d[3] of 32 lanes. Return the lane and the
#             number of the register that hold the result in a row and a column. The check looks at all 128.
#           zh: >-
#             一条 `mma` 把 16 x 8 个结果留在 32 个 lane 的寄存器 d[0] 到 d[3] 里。给定行和列，请返回这个结果所在的 lane
#             以及寄存器的编号。检查程序会核对全部 128 个结果。
#         fails: "lane and register"
#       2:
#         title: {en: "Swizzle short rows", zh: "短行的异或重排"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Heads of 32 elements have rows of 64 bytes in shared memory: four chunks of 16 bytes. Two rows fill the 32
#             banks, so chunk 0 of rows 0, 2, 4 and 6 meets in the same banks. Return the byte at which a chunk of a
#             row should stand, so that `ldmatrix` reads any chunk of eight rows (0 to 7, 8 to 15, ...) in one pass. Every
#             chunk stays within its row.
#           zh: >-
#             头的大小为 32 时，共享内存里一行是 64 字节，即四个 16 字节的小段。两行占满 32 个存储体，所以第 0、2、4、6
#             行的 0 号小段落在同样的存储体里。请返回某一行的某个小段应放在哪个字节处，使 `ldmatrix` 读取八行（0 到 7、
#             8 到 15……）的同一号小段时，无论几号小段都只要一趟。小段不能移出自己所在的行。
#         fails: "passes"
# ---
# %% stub-1
def holder(row, column):
    return 0, 0  # yours: lane, register


# %% stub-2
def place(row, chunk):
    return row * 64 + chunk * 16  # yours: moved within the row
