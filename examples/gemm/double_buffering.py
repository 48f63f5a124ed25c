# ---
# jupyter:
#   cudatut:
#     title: {en: "Double buffering and asynchronous copies", zh: "双缓冲与异步拷贝"}
#     requires: sm_80
#     timeout_s: 180
# ---

# %% [markdown]
# Loads that travel while the tile before them is multiplied: timed by the clock of the SM, read off the machine code,
# and what keeps cp.async from being faster.

# %% setup
import math
from dataclasses import replace

import loops
import numpy as np
from ladder import LADDER, Gemm

import cudatut as ct
from cudatut.profiler import profile_launches
from cudatut.tuning import compile_ahead

gpu = ct.device()
COUNTED = ("warp_tile", "double_buffer", "async_copy", "multi_stage")
FACTORS = {  # how B and A travel, how A lies: the first is rung 5, the last rung 6, without edges
    "registers, A turned": "ordered<8, THROUGH_REGISTERS, true, false>",
    "registers, A along k": "ordered<8, THROUGH_REGISTERS, false, false>",
    "cp.async, A turned": "ordered<8, ASYNC, true, false>",
    "cp.async, A along k": "ordered<8, ASYNC, false, false>",
}
compile_ahead(  # side by side
    [(LADDER[name].path, LADDER[name].kernel) for name in COUNTED]
    + [("gemm/double_buffering.cu", kernel) for kernel in FACTORS.values()]
)
factors = {
    name: ct.Kernel("gemm/double_buffering.cu", kernel)
    for name, kernel in FACTORS.items()
}
no_stamps = ct.to_device(np.zeros(1, "uint32"))


def run_factor(kernel, problem):
    """C = A B for extents that are multiples of the tiles."""
    kernel(problem.a, problem.b, problem.c, problem.n, problem.k, no_stamps, 0, 0,
           grid=(problem.n // 128, problem.m // 128), block=256)  # fmt: skip


# %% check
# The first launches of all these kernels are those that the profiler counts.
side = ct.size(1024, 128, profiled=2048)
counted_problem = Gemm(side, side, side)
for name in COUNTED:
    counted_problem.check(LADDER[name])
for name, kernel in factors.items():
    ct.poison(counted_problem.c)
    run_factor(kernel, counted_problem)
    counted_problem.compare(f"{name}, {side} x {side} x {side}")
SHAPES = [
    (1, 1, 1),
    (31, 33, 7),
    (129, 100, 33),
    ct.size((257, 260, 132), (130, 132, 36)),
    (5, 3, 0),
]
for name in COUNTED[1:]:
    LADDER.check(
        name, [{"m": m, "n": n, "k": k, "integers": True} for m, n, k in SHAPES]
    )
    LADDER.check(
        name, [{"m": 200, "n": 132, "k": 68, "alpha": 0.5, "beta": -1.0}]
    )

# %% predict
TILE, DEPTH = 128, 8
products = TILE * TILE * DEPTH  # FMAs per step of a block
per_cycle = 128  # FMAs per cycle of an SM: four schedulers with 32 lanes each
kilobytes = 4 * 2 * TILE * DEPTH / 1024
ct.facts(
    "one step of one block",
    {
        "FMAs": products,
        "cycles to multiply, at least": (products / per_cycle, "cycles"),
        "words to load": 2 * TILE * DEPTH,
        "shared memory, one buffer": (kilobytes, "KiB"),
        "shared memory, two buffers": (2 * kilobytes, "KiB"),
    },
)

# %% stamp
ORDERS = {
    "one buffer": "ordered<8, ONE_BUFFER, true, true>",
    "two buffers, loads late": "ordered<8, TWO_BUFFERS, true, true>",
    "two buffers, loads early": "ordered<8, THROUGH_REGISTERS, true, true>",
    "cp.async": "ordered<8, ASYNC, false, true>",
}
ISSUED, ARRIVED, BEGUN, DONE = range(4)
stamped = {
    name: ct.Kernel("gemm/double_buffering.cu", kernel)
    for name, kernel in ORDERS.items()
}
first, count = ct.size(24, 2), ct.size(16, 4)  # the tiles that are stamped
depth = ct.size(512, 64)


def stamps(kernel, wide, high):
    """Cycles since the first stamp of each block, [block, tile, event], from one launch of wide x high blocks."""
    problem = Gemm(128 * high, 128 * wide, depth)
    out = ct.to_device(np.zeros((wide * high, count, 4), "uint32"))
    for _ in range(2):  # the first launch brings A and B into the L2 cache
        ct.poison(problem.c)
        kernel(problem.a, problem.b, problem.c, problem.n, problem.k, out, first, count,
               grid=(wide, high), block=256)  # fmt: skip
    problem.compare(f"{kernel.name}, {wide * high} blocks")
    raw = out.get()
    return (raw - raw[:, :1, :1]).astype(
        "int32"
    )  # the clock's lower half may wrap around


def medians(at):
    """What a step takes, in cycles: the median over blocks and tiles."""
    return {
        "load": float(np.median(at[:, :, ARRIVED] - at[:, :, ISSUED])),
        "multiply": float(np.median(at[:, :, DONE] - at[:, :, BEGUN])),
        "step": float(np.median(np.diff(at[:, :, BEGUN], axis=1))),
    }


wide = math.isqrt(gpu.sm_count)
grids = {1: (wide, gpu.sm_count // wide), 2: (wide, 2 * (gpu.sm_count // wide))}
if ct.size(0, 1):
    grids = {1: (1, 2), 2: (1, 2)}
alone = {name: stamps(kernel, *grids[1]) for name, kernel in stamped.items()}
together = {
    name: medians(stamps(kernel, *grids[2])) for name, kernel in stamped.items()
}

# %% alone
for name, at in alone.items():
    of = medians(at)
    ct.facts(
        f"{name}, one block per SM",
        {
            "loads issued until arrived": (of["load"], "cycles"),
            "multiplication": (of["multiply"], "cycles"),
            "step": (of["step"], "cycles"),
            "multiplying": (100 * of["multiply"] / of["step"], "%"),
        },
    )

# %% timeline
DRAWN = 4
block = (
    grids[1][0] * grids[1][1] // 2
)  # any would do: one from the middle of the grid
for name, at in alone.items():
    events = {}
    zero = at[block, 0, ISSUED]
    for i in range(DRAWN):
        for label, event in (
            ("issued", ISSUED), ("arrived", ARRIVED), ("begun", BEGUN), ("done", DONE)
        ):  # fmt: skip
            events[f"tile {first + i} {label}"] = (
                int(at[block, i, event] - zero),
                "cycles",
            )
    ct.facts(f"{name}: block {block}, thread 0", events)

# %% together
late = medians(alone["one buffer"])
load, multiply = late["load"], late["multiply"]
predicted = {  # from the two times of the first order, with one block per SM
    "one buffer": (load + multiply, max(load + multiply, 2 * multiply)),
    "two buffers, loads late": (
        load + multiply,
        max(load + multiply, 2 * multiply),
    ),
    "two buffers, loads early": (max(load, multiply), 2 * multiply),
}
for name, (one, two) in predicted.items():
    ct.facts(
        f"{name}: cycles per step",
        {
            "one block per SM, predicted": (one, "cycles"),
            "one block per SM, measured": (
                medians(alone[name])["step"],
                "cycles",
            ),
            "two blocks per SM, predicted": (two, "cycles"),
            "two blocks per SM, measured": (together[name]["step"], "cycles"),
        },
    )

# %% claim-late
ct.claim(
    id="double-buffer-seed",
    source="CUDATutorial 11/04",
    statement={
        "en": "Two buffers alone, each tile still loaded right before it is multiplied, hide the loads: a step takes "
        "no longer than its multiplication",
        "zh": "只要有两个缓冲区，即使每个分块仍是先加载、紧接着就乘，加载也会被掩盖：一步不比乘法本身更长",
    },
    predicted=1.0,
    measured=medians(alone["two buffers, loads late"])["step"]
    / medians(alone["two buffers, loads late"])["multiply"],
    unit="step / multiplication, one block per SM",
    verdict="refuted"
    if medians(alone["two buffers, loads late"])["step"]
    > 1.25 * medians(alone["two buffers, loads late"])["multiply"]
    else "confirmed",
)


# %% order
def turn_of(kernel):
    """What a warp runs in a turn of the main loop, in order, and how often each."""
    return loops.main_turn(loops.disassemble(kernel), loops.fmas_of_turn(kernel.name)
                           if kernel.name.startswith("sgemm") else 8 * 8 * DEPTH)  # fmt: skip


def multiplications_between(turn, load, use):
    """FFMAs from the first `load` of a turn to the first `use` behind it; where the turn ends in between, it goes on."""
    body = [i for i, _ in turn]
    start = next(k for k, i in enumerate(body) if i.text.startswith(load))
    around = body[start:] + body[:start]
    end = next(k for k, i in enumerate(around) if i.text.startswith(use))
    return sum(i.op == "FFMA" for i in around[:end])


# The same kernels without stamps: how many FFMAs the compiler leaves between a load and its use.
plain = {
    "one buffer": ct.Kernel(
        "gemm/double_buffering.cu", "ordered<8, ONE_BUFFER, true, false>"
    ),
    "two buffers, loads late": ct.Kernel(
        "gemm/double_buffering.cu", "ordered<8, TWO_BUFFERS, true, false>"
    ),
    "two buffers, loads early": factors["registers, A turned"],
}
ct.facts(
    "FFMAs from the first LDG.E.128 to the first STS",
    {
        name: multiplications_between(turn_of(kernel), "LDG.E.128", "STS")
        for name, kernel in plain.items()
    },
)

# %% bench
large = ct.size(4096, 128)
problem = Gemm(large, large, large)
DEPTHS = {
    "warp_tile, BK 8": ("warp_tile", "<128,128,8,32,64,8,8>"),
    "double_buffer, BK 16": ("double_buffer", "<128,128,16,32,64,8,8>"),
    "async_copy, BK 8": ("async_copy", "<128,128,8,32,64,8,8>"),
}
rungs = {name: LADDER[name] for name in COUNTED}
for name, (rung, arguments) in DEPTHS.items():
    rungs[name] = replace(
        LADDER[rung], name=name, kernel=f"sgemm_{rung}{arguments}"
    )
    Gemm(*ct.size((257, 260, 132), (130, 132, 100)), integers=True).check(
        rungs[name]
    )
problem.check(rungs["double_buffer"])
times = ct.bench(
    {
        **{name: problem.launcher(rung) for name, rung in rungs.items()},
        **problem.vendors(),
    },
    flops=problem.flops,
    rounds=11,
    name=f"{large} x {large} x {large}",
)

# %% count
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
ACTIVE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
CYCLES = "smsp__cycles_active.avg"
STALLS = {
    "memory": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "barrier": "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "shared memory": "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    "queue to it": "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
    "dispatch": "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio",
}
found = profile_launches(
    "gemm/double_buffering",
    kernel="regex:^(sgemm_(warp_tile|double_buffer|async_copy|multi_stage)|ordered)$",
    metrics=[FFMA, INSTRUCTIONS, ACTIVE, CYCLES, *STALLS.values()],
    launches=len(COUNTED) + len(FACTORS),
)
counters = dict(zip([*COUNTED, *FACTORS], found))
for name in COUNTED:
    if counters:
        c = counters[name]
        ct.facts(
            f"{name}, 2048 x 2048 x 2048",
            {
                "FFMA share of the instructions": (
                    100 * c[FFMA] / 32 / c[INSTRUCTIONS],
                    "%",
                ),
                "issue slots used": (c[ACTIVE], "%"),
                **{
                    f"warps waiting, {what}": c[metric]
                    for what, metric in STALLS.items()
                },
            },
        )

# %% dummies
# What the compiler puts before a copy: loads from shared memory with a predicate that is never true.
turns = {
    name: turn_of(LADDER[name].compile())
    for name in ("double_buffer", "async_copy")
}
for name, turn in turns.items():
    counted = loops.count(turn)
    never = sum(
        times for i, times in turn if i.op == "LDS" and i.predicate == "@!PT"
    )
    ct.facts(
        f"{name}: a turn of the loop",
        {
            "depth": counted["FFMA"] // 64,
            "FFMA": counted["FFMA"],
            "other instructions": counted.total() - counted["FFMA"],
            "of them LDS that never run": never,
            "FFMA share": (100 * loops.share(turn), "%"),
            "FFMA share without those LDS": (
                100 * counted["FFMA"] / (counted.total() - never),
                "%",
            ),
            "FFMAs with two registers of a bank": (
                100 * loops.bank_conflicts(turn) / counted["FFMA"],
                "%",
            ),
        },
    )
code = [i for i, _ in turns["async_copy"]]
place = next(k for k, i in enumerate(code) if i.name.startswith("LDGSTS"))
print(
    *(f"{i.predicate} {i.text}".strip() for i in code[place - 3 : place + 1]),
    sep="\n",
)

# %% factors
factor_times = ct.bench(
    {
        name: lambda kernel=kernel: run_factor(kernel, problem)
        for name, kernel in factors.items()
    },
    flops=problem.flops,
    rounds=11,
    name=f"BK 8, no edges, {large} x {large} x {large}",
)

# %% decompose
# Time = instructions / (slots x share of them that is used): which of the two factors differs?
base = "registers, A turned"
for name in FACTORS:
    if counters:
        c, b = counters[name], counters[base]
        ct.facts(
            f"{name}, against {base}",
            {
                "registers": factors[name].resources(256).registers,
                "instructions": c[INSTRUCTIONS] / b[INSTRUCTIONS],
                "slots used": c[ACTIVE] / b[ACTIVE],
                "cycles, by both": c[INSTRUCTIONS]
                / b[INSTRUCTIONS]
                * b[ACTIVE]
                / c[ACTIVE],
                "cycles, measured": c[CYCLES] / b[CYCLES],
                "FFMAs with two registers of a bank": (
                    100
                    * loops.bank_conflicts(turn_of(factors[name]))
                    / (8 * 8 * DEPTH),
                    "%",
                ),
                "warps waiting, shared memory": c[STALLS["shared memory"]],
                "warps waiting, queue to it": c[STALLS["queue to it"]],
                "warps waiting, dispatch": c[STALLS["dispatch"]],
            },
        )

# %% stages
# How many tiles must be on their way? As many as fit into the time between issue and use.
STAGES = {"BK 8": (8, (2, 3, 4)), "BK 16": (16, (2, 3))}
multi = {
    f"{label}, {stages} stages": replace(
        LADDER["multi_stage"],
        name=f"{label}, {stages} stages",
        kernel=f"sgemm_multi_stage<128,128,{bk},32,64,8,8,{stages}>",
    )
    for label, (bk, several) in STAGES.items()
    for stages in several
}
for rung in multi.values():
    Gemm(129, 260, 132, integers=True).check(rung)
ct.bench(
    {name: problem.launcher(rung) for name, rung in multi.items()},
    flops=problem.flops,
    rounds=11,
    name=f"multi_stage, {large} x {large} x {large}",
)
ct.facts(
    "tiles on their way that cover the load",
    {
        "one block per SM": math.ceil(load / multiply),
        "two blocks per SM": math.ceil(load / (2 * multiply)),
    },
)
