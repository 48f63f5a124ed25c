# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A prefetch without help", zh: "自己写预取"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `to_gpu(x)`: it enqueues, on the default stream, that all of the
#             managed array x moves to GPU 0, by `cuMemPrefetchAsync` of
#             cuda.bindings 13, and raises an error if the driver returns one. The
#             check then touches every page on the GPU: none may be slow.
#           zh: >-
#             写 `to_gpu(x)`：用 cuda.bindings 13 的 `cuMemPrefetchAsync`，在默认流里
#             提交一次预取，把托管数组 x 全部移到 0 号 GPU；驱动返回错误时抛出异常。
#             随后检查程序在 GPU 上逐页访问，不应有任何一次是慢的。
#         fails: "slow touches"
#       2:
#         title: {en: "The most faults", zh: "缺页最多的次序"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A block of 2 MB has 32 pieces of 64 KB. Touched upwards, they cost 6
#             faults. Write `worst()`: the numbers 0 to 31 in an order that costs as
#             many faults as possible, by the rule in `faults`. The check counts them
#             by the rule, and on the GPU. How many can it be at most, and why?
#           zh: >-
#             一个 2 MB 的块有 32 个 64 KB 的小段，从低到高访问有 6 次缺页。写
#             `worst()`：把 0 到 31 排成一种次序，使得按 `faults` 的规则，缺页次数最多。
#             检查程序先按规则计数，再到 GPU 上计数。最多可能有几次？为什么？
#         fails: "faults by the rule"
#       3:
#         title: {en: "Advice for two arrays", zh: "给两个数组提建议"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Host and GPU both read `table` over and over. The GPU writes a word of
#             each page of `result`, and the host reads it. Write
#             `give_advice(table, result)` so that from the second round on no touch
#             is slow on either side. Use `advise` of `managed.py`.
#           zh: >-
#             主机和 GPU 都反复读 `table`；GPU 在 `result` 的每一页写一个字，再由主机读出。
#             写 `give_advice(table, result)`，使得从第二轮起，两边都没有慢的访问。可以用
#             `managed.py` 里的 `advise`。
#         fails: "slow touches"
# ---


# %% stub-1
def to_gpu(x):
    """Move all of x, x.nbytes bytes at x.ctypes.data, to GPU 0."""
    # yours: a CUmemLocation, then driver.cuMemPrefetchAsync


# %% stub-2
def worst():
    """The numbers 0 to 31, in the order with the most faults."""
    return list(range(32))  # yours


# %% stub-3
def give_advice(table, result):
    """Advice after which neither side waits for pages."""
    # yours: advise(x, what, where)
