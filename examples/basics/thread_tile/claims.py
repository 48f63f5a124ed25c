# ---
# jupyter:
#   cudatut:
#     title: {en: "One thread, many results: claims of other sources", zh: "一个线程算多个结果：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 70, 1024]
#       large: [2048, 70]
# ---

# %% [markdown] about
# Words counted by hand, words counted by the profiler, and what fewer barriers
# and fewer words each give.

# %% setup
from cudatut.book.basics.ladder.ladder import LADDER, Matmul

import cudatut as ct

side = 1024
for name in ("tiled", "thread_tile"):
    LADDER.check(name, [{"m": side, "n": side, "k": side}])

# %% [markdown] about-by-hand
# One matrix of 7 x 7 by another, 16 results. A thread loads what its results need,
# each word once, and reads and writes the old C. The words are listed.

# %% loads-by-hand
K7 = 7


def words_of(results):
    """Distinct words that one thread touches for its results (row, column)."""
    loads = {("A", row, i) for row, _ in results for i in range(K7)}
    loads |= {("B", i, column) for _, column in results for i in range(K7)}
    return len(loads) + 2 * len(results)


def words_of_16(high, wide):
    """Sum over the threads that share 4 x 4 results, high x wide each."""
    tile = [(y, x) for y in range(high) for x in range(wide)]
    starts = [(y, x) for y in range(0, 4, high) for x in range(0, 4, wide)]
    return sum(
        words_of([(y + dy, x + dx) for dy, dx in tile]) for y, x in starts
    )


by_hand = [words_of_16(1, 1), words_of_16(4, 1), words_of_16(4, 4)]
ct.facts(
    "Words for 16 results of 7 x 7 matrices",
    {
        "1 result per thread": by_hand[0],
        "4 x 1 results per thread": by_hand[1],
        "4 x 4 results per thread": by_hand[2],
    },
)

# %% claim-by-hand
ct.claim(
    id="words-for-16-results",
    source="CUDATutorial 11/01",
    place={
        "en": "section 1, the numbered list",
        "zh": "第 1 节，编号列表",
    },
    form="said",
    statement={
        "en": "16 results of 7 x 7 matrices cost 256, 172 or 88 accesses with 1, "
        "4 x 1 or 4 x 4 results per thread. Different words, listed and counted:",
        "zh": "7 × 7 矩阵的 16 个结果，每线程算 1、4 × 1、4 × 4 个时，分别要 "
        "256、172、88 次访存。把不同的字列出来数：",
    },
    expected=(256, 172, 88),
    measured=tuple(by_hand),
    rule="equal",
    found="computed",
    control=(
        {
            "en": "one result: 7 + 7 words, the old C and the new",
            "zh": "一个结果：7 + 7 个字，加上旧的和新的 C",
        },
        words_of([(0, 0)]),
        16,
    ),
)

# %% count
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
counted = ct.profile_launches(
    "basics/thread_tile_claims",
    kernel="regex:^matmul_(tiled|thread_tile)$",
    metrics=[REQUESTS],
    launches=2,
)

# %% claim-loads
if counted:
    one, eight = (32 * c[REQUESTS] / side**2 for c in counted)
    ct.claim(
        id="loads-per-result-thread-tile",
        source="CUDATutorial 07; SGEMM worklog, kernel 4",
        place={
            "en": "comparison of memory accesses, second list",
            "zh": "访存次数的对比，第二组",
        },
        form="said",
        statement={
            "en": "With 8 results per thread in tiles of 64 x 64 x 8 a result "
            "costs K/32 loads from global memory. For K = 1024:",
            "zh": "分块为 64 × 64 × 8、每线程 8 个结果时，每个结果只需 K/32 次"
            "全局内存读取。K = 1024 时：",
        },
        expected=side / 32,
        measured=eight,
        rule="equal",
        found="counted",
        control=(
            {
                "en": "one result per thread in tiles of 32 x 32, K/16",
                "zh": "分块为 32 × 32、每线程一个结果，K/16",
            },
            one,
            64.0,
        ),
    )

# %% [markdown] about-variants
# The kernel of thread_tile.cu with other tiles, all with 512 threads. Going from
# one to eight results per thread changes the words and the barriers per result;
# a tile of another depth changes the barriers alone.

# %% variants
MORE = "basics/thread_tile/thread_tile_variants.cu"
VARIANTS = {  # name: file, kernel, BM, BN, BK, TM
    "1 result, depth 8": (MORE, "matmul_tm1", 8, 64, 8, 1),
    "2 results, depth 8": (MORE, "matmul_tm2", 16, 64, 8, 2),
    "4 results, depth 8": (MORE, "matmul_tm4", 32, 64, 8, 4),
    "8 results, depth 8": (
        "basics/ladder/thread_tile.cu",
        "matmul_thread_tile",
        64,
        64,
        8,
        8,
    ),
    "1 result, depth 64": (MORE, "matmul_tm1_bk64", 8, 64, 64, 1),
    "8 results, depth 16": (MORE, "matmul_bk16", 64, 64, 16, 8),
}


def launcher(file, kernel, bm, bn, problem):
    """The product by one of these kernels, as a callable."""
    compiled = ct.Kernel(file, kernel)
    m, n, k = problem.m, problem.n, problem.k
    grid = ct.cdiv(n, bn), ct.cdiv(m, bm)
    data = problem.a, problem.b, problem.c
    return lambda: compiled(*data, m, n, k, grid=grid, block=512)


for problem in (Matmul(100, 70, 50), Matmul(33, 129, 31)):
    for name, (file, kernel, bm, bn, *_) in VARIANTS.items():
        ct.poison(problem.c)
        launcher(file, kernel, bm, bn, problem)()
        problem.compare(f"{name}, {problem.m} x {problem.n} x {problem.k}")

# %% bench-variants
large = 2048
big = Matmul(large, large, large)
launches = {name: launcher(*kind[:4], big) for name, kind in VARIANTS.items()}
times = ct.bench(
    launches | {"8 results, depth 8 again": launches["8 results, depth 8"]},
    flops=big.flops,
    rounds=15,
    name="2048 x 2048 x 2048, 512 threads per block",
)

# %% variants-table
rows = {}
for name, (_, _, bm, bn, bk, tm) in VARIANTS.items():
    rows[name] = {
        "global words": large * (1 / bm + 1 / bn),
        "shared words": large * (1 + tm) / tm,
        "barriers": 2 * large / bk / tm,
        "time": times[name].median_us,
    }
ct.table(
    "Per result, K = 2048",
    rows,
    corner="results per thread, depth of a tile",
    units={"time": "us"},
)

# %% shares
us = {name: times[name].median_us for name in VARIANTS}
again_us = times["8 results, depth 8 again"].median_us
shares = {
    "all: 1 result to 8": us["1 result, depth 8"] / us["8 results, depth 8"],
    "fewer barriers, 1 result": us["1 result, depth 8"]
    / us["1 result, depth 64"],
    "fewer barriers, 8 results": us["8 results, depth 8"]
    / us["8 results, depth 16"],
    "fewer words, equal barriers": us["1 result, depth 64"]
    / us["8 results, depth 8"],
}
ct.facts("Times as fast", shares)

# %% claim-barriers
fewer = min(
    shares["fewer barriers, 1 result"], shares["fewer barriers, 8 results"]
)
ct.claim(
    id="thread-tile-barriers",
    source="CUDATutorial 07",
    place={
        "en": "analysis of the one-dimensional thread tile, first paragraph",
        "zh": "一维 Thread Tile 的性能优化分析，第一段",
    },
    form="said",
    statement={
        "en": "Several results per thread mean fewer blocks, and so less overhead "
        "of synchronization. (The next paragraph names the arithmetic intensity "
        "as the main reason.) Here by deeper tiles, which change more than "
        "that. Times as fast with fewer barriers for the same "
        "words, the smaller of two cases:",
        "zh": "一个线程算多个结果，可以减少线程块的数量，从而减少同步开销。"
        "（下一段指出，主要原因是算术强度提高。）这里把分块加深，改变的不只是屏障。字数不变而屏障减少，速度是原来"
        "的（两种情形中较小的）：",
    },
    expected=1.0,
    measured=fewer,
    unit="×",
    rule="above",
    control=(
        {
            "en": "8 results per thread, against itself",
            "zh": "每线程 8 个结果，与自己比",
        },
        us["8 results, depth 8"] / again_us,
        (0.97, 1.03),
    ),
)
