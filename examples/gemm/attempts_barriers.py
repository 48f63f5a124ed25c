# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel: half of the barriers", zh: "通向最终 kernel 的路：栅栏减半"}
#     requires: sm_80
#     timeout_s: 120
#     sizes:
#       side: [1024, 136, 4096]
#       depth: [999, 99]
#       SIZES: [[2048, 4096], [136]]
# ---

# %% [markdown]
# The final kernel waits after each step of 16 depths: for its copies, and for
# all threads of the block. Here it waits after each second, third or fourth
# step. The loop keeps its length, unlike that of an instance 32 deep.

# %% setup
from dataclasses import replace

import loops
import sgemm
from ladder import Gemm

import cudatut as ct

FINAL = ct.paths.resolve_source("gemm/final.cu").read_text(encoding="utf-8")
ct.paths.note_read(ct.paths.resolve_source("gemm/final.cu"))
SMS = ct.device().sm_count

# %% [markdown]
# Each variant is the kernel's source with some passages changed.

# %% variants
WAIT = "wait_for_all_but<STAGES - 2>();"
# Another place for the copies within a step: the compiler can order more
# around them then.
EARLIER = [
    ("if (kk == 1 && more)", "if (kk == 0 && more)"),
    ("if (kk == BK / 2) {", "if (kk == 9) {"),
]


def every(steps, turn):
    """The changes for a barrier after so many steps; `turn` says of a step
    that it is such a one.

    A barrier frees that many tiles at once, so copies go to a slot that many
    before the one in use: STAGES - steps tiles ahead.
    """
    ahead = f"STAGES - {steps}"
    arrived = f"wait_for_all_but<STAGES - {2 * steps}>();"
    stop = f"        {WAIT}\n        __syncthreads();\n"
    sometimes = f"        if ({turn}) {{\n{stop}        }}\n"
    return [
        ("s = 1; s < STAGES - 1; ++s", f"s = 1; s < {ahead}; ++s"),
        (
            f"  {WAIT}\n  __syncthreads();\n\n",
            f"  {arrived}\n  __syncthreads();\n\n",
        ),
        ("free_slot = STAGES - 1;", f"free_slot = {ahead};"),
        ("more = step + STAGES - 1 <", f"more = step + {ahead} <"),
        (
            "free_slot = slot;",
            "free_slot = free_slot + 1 < STAGES ? free_slot + 1 : 0;",
        ),
        (stop, sometimes.replace(WAIT, arrived)),
        *EARLIER,
    ]


SMALL = sgemm.CONFIGS[0]
LARGE = sgemm.Config(128, 256, 16, 8, 16, 4, 1, rate=0.9, alone=0.9)
VARIANTS = {  # name: configuration, stages, changes
    "64 x 128, every step": (SMALL, 3, []),
    "64 x 128, every 2": (SMALL, 4, every(2, "step & 1")),
    "64 x 128, every 3": (SMALL, 6, every(3, "slot % 3 == 2")),
    "128 x 256, every step": (LARGE, 4, []),
    "128 x 256, every 4": (LARGE, 8, every(4, "(step & 3) == 3")),
}


def edited(changes):
    """The kernel's source with these changes. Raises ValueError where final.cu
    no longer has a passage just once."""
    text = FINAL
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(
                f"final.cu has this passage {text.count(old)} times:\n{old}"
            )
        text = text.replace(old, new)
    return text


def prepared(problem, name):
    """A launch of the variant: of 64 x 128 with whole and shared tiles as
    planned, of the others with whole tiles."""
    config, stages, changes = VARIANTS[name]
    plan = sgemm.plan(problem.m, problem.n, problem.k, SMS)
    shared = plan.config == config
    return sgemm.prepare(
        problem.a,
        problem.b,
        problem.c,
        config=replace(config, stages=stages),
        splits=plan.splits if shared else 1,
        whole=plan.whole if shared else None,
        source=edited(changes),
    )


ct.compile_ahead(  # nvcc takes a second or two for each
    (edited(changes), replace(config, stages=stages).name(words, False, False))
    for config, stages, changes in VARIANTS.values()
    for words in (1, 4)
)

# %% [markdown]
# The first launches are those that the profiler counts. Then no step, one, an
# even and an odd number of them, a depth that is left over, and parts of it.

# %% check
side = 1024
depth = 999
problem = Gemm(side, side, side)
for name in VARIANTS:
    run = prepared(problem, name)
    ct.poison(problem.c)
    run()
    problem.compare(f"{name}, n = {side}")
for m, n, k in [
    (1, 1, 1),
    (65, 130, 15),
    (64, 128, 33),
    (200, 132, 68),
    (130, 260, depth),
    (5, 4, 0),
]:
    problem = Gemm(m, n, k)
    for name in VARIANTS:
        ct.poison(problem.c)
        prepared(problem, name)()
        problem.compare(f"{name}, {m} x {n} x {k}")

# %% predict
rows = {}
if not ct.tool.running():
    problem = Gemm(4096, 4096, 4096)
    launches = {name: prepared(problem, name) for name in VARIANTS}
    codes = loops.disassemble_all(run.kernel for run in launches.values())
    for (name, run), code in zip(launches.items(), codes):
        config = run.config
        needs = run.kernel.resources(config.threads, run.shared)
        turn = loops.main_turn(code, config.bk * config.tm * config.tn)
        fmas = loops.count(turn)["FFMA"]
        rows[name] = {
            "registers": needs.registers,
            "blocks per SM": needs.blocks_per_sm,
            "FFMA": 100 * loops.share(turn),
            "two words of one bank": 100 * loops.bank_conflicts(turn) / fmas,
        }
    ct.table(
        "read from the machine code",
        rows,
        corner="tile, barrier after",
        units={"FFMA": "%", "two words of one bank": "%"},
    )

# %% bench
SIZES = (2048, 4096)
rates = {}
for size in SIZES:
    problem = Gemm(size, size, size)
    runs = {}
    for name in VARIANTS:
        runs[name] = prepared(problem, name)
        ct.poison(problem.c)
        runs[name]()
        problem.compare(f"{name}, n = {size}")
    bench = ct.bench(
        {**runs, **problem.vendors()}, flops=problem.flops, name=f"n = {size}"
    )
    for row in bench.rows_:
        rates.setdefault(row.name, {})[f"n = {size}"] = row.value

# %% rates
ct.table(
    "rates",
    rates,
    corner="tile, barrier after",
    units={f"n = {size}": "TFLOP/s" for size in SIZES},
)

# %% [markdown]
# What the warps wait for, in cycles per issued instruction.

# %% counters
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {
    "barrier": STALL.format("barrier"),
    "dispatch": STALL.format("dispatch_stall"),
    "shared memory": STALL.format("short_scoreboard"),
    "slots used": "smsp__issue_active.avg.pct_of_peak_sustained_active",
}
counted = ct.profile_launches(
    "gemm/attempts_barriers",
    "regex:sgemm",
    list(METRICS.values()),
    launches=len(VARIANTS),
)
if counted:
    ct.table(
        "warps that wait, per issued instruction",
        {
            name: {what: found[metric] for what, metric in METRICS.items()}
            for name, found in zip(VARIANTS, counted)
        },
        corner="tile, barrier after",
        units={"slots used": "%"},
    )
