# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Where is the element?", zh: "元素在哪里？"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             `place(block, kv_head, token, e)` returns where element e of a key lies in the flat key cache
#             [blocks, kv_heads, D / 8, block size, 8], counted in elements; token is the place within the block.
#             KV_HEADS, D, BLOCK and X = 8 are given. All arguments may be arrays of the same shape.
#           zh: >-
#             `place(block, kv_head, token, e)` 返回键的第 e 个元素在展平的键缓存中的位置，以元素计；缓存的形状是
#             [块数, KV 头数, D / 8, 块大小, 8]，token 是块内的位置。KV_HEADS、D、BLOCK 与 X = 8 已给出。
#             四个参数也可以是形状相同的数组。
#         fails: "element"
#       2:
#         title: {en: "Scores by pairs of threads", zh: "两个线程算一个分数"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             `scores(q, keys, out, n)` is launched with one warp for each block of 16 keys. Store in out[j] the dot
#             product of q, float, [128], and key j, float. keys is [blocks, 128 / 4, 16, 4]: 16 bytes of key 0, then
#             of key 1, and so on. Two neighboring threads share a key: one loads the even pairs of elements, the
#             other the odd ones, and a shuffle adds up. Keys from n on hold NaN, and out has n elements.
#           zh: >-
#             `scores(q, keys, out, n)` 启动时，每块 16 个键用一个线程束。请把 q（float，[128]）与第 j 个键（float）的点积存入
#             out[j]。keys 的形状是 [块数, 128 / 4, 16, 4]：先是第 0 个键的 16 字节，再是第 1 个键的，依此类推。
#             相邻两个线程合算一个键：一个读第偶数对元素，另一个读第奇数对，再用一次洗牌相加。从第 n 个起的键是 NaN，
#             out 有 n 个元素。
#         fails: "scores"
# ---
# %% stub-1
def place(block, kv_head, token, e):
    """Elements before it in the cache."""
    return ((block * BLOCK + token) * KV_HEADS + kv_head) * D + e  # yours


# %% stub-2
source = """
__global__ void scores(const float *q, const float *keys, float *out, int n) {
  // yours: lanes 2 k and 2 k + 1 of this warp share key 16 * blockIdx.x + k
}
"""
