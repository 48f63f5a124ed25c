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
from ladder import LADDER, Matmul

import cudatut as ct

side = 1024
LADDER.check("thread_tile", [{"m": side, "n": side, "k": side}])

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
    statement={
        "en": "16 results of 7 x 7 matrices cost 256, 172 or 88 memory accesses with 1, 4 x 1 or 4 x 4 per thread",
        "zh": "7×7 矩阵的 16 个结果，每线程算 1、4×1、4×4 个时，分别要 256、172、88 次访存",
    },
    predicted="256, 172, 88",
    measured=", ".join(map(str, by_hand)),
    verdict="confirmed" if by_hand == [256, 172, 88] else "refuted",
)

# %% count
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
counted = ct.profile_launches(
    "basics/thread_tile_claims",
    kernel="matmul_thread_tile",
    metrics=[REQUESTS],
    launches=1,
)

# %% claim-loads
if counted:
    words = 32 * counted[0][REQUESTS] / side**2
    ct.claim(
        id="loads-per-result-thread-tile",
        source="CUDATutorial 07; SGEMM worklog, kernel 4",
        statement={
            "en": "With 8 results per thread in tiles of 64 x 64 x 8 a result costs K/32 loads from global memory",
            "zh": "分块为 64×64×8、每线程 8 个结果时，每个结果只需 K/32 次全局内存读取",
        },
        predicted=side / 32,
        measured=words,
        unit="words per result, K = 1024",
        verdict="confirmed" if words == side / 32 else "refuted",
    )

# %% [markdown] about-variants
# The kernel of thread_tile.cu with other tiles, all with 512 threads. Going from
# one to eight results per thread changes the words and the barriers per result;
# a tile of another depth changes the barriers alone.

# %% variants
MORE = "basics/thread_tile_variants.cu"
VARIANTS = {  # name: file, kernel, BM, BN, BK, TM
    "1 result, depth 8": (MORE, "matmul_tm1", 8, 64, 8, 1),
    "2 results, depth 8": (MORE, "matmul_tm2", 16, 64, 8, 2),
    "4 results, depth 8": (MORE, "matmul_tm4", 32, 64, 8, 4),
    "8 results, depth 8": (
        "basics/thread_tile.cu",
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
times = ct.bench(
    {name: launcher(*kind[:4], big) for name, kind in VARIANTS.items()},
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
    statement={
        "en": "Several results per thread mean fewer blocks and so less overhead of synchronization "
        "(one benefit; the main reason that the source names is the arithmetic intensity)",
        "zh": "一个线程算多个结果，线程块少了，同步开销也就少了（这是好处之一；资料指出主要原因是算术强度提高）",
    },
    predicted="above 1",
    measured=fewer,
    unit="time ratio, fewer barriers for the same words",
    verdict="confirmed"
    if fewer > 1.05
    else "refuted"
    if fewer < 0.98
    else "depends",
)
