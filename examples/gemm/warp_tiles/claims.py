# ---
# jupyter:
#   cudatut:
#     title: {en: "Warp tiles: claims", zh: "线程束分块：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {large: [4096, 48]}
# ---

# %% [markdown]
# What other sources say of warp tiles, tried.

# %% setup
from dataclasses import replace

import numpy as np
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm

import cudatut as ct

large = 4096


def instance(rung, arguments, name):
    """A rung with other template arguments."""
    kernel = f"sgemm_{rung}<{arguments}>"
    return replace(LADDER[rung], name=name, kernel=kernel)


# %% [markdown]
# The step of the worklog: from the configuration that it found best, with the
# bank conflicts that this kernel has there, too, to warp tiles. Beside them a
# kernel without conflicts and without warp tiles.

# %% claim-gain
RUNGS = [
    instance("vectorized", "128,128,16,8,8", "before"),
    instance("vectorized", "128,128,16,8,8", "again"),
    instance("conflict_free", "128,128,16,8,8", "conflict_free"),
    LADDER["warp_tile"],
]
problem = Gemm(large, large, large)
for rung in RUNGS:
    problem.check(rung)
times = LADDER.bench(
    RUNGS,
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096, warp tiles",
)
before = times["before"].median_us
ct.claim(
    id="warp-tiles-gain",
    source="SGEMM worklog, kernels 9 and 10",
    place={
        "en": "the table at the beginning of the worklog",
        "zh": "worklog 开头的表格",
    },
    form="printed",
    statement={
        "en": "Warp tiles, tuned again, make the tuned product 1.10 times as "
        "fast (19,721.0 to 21,779.3 GFLOP/s, on an RTX A6000; the text "
        "of kernel 10 says A100).",
        "zh": "在调优过的 kernel 上加入线程束分块并再次调优，乘法的速度变为 "
        "1.10 倍（19721.0 到 21779.3 GFLOP/s，RTX A6000；kernel 10 的正"
        "文写的是 A100）。",
    },
    expected=21779.3 / 19721.0,
    measured=before / times["warp_tile"].median_us,
    unit="×",
    rule="gain",
    control=(
        {"en": "before against itself", "zh": "之前的与它自己相比"},
        before / times["again"].median_us,
        (0.97, 1.03),
    ),
)

# %% parts
ct.facts(
    "the gain in parts",
    {
        "without the conflicts": before / times["conflict_free"].median_us,
        "with warp tiles": times["conflict_free"].median_us
        / times["warp_tile"].median_us,
    },
)

# %% [markdown]
# CUDATutorial's step has tiles of 64 x 64 x 8: first 64 threads with 8 x 8
# results each, then 128 threads in four warps of 32 x 32, with half as many
# results each.

# %% claim-parallelism
SMALL = {
    "before": (instance("vectorized", "64,64,8,8,8", "before"), 64),
    "after": (instance("warp_tile", "64,64,8,32,32,8,4", "after"), 128),
}
SAME = {"conflict_free": (RUNGS[2], 256), "warp_tile": (RUNGS[3], 256)}
for rung, threads in SMALL.values():
    Gemm(130, 132, 36).check(rung, block=str(threads), tile="64x64")
rows = {}
for name, (rung, threads) in (SMALL | SAME).items():
    needs = rung.compile().resources(block=threads)
    rows[name] = {
        "threads of a block": threads,
        "registers": needs.registers,
        "warps per SM": needs.blocks_per_sm * threads // 32,
    }
ct.table("warps that an SM holds", rows, corner="kernel")
warps = {name: row["warps per SM"] for name, row in rows.items()}


def beside(after, before):
    """How many warps an SM holds after a step, beside before."""
    if warps[after] == warps[before]:
        return "as many"
    return "more" if warps[after] > warps[before] else "fewer"


ct.claim(
    id="warp-tiles-parallelism",
    source="CUDATutorial 11/03",
    place={"en": "the note in section 1", "zh": "第 1 节的说明"},
    form="said",
    statement={
        "en": "Warp tiling raises the parallelism of warps, and so the "
        "efficiency. Only the first half is tested: warps that an SM "
        "holds after the step, beside before.",
        "zh": "warp tiling 会增加 warp 级别的并行性，从而提高计算效率。这里只"
        "检验前半句：这一步之后 SM 容纳的线程束，与之前相比。",
    },
    expected="more",
    depends={
        "en": "whether the step also gives a block more threads, with fewer "
        "results each; warp tiles alone leave the number of warps as it is",
        "zh": "这一步是否同时增加线程数、减少每个线程的结果数；只加线程束分块，"
        "线程束的数目不变",
    },
    sides=(
        (
            {
                "en": "the source's step: twice the threads, half the results",
                "zh": "原文的一步：线程数加倍，每个线程的结果减半",
            },
            beside("after", "before"),
        ),
        (
            {
                "en": "a step that keeps threads and results per thread",
                "zh": "线程数和每线程结果数都不变的一步",
            },
            beside("warp_tile", "conflict_free"),
        ),
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the source's step backwards",
            "zh": "把原文的一步倒过来",
        },
        beside("before", "after"),
        "fewer",
    ),
)

# %% [markdown]
# The results of a block of 256 threads whose warps are numbered by the
# quotient, and by the remainder.

# %% claim-modulo
BM, BN, WM, WN, TM, TN = 128, 128, 32, 64, 8, 8
t = np.arange(256)
lane_x = t % 32 // 2 % 8
lane_y = t % 32 // 16 * 2 + t % 2
table = {}
for how, warp in (("/", t // 32), ("%", t % 32)):
    x = warp % (BN // WN) * WN + lane_x * 4
    y = warp // (BN // WN) * WM + lane_y * TM
    results = np.zeros((1024, BN), int)
    for r in range(TM):
        for c in range(TN):
            np.add.at(results, (y + r, x + c // 4 * 32 + c % 4), 1)
    table[f"t {how} 32"] = {
        "results of the tile, computed": int((results[:BM] > 0).sum()),
        "computed more than once": int((results[:BM] > 1).sum()),
        "computed outside of the tile": int((results[BM:] > 0).sum()),
    }
ct.table("128 x 128 results of a block", table, corner="number of the warp")
ct.claim(
    id="warp-number-modulo",
    source="SGEMM worklog, kernel 10",
    place={
        "en": "the text before the listing; the full code, quoted in the "
        "note below it, has the quotient",
        "zh": "代码之前的正文；代码之后的译者注引用的完整代码，用的是商",
    },
    form="said",
    statement={
        "en": "The number of a thread's warp is threadIdx.x % warpSize. Then a "
        "block computes all results of its tile; counted from the indices of "
        "its threads.",
        "zh": "线程所在的 warp 的编号是 threadIdx.x % warpSize。那么线程块应算出分块的全部结果；"
        "这里按各线程的下标数出来。",
    },
    expected=BM * BN,
    measured=table["t % 32"]["results of the tile, computed"],
    unit="results",
    rule="equal",
    found="computed",
    control=(
        {"en": "threadIdx.x / warpSize", "zh": "threadIdx.x / warpSize"},
        table["t / 32"]["results of the tile, computed"],
        BM * BN,
    ),
)
