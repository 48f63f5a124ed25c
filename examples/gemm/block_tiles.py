# ---
# jupyter:
#   cudatut:
#     title: {en: "Two-dimensional thread tiles", zh: "二维线程分块"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# A square of results per thread: words, passes and instructions counted before the run, by the profiler, then timed.

# %% setup
import numpy as np
from block_tiles_lanes import LANES, passes, place, sectors
from ladder import LADDER, Gemm, earlier_rungs
from loops import count, disassemble, main_turn, share

import cudatut as ct
from cudatut.profiler import profile_launches

side = ct.size(1024, 48, profiled=1024)  # m = n = k of the counted launches
THREAD_TILE, BLOCK_TILE = earlier_rungs()[-1], LADDER["block_tile_2d"]

# %% check
for rung in (
    THREAD_TILE,
    BLOCK_TILE,
):  # these launches come first: the profiler counts them
    Gemm(side, side, side).check(rung)
SHAPES = [
    (1, 1, 1),
    (31, 33, 7),
    (129, 100, 33),
    ct.size((257, 260, 132), (130, 132, 36)),
    (5, 3, 0),
]
LADDER.check("block_tile_2d", [{"m": m, "n": n, "k": k} for m, n, k in SHAPES])
LADDER.check(
    "block_tile_2d", [{"m": 100, "n": 70, "k": 50, "alpha": 0.5, "beta": -2.0}]
)


# %% by-hand
def words_for_16(high, wide, k=7):
    """16 results, high x wide per thread: words of A and B that the threads read; with C, old and new."""
    threads = 16 // (high * wide)
    operands = threads * k * (high + wide)
    return operands, operands + 2 * 16


ct.facts(
    "16 results of 7 x 7 matrices",
    {
        f"{high} x {wide} per thread, {what}": words
        for high, wide in ((1, 1), (4, 1), (4, 4))
        for what, words in zip(("A and B", "with C"), words_for_16(high, wide))
    },
)

# %% predict
RUNGS = {  # BM, BN, BK, TM, TN
    "tiled": (32, 32, 32, 1, 1),
    "thread_tile": (64, 64, 8, 8, 1),
    "block_tile_2d": (128, 128, 8, 8, 8),
}


def words(bm, bn, bk, tm, tn):
    """Words for one result: from global memory, from shared memory. Counted on one step of one block."""
    threads = bm * bn // (tm * tn)
    t = np.arange(threads)
    # The loops that load a tile: thread t brings words t, t + threads, ...
    for size in (bm * bk, bk * bn):
        brought = np.concatenate(
            [first + t for first in range(0, size, threads)]
        )
        assert (
            np.bincount(brought, minlength=size) == 1
        ).all()  # each word of the tile once
    loads, reads = bm * bk + bk * bn, threads * bk * (tm + tn)
    return side / bk * loads / (bm * bn), side / bk * reads / (bm * bn)


expected = {name: words(*tile) for name, tile in RUNGS.items()}
ct.facts(
    f"words per result, K = {side}",
    {f"{name}, global": of[0] for name, of in expected.items()}
    | {f"{name}, shared": of[1] for name, of in expected.items()},
)

# %% predict-passes
BM, BN, BK, TM, TN = RUNGS["block_tile_2d"]
x, y = place(LANES, BN, TM, TN)  # of the lanes of warp 0
FMAS = (
    TM * TN
)  # of a warp, per unit of depth; an SM starts four in a cycle, and one pass
of_a = {  # As[BM][BK]: a lane reads rows y to y + TM - 1, at one depth or at two neighboring ones
    "words": sum(passes((y + r) * BK) for r in range(TM)),
    "pairs": sum(passes((y + r) * BK, 2) for r in range(TM)) / 2,
}
of_b = {  # Bs[BK][BN]: columns x to x + TN - 1
    "words": sum(passes(x + c) for c in range(TN)),
    "fours": sum(passes(x + c, 4) for c in range(0, TN, 4)),
}
ways = {
    "word by word": of_a["words"] + of_b["words"],
    "pairs of A, fours of B": of_a["pairs"] + of_b["fours"],
}
ct.facts(
    "passes per unit of depth and warp, for 64 FMAs",
    {"A, " + name: n for name, n in of_a.items()}
    | {"B, " + name: n for name, n in of_b.items()},
)
ct.facts(
    "at most, of the FMA limit",
    {
        name: (min(100.0, 100 * FMAS / 4 / total), "%")
        for name, total in ways.items()
    },
)

# %% count
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
SHARED_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
counted = profile_launches(
    "gemm/block_tiles",
    kernel="regex:^(matmul_thread_tile|sgemm_block_tile)$",
    metrics=[REQUESTS, SECTORS, SHARED_LOADS, SHARED_PASSES, INSTRUCTIONS],
    launches=2,
)
results, warp_fmas = side**2, side**3 / 32
for name, got in zip(("thread_tile", "block_tile_2d"), counted):
    ct.facts(
        f"{name}, counted",
        {
            "predicted words per result, global": expected[name][0],
            "measured words per result, global": 32 * got[REQUESTS] / results,
            "sectors per request": got[SECTORS] / got[REQUESTS],
            "predicted words per result, shared": expected[name][1],
            "load instructions per result, shared": 32
            * got[SHARED_LOADS]
            / results,
            "passes per FMA": got[SHARED_PASSES] / warp_fmas,
            "instructions per FMA": got[INSTRUCTIONS] / warp_fmas,
        },
    )
if counted:
    ct.facts(
        "block_tile_2d, passes per 64 FMAs",
        {
            "predicted, word by word": ways["word by word"],
            "predicted, pairs of A, fours of B": ways["pairs of A, fours of B"],
            "measured": FMAS * counted[1][SHARED_PASSES] / warp_fmas,
        },
    )

# %% claim-loads
if counted:
    found = 32 * counted[1][REQUESTS] / results
    ct.claim(
        id="loads-per-result-block-tile",
        source="SGEMM worklog, kernel 5",
        statement={
            "en": "With 8 x 8 results per thread and tiles of 128 x 128 x 8 a result costs K/64 loads from global memory",
            "zh": "分块为 128×128×8、每线程 8×8 个结果时，每个结果只需 K/64 次全局内存读取",
        },
        predicted=side / 64,
        measured=found,
        unit="words per result, K = 1024",
        verdict="confirmed" if found == side / 64 else "refuted",
    )

# %% turn
code = disassemble(BLOCK_TILE.compile())
turn = main_turn(code, fmas=BK * TM * TN)
made_of = count(turn)
ct.facts(
    "block_tile_2d: instructions of a warp in one step of depth 8",
    dict(made_of.most_common(8))
    | {"all": made_of.total(), "FMAs": (100 * share(turn), "%")},
)

# %% bench
large = ct.size(4096, 48)
times = LADDER.bench(
    [*earlier_rungs(), BLOCK_TILE],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
gain = times["thread_tile"].median_us / times["block_tile_2d"].median_us
ct.claim(
    id="block-tile-gain",
    source="SGEMM worklog, kernels 4 and 5 (RTX A6000)",
    statement={
        "en": "Going from 8 to 8 x 8 results per thread makes the product 1.88 times as fast (8,475 to 15,972 GFLOP/s)",
        "zh": "每线程从 8 个结果增加到 8×8 个，速度变为 1.88 倍（8475 到 15972 GFLOP/s）",
    },
    predicted=1.88,
    measured=gain,
    unit="×",
    verdict="confirmed" if abs(gain / 1.88 - 1) < 0.1 else "depends",
)

# %% shapes
TILES = {
    f"{tm} x {tn}": (128, 128, 8, tm, tn)
    for tm, tn in ((4, 4), (8, 4), (8, 8), (16, 8))
}


def instance(tile, problem):
    """A kernel with these tiles, and a callable that multiplies once with it."""
    bm, bn, _, tm, tn = tile
    name = f"sgemm_block_tile<{','.join(map(str, tile))}>"
    kernel = ct.Kernel("gemm/block_tile_2d.cu", name)
    grid = ct.cdiv(problem.n, bn), ct.cdiv(problem.m, bm)
    arguments = (
        problem.a,
        problem.b,
        problem.c,
        problem.m,
        problem.n,
        problem.k,
        1.0,
        0.0,
    )
    return kernel, lambda: kernel(
        *arguments, grid=grid, block=bm * bn // (tm * tn)
    )


small = Gemm(257, 260, 33)
for name, tile in TILES.items():
    kernel, run = instance(tile, small)
    threads = 128 * 128 // (tile[3] * tile[4])
    needs = kernel.resources(block=threads)
    ct.facts(
        f"{name} results per thread",
        {
            "FMAs per word from shared memory": tile[3]
            * tile[4]
            / (tile[3] + tile[4]),
            "sums and operands": tile[3] * tile[4] + tile[3] + tile[4],
            "registers": needs.registers,
            "warps per SM": needs.blocks_per_sm * threads // 32,
        },
    )
    ct.poison(small.c)
    run()
    small.compare(f"{name}, 257 x 260 x 33")

# %% bench-shapes
big = Gemm(large, large, large)
by_shape = ct.bench(
    {name: instance(tile, big)[1] for name, tile in TILES.items()},
    flops=big.flops,
    rounds=7,
    name="4096 x 4096 x 4096, tiles of 128 x 128 x 8",
)
gain = (
    by_shape["8 x 8"].median_us / by_shape["16 x 8"].median_us
)  # a quarter of the words less
ct.claim(
    id="larger-thread-tile-faster",
    source="SGEMM worklog, kernel 5",
    statement={
        "en": "The more results a thread computes, the higher the intensity, and the faster the product",
        "zh": "每个线程算的结果越多，计算强度越高，乘法就越快",
    },
    predicted="> 1",
    measured=gain,
    unit="time of 8 x 8 / time of 16 x 8",
    verdict="confirmed" if gain > 1.03 else "refuted",
)

# %% stores
# Where the lanes of a warp store their first result: in two rows of C, 16 lanes in each, eight columns apart.
row_store = sectors(y * large + x)
ct.facts(
    "a warp stores one word per lane",
    {
        "sectors touched": row_store,
        "sectors if lanes were neighbors": sectors(LANES),
    },
)
