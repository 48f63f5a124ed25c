# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Every swizzle", zh: "各种重排"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             CuTe writes a swizzle as S<bits,base,shift>. Of an address, `bits` bits from bit `base` + `shift` on are XORed to the
#             bits from bit `base` on; all other bits stay. Write `swizzle(bits, base, shift, address)` for integers and for NumPy
#             arrays. S<3,4,3> is the swizzle of this part, S<2,4,3> and S<1,4,3> are those of the TMA for lines of 64 and 32 bytes.
#             No GPU and no package is needed.
#           zh: >-
#             CuTe 把重排写成 S<bits,base,shift>：取地址中从第 `base` + `shift` 位开始的 `bits` 位，异或到从第 `base` 位开始的各位上，
#             其余的位不变。写出 `swizzle(bits, base, shift, address)`，参数可以是整数，也可以是 NumPy 数组。S<3,4,3> 就是本部分用的
#             重排，S<2,4,3> 与 S<1,4,3> 是 TMA 对 64 字节和 32 字节的行所用的重排。不需要 GPU，也不需要任何软件包。
#         fails: "are wrong"
#       2:
#         title: {en: "The fragments of mma.sync", zh: "mma.sync 的片段"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Say in layouts who holds what in `mma.sync` m16n8k16. `SUMS` leads from (lane, value) to the place in the 16 x 8 sums,
#             `FACTOR` to the place in the 16 x 16 factor A; both are counted column by column, so row r of column c is at
#             r + 16 * c. Each is a pair of shape and stride, as `offset` takes them. The lane has two modes, 4 and 8; the values of
#             a lane have two modes of 2 for the sums, and three for A. No GPU and no package is needed.
#           zh: >-
#             用布局描述 `mma.sync` m16n8k16 里各个 lane 持有哪些元素。`SUMS` 把（lane，值）对应到 16 × 8 累加值里的位置，`FACTOR`
#             对应到 16 × 16 的操作数 A 里的位置；两者都逐列编号，即第 c 列第 r 行的位置是 r + 16 * c。两者各写成一对形状与步长，写法与
#             `offset` 的参数相同。lane 有两个模，大小为 4 和 8；一个 lane 的值，在累加值里有两个大小为 2 的模，在 A 里有三个。
#             不需要 GPU，也不需要任何软件包。
#         fails: "are wrong"
# ---
# %% stub-1
def swizzle(bits, base, shift, address):
    return address  # yours: nothing moves


# %% stub-2
# yours: everyone holds element 0
SUMS = ((4, 8), (2, 2)), ((0, 0), (0, 0))
FACTOR = ((4, 8), (2, 2, 2)), ((0, 0), (0, 0, 0))
