# ---
# jupyter:
#   cudatut:
#     title: {en: "The tensor memory accelerator", zh: "张量内存加速器（TMA）"}
#     requires: sm_90
#     timeout_s: 180
# ---

# %% [markdown]
# One thread asks for a whole tile: what a tensor map is, what arrives, and what it is worth for a product in fp32.

# %% setup
import re
from dataclasses import replace

import loops
import numpy as np
from ladder import LADDER, Gemm

import cudatut as ct
from cudatut import tool
from cudatut.profiler import profile_launches

COUNTED = ("double_buffer", "async_copy", "tma")

# %% check
# The first launches of these kernels are those that the profiler counts.
side = ct.size(1024, 72, profiled=2048)
counted_problem = Gemm(side, side, side)
for name in COUNTED:
    counted_problem.check(LADDER[name])
SHAPES = [
    (1, 1, 1),
    (31, 33, 7),
    (129, 100, 33),
    ct.size((257, 260, 132), (130, 132, 36)),
    (5, 3, 0),
    (0, 5, 3),
]
LADDER.check(
    "tma", [{"m": m, "n": n, "k": k, "integers": True} for m, n, k in SHAPES]
)
LADDER.check("tma", [{"m": 200, "n": 132, "k": 68, "alpha": 0.5, "beta": -1.0}])

# %% predict
TILE, DEPTH, THREADS = 128, 8, 256
warps = THREADS // 32
words = 2 * TILE * DEPTH
ct.facts(
    "copying one tile of A and one of B",
    {
        "words": words,
        "through registers: loads and stores of the warps": warps * (2 + 4 + 1),
        "cp.async: copies of the warps": warps * words // (4 * THREADS),
        "TMA: copies of one thread": 2,
        "bytes that the barrier counts": (4 * words, "bytes"),
    },
)

# %% map
x_host = (1 + np.arange(7 * 12, dtype="float32")).reshape(7, 12)
x = ct.to_device(x_host)
box = ct.tensor_map(x, (4, 8))  # rows x columns that one copy brings
show_box = ct.Kernel("gemm/tma_box.cu", "show_box<4, 8>")


def bring(row, column):
    """The box at (row, column) as it arrives in shared memory."""
    out = ct.empty((4, 8), "float32")
    show_box(box, out, row, column, grid=1, block=32)
    return out


inside = bring(2, 4)
ct.check(inside, x_host[2:6, 4:12], name="inside", rtol=0)

# %% edges
wide = np.pad(x_host, 16)  # the matrix in a sea of zeros
for row, column in (
    (5, 8),
    (-2, -4),
    (3, -8),
    (6, 8),
    (7, 0),
    (-4, 4),
    (100, 100),
):
    got = bring(row, column)
    if max(row, column) < 16:
        expected = wide[16 + row : 20 + row, 16 + column : 24 + column]
    else:
        expected = np.zeros((4, 8))
    ct.check(got, expected, name=f"box at row {row}, column {column}", rtol=0)
print(bring(5, 8).get().astype(int))

# %% odd-column
# In a process of its own, for the error would spoil this one.
CHILD = """
import numpy as np, cudatut as ct
x = ct.to_device(np.zeros((7, 12), "float32"))
show_box = ct.Kernel("gemm/tma_box.cu", "show_box<4, 8>")
out = ct.empty((4, 8), "float32")
show_box(ct.tensor_map(x, (4, 8)), out, 0, COLUMN, grid=1, block=32)
try:
    out.get()
    print("box at column COLUMN: arrived", flush=True)
except Exception as error:
    print("box at column COLUMN:", error, flush=True)
import os
os._exit(0)  # the context is lost, nothing in it can be freed
"""
for column in (4, 6) if not tool.running() else ():
    print(ct.isolated(CHILD.replace("COLUMN", str(column))).stdout, end="")

# %% refused
odd = ct.to_device(np.ones((8, 10), "float32"))
for array, shape in ((odd, (4, 8)), (x, (4, 6)), (x, (4, 512))):
    try:
        ct.tensor_map(array, shape)
    except ValueError as error:
        print(
            re.sub(
                "0x[0-9a-f]+", "0x...", str(error).removeprefix("tensor_map: ")
            )
        )

# %% bench
large = ct.size(4096, 72)
problem = Gemm(large, large, large)
rungs = {
    name: LADDER[name]
    for name in (
        "warp_tile",
        "double_buffer",
        "async_copy",
        "multi_stage",
        "tma",
    )
}
problem.check(rungs["tma"])
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
BARRIER = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
SHARED = (
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio"
)
DISPATCH = (
    "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio"
)
found = profile_launches(
    "gemm/tma",
    kernel="regex:^sgemm_(double_buffer|async_copy|tma)$",
    metrics=[FFMA, INSTRUCTIONS, ACTIVE, BARRIER, SHARED, DISPATCH],
    launches=len(COUNTED),
)
counters = dict(zip(COUNTED, found))
for name, c in counters.items():
    ct.facts(
        f"{name}, 2048 x 2048 x 2048",
        {
            "instructions per FFMA": 32 * c[INSTRUCTIONS] / c[FFMA],
            "FFMA share of the instructions": (
                100 * c[FFMA] / 32 / c[INSTRUCTIONS],
                "%",
            ),
            "issue slots used": (c[ACTIVE], "%"),
            "warps waiting, barrier": c[BARRIER],
            "warps waiting, shared memory": c[SHARED],
            "warps waiting, dispatch": c[DISPATCH],
        },
    )

# %% sass
compiled = {name: LADDER[name].compile() for name in COUNTED}
for name, kernel in compiled.items():
    turn = loops.main_turn(
        loops.disassemble(kernel), loops.fmas_of_turn(kernel.name)
    )
    counted, needs = loops.count(turn), kernel.resources(THREADS)
    per = 64 * 8 / counted["FFMA"]  # a turn may be 8 or 16 deep
    loads = (
        "LDG",
        "LDG.128",
        "LDGSTS",
        "LDGSTS.128",
        "UTMALDG",
        "STS",
        "STS.128",
    )
    ct.facts(
        f"{name}: a step of depth 8",
        {
            "FFMA": counted["FFMA"] * per,
            "loads from shared memory": counted["LDS.128"] * per,
            "copying: loads, stores": sum(counted[op] for op in loads) * per,
            "all others": (counted.total() - counted["FFMA"] - counted["LDS.128"]
                           - sum(counted[op] for op in loads)) * per,
            "registers": needs.registers,
            "shared memory": (needs.shared_bytes, "bytes"),
            "blocks per SM": needs.blocks_per_sm,
        },
    )  # fmt: skip

# %% stages
# Steps of depth 8 or 16, in as many buffers as fit into 48 KiB.
variants = {
    f"BK {bk}, {stages} stages": replace(
        LADDER["tma"],
        name=f"BK {bk}, {stages} stages",
        kernel=f"sgemm_tma<128,128,{bk},32,64,8,8,{stages}>",
        options={**LADDER["tma"].options, "boxes": f"8x128,128x{bk}"},
    )
    for bk, several in ((8, (2, 3, 4, 5)), (16, (2,)))
    for stages in several
}
for variant in variants.values():
    Gemm(129, 260, 132, integers=True).check(variant)
ct.bench(
    {name: problem.launcher(variant) for name, variant in variants.items()},
    flops=problem.flops,
    rounds=11,
    name=f"tma, {large} x {large} x {large}",
)

# %% ragged
# One column less: no row but the first begins at a multiple of 16 bytes any more.
off = Gemm(large - 1, large - 1, large - 1)
ct.bench(
    {name: off.launcher(rungs[name]) for name in ("double_buffer", "tma")},
    flops=off.flops,
    rounds=7,
    name=f"{large - 1} x {large - 1} x {large - 1}",
)
