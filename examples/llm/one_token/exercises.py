# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "How many tokens fit", zh: "能放下多少个词元"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             A GPU has `memory` bytes. The weights take `weights` of them; all others are for the KV cache, in
#             bf16. Compute how many tokens fit, of all sequences together. The check knows three
#             models; it runs without a GPU.
#           zh: >-
#             GPU 的显存是 `memory` 个字节，权重占去 `weights` 个字节，其余全部用作 bf16 的 KV 缓存。算出所有序列加起来能放下多少个词元。
#             检查程序用到三个模型，不需要 GPU。
#         fails: "are wrong"
#       2:
#         title: {en: "Read a block of Q4_1", zh: "读懂一个 Q4_1 块"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A block of Q4_1 has 20 bytes for 32 weights: the scale d and the offset m, both fp16, and 16 bytes
#             q. Weight j is the low half of byte j, weight j + 16 its high half; its value is d q + m. Turn
#             blocks, uint8 of shape [n, 20], into float32 of shape [n, 32], without a loop over the weights.
#           zh: >-
#             Q4_1 的一个块用 20 个字节存 32 个权重：先是缩放系数 d 和偏移 m，都是 fp16；然后是 16 个字节 q。第 j 个权重是
#             第 j 个字节的低四位，第 j + 16 个权重是这个字节的高四位，值为 d q + m。把形状为 [n, 20] 的 uint8 块变成形状为
#             [n, 32] 的 float32，不要对权重逐个循环。
#         fails: "are wrong"
#       3:
#         title: {en: "Where a larger batch stops helping", zh: "批次到多大就不再有用"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             A decode step of a batch reads the weights once, and the KV cache of each sequence. Its FLOPs
#             grow with the batch. Find the smallest batch for which the tensor cores need at least as long as
#             the memory: FLOPs >= ridge * bytes, ridge in FLOP per byte. Count 2 FLOPs and 2 bytes per weight,
#             and per sequence and token of context `kv_flops` and `kv_bytes`. Return None where no batch is
#             large enough.
#           zh: >-
#             一批序列解码一步，权重读一遍，各个序列的 KV 缓存也都要读，FLOP 则随批次增加。求最小的批次，使张量核心需要的时间不少于
#             显存需要的时间：FLOP >= ridge * 字节数，ridge 的单位是每字节的 FLOP。每个权重算 2 次 FLOP、2 个字节；每个序列的每个
#             上文词元算 `kv_flops` 次 FLOP、`kv_bytes` 个字节。多大的批次都不够时返回 None。
#         fails: "are wrong"
# ---
# %% stub-1
def tokens_that_fit(memory, weights, layers, kv_heads, head_dim):
    """Tokens whose keys and values fit beside `weights` bytes."""
    return (memory - weights) // (layers * kv_heads * head_dim)  # yours


# %% stub-2
def dequantize(blocks):
    """float32 [n, 32] of Q4_1 blocks, uint8 [n, 20]."""
    return np.zeros((len(blocks), 32), "float32")  # yours


# %% stub-3
def smallest_batch(weights, context, kv_flops, kv_bytes, ridge):
    """The smallest batch that the tensor cores limit, or None."""
    return ridge  # yours: this is right where there is no context
