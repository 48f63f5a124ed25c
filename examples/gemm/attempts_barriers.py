# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel: half of the barriers", zh: "通向最终 kernel 的路：屏障减半"}
#     requires: sm_80
#     timeout_s: 120
# ---

# %% [markdown]
# The final kernel waits after every 16 steps of depth: for its copies, and for all threads of the block. Here it waits
# after every 32. The loop keeps its length, unlike that of an instance 32 deep, and the machine code stays in the cache.

# %% setup
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import loops
import sgemm
from ladder import Gemm

import cudatut as ct
from cudatut import paths, tool
from cudatut.profiler import profile_launches

FINAL = paths.resolve_source("gemm/final.cu").read_text(encoding="utf-8")
paths.note_read(paths.resolve_source("gemm/final.cu"))
# A barrier frees two tiles, so a tile is copied two steps later than the last that is in use: one stage less ahead.
PAIRS = [
    ("for (int s = 1; s < STAGES - 1; ++s) {", "for (int s = 1; s < STAGES - 2; ++s) {"),
    (
        "wait_for_all_but<STAGES - 2>();\n  __syncthreads();\n",
        "wait_for_all_but<STAGES - 4>();\n  __syncthreads();\n",
    ),
    ("int slot = 0, free_slot = STAGES - 1;", "int slot = 0, free_slot = STAGES - 2;"),
    ("more = step + STAGES - 1 < steps;", "more = step + STAGES - 2 < steps;"),
    ("free_slot = slot;", "free_slot = free_slot + 1 < STAGES ? free_slot + 1 : 0;"),
    (
        "        wait_for_all_but<STAGES - 2>();\n        __syncthreads();\n",
        "        if (step & 1) {\n          wait_for_all_but<STAGES - 4>();\n          __syncthreads();\n        }\n",
    ),
]
# Where in the step the copies stand decides how the compiler can order what is around them.
EARLIER = [
    ("if (kk == 1 && more)", "if (kk == 0 && more)"),
    ("if (kk == BK / 2) {", "if (kk == 9) {"),
]
VARIANTS = {  # name: stages, changes
    "every step": (3, []),
    "every second": (4, PAIRS),
    "every second, 6 stages": (6, PAIRS),
    "every second, copies earlier": (4, PAIRS + EARLIER),
}
SIZES = [2048, 4096, 8192] if ct.size(1, 0) else [200]
gpu = ct.device()


def edited(changes):
    """The kernel's source with these changes. Raises ValueError where final.cu no longer has a passage just once."""
    text = FINAL
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"final.cu has this passage {text.count(old)} times:\n{old}")
        text = text.replace(old, new)
    return text


@contextmanager
def built_from(source):
    """`sgemm.launcher` takes this kernel."""
    before = sgemm.kernel
    sgemm.kernel = cache(lambda name: ct.Kernel(source, name))
    try:
        yield
    finally:
        sgemm.kernel = before


def prepared(problem, name):
    """A launch of the variant, with the tiles and parts that `sgemm.plan` chooses."""
    stages, changes = VARIANTS[name]
    plan = sgemm.plan(problem.m, problem.n, problem.k, gpu.sm_count)
    with built_from(edited(changes)):
        return sgemm.prepare(
            problem.a,
            problem.b,
            problem.c,
            config=replace(plan.config, stages=stages),
            splits=plan.splits,
            whole=plan.whole,
        )


# %% check
# The first launches are those that the profiler counts.
side = ct.size(1024, 200, profiled=4096)
problem = Gemm(side, side, side)
for name in VARIANTS:
    run = prepared(problem, name)
    ct.poison(problem.c)
    run()
    problem.compare(f"{name}, n = {side}")
# No step, one, an even and an odd number of them, a depth that is left over, and parts of the depth.
for m, n, k in [
    (1, 1, 1),
    (65, 130, 15),
    (64, 128, 33),
    (200, 132, 68),
    (130, 260, 999),
    (5, 4, 0),
]:
    problem = Gemm(m, n, k)
    for name in list(VARIANTS)[1:]:
        ct.poison(problem.c)
        prepared(problem, name)()
        problem.compare(f"{name}, {m} x {n} x {k}")

# %% predict
rows = {}
if not tool.running():
    problem = Gemm(4096, 4096, 4096)
    for name in VARIANTS:
        run = prepared(problem, name)
        config = run.config
        needs = run.kernel.resources(config.threads, run.shared)
        turn = loops.main_turn(loops.disassemble(run.kernel), config.bk * config.tm * config.tn)
        rows |= {
            f"{name}: registers": needs.registers,
            f"{name}: blocks per SM": needs.blocks_per_sm,
            f"{name}: FFMA": (100 * loops.share(turn), "%"),
            f"{name}: two words of one bank": (
                100 * loops.bank_conflicts(turn) / loops.count(turn)["FFMA"],
                "%",
            ),
        }
ct.facts("read from the machine code", rows)

# %% bench
for size in SIZES:
    problem = Gemm(size, size, size)
    runs = {}
    for name in VARIANTS:
        runs[name] = prepared(problem, name)
        ct.poison(problem.c)
        runs[name]()
        problem.compare(f"{name}, n = {size}")
    ct.bench({**runs, **problem.vendors()}, flops=problem.flops, name=f"n = {size}")

# %% counters
# What the warps wait for, in cycles per issued instruction.
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {
    "barrier": STALL.format("barrier"),
    "dispatch": STALL.format("dispatch_stall"),
    "shared memory": STALL.format("short_scoreboard"),
    "slots used, %": "smsp__issue_active.avg.pct_of_peak_sustained_active",
}
counted = profile_launches(
    "gemm/attempts_barriers", "regex:sgemm", list(METRICS.values()), launches=len(VARIANTS)
)
ct.facts(
    "counted",
    {
        f"{name}: {what}": counters[metric]
        for name, counters in zip(VARIANTS, counted)
        for what, metric in METRICS.items()
    },
)
