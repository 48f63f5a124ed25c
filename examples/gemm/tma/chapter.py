# ---
# jupyter:
#   cudatut:
#     title: {en: "The tensor memory accelerator", zh: "张量内存加速器（TMA）"}
#     requires: sm_90
#     timeout_s: 180
#     sizes:
#       side: [1024, 72, 2048]
#       ragged: [[257, 260, 132], [130, 132, 36]]
#       large: [4096, 72]
# ---

# %% [markdown]
# One thread asks for a whole tile. First one product as a whole program.

# %% program
import cudatut as ct

m, n, k = 1000, 900, 800
a = ct.to_device(ct.rng(0).random((m, k), dtype="float32"))
b = ct.to_device(ct.rng(1).random((k, n), dtype="float32"))
c = ct.empty((m, n), "float32")

# Tiles of 128 x 128 x 8 per block, in four buffers: so a copy brings a box of
# 128 x 8 words of A, and one of 8 x 128 words of B (rows x columns).
map_a = ct.tensor_map(a, (128, 8))
map_b = ct.tensor_map(b, (8, 128))
kernel = ct.Kernel("gemm/ladder/tma.cu", "sgemm_tma<128,128,8,32,64,8,8,4>")
grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
kernel(map_a, map_b, c, m, n, k, 1.0, 0.0, grid=grid, block=256)

ct.check(c, a.get().astype("float64") @ b.get(), atol=1e-2)

# %% setup
import re
from dataclasses import replace

from cudatut.book.measure import loops
import numpy as np
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm


def variant(bk, stages):
    """The rung with another depth and another number of buffers."""
    return replace(
        LADDER["tma"],
        name=f"tma, depth {bk}, {stages} stages",
        kernel=f"sgemm_tma<128,128,{bk},32,64,8,8,{stages}>",
        options={**LADDER["tma"].options, "boxes": f"8x128,128x{bk}"},
    )


# `async_copy` has depth 16 and two buffers, `tma` depth 8 and four. To compare
# them like for like, there is a `tma` of the same depth and buffers.
LIKE = "tma, depth 16, 2 stages"
rungs = {
    name: LADDER[name]
    for name in ("double_buffer", "async_copy", "multi_stage", "tma")
}
rungs[LIKE] = variant(16, 2)
COUNTED = ("double_buffer", "async_copy", LIKE, "tma")

# %% [markdown]
# Right before fast. The profiler counts the first four launches of this cell.

# %% check
side = 1024
ragged = (257, 260, 132)
counted_problem = Gemm(side, side, side)
for name in COUNTED:
    counted_problem.check(rungs[name])
SHAPES = [(1, 1, 1), (31, 33, 7), (129, 100, 33), ragged, (5, 3, 0), (0, 5, 3)]
LADDER.check(
    "tma", [{"m": m, "n": n, "k": k, "integers": True} for m, n, k in SHAPES]
)
LADDER.check("tma", [{"m": 200, "n": 132, "k": 68, "alpha": 0.5, "beta": -1.0}])
Gemm(*ragged, integers=True).check(rungs[LIKE])
large = 4096
problem = Gemm(large, large, large)
problem.check(rungs["tma"])

# %% [markdown]
# Instructions that a block of eight warps spends on copying, counted by hand.

# %% predict
TILE, DEPTH, THREADS = 128, 8, 256
warps = THREADS // 32
words = 2 * TILE * DEPTH
ct.facts(
    "instructions that copy a tile of A and one of B",
    {
        # A thread: two loads of 16 bytes; four stores for A, which is turned,
        # and one for B.
        "through registers": warps * (2 + 4 + 1),
        "cp.async": warps * words // (4 * THREADS),
        "TMA": 2,
        "bytes that the barrier counts": (4 * words, "bytes"),
    },
)

# %% [markdown]
# A small kernel that brings one box, and what arrives.

# %% map
x_host = (1 + np.arange(7 * 12, dtype="float32")).reshape(7, 12)
x = ct.to_device(x_host)
box = ct.tensor_map(x, (4, 8))  # rows x columns that one copy brings
show_box = ct.Kernel("gemm/tma/tma_box.cu", "show_box<4, 8>")


def bring(row, column):
    """The box at (row, column) as it arrives in shared memory."""
    out = ct.empty((4, 8), "float32")
    show_box(box, out, row, column, grid=1, block=32)
    return out


ct.check(bring(2, 4), x_host[2:6, 4:12], name="inside", rtol=0)

# %% edge
print(bring(5, 8).get().astype(int))

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

# %% [markdown]
# What the TMA does not do: columns that are no multiple of 4, and maps that it
# does not know.

# %% odd-column
# In a process of its own, because the error would spoil this one.
CHILD = """
import numpy as np, cudatut as ct
x = ct.to_device(np.zeros((7, 12), "float32"))
show_box = ct.Kernel("gemm/tma/tma_box.cu", "show_box<4, 8>")
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
for column in (4, 6) if not ct.tool.running() else ():
    print(ct.isolated(CHILD.replace("COLUMN", str(column))).stdout, end="")

# %% refused
odd = ct.to_device(np.ones((8, 10), "float32"))
for array, shape in ((odd, (4, 8)), (x, (4, 6)), (x, (4, 512))):
    try:
        ct.tensor_map(array, shape)
    except ValueError as error:
        said = str(error).removeprefix("tensor_map: ")
        print(re.sub("0x[0-9a-f]+", "0x...", said))

# %% [markdown]
# The times, and what a step costs by the machine code.

# %% bench
times = ct.bench(
    {
        **{name: problem.launcher(rung) for name, rung in rungs.items()},
        **problem.vendors(),
    },
    flops=problem.flops,
    rounds=11,
    name=f"{large} x {large} x {large}",
)

# %% sass
LOADS = ("LDG", "LDG.128", "LDGSTS", "LDGSTS.128", "UTMALDG", "STS", "STS.128")
table = {}
for name in ("double_buffer", "async_copy", "tma"):
    kernel = LADDER[name].compile()
    turn = loops.main_turn(
        loops.disassemble(kernel), loops.fmas_of_turn(kernel.name)
    )
    counted = loops.count(turn)
    per = 64 * 8 / counted["FFMA"]  # a turn may be 8 or 16 deep
    copying = sum(counted[op] for op in LOADS)
    loads = counted["LDS.128"]
    others = counted.total() - counted["FFMA"] - loads - copying
    table[name] = {
        "FFMA": round(counted["FFMA"] * per),
        "LDS.128": round(loads * per),
        "copying": round(copying * per),
        "others": round(others * per),
        "registers": kernel.resources(THREADS).registers,
    }
ct.table("instructions of a step of depth 8", table, corner="rung")

# %% bound
now = table["async_copy"]
alone = now["FFMA"] / (now["FFMA"] + now["LDS.128"])
share = now["FFMA"] / (sum(now.values()) - now["registers"])
ct.facts(
    "FMAs among the instructions of a step",
    {
        "async_copy": (100 * share, "%"),
        "only FMAs and LDS.128": (100 * alone, "%"),
        "gain at most": (100 * (alone / share - 1), "%"),
    },
)

# %% [markdown]
# The counters of the first four launches of the cell `check`; before them comes
# the launch of the program.

# %% count
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
ACTIVE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
WAIT = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = {
    "waits, barrier": WAIT.format("barrier"),
    "waits, shared memory": WAIT.format("short_scoreboard"),
    "waits, dispatch": WAIT.format("dispatch_stall"),
}
found = ct.profile_launches(
    "gemm/tma",
    kernel="regex:^sgemm_(double_buffer|async_copy|tma)$",
    metrics=[FFMA, INSTRUCTIONS, ACTIVE, *STALLS.values()],
    launches=len(COUNTED),
    skip=1,
)
counters = dict(zip(COUNTED, found))
if counters:
    ct.table(
        "2048 x 2048 x 2048",
        {
            name: {
                "FMAs among instructions": 100 * c[FFMA] / 32 / c[INSTRUCTIONS],
                "issue slots used": c[ACTIVE],
                **{what: c[metric] for what, metric in STALLS.items()},
            }
            for name, c in counters.items()
        },
        corner="rung",
        units={"FMAs among instructions": "%", "issue slots used": "%"},
    )

# %% gains
# Rate = share of FMAs x share of the slots that are used.
before = counters.get("async_copy")
table = {}
for name in (LIKE, "tma"):
    table[name] = {
        "measured": times["async_copy"].median_us / times[name].median_us
    }
    if before:
        c = counters[name]
        fewer = before[INSTRUCTIONS] / c[INSTRUCTIONS]
        table[name]["by instructions"] = fewer
        table[name]["by issue slots"] = c[ACTIVE] / before[ACTIVE]
ct.table("times as fast as async_copy", table, corner="rung")

# %% [markdown]
# Depth and stages, and a product whose rows begin at odd places.

# %% stages
# Steps of depth 8 or 16, in as many buffers as fit into 48 KiB.
variants = [variant(8, stages) for stages in (2, 3, 4, 5)] + [rungs[LIKE]]
for one in variants:
    Gemm(129, 260, 132, integers=True).check(one)
ct.bench(
    {one.name: problem.launcher(one) for one in variants},
    flops=problem.flops,
    rounds=11,
    name=f"{large} x {large} x {large}",
)

# %% ragged
# One column less: no row but the first begins at a multiple of 16 bytes.
off = Gemm(large - 1, large - 1, large - 1)
ct.bench(
    {name: off.launcher(rungs[name]) for name in ("double_buffer", "tma")},
    flops=off.flops,
    rounds=7,
    name=f"{large - 1} x {large - 1} x {large - 1}",
)
