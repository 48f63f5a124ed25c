# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "A part of the queries at a time", zh: "一次只算一部分查询"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             The scores and weights of all queries need not be in memory at once: a part of the rows is
#             enough. `memory` bytes are left for them, 4 for a score and 2 for a weight. Return the largest
#             number of queries that fits, of all heads together in one launch, at most n, and the bytes that
#             all parts together write and read. Does it save bytes?
#           zh: >-
#             不必把所有查询的分数和权重同时放在显存里，一次只放一部分行就够了。可用的空间是 `memory` 个字节，一个分数 4 字节，
#             一个权重 2 字节。返回一次最多能算几个查询（一次启动包括所有的头，最多 n 个），以及各部分合起来一共写入和读出多少字节。
#             这样能省下字节吗？
#         fails: "are wrong"
#       2:
#         title: {en: "Tiles that nobody sees", zh: "跳过完全被遮住的分块"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             With a causal mask, many tiles of scores are hidden as a whole, and softmax does not read them.
#             Let a block leave where no query of its tile sees a key of it. Query i is at position
#             n - m + i and sees the keys up to there. The check makes sure that no other tile is left out.
#           zh: >-
#             有因果掩码时，很多分块里的分数全都被遮住，softmax 也不读这些分数。如果一个分块的键对这个分块的所有查询都不可见，就让线程块直接退出。
#             第 i 个查询的位置是 n - m + i，看得见到这个位置为止的键。检查程序会确认没有跳过别的分块。
#         fails: "are wrong"
# ---
# %% stub-1
def in_parts(memory, heads, n):
    """Queries at a time, and bytes written and read by all parts."""
    return n, heads * n * n * (4 + 2)  # yours


# %% stub-2
scores_seen = ct.Kernel(
    """
#include "llm/attention/attention.cu"  // multiply, TILE

extern "C" __global__ void __launch_bounds__(256)
    scores_seen(const __nv_bfloat16* q, const __nv_bfloat16* k, float* scores,
                int m, int n, int depth, int shared_by) {
  // yours: leave, if no query of this tile sees a key of it
  multiply<true>(q, k, scores, m, n, depth, shared_by);
}
""",
    "scores_seen",
)
