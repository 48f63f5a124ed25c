# ---
# jupyter:
#   cudatut:
#     title: {en: "TMA and mbarriers as a pipeline", zh: "用 TMA 与 mbarrier 搭流水线"}
#     requires: sm_90a
#     timeout_s: 240
#     sizes:
#       side: [4096, 256]
# ---

# %% [markdown]
# One warpgroup copies, others multiply. First one product as a whole program.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16

m, n, k = 1000, 1200, 800
a = to_bf16(ct.rng(0).standard_normal((m, k)))
b = to_bf16(ct.rng(1).standard_normal((k, n)))
c = ct.empty((m, n), "uint16")

on_gpu = ct.to_device(a), ct.to_device(b)
map_a = ct.tensor_map(on_gpu[0], (128, 64), swizzle=128)
map_b = ct.tensor_map(on_gpu[1], (64, 64), swizzle=128)
kernel = ct.Kernel(
    "tensor/ladder/pipeline.cu", "gemm_pipeline<3>", arch="sm_90a"
)
grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
# Three stages of 128 x 64 and 64 x 128 elements, with two barriers each.
shared = 3 * (2 * 128 * 64 * 2 + 2 * 8)
kernel(map_a, map_b, c, m, n, k, grid=grid, block=256, shared=shared)

expected = to_float(a) @ to_float(b)
ct.check(to_float(c.get()), expected, rtol=2**-8, atol=1e-2)

# %% setup
import textwrap
from dataclasses import replace

from cudatut.book.tensor.ladder import faults
from cudatut.book.tensor.ladder.ladder import LADDER, Gemm, launcher


def staged(name, stages):
    """The rung with another number of stages."""
    rung = LADDER[name]
    base = rung.kernel.partition("<")[0]
    return replace(
        rung, name=f"{name}, {stages} stages", kernel=f"{base}<{stages}>"
    )


# %% [markdown]
# Right before fast, with fewer steps than stages, and more.

# %% check
for name in ("pipeline", "two_consumers"):
    LADDER.check(name, LADDER.trials[:-1])
for stages in (2, 4):
    for depth in (8, 64, 128, 192, 256, 320, 576):
        problem = Gemm(130, 264, depth, integers=True)
        problem.check(staged("two_consumers", stages))
side = 4096
problem = Gemm(side, side, side)
for name in ("pipeline", "two_consumers"):
    problem.check(LADDER[name])

# %% [markdown]
# How many stages? A step of a 128 x 128 tile, 64 deep, at the full rate.


# %% predict
def step_cycles(latency, multiply, stages):
    """Cycles of a step: a stage is copied and multiplied once in as many steps
    as there are stages."""
    return max(multiply, (latency + multiply) / stages)


LATENCY, FULL_RATE = 1000, 4096  # cycles; FLOPs in a cycle
multiply = 2 * 128 * 128 * 64 / FULL_RATE
ct.table(
    f"cycles of a step, copies of {LATENCY} cycles",
    {
        str(stages): {
            "one block": step_cycles(LATENCY, multiply, stages),
            "two blocks": step_cycles(LATENCY, 2 * multiply, stages) / 2,
        }
        for stages in (1, 2, 3, 4)
    },
    corner="stages",
)

# %% bench
times = ct.bench(
    {
        "wgmma": problem.launcher(LADDER["wgmma"]),
        **{
            rung.name: problem.launcher(rung)
            for rung in (
                staged("pipeline", 2),
                staged("pipeline", 3),
                staged("two_consumers", 2),
                staged("two_consumers", 3),
                staged("two_consumers", 4),
            )
        },
        **problem.vendors(),
    },
    flops=problem.flops,
    rounds=11,
    name=f"{side} x {side} x {side}",
)

# %% [markdown]
# The same kernel with the clock of the SM read at each step: by the producer
# when it asks for a stage, by the consumer when the stage has come and when the
# products before have ended.

# %% trace
STEPS = side // 64
STAMPS = (
    ("int m, int n, int k)", "int m, int n, int k, long long* events)"),
    (
        "wait(&s.empty[i], ring.parity ^ 1);  // the first round: at once",
        "wait(&s.empty[i], ring.parity ^ 1); WATCH events[step] = clock64();",
    ),
    (
        "wait(&s.full[i], ring.parity);",
        "wait(&s.full[i], ring.parity); WATCH if (threadIdx.x == 128) "
        "events[STEPS + step] = clock64();",
    ),
    (
        "wait_for_products<BM / 64>();",
        "wait_for_products<BM / 64>(); WATCH if (threadIdx.x == 128) "
        "events[2 * STEPS + step] = clock64();",
    ),
    ("constexpr int BM", f"constexpr int STEPS = {STEPS};\nconstexpr int BM"),
    ("WATCH", "if (blockIdx.x == 3 && blockIdx.y == 3)"),
)
traced = {}
for stages in (2, 3):
    rung = staged("pipeline", stages)
    kernel = faults.broken(rung, *STAMPS)
    maps = [
        ct.tensor_map(problem.a, (128, 64), swizzle=128),
        ct.tensor_map(problem.b, (64, 64), swizzle=128),
    ]
    events = ct.to_device(np.zeros((3, STEPS), "int64"))
    tiles = ct.cdiv(side, 128)
    for _ in range(2):  # the second time the code is in the caches
        kernel(
            *maps, problem.c, side, side, side, events,
            grid=(tiles, tiles), block=256,
            shared=stages * (32768 + 16),
        )  # fmt: skip
    asked, came, ended = events.get()
    traced[stages] = asked - asked[0], came - asked[0], ended - asked[0]

# %% timeline
asked, came, ended = traced[3]
shown = range(min(12, STEPS - 1))
ct.series(
    "one block of gemm_pipeline<3>",
    x=("step of the loop", ""),
    y=("cycles since the first copy", ""),
    lines={
        "asked for": [(i, int(asked[i])) for i in shown],
        "has come": [(i, int(came[i])) for i in shown],
        # The products of a step are waited for in the next.
        "is multiplied": [(i, int(ended[i + 1])) for i in shown],
    },
)

# %% waits
late = slice(STEPS // 4, STEPS - 1)  # when the ring is in its rhythm
table = {}
for stages, (asked, came, _) in traced.items():
    table[f"{stages} stages"] = {
        "from asking to use": np.median((came - asked)[late]),
        "a step": np.median(np.diff(came)[late]),
        "the producer's lead": np.median(
            [np.sum(asked <= moment) - i for i, moment in enumerate(came)][late]
        ),
    }
ct.table(
    "in the middle of the tile",
    table,
    corner="gemm_pipeline",
    units={
        "from asking to use": "cycles",
        "a step": "cycles",
        "the producer's lead": "stages",
    },
)

# %% [markdown]
# Registers: what the compiler does when no warpgroup gives any back.

# %% registers
GIVE = "    give_registers_back<40>();\n", ""
TAKE = "    take_registers<208>();\n", ""
kept = faults.broken(LADDER["pipeline"], GIVE, TAKE)
both = {
    "pipeline": LADDER["pipeline"].compile(),
    "no registers given back": kept,
}
shared = 3 * (32768 + 16)
table = {}
for name, kernel in both.items():
    found = kernel.resources(256, shared)
    table[name] = {
        "registers": found.registers,
        "spilled bytes": found.spill_bytes,
        "blocks on an SM": found.blocks_per_sm,
    }
ct.table("a thread of 256, two blocks", table, corner="kernel")

# %% registers-bench
ct.bench(
    {
        name: launcher(
            LADDER["pipeline"], problem.a, problem.b, problem.c, kernel
        )
        for name, kernel in both.items()
    },
    flops=problem.flops,
    rounds=7,
    name=f"{side} x {side} x {side}",
)

# %% [markdown]
# What the compiler says meanwhile.

# %% remarks
WIDE = "__launch_bounds__(384, 1)", "__launch_bounds__(512, 1)"
compiled = {
    "pipeline": ("pipeline", []),
    "no registers given back": ("pipeline", [GIVE, TAKE]),
    "512 threads": ("two_consumers", [WIDE]),
}
for name, changes in compiled.values() if not ct.tool.running() else ():
    for line in faults.remarks(LADDER[name], *changes):
        print(*textwrap.wrap(line, 80), sep="\n")

# %% [markdown]
# Planted faults, each in a process of its own: a program that waits for a phase
# that never ends has to be stopped.

# %% faults
FAULTS = {
    "no fault": ("float sum", "float sum"),
    "a stage is given back one step early": (
        "if (step > 0 && threadIdx.x == 128) arrive(&s.empty[before]);",
        "if (threadIdx.x == 128) arrive(&s.empty[i]);",
    ),
    "the producer waits for no empty stage": (
        "wait(&s.empty[i], ring.parity ^ 1);  // the first round: at once",
        "",
    ),
    "the producer's first wait has the other parity": (
        "ring.parity ^ 1);  // the first round: at once",
        "ring.parity);",
    ),
}
table = {
    name: faults.seen("pipeline", change, timeout_s=15)
    for name, change in FAULTS.items()
    if not ct.tool.running()
}
if table:
    units = {"wrong": "%"}
    ct.table("planted faults", table, corner="fault", units=units)
