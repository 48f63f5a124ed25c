# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "All numberings", zh: "所有的编号"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             In a warp tile of 32 x 64 the lanes stand in 4 rows and 8 columns: three of the five bits of a lane's
#             number tell its column, the other two its row. Write `numbering(columns)`: the passes that a warp needs
#             at one depth to read its words of A and of B. A lane reads A at its first row and four further on (8 rows
#             per lane), and B at its first column and 32 further on (4 columns side by side per lane). The check tries
#             all ten choices of bits. What do those with the fewest passes have in common?
#           zh: >-
#             在 32 × 64 的线程束分块里，lane 排成 4 行 8 列：lane 编号的五位里有三位表示列，其余两位表示行。写出
#             `numbering(columns)`：一个线程束在一个 k 上读 A 和读 B 各要几趟。每个 lane 算 8 行，在第一行和再往下
#             四行处各读一次 A，在第一列（每个 lane 连续四列）和再往右 32 列处各读一次 B。检查程序会试遍十种选法。
#             趟数最少的那些有什么共同点？
#         fails: "fewest passes"
#       2:
#         title: {en: "A larger warp tile", zh: "更大的线程束分块"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A thread with 16 x 8 results makes a warp tile of 64 x 64, with two thirds of the words per FMA. The
#             kernel is a template, `sgemm_warp_tile<BM,BN,BK,WM,WN,TM,TN>` in `gemm/ladder/warp_tile.cu`. Write `product`
#             with this tile, depth 16 and blocks of 128 x 128 results. How many threads does a block have then? Before
#             you measure: how many registers will a thread need, and how many warps will a scheduler have?
#           zh: >-
#             每个线程 16 × 8 个结果，线程束分块就是 64 × 64，每次 FMA 读的元素减为三分之二。kernel 是模板，即
#             `gemm/ladder/warp_tile.cu` 里的 `sgemm_warp_tile<BM,BN,BK,WM,WN,TM,TN>`。用这种分块、深度 16、每个线程块
#             128 × 128 个结果写出 `product`。这时一个线程块有多少线程？测量之前先想一想：一个线程要多少寄存器？
#             一个调度器有几个线程束？
#         fails: "never written"
# ---
# %% stub-1
def numbering(columns):
    """(passes of A, passes of B) at one depth of a warp tile of 32 x 64, if the
    three bits `columns` of a lane's number tell its column."""
    return 0, 0  # yours: passes(first word of each lane, words per lane)


# %% stub-2
def product(a, b):
    """A B by warp tiles of 64 x 64: 16 x 8 results per thread, depth 16."""
    c = ct.empty((a.shape[0], b.shape[1]), "float32")
    return c  # yours: the kernel, its grid and its block
