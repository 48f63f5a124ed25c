# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A row for each warp", zh: "每个线程束一行"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `in` has `rows` rows of 32 floats, and each warp has one of them.
#             Store the elements above 0 of a row, in their order, at the
#             beginning of the same row of `out`, and how many they are in
#             `counts`. Leave the rest of the row alone. Blocks have 128
#             threads. You need `__ballot_sync` and `__popc`, and no shared
#             memory.
#           zh: >-
#             `in` 有 `rows` 行，每行 32 个 float，每个线程束负责一行。把该行中大于 0
#             的元素按原来的次序存到 `out` 同一行的开头，把个数存入 `counts`，行内其余
#             位置不要动。每个线程块 128 个线程。需要 `__ballot_sync` 和
#             `__popc`，不需要共享内存。
#         fails: "never written"
#       2:
#         title: {en: "One of each run", zh: "每一串只留一个"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             A run is a series of neighbors that are equal. Of each run only the
#             first element should stay. Write `heads`, which sets `flags[i]`
#             to 1 where a run begins and else to 0; a Compaction by flags does
#             the rest. Blocks have 256 threads.
#           zh: >-
#             相邻且相等的元素构成一串，每一串只保留第一个元素。写
#             `heads`：一串开始的地方令 `flags[i]` 为 1，其余为 0；剩下的由按标志压缩的
#             Compaction 完成。每个线程块 256 个线程。
#         fails: "never written"
#       3:
#         title: {en: "Split by a bit", zh: "按一位划分"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Write `split`. Keys whose bit number `bit` is 0 go to the front,
#             the others behind them, both in their order. `before[i]` tells how
#             many of the keys before i have a 0 there, and `zeros` how many of
#             all. The check splits by bit 0, then 1, and so on up to bit 7.
#             What is then true of the keys, and why does it need the order?
#           zh: >-
#             写 `split`：第 `bit` 位为 0 的键放到前面，其余放到后面，两部分都保持原来的
#             次序。`before[i]` 是 i 之前该位为 0 的键的个数，`zeros` 是该位为 0
#             的键的总数。检查程序依次按第 0 位、第 1 位……直到第 7
#             位划分。最后这些键有什么性质？为什么必须保持次序？
#         fails: "never written"
# ---

# %% stub-1
compact_rows = ct.Kernel(
    """
__global__ void compact_rows(const float* in, float* out, int* counts,
                             int rows) {
  const int row = (blockIdx.x * 128 + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  // yours: all lanes of a warp have the same row
}
""",
    "compact_rows",
)

# %% stub-2
heads = ct.Kernel(
    """
__global__ void heads(const int* in, unsigned char* flags, int n) {
  // yours: the first element begins a run
}
""",
    "heads",
)

# %% stub-3
split = ct.Kernel(
    """
__global__ void split(const unsigned* keys, const int* before, unsigned* out,
                      int zeros, int bit, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours: where does keys[i] go?
}
""",
    "split",
)
