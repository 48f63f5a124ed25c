# ---
# jupyter:
#   cudatut:
#     title: {en: "Double buffering: why cp.async is slower here", zh: "双缓冲：cp.async 在这里为何更慢"}
#     requires: sm_80
#     timeout_s: 120
#     sizes:
#       side: [1024, 128, 2048]
#       large: [4096, 128]
# ---

# %% [markdown]
# Why is cp.async slower? A small kernel without edges has the two things in
# which `async_copy` differs from `double_buffer`, one at a time: how the words
# travel, and how A lies.

# %% setup
import numpy as np

from cudatut.book.measure import loops
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm

import cudatut as ct

FILE = "gemm/double_buffering/double_buffering.cu"
FACTORS = {  # the first is double_buffer, the last async_copy, without edges
    "registers, A turned": "ordered<8, THROUGH_REGISTERS, true, false>",
    "registers, A along k": "ordered<8, THROUGH_REGISTERS, false, false>",
    "cp.async, A turned": "ordered<8, ASYNC, true, false>",
    "cp.async, A along k": "ordered<8, ASYNC, false, false>",
}
base = "registers, A turned"
ct.compile_ahead(
    [(FILE, kernel) for kernel in FACTORS.values()]
)  # side by side
factors = {name: ct.Kernel(FILE, kernel) for name, kernel in FACTORS.items()}
no_stamps = ct.to_device(np.zeros(1, "uint32"))


def run_factor(kernel, problem):
    """C = A B for extents that are multiples of the tiles."""
    grid = problem.n // 128, problem.m // 128
    kernel(
        problem.a, problem.b, problem.c, problem.n, problem.k,
        no_stamps, 0, 0, grid=grid, block=256,
    )  # fmt: skip


# %% [markdown]
# Right before fast. These are the launches that the profiler counts.

# %% check
side = 1024
counted_problem = Gemm(side, side, side)
for name, kernel in factors.items():
    ct.poison(counted_problem.c)
    run_factor(kernel, counted_problem)
    counted_problem.compare(f"{name}, {side} x {side} x {side}")

# %% [markdown]
# First the instructions of the two rungs: what the compiler puts before a copy
# are loads from shared memory with a predicate that is never true.

# %% dummies
NEVER, SHARE = "of them LDS that never run", "FFMA share, %"
WITHOUT = "FFMA share without those LDS, %"
BANK = "FFMAs with two registers of a bank, %"
turns = {}
for name in ("double_buffer", "async_copy"):
    kernel = LADDER[name].compile()
    fmas = loops.fmas_of_turn(kernel.name)
    turns[name] = loops.main_turn(loops.disassemble(kernel), fmas)
table = {}
for name, turn in turns.items():
    counted = loops.count(turn)
    never = sum(
        times for i, times in turn if i.op == "LDS" and i.predicate == "@!PT"
    )
    ffma, total = counted["FFMA"], counted.total()
    column = {
        "depth": ffma // 64,
        "FFMA": ffma,
        "other instructions": total - ffma,
        NEVER: never,
        SHARE: 100 * loops.share(turn),
        WITHOUT: 100 * ffma / (total - never),
        BANK: 100 * loops.bank_conflicts(turn) / ffma,
    }
    for what, value in column.items():
        table.setdefault(what, {})[name] = value
ct.table("a turn of the loop", table, corner="counted")
shares = table[SHARE]
ct.facts(
    "of the time that async_copy takes longer",
    {
        "explained by instructions": (
            100 * (shares["double_buffer"] / shares["async_copy"] - 1),
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

# %% [markdown]
# Then the times of the four combinations.

# %% factors
large = 4096
problem = Gemm(large, large, large)
factor_times = ct.bench(
    {
        name: lambda kernel=kernel: run_factor(kernel, problem)
        for name, kernel in factors.items()
    },
    flops=problem.flops,
    rounds=11,
    name=f"depth 8, no edges, {large} x {large} x {large}",
)
ct.facts(
    "times as long as with registers and A turned",
    {
        name: factor_times[name].median_us / factor_times[base].median_us
        for name in FACTORS
        if name != base
    },
)

# %% decompose
# Time = instructions / (slots x share of them that is used).
INSTRUCTIONS = "smsp__inst_executed.sum"
ACTIVE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
CYCLES = "smsp__cycles_active.avg"
WAIT = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = {
    "waits, shared memory": WAIT.format("short_scoreboard"),
    "waits, queue to it": WAIT.format("mio_throttle"),
    "waits, dispatch": WAIT.format("dispatch_stall"),
}
found = ct.profile_launches(
    "gemm/double_buffering_cp_async",
    kernel="ordered",
    metrics=[INSTRUCTIONS, ACTIVE, CYCLES, *STALLS.values()],
    launches=len(FACTORS),
)
counters = dict(zip(FACTORS, found))
fmas = 8 * 8 * 8  # of a thread, in a turn of depth 8
table = {}
for name in FACTORS if counters else ():
    own, other = counters[name], counters[base]
    instructions = own[INSTRUCTIONS] / other[INSTRUCTIONS]
    slots = own[ACTIVE] / other[ACTIVE]
    turn = loops.main_turn(loops.disassemble(factors[name]), fmas)
    column = {
        "registers": factors[name].resources(256).registers,
        "more instructions, %": 100 * (instructions - 1),
        "fewer slots used, %": 100 * (1 - slots),
        "cycles, by both": instructions / slots,
        "cycles, measured": own[CYCLES] / other[CYCLES],
        BANK: 100 * loops.bank_conflicts(turn) / fmas,
        **{what: own[metric] for what, metric in STALLS.items()},
    }
    for what, value in column.items():
        table.setdefault(what, {})[name] = value
if table:
    ct.table("the four combinations", table, corner="against the first")
