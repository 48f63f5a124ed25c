# ---
# jupyter:
#   cudatut:
#     title: {en: "Warp tiles", zh: "线程束分块"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Which results a warp computes, and in which order its lanes stand: words, passes, issue slots.

# %% setup
from dataclasses import replace

import numpy as np
from block_tiles_lanes import LANES, passes
from ladder import LADDER, Gemm
from loops import count, disassemble, main_turn, share

import cudatut as ct
from cudatut.ladder import read_rung
from cudatut.profiler import profile_launches

# m = n = k of the counted launches: about two blocks per SM of an H100
side = ct.size(2048, 48, profiled=2048)
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
SHAPES = {  # rows and columns of a warp's tile; the bits of a lane's number that tell its column
    "16 x 128, by rows": (16, 128, 0b01111),
    "16 x 128, in pairs": (16, 128, 0b11110),
    "32 x 64, by rows": (32, 64, 0b00111),
    "32 x 64, in pairs": (32, 64, 0b01110),
    "128 x 16, in pairs": (128, 16, 0b00010),
}
# Two of them are rungs of depth 16; for the others, warp_tile with the numbering of the lanes for a choice.
SAME = {
    "16 x 128, by rows": "conflict_free, depth 16",
    "32 x 64, in pairs": "warp_tile, depth 16",
}
KERNEL = read_rung("gemm/warp_tiles.cu")
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

# %% check
problem = Gemm(side, side, side)
for (
    rung
) in COUNTED.values():  # these launches come first: the profiler counts them
    problem.check(rung)
LADDER.check(
    "warp_tile",
    [
        {"m": m, "n": n, "k": k}
        for m, n, k in ((1, 1, 1), (31, 33, 7), (5, 3, 0))
    ],
)
for m, n, k in [(129, 100, 33), ct.size((257, 260, 132), (130, 132, 36))]:
    small = Gemm(m, n, k, 0.5, -2.0)
    for rung in COUNTED.values():
        small.check(rung)


# %% words
def gather(bits, lane):
    """The bits of a lane's number that the mask selects, pushed together."""
    found, to = 0 * lane, 0
    for bit in range(5):
        if bits >> bit & 1:
            found, to = found | (lane >> bit & 1) << to, to + 1
    return found


def lanes(wm, wn, bits):
    """First column and row of each lane's results in the tile of its warp, as the kernel computes them."""
    return gather(bits, LANES) * 4, gather(31 & ~bits, LANES) * TM


def distinct(wm, wn, bits):
    """Words of A and of B that a warp needs for one depth, listed; and its results, listed."""
    x, y = lanes(wm, wn, bits)
    rows = (y[:, None] + np.arange(TM)).ravel()
    columns = (
        x[:, None]
        + np.array([c // 4 * (wn // TN * 4) + c % 4 for c in range(TN)])
    ).ravel()
    results = {
        (r, c)
        for lane in range(32)
        for r in rows[lane * TM : lane * TM + TM]
        for c in columns[lane * TN : lane * TN + TN]
    }
    return len(np.unique(rows)), len(np.unique(columns)), len(results)


for name, shape in SHAPES.items():
    of_a, of_b, results = distinct(*shape)
    ct.facts(
        f"{name}: one depth",
        {
            "words of A": of_a,
            "words of B": of_b,
            "FMAs": results,
            "words per FMA": (of_a + of_b) / results,
        },
    )


# %% passes
def per_depth(wm, wn, bits, tm=TM):
    """Passes of a warp's reads of A and of B at one depth."""
    x, y = lanes(wm, wn, bits)
    of_a = sum(passes(y + r, 4) for r in range(0, tm, 4))
    return of_a, sum(
        passes(x + c // 4 * (wn // TN * 4), 4) for c in range(0, TN, 4)
    )


predicted = {name: per_depth(*shape) for name, shape in SHAPES.items()}
predicted |= {
    name: predicted["16 x 128, by rows"] for name in RUNGS if "conflict" in name
}
predicted |= {
    name: predicted["32 x 64, in pairs"] for name in RUNGS if "warp" in name
}
for name in SHAPES:
    of_a, of_b = predicted[name]
    ct.facts(
        f"{name}: passes at one depth",
        {
            "A": of_a,
            "B": of_b,
            "per cycle of FMAs": (of_a + of_b) / (TM * TN / 4),
        },
    )

# %% slots
# What stands between a warp and the next FMA: the other instructions of the loop, each of which takes an issue slot.
resources = {
    name: rung.compile().resources(block=256) for name, rung in RUNGS.items()
}
turns = {
    name: main_turn(
        disassemble(rung.compile()), int(name.split()[-1]) * TM * TN
    )
    for name, rung in RUNGS.items()
}
for name, turn in turns.items():
    made_of = count(turn)
    ct.facts(
        f"{name}: a turn of the loop",
        {
            "instructions": made_of.total(),
            "FMAs": made_of["FFMA"],
            "most of the FMA rate": (100 * share(turn), "%"),
            "warps per scheduler": resources[name].blocks_per_sm
            * 256
            // 32
            // 4,
            "barriers per 1024 FMAs": 1024 * made_of["BAR"] / made_of["FFMA"],
        },
    )

# %% count
PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SLOTS = "smsp__issue_active.avg.pct_of_peak_sustained_active"
STALLS = {
    "barrier": "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "global memory": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "shared memory": "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    "dispatch": "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio",
}
counted = profile_launches(
    "gemm/warp_tiles",
    kernel="regex:^sgemm_(conflict_free|warp_tile|lanes)$",
    metrics=[PASSES, SLOTS, *STALLS.values()],
    launches=len(COUNTED),
)
counts = dict(zip(COUNTED, counted))
depths = side * side**2 / (BM * BN) * 256 / 32  # of all warps together
for name in SHAPES if counted else ():
    got = counts[SAME.get(name, name)]
    ct.facts(
        f"{name}: passes of loads at one depth",
        {"predicted": sum(predicted[name]), "measured": got[PASSES] / depths},
    )

# %% stalls
for name, got in counts.items():
    if name in RUNGS:
        ct.facts(
            f"{name}, counted",
            {
                "passes of loads at one depth": got[PASSES] / depths,
                "issue slots used": (got[SLOTS], "%"),
                **{
                    f"waits, {what}": (got[of], "cycles/instruction")
                    for what, of in STALLS.items()
                },
            },
        )

# %% bench
large = ct.size(4096, 48)
times = LADDER.bench(
    [LADDER["block_tile_2d"], LADDER["vectorized"], *RUNGS.values()],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)


def faster(slow, fast):
    return times[slow].median_us / times[fast].median_us


ct.facts(
    "what each change gives",
    {
        "warp tile, at depth 8": faster(
            "conflict_free, depth 8", "warp_tile, depth 8"
        ),
        "warp tile, at depth 16": faster(
            "conflict_free, depth 16", "warp_tile, depth 16"
        ),
        "depth 16, conflict_free": faster(
            "conflict_free, depth 8", "conflict_free, depth 16"
        ),
        "depth 16, warp_tile": faster(
            "warp_tile, depth 8", "warp_tile, depth 16"
        ),
        "both": faster("conflict_free, depth 8", "warp_tile, depth 16"),
    },
)

# %% claim-gain
alone = faster("conflict_free, depth 16", "warp_tile, depth 16")
ct.claim(
    id="warp-tiles-gain",
    source="SGEMM worklog, kernels 9 and 10 (RTX A6000)",
    statement={
        "en": "Warp tiles make the product 1.10 times as fast (19,721 to 21,779 GFLOP/s)",
        "zh": "线程束分块使乘法的速度变为 1.10 倍（19721 到 21779 GFLOP/s）",
    },
    predicted=1.10,
    measured=alone,
    unit="×",
    verdict="confirmed" if abs(alone / 1.10 - 1) < 0.03 else "depends",
)

# %% bench-shapes
big = Gemm(large, large, large)
ct.bench(
    {name: big.launcher(COUNTED[SAME.get(name, name)]) for name in SHAPES},
    flops=2 * large**3,
    rounds=5,
    name="4096 x 4096 x 4096, depth 16",
)

# %% claim-parallelism
resident = [resources[name].blocks_per_sm * 256 // 32 for name in RUNGS]
more = resident[3] / resident[2]
ct.facts("warps on an SM at the same time", dict(zip(RUNGS, resident)))
ct.claim(
    id="warp-tiles-parallelism",
    source="CUDATutorial 11/03",
    statement={
        "en": "Warp tiles are faster because there is more parallelism: more warps are at work at the same time",
        "zh": "线程束分块更快，是因为并行度更高：同时工作的线程束更多",
    },
    predicted="> 1",
    measured=more,
    unit="warps per SM, with warp tiles / without",
    verdict="confirmed" if more > 1 else "refuted",
)

# %% claim-modulo
# The results of a block of 256 threads whose warps are numbered by the quotient, and by the remainder.
t, WM, WN = np.arange(256), 32, 64
computed = {}
for how, warp in (("/", t // 32), ("%", t % 32)):
    x0, y0 = warp % (BN // WN) * WN, warp // (BN // WN) * WM
    x, y = (np.tile(of, 8) for of in lanes(WM, WN, 0b01110))
    tile = np.zeros((1024, BN), int)
    for r in range(TM):
        for c in range(TN):
            np.add.at(tile, (y0 + y + r, x0 + x + c // 4 * 32 + c % 4), 1)
    computed[how] = int((tile[:BM] > 0).sum())
    ct.facts(
        f"warp = t {how} 32",
        {
            "results of the tile, computed": computed[how],
            "computed more than once": int((tile[:BM] > 1).sum()),
            "computed outside of the tile": int((tile[BM:] > 0).sum()),
        },
    )
ct.claim(
    id="warp-number-modulo",
    source="SGEMM worklog, kernel 10, text",
    statement={
        "en": "The number of a thread's warp is threadIdx.x % warpSize. Then a block computes its whole tile",
        "zh": "线程所在的线程束的编号是 threadIdx.x % warpSize。这里数的是线程块算出了多少个结果",
    },
    predicted=BM * BN,
    measured=computed["%"],
    unit="results of 128 × 128",
    verdict="confirmed" if computed["%"] == BM * BN else "refuted",
)
