# ---
# jupyter:
#   cudatut:
#     title: {en: "Warp tiles", zh: "线程束分块"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [2048, 48, 2048]
#       ragged: [[257, 260, 132], [130, 132, 36]]
#       large: [4096, 48]
# ---

# %% [markdown]
# Which results a warp computes, and in which order its lanes stand. First one
# product as a whole program.

# %% program
import numpy as np
import cudatut as ct

m, n, k = 1000, 900, 800
a = ct.to_device(ct.rng(0).random((m, k), dtype="float32"))
b = ct.to_device(ct.rng(1).random((k, n), dtype="float32"))
c = ct.empty((m, n), "float32")

# Tiles of 128 x 128 x 16 per block, 32 x 64 per warp, 8 x 8 per thread.
kernel = ct.Kernel(
    "gemm/ladder/warp_tile.cu", "sgemm_warp_tile<128,128,16,32,64,8,8>"
)
grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
kernel(a, b, c, m, n, k, 1.0, 0.0, grid=grid, block=256)

expected = a.get().astype("float64") @ b.get()
ct.check(c, expected, atol=1e-2)

# %% [markdown]
# Two kernels at two depths take the same launch.

# %% launch
for name, tile in (("conflict_free", "8,8"), ("warp_tile", "32,64,8,8")):
    for depth in (8, 16):
        kernel = ct.Kernel(
            f"gemm/ladder/{name}.cu", f"sgemm_{name}<128,128,{depth},{tile}>"
        )
        ct.poison(c)
        kernel(a, b, c, m, n, k, 1.0, 0.0, grid=grid, block=256)
        ct.check(c, expected, name=f"{name}, depth {depth}", atol=1e-2)

# %% [markdown]
# From here on the ladder launches them. Beside the rungs stand five
# arrangements of the lanes, all of depth 16.

# %% setup
from dataclasses import replace

from cudatut.book.gemm.block_tiles.lanes import LANES, passes
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm
from cudatut.book.measure.loops import count, disassemble, main_turn, share


BM, BN, TM, TN = 128, 128, 8, 8
RUNGS = {  # two kernels, two depths of a tile
    f"{name}, depth {depth}": replace(
        LADDER[name],
        name=f"{name}, depth {depth}",
        kernel=f"sgemm_{name}<128,128,{depth},{tile}>",
    )
    for depth in (8, 16)
    for name, tile in (("conflict_free", "8,8"), ("warp_tile", "32,64,8,8"))
}
# Rows and columns of a warp's tile; the bits of a lane's number that tell its
# column.
SHAPES = {
    "16 x 128, by rows": (16, 128, 0b01111),
    "16 x 128, in pairs": (16, 128, 0b11110),
    "32 x 64, by rows": (32, 64, 0b00111),
    "32 x 64, in pairs": (32, 64, 0b01110),
    "128 x 16, in pairs": (128, 16, 0b00010),
}
# Two of them are rungs of depth 16; for the others there is warp_tile with the
# numbering of the lanes for a choice.
SAME = {
    "16 x 128, by rows": "conflict_free, depth 16",
    "32 x 64, in pairs": "warp_tile, depth 16",
}
KERNEL = ct.read_rung("gemm/warp_tiles/warp_tiles.cu")
VARIANTS = {
    name: replace(
        KERNEL,
        name=name,
        kernel="sgemm_lanes<128,128,16,{},{},8,8,{}>".format(*shape),
    )
    for name, shape in SHAPES.items()
    if name not in SAME
}
COUNTED = {**RUNGS, **VARIANTS}

# %% [markdown]
# Right before fast. The profiler counts the first seven launches of this cell.

# %% check
side = 2048  # m = n = k: about two blocks per SM of an H100 or H200
ragged = (257, 260, 132)
problem = Gemm(side, side, side)
for rung in COUNTED.values():
    problem.check(rung)
SMALL = ((1, 1, 1), (31, 33, 7), (5, 3, 0))
LADDER.check("warp_tile", [{"m": m, "n": n, "k": k} for m, n, k in SMALL])
for m, n, k in [(129, 100, 33), ragged]:
    small = Gemm(m, n, k, 0.5, -2.0)
    for rung in COUNTED.values():
        small.check(rung)

# %% [markdown]
# Which rows and columns the lanes of a warp have, and how many words these are.


# %% words
def gather(bits, lane):
    """The bits of a lane's number that the mask selects, pushed together."""
    found, to = 0 * lane, 0
    for bit in range(5):
        if bits >> bit & 1:
            found, to = found | (lane >> bit & 1) << to, to + 1
    return found


def lanes(bits):
    """First column and row of each lane's results in the tile of its warp, as
    the kernel computes them."""
    return gather(bits, LANES) * 4, gather(31 & ~bits, LANES) * TM


def distinct(wm, wn, bits):
    """Words of A and of B that a warp needs for one depth, listed; and its
    results, listed."""
    x, y = lanes(bits)
    apart = [c // 4 * (wn // TN * 4) + c % 4 for c in range(TN)]
    rows = y[:, None] + np.arange(TM)
    columns = x[:, None] + np.array(apart)
    results = {
        (r, c) for lane in LANES for r in rows[lane] for c in columns[lane]
    }
    return len(np.unique(rows)), len(np.unique(columns)), len(results)


table = {}
for name, shape in SHAPES.items():
    of_a, of_b, results = distinct(*shape)
    table[name] = {
        "words of A": of_a,
        "words of B": of_b,
        "FMAs": results,
        "words per FMA": (of_a + of_b) / results,
    }
ct.table("one warp, one depth", table, corner="tile of a warp")


# %% passes
def per_depth(wm, wn, bits):
    """Passes of a warp's reads of A and of B at one depth."""
    x, y = lanes(bits)
    apart = wn // TN * 4
    return (
        sum(passes(y + r, 4) for r in range(0, TM, 4)),
        sum(passes(x + c // 4 * apart, 4) for c in range(0, TN, 4)),
    )


table = {}
for name, shape in SHAPES.items():
    of_a, of_b = per_depth(*shape)
    table[name] = {
        "A": of_a,
        "B": of_b,
        "both": of_a + of_b,
        "per cycle of FMAs": (of_a + of_b) / (TM * TN / 4),
    }
ct.table("passes at one depth", table, corner="tile of a warp")
predicted = {name: row["both"] for name, row in table.items()}

# %% [markdown]
# What stands between a warp and the next FMA: the other instructions of the
# loop, each of which takes an issue slot.

# %% slots
resources = {
    name: rung.compile().resources(block=256) for name, rung in RUNGS.items()
}
warps = {name: of.blocks_per_sm * 8 for name, of in resources.items()}
table = {}
for name, rung in RUNGS.items():
    fmas = int(name.split()[-1]) * TM * TN
    turn = main_turn(disassemble(rung.compile()), fmas)
    made_of = count(turn)
    table[name] = {
        "instructions": made_of.total(),
        "FMAs": made_of["FFMA"],
        "FMAs at most": 100 * share(turn),
        "barriers per 1024 FMAs": 1024 * made_of["BAR"] / made_of["FFMA"],
        "warps per scheduler": warps[name] // 4,
    }
ct.table(
    "a turn of the loop",
    table,
    corner="kernel",
    units={"FMAs at most": "% of the rate"},
)

# %% resident
ct.facts("warps on an SM at the same time", warps)

# %% [markdown]
# The counters of the first seven launches of the cell `check`; before them come
# five launches by the program and by the cell `launch`.

# %% count
PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SLOTS = "smsp__issue_active.avg.pct_of_peak_sustained_active"
WAIT = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = {
    "barrier": WAIT.format("barrier"),
    "global memory": WAIT.format("long_scoreboard"),
    "shared memory": WAIT.format("short_scoreboard"),
    "dispatch": WAIT.format("dispatch_stall"),
}
counted = ct.profile_launches(
    "gemm/warp_tiles",
    kernel="regex:^sgemm_(conflict_free|warp_tile|lanes)$",
    metrics=[PASSES, SLOTS, *STALLS.values()],
    launches=len(COUNTED),
    skip=5,
)
counts = dict(zip(COUNTED, counted))
depths = side * side**2 / (BM * BN) * 256 / 32  # of all warps together
if counts:
    table = {
        name: {
            "predicted": predicted[name],
            "measured": counts[SAME.get(name, name)][PASSES] / depths,
        }
        for name in SHAPES
    }
    ct.table("passes of loads at one depth", table, corner="tile of a warp")
    ct.check(
        [row["measured"] for row in table.values()],
        [row["predicted"] for row in table.values()],
        name="passes of loads",
        rtol=0.01,
    )

# %% stalls
table = {}
for name in RUNGS if counts else ():
    got = counts[name]
    waits = {what: got[metric] for what, metric in STALLS.items()}
    around = waits["barrier"] + waits["global memory"]
    table[name] = {
        "issue slots used": got[SLOTS],
        **waits,
        "barrier and global": around,
    }
if table:
    ct.table(
        "cycles that a warp waits, per instruction",
        table,
        corner="kernel",
        units={"issue slots used": "%"},
    )

# %% [markdown]
# The times, and what each change gives.

# %% bench
large = 4096
times = LADDER.bench(
    [LADDER["block_tile_2d"], LADDER["vectorized"], *RUNGS.values()],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)


# %% gains
def faster(slow, fast):
    return times[slow].median_us / times[fast].median_us


strip, tile = "conflict_free, depth {}", "warp_tile, depth {}"
ct.facts(
    "times as fast by",
    {
        "warp tile, at depth 8": faster(strip.format(8), tile.format(8)),
        "warp tile, at depth 16": faster(strip.format(16), tile.format(16)),
        "depth 16, conflict_free": faster(strip.format(8), strip.format(16)),
        "depth 16, warp_tile": faster(tile.format(8), tile.format(16)),
        "both": faster(strip.format(8), tile.format(16)),
    },
)

# %% bench-shapes
big = Gemm(large, large, large)
ct.bench(
    {name: big.launcher(COUNTED[SAME.get(name, name)]) for name in SHAPES},
    flops=2 * large**3,
    rounds=5,
    name="4096 x 4096 x 4096, depth 16",
)
