# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A cache in ten lines", zh: "十行代码的缓存"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `hit_share(n, capacity, oldest, rounds)`. It walks `rounds`
#             times through lines 0 to n - 1, with a cache of `capacity` lines. In
#             a full cache, a miss replaces the line used longest ago if `oldest`,
#             else a random one. Return the share of hits in the last half of the
#             rounds. Predict both shares for n = 400 and 200 lines. No GPU is
#             needed.
#           zh: >-
#             写 `hit_share(n, capacity, oldest, rounds)`：缓存能放 `capacity` 行，
#             依次访问第 0 到 n - 1 行，共 `rounds` 轮。缓存满了又没有命中时，
#             `oldest` 为真就替换最久没有用过的一行，否则随机替换一行。返回后一半轮次的
#             命中率。先预测：n = 400、缓存 200 行时，两种情形的命中率各是多少？不需要 GPU。
#         fails: "random, 1.5 x the cache"
#       2:
#         title: {en: "What comes along", zh: "一次读取捎带多少"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write `second_load`: one thread loads `line[0]`, waits for it, and
#             stores in `cycles[0]` how long a load of `line[words]` takes. The
#             check tries eight distances and looks for which of them L1 has the
#             word already. Predict how many bytes the first load brings there.
#           zh: >-
#             写 kernel `second_load`：一个线程读 `line[0]` 并等到结果，再测出读
#             `line[words]` 要多少个周期，存入 `cycles[0]`。检查程序试八种距离，看在
#             哪些距离上，要读的字已经在 L1 里。先预测：第一次读取把多少字节带进了 L1？
#         fails: "cycles are stored"
# ---

# %% stub-1
def hit_share(n, capacity, oldest, rounds):
    """Hits of a ring of n lines in a cache, in the last half of the rounds."""
    return 0.0  # yours: np.random.default_rng(0).integers(capacity) draws one


# %% stub-2
kernel = """
__device__ long long load(const long long *at) {
  long long value;  // volatile: where it stands
  asm volatile("ld.global.b64 %0, [%1];" : "=l"(value) : "l"(at));
  return value;
}

__global__ void second_load(const long long *line, int words,
                            long long *cycles) {
  // yours: load(at) loads a word, clock64() reads the clock
}
"""
