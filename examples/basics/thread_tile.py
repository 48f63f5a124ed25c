# ---
# jupyter:
#   cudatut:
#     title: {en: "One thread, many results", zh: "一个线程算多个结果"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Eight results per thread: the loads counted before the run, counted by the profiler, then timed.

# %% setup
from ladder import LADDER, Matmul

import cudatut as ct
from cudatut.profiler import profile_launches

side = ct.size(1024, 70, profiled=1024)  # m = n = k of the counted launches

# %% check
COUNTED = ("tiled", "thread_tile")
for rung in COUNTED:  # these launches come first: the profiler counts them
    LADDER.check(rung, [{"m": side, "n": side, "k": side}])
SHAPES = [(1, 1, 1), (31, 33, 7), (33, 31, 129), (100, 70, 50), (65, 64, 9), (5, 3, 0), (0, 5, 3)]
LADDER.check("thread_tile", [{"m": m, "n": n, "k": k} for m, n, k in SHAPES])

# %% loads-by-hand
# One matrix of 7 x 7 by another, 16 results. A thread loads what its own results need, each word
# once, and reads and writes the old C. The words are listed, not computed by a formula.
K7 = 7


def words_of(results):
    """Distinct words that one thread touches for its results (row, column)."""
    loads = {("A", row, i) for row, _ in results for i in range(K7)}
    loads |= {("B", i, column) for _, column in results for i in range(K7)}
    return len(loads) + 2 * len(results)


def words_of_16(high, wide):
    """Sum over the threads that share 4 x 4 results, high x wide each."""
    tiles = [(y, x) for y in range(0, 4, high) for x in range(0, 4, wide)]
    return sum(
        words_of([(y + dy, x + dx) for dy in range(high) for dx in range(wide)]) for y, x in tiles
    )


by_hand = [words_of_16(1, 1), words_of_16(4, 1), words_of_16(4, 4)]
ct.facts(
    "words for 16 results of 7 x 7 matrices",
    {
        "1 result per thread": by_hand[0],
        "4 x 1 results per thread": by_hand[1],
        "4 x 4 results per thread": by_hand[2],
    },
)
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

# %% predict
k = side


def per_result(bm, bn, bk, tm):
    """Words from global and from shared memory for one result, and barriers that a thread meets."""
    steps, threads = k // bk, bm * bn // tm
    loads = steps * (bm * bk + bk * bn) / (bm * bn)
    reads = steps * bk * (1 + tm) * threads / (bm * bn)  # one word of B, TM of A
    return {"global": loads, "shared": reads, "barriers": 2 * steps}


tiled, tile8 = per_result(32, 32, 32, 1), per_result(64, 64, 8, 8)
ct.facts(
    "per result, K = 1024",
    {
        "tiled, global": tiled["global"],
        "thread_tile, global": tile8["global"],
        "K / 32": k / 32,
        "tiled, shared": tiled["shared"],
        "thread_tile, shared": tile8["shared"],
        "9 K / 8": 9 * k / 8,
        "tiled, barriers per thread": tiled["barriers"],
        "thread_tile, barriers per thread": tile8["barriers"],
    },
)

# %% predict-passes
# One pass hands out at most 128 bytes; a word, or four words side by side, that all lanes want is
# one pass as well. An SM starts one pass and four FMAs of a warp in every cycle.
BK, TM = 8, 8
passes = {
    "tiled": 1 + 1 / 4,  # per FMA: a word of B for each lane, a quarter of four words of A
    "thread_tile, word by word": (BK + BK * TM) / (BK * TM),
    "thread_tile, four words of A at a time": (BK + BK * TM / 4) / (BK * TM),
}
ct.facts("passes per FMA, predicted", passes)
ct.facts("most of the FMA rate, predicted", {n: (25 / p, "%") for n, p in passes.items()})

# %% count
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
SHARED_BYTES = "smsp__sass_data_bytes_mem_shared_op_ld.sum"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
SHARED_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
counted = profile_launches(
    "basics/thread_tile",
    kernel="regex:^matmul_(tiled|thread_tile)$",
    metrics=[
        REQUESTS,
        SECTORS,
        SHARED_BYTES,
        SHARED_LOADS,
        SHARED_PASSES,
        CONFLICTS,
        INSTRUCTIONS,
    ],
    launches=len(COUNTED),
)
results, fmas = side**2, side**3 // 32  # the latter per warp
for name, expected, c in zip(COUNTED, (tiled, tile8), counted):
    ct.facts(
        f"{name}, predicted and measured",
        {
            "predicted words per result, global": expected["global"],
            "measured words per result, global": 32 * c[REQUESTS] / results,
            "predicted sectors": expected["global"] * results / 8,
            "measured sectors": c[SECTORS],
            "predicted words per result, shared": expected["shared"],
            "measured words per result, shared": c[SHARED_BYTES] / 4 / results,
            "load instructions per result, shared": 32 * c[SHARED_LOADS] / results,
            "passes per FMA, shared loads": c[SHARED_PASSES] / fmas,
            "bank conflicts": c[CONFLICTS],
            "instructions per FMA": c[INSTRUCTIONS] / fmas,
        },
    )

# %% claim-loads
if counted:
    words = 32 * counted[1][REQUESTS] / results
    ct.claim(
        id="loads-per-result-thread-tile",
        source="CUDATutorial 07; SGEMM worklog, kernel 4",
        statement={
            "en": "With 8 results per thread in tiles of 64 x 64 x 8 a result costs K/32 loads from global memory",
            "zh": "分块为 64×64×8、每线程 8 个结果时，每个结果只需 K/32 次全局内存读取",
        },
        predicted=k / 32,
        measured=words,
        unit="words per result, K = 1024",
        verdict="confirmed" if words == k / 32 else "refuted",
    )

# %% resources
ct.show(LADDER["tiled"].compile().resources(block=(32, 32)))
ct.show(LADDER["thread_tile"].compile().resources(block=512))

# %% bench
large = ct.size(2048, 70)
LADDER.check("thread_tile", [{"m": large, "n": large, "k": large}])
times = LADDER.bench(
    LADDER.upto("thread_tile"), m=large, n=large, k=large, rounds=5, name="2048 x 2048 x 2048"
)

# %% variants
MORE = "basics/thread_tile_variants.cu"
VARIANTS = {  # name: file, kernel, BM, BN, BK, TM; 512 threads each
    "TM = 1": (MORE, "matmul_tm1", 8, 64, 8, 1),
    "TM = 2": (MORE, "matmul_tm2", 16, 64, 8, 2),
    "TM = 4": (MORE, "matmul_tm4", 32, 64, 8, 4),
    "TM = 8": ("basics/thread_tile.cu", "matmul_thread_tile", 64, 64, 8, 8),
    "TM = 8, BK = 16": (MORE, "matmul_bk16", 64, 64, 16, 8),
}
for name, (_, _, *tile) in VARIANTS.items():
    of = per_result(*tile)
    ct.facts(
        f"{name}, per result",
        {"global": of["global"], "shared": of["shared"], "barriers per thread": of["barriers"]},
    )


def launcher(file, kernel, bm, bn, problem):
    """The product by one of these kernels, as a callable."""
    compiled = ct.Kernel(file, kernel)
    grid, sizes = (
        (ct.cdiv(problem.n, bn), ct.cdiv(problem.m, bm)),
        (problem.m, problem.n, problem.k),
    )
    return lambda: compiled(problem.a, problem.b, problem.c, *sizes, grid=grid, block=512)


for problem in (Matmul(100, 70, 50), Matmul(33, 129, 31)):
    for name, (file, kernel, bm, bn, *_) in VARIANTS.items():
        ct.poison(problem.c)
        launcher(file, kernel, bm, bn, problem)()
        problem.compare(f"{name}, {problem.m} x {problem.n} x {problem.k}")

# %% bench-variants
big = Matmul(large, large, large)
variants = ct.bench(
    {name: launcher(*kind[:4], big) for name, kind in VARIANTS.items()},
    flops=big.flops,
    rounds=15,
    name="2048 x 2048 x 2048, 512 threads per block",
)

# %% claim-barriers
gain = variants["TM = 1"].median_us / variants["TM = 8"].median_us
fewer = variants["TM = 8"].median_us / variants["TM = 8, BK = 16"].median_us
ct.facts(
    "what pays",
    {
        "equal barriers, TM = 1 / TM = 8": gain,
        "half of the barriers, BK = 8 / BK = 16": fewer,
    },
)
ct.claim(
    id="thread-tile-barriers",
    source="CUDATutorial 07",
    statement={
        "en": "Several results per thread are faster because there is less synchronization",
        "zh": "一个线程算多个结果之所以更快，是因为减少了同步开销",
    },
    predicted=1.0,
    measured=gain,
    unit="time with 1 / with 8 results per thread, barriers equal",
    verdict="refuted" if gain > 1.5 and gain > fewer else "depends",
)
