# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "The largest first", zh: "从大到小"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Our sort has the smallest key first. Write `turn`, which makes an
#             unsigned number of each int32 key, so that these numbers in
#             rising order are the keys in falling order. The check sorts the
#             numbers with the keys as values. Blocks have 256 threads.
#           zh: >-
#             我们的排序是从小到大。写 `turn`，把每个 int32
#             键变成一个无符号数，使这些数从小到大排列时，键从大到小排列。检查程序以键为值，对这些数排序。每个线程块
#             256 个线程。
#         fails: "never written"
#       2:
#         title: {en: "Ranks in a warp", zh: "线程束内的名次"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Each lane of a warp has a digit of 2 bits. Write `rank_warp`,
#             which stores for each lane how many keys of its warp come before
#             its own: those with a smaller digit, and those with the same digit
#             in lanes below. Two ballots are enough, one for each bit. Blocks
#             have 128 threads, and n is a multiple of 32.
#           zh: >-
#             线程束的每个 lane 有一个 2 位的数字。写 `rank_warp`，对每个 lane
#             存下本线程束有多少个键排在它前面：数字更小的，以及数字相同而 lane
#             号更小的。两次投票就够，每位一次。每个线程块 128 个线程，n 是 32 的倍数。
#         fails: "never written"
#       3:
#         title: {en: "Sorted bytes without moving any", zh: "不移动也能排好的字节"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Keys of 8 bits need no second pass, and no key has to be moved:
#             `starts[v]` says how many bytes are smaller than v, and
#             `starts[256]` is n. Write `fill`, which stores the sorted bytes. A
#             thread finds the value of its place by halving the range of 256
#             values, eight times. Blocks have 256 threads.
#           zh: >-
#             8 位的键不需要第二趟，也不必移动任何键：`starts[v]` 是小于 v
#             的字节数，`starts[256]` 是 n。写 `fill`，存下排好的字节。每个线程把 256
#             个值的范围减半八次，就找到自己位置上的值。每个线程块 256 个线程。
#         fails: "never written"
# ---

# %% stub-1
turn = ct.Kernel(
    """
__global__ void turn(const int* keys, unsigned* turned, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours
}
""",
    "turn",
)

# %% stub-2
rank_warp = ct.Kernel(
    """
__global__ void rank_warp(const int* digits, int* ranks, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  // yours: whole warps are beyond n, or none of their lanes
}
""",
    "rank_warp",
)

# %% stub-3
fill = ct.Kernel(
    """
__global__ void fill(const int* starts, unsigned char* out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours: the largest v with starts[v] <= i
}
""",
    "fill",
)
