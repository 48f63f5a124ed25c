# ---
# jupyter:
#   cudatut:
#     title: {en: "Two-dimensional thread tiles", zh: "二维线程分块"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 48, 1024]
#       large: [4096, 48]
#       deep: [132, 36]
#       many: [257, 130]
# ---

# %% [markdown]
# A square of results per thread. First one product as a whole program.

# %% program
import cudatut as ct

m, n, k = 1000, 900, 800
a = ct.to_device(ct.rng(0).random((m, k), dtype="float32"))
b = ct.to_device(ct.rng(1).random((k, n), dtype="float32"))
c = ct.empty((m, n), "float32")

# Tiles of 128 x 128 x 8 per block, 8 x 8 results per thread.
kernel = ct.Kernel(
    "gemm/ladder/block_tile_2d.cu", "sgemm_block_tile<128,128,8,8,8>"
)
grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
kernel(a, b, c, m, n, k, 1.0, 0.0, grid=grid, block=256)

ct.check(c, a.get().astype("float64") @ b.get(), atol=1e-2)

# %% setup
import numpy as np
from cudatut.book.gemm.block_tiles.lanes import LANES, passes, place, sectors
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm, earlier_rungs
from cudatut.book.measure.loops import count, disassemble, main_turn, share


side = 1024  # m = n = k of the counted launches
large = 4096  # of the timed ones
deep = 132
many = 257
THREAD_TILE, BLOCK_TILE = earlier_rungs()[-1], LADDER["block_tile_2d"]

# %% [markdown]
# Right before fast.

# %% check
for rung in (THREAD_TILE, BLOCK_TILE):  # the profiler counts these launches
    Gemm(side, side, side).check(rung)
SHAPES = [(1, 1, 1), (31, 33, 7), (129, 100, 33), (many, many + 3, deep)]
SHAPES += [(5, 3, 0)]
LADDER.check("block_tile_2d", [{"m": m, "n": n, "k": k} for m, n, k in SHAPES])
scaled = {"m": 100, "n": 70, "k": 50, "alpha": 0.5, "beta": -2.0}
LADDER.check("block_tile_2d", [scaled])

# %% [markdown]
# Words and passes, counted before the run.


# %% by-hand
def words_for_16(high, wide, k=7):
    """16 results, high x wide per thread: words that the threads read."""
    return 16 // (high * wide) * k * (high + wide)


ct.table(
    "16 results of 7 x 7 matrices",
    {
        f"{high} x {wide}": {
            "A and B": words_for_16(high, wide),
            "with C": words_for_16(high, wide) + 2 * 16,
        }
        for high, wide in ((1, 1), (4, 1), (4, 4))
    },
    corner="results per thread",
)

# %% predict
RUNGS = {  # BM, BN, BK, TM, TN
    "tiled": (32, 32, 32, 1, 1),
    "thread_tile": (64, 64, 8, 8, 1),
    "block_tile_2d": (128, 128, 8, 8, 8),
}


def words(bm, bn, bk, tm, tn):
    """Words for one result, from global and from shared memory, counted on
    one step of one block."""
    threads = bm * bn // (tm * tn)
    t = np.arange(threads)
    # The loops that load a tile: thread t brings words t, t + threads, ...
    for size in (bm * bk, bk * bn):
        brought = np.concatenate(
            [first + t for first in range(0, size, threads)]
        )
        # Each word of the tile once.
        assert (np.bincount(brought, minlength=size) == 1).all()
    loads, reads = bm * bk + bk * bn, threads * bk * (tm + tn)
    return side / bk * loads / (bm * bn), side / bk * reads / (bm * bn)


expected = {name: words(*tile) for name, tile in RUNGS.items()}
ct.table(
    "words per result",
    {
        name: {"global memory": from_global, "shared memory": from_shared}
        for name, (from_global, from_shared) in expected.items()
    },
    corner="kernel",
)

# %% predict-passes
BM, BN, BK, TM, TN = RUNGS["block_tile_2d"]
x, y = place(LANES, BN, TM, TN)  # of the lanes of warp 0
# Of a warp, per unit of depth; an SM starts four in a cycle, and one pass.
FMAS = TM * TN
# As[BM][BK]: a lane reads rows y to y + TM - 1, at one depth or at two
# neighboring ones.
of_a = {
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
ct.table(
    "passes for 64 FMAs of a warp",
    {
        name: {"passes": n, "of the FMA limit": min(100, 100 * FMAS / 4 / n)}
        for name, n in ways.items()
    },
    corner="read",
    units={"of the FMA limit": "%"},
)

# %% [markdown]
# The profiler counts the same, and the machine code is read.

# %% count
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
SHARED_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
# The first launch is that of the program.
_, *counted = ct.profile_launches(
    "gemm/block_tiles",
    kernel="regex:^(matmul_thread_tile|sgemm_block_tile)$",
    metrics=[REQUESTS, SECTORS, SHARED_LOADS, SHARED_PASSES, INSTRUCTIONS],
    launches=3,
) or [None]
results, warp_fmas = side**2, side**3 / 32
measured = {}
for name, got in zip(("thread_tile", "block_tile_2d"), counted):
    measured[name] = {
        "words, global": 32 * got[REQUESTS] / results,
        "predicted": expected[name][0],
        "loads, shared": 32 * got[SHARED_LOADS] / results,
        "words, shared, predicted": expected[name][1],
        "instructions per FMA": got[INSTRUCTIONS] / warp_fmas,
    }
if measured:
    ct.table("per result, counted", measured, corner="kernel")
if counted:
    ct.facts(
        "block_tile_2d, passes per 64 FMAs",
        {
            "predicted, word by word": ways["word by word"],
            "predicted, pairs of A, fours of B": ways["pairs of A, fours of B"],
            "measured": FMAS * counted[1][SHARED_PASSES] / warp_fmas,
        },
    )
    # A word that is loaded twice would not change the result.
    ct.check(
        [row["words, global"] for row in measured.values()],
        [row["predicted"] for row in measured.values()],
        name="words from global memory",
        rtol=0.01,
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

# %% [markdown]
# The time, and other shapes of the same kernel.

# %% bench
large_sides = {"m": large, "n": large, "k": large}
times = LADDER.bench(
    [*earlier_rungs(), BLOCK_TILE],
    **large_sides,
    rounds=5,
    name="4096 x 4096 x 4096",
)
if "cuBLAS" in [row.name for row in times.rows]:  # not under a sanitizer
    mine = times["block_tile_2d"].median_us
    speed = 100 * times["cuBLAS"].median_us / mine
    ct.facts(
        "block_tile_2d",
        {
            "times as fast as thread_tile": times["thread_tile"].median_us
            / mine,
            "of the speed of cuBLAS": (speed, "%"),
        },
    )

# %% shapes
TILES = {
    f"{tm} x {tn}": (128, 128, 8, tm, tn)
    for tm, tn in ((4, 4), (8, 4), (8, 8), (16, 8))
}


def instance(tile, problem):
    """A kernel with these tiles, and a callable that multiplies with it."""
    bm, bn, _, tm, tn = tile
    name = f"sgemm_block_tile<{','.join(map(str, tile))}>"
    kernel = ct.Kernel("gemm/ladder/block_tile_2d.cu", name)
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
table = {}
for name, tile in TILES.items():
    kernel, run = instance(tile, small)
    threads = 128 * 128 // (tile[3] * tile[4])
    needs = kernel.resources(block=threads)
    table[name] = {
        "FMAs per word": tile[3] * tile[4] / (tile[3] + tile[4]),
        "sums and operands": tile[3] * tile[4] + tile[3] + tile[4],
        "registers": needs.registers,
        "warps per SM": needs.blocks_per_sm * threads // 32,
    }
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
for name in TILES:
    table[name]["TFLOP/s"] = by_shape[name].value
ct.table("results per thread", table, corner="shape")
ct.facts(
    "16 x 8 beside 8 x 8",
    {
        "times as long": by_shape["16 x 8"].median_us
        / by_shape["8 x 8"].median_us
    },
)

# %% stores
# Where the lanes of a warp store their first result: in two rows of C, 16 lanes
# in each, eight columns apart.
row_store = sectors(y * large + x)
ct.facts(
    "a warp stores one word per lane",
    {
        "sectors touched": row_store,
        "sectors if lanes were neighbors": sectors(LANES),
    },
)
