# ---
# jupyter:
#   cudatut:
#     title: {en: "Double buffering and asynchronous copies", zh: "双缓冲与异步复制"}
#     requires: sm_80
#     timeout_s: 180
#     sizes:
#       side: [1024, 128, 2048]
#       ragged: [[257, 260, 132], [130, 132, 36]]
#       large: [4096, 128]
#       depth: [512, 64]
#       first: [24, 2]
#       count: [16, 4]
#       most: [64, 1]
# ---

# %% [markdown]
# Loads that travel while the tile before them is multiplied. First one product
# as a whole program.

# %% program
import numpy as np
import cudatut as ct

m, n, k = 1000, 900, 800
a = ct.to_device(ct.rng(0).random((m, k), dtype="float32"))
b = ct.to_device(ct.rng(1).random((k, n), dtype="float32"))
c = ct.empty((m, n), "float32")

# Tiles of 128 x 128 x 8 per block, 32 x 64 per warp, 8 x 8 per thread.
kernel = ct.Kernel(
    "gemm/ladder/double_buffer.cu", "sgemm_double_buffer<128,128,8,32,64,8,8>"
)
grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
kernel(a, b, c, m, n, k, 1.0, 0.0, grid=grid, block=256)

expected = a.get().astype("float64") @ b.get()
ct.check(c, expected, atol=1e-2)

# %% [markdown]
# All three rungs of this chapter take the same launch.

# %% launch
rungs = {
    "double_buffer": "<128,128,8,32,64,8,8>",
    "async_copy": "<128,128,16,32,64,8,8>",
    "multi_stage": "<128,128,16,32,64,8,8,3>",
}
for name, numbers in rungs.items():
    kernel = ct.Kernel(f"gemm/ladder/{name}.cu", f"sgemm_{name}{numbers}")
    ct.poison(c)
    kernel(a, b, c, m, n, k, 1.0, 0.0, grid=grid, block=256)
    ct.check(c, expected, name=name, atol=1e-2)

# %% [markdown]
# From here on the ladder launches the rungs. Beside them stands a small kernel
# without edges, whose text shows in which order things happen.

# %% setup
import math
from dataclasses import replace

from cudatut.book.measure import loops
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm


gpu = ct.device()
COUNTED = ("warp_tile", "double_buffer", "async_copy", "multi_stage")
FILE = "gemm/double_buffering/double_buffering.cu"
ct.compile_ahead(  # side by side
    [(LADDER[name].path, LADDER[name].kernel) for name in COUNTED]
)

# %% [markdown]
# Right before fast. The profiler counts the first four launches of this cell.

# %% check
side = 1024
ragged = (257, 260, 132)
counted_problem = Gemm(side, side, side)
for name in COUNTED:
    counted_problem.check(LADDER[name])
SHAPES = [(1, 1, 1), (31, 33, 7), (129, 100, 33), ragged, (5, 3, 0)]
for name in COUNTED[1:]:
    LADDER.check(
        name,
        [{"m": m, "n": n, "k": k, "integers": True} for m, n, k in SHAPES]
        + [{"m": 200, "n": 132, "k": 68, "alpha": 0.5, "beta": -1.0}],
    )

# %% [markdown]
# How long a step takes, computed.

# %% predict
TILE, DEPTH = 128, 8
products = TILE * TILE * DEPTH  # FMAs per step of a block
per_cycle = 128  # FMAs per cycle of an SM: four schedulers with 32 lanes each
kilobytes = 4 * 2 * TILE * DEPTH / 1024
LOAD = 500  # cycles: an assumption, for words from the L2 cache
multiply = products / per_cycle
ct.facts(
    "one step of one block",
    {
        "FMAs": products,
        "FMAs of a thread": products // 256,
        "cycles to multiply, at least": (multiply, "cycles"),
        "shared memory, one buffer": (kilobytes, "KiB"),
        "shared memory, two buffers": (2 * kilobytes, "KiB"),
    },
)
ct.table(
    "cycles per step, if a load takes 500",
    {
        "loads late": {
            "one block per SM": LOAD + multiply,
            "two blocks per SM": max(LOAD + multiply, 2 * multiply),
        },
        "loads early": {
            "one block per SM": max(LOAD, multiply),
            "two blocks per SM": 2 * multiply,
        },
    },
    corner="order",
)

# %% [markdown]
# The clock of the SM, read around the loads and the multiplication of a tile.

# %% stamp
ORDERS = {
    "one buffer": "ordered<8, ONE_BUFFER, true, true>",
    "two buffers, loads late": "ordered<8, TWO_BUFFERS, true, true>",
    "two buffers, loads early": "ordered<8, THROUGH_REGISTERS, true, true>",
    "cp.async": "ordered<8, ASYNC, false, true>",
}
ISSUED, ARRIVED, BEGUN, DONE = range(4)
stamped = {name: ct.Kernel(FILE, kernel) for name, kernel in ORDERS.items()}
first = 24  # the first tile that is stamped
count = 16  # and how many
depth = 512
most = 64  # blocks side by side


def stamps(name, wide, high):
    """Cycles since the first stamp of each block, [block, tile, event], from
    one launch of wide x high blocks."""
    kernel = stamped[name]
    problem = Gemm(128 * high, 128 * wide, depth)
    out = ct.to_device(np.zeros((wide * high, count, 4), "uint32"))
    for _ in range(2):  # the first launch brings A and B into the L2 cache
        ct.poison(problem.c)
        kernel(
            problem.a, problem.b, problem.c, problem.n, problem.k,
            out, first, count, grid=(wide, high), block=256,
        )  # fmt: skip
    problem.compare(f"{name}, {wide * high} blocks")
    raw = out.get()
    # The clock's lower half may wrap around.
    return (raw - raw[:, :1, :1]).astype("int32")


def medians(at):
    """What a step takes, in cycles: the median over blocks and tiles."""
    return {
        "load": float(np.median(at[:, :, ARRIVED] - at[:, :, ISSUED])),
        "multiply": float(np.median(at[:, :, DONE] - at[:, :, BEGUN])),
        "step": float(np.median(np.diff(at[:, :, BEGUN], axis=1))),
    }


wide = min(most, math.isqrt(gpu.sm_count))
high = min(2 * most, gpu.sm_count // wide)
alone = {name: stamps(name, wide, high) for name in stamped}
together = {name: medians(stamps(name, wide, 2 * high)) for name in stamped}

# %% alone
table = {}
for name, at in alone.items():
    of = medians(at)
    table[name] = {
        "load": of["load"],
        "multiplication": of["multiply"],
        "step": of["step"],
        "multiplying": 100 * of["multiply"] / of["step"],
    }
ct.table(
    "one block per SM, a step in cycles",
    table,
    corner="order",
    units={"multiplying": "%"},
)

# %% timeline
DRAWN = 4
EVENTS = {"issued": ISSUED, "arrived": ARRIVED, "begun": BEGUN, "done": DONE}
block = wide * high // 2  # any would do: one from the middle of the grid
for name, at in alone.items():
    zero = at[block, 0, ISSUED]
    ct.table(
        f"{name}: block {block}, thread 0, cycles",
        {
            f"tile {first + i}": {
                label: int(at[block, i, event] - zero)
                for label, event in EVENTS.items()
            }
            for i in range(DRAWN)
        },
        corner="tile",
    )


def between(name, tile, event, next_tile, next_event):
    """Cycles from one event of that block to another."""
    at = alone[name][block]
    return int(at[next_tile, next_event] - at[tile, event]), "cycles"


late, early = "one buffer", "two buffers, loads early"
ct.facts(
    "in that block",
    {
        "loads late, arrived until begun": between(late, 1, ARRIVED, 1, BEGUN),
        "loads early, asking": between(early, 1, ISSUED, 0, BEGUN),
        "loads early, storing": between(early, 0, DONE, 1, ARRIVED),
        "loads early, until the next request": between(
            early, 1, ARRIVED, 2, ISSUED
        ),
    },
)

# %% [markdown]
# The same with two blocks per SM, beside what the two times of the first order
# predict.

# %% together
one_buffer = medians(alone["one buffer"])
load, multiply = one_buffer["load"], one_buffer["multiply"]
slow = (load + multiply, max(load + multiply, 2 * multiply))
predicted = {  # with one block per SM, and with two
    "one buffer": slow,
    "two buffers, loads late": slow,
    "two buffers, loads early": (max(load, multiply), 2 * multiply),
}
table = {
    name: {
        "one block, predicted": one,
        "one block, measured": medians(alone[name])["step"],
        "two blocks, predicted": two,
        "two blocks, measured": together[name]["step"],
    }
    for name, (one, two) in predicted.items()
}
ct.table("cycles per step, blocks per SM", table, corner="order")
over = {
    name: 100 * (row["one block, measured"] / row["one block, predicted"] - 1)
    for name, row in table.items()
}
ct.facts(
    "one block per SM, measured above predicted",
    {
        "loads late": (over["one buffer"], "%"),
        "loads early": (over["two buffers, loads early"], "%"),
    },
)

# %% on-their-way
# As many tiles as fit into the time between issue and use.
ct.facts(
    "tiles on their way",
    {
        "one block per SM": math.ceil(load / multiply),
        "two blocks per SM": math.ceil(load / (2 * multiply)),
    },
)

# %% [markdown]
# The machine code of the same kernels without stamps: how many FMAs stand
# between a load and its use.


# %% order
def multiplications_between(kernel, load, use):
    """FFMAs from the first `load` in a turn of the main loop to the first `use`
    behind it; where the turn ends in between, it goes on."""
    turn = loops.main_turn(loops.disassemble(kernel), 8 * 8 * DEPTH)
    body = [i for i, _ in turn]
    start = next(k for k, i in enumerate(body) if i.text.startswith(load))
    around = body[start:] + body[:start]
    end = next(k for k, i in enumerate(around) if i.text.startswith(use))
    return sum(i.op == "FFMA" for i in around[:end])


plain = {
    "one buffer": "ordered<8, ONE_BUFFER, true, false>",
    "two buffers, loads late": "ordered<8, TWO_BUFFERS, true, false>",
    "two buffers, loads early": "ordered<8, THROUGH_REGISTERS, true, false>",
}
ct.facts(
    "FFMAs from the first LDG to the first STS",
    {
        name: multiplications_between(
            ct.Kernel(FILE, kernel), "LDG.E.128", "STS"
        )
        for name, kernel in plain.items()
    },
)

# %% [markdown]
# The times: each rung at the depth of its ladder, three of them also at the
# other one.

# %% bench
large = 4096
problem = Gemm(large, large, large)
DEPTHS = {
    "warp_tile, depth 8": ("warp_tile", "<128,128,8,32,64,8,8>"),
    "double_buffer, depth 16": ("double_buffer", "<128,128,16,32,64,8,8>"),
    "async_copy, depth 8": ("async_copy", "<128,128,8,32,64,8,8>"),
}
rungs = {name: LADDER[name] for name in COUNTED}
for name, (rung, arguments) in DEPTHS.items():
    rungs[name] = replace(
        LADDER[rung], name=name, kernel=f"sgemm_{rung}{arguments}"
    )
    Gemm(*ragged, integers=True).check(rungs[name])
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


def faster(slow, fast):
    return times[slow].median_us / times[fast].median_us


ct.facts(
    "ratios of times",
    {
        "early loads, depth 8": faster("warp_tile, depth 8", "double_buffer"),
        "early loads, depth 16": faster("warp_tile", "double_buffer, depth 16"),
        "async_copy takes longer by": (
            100 * (faster("async_copy", "double_buffer") - 1),
            "%",
        ),
    },
)

# %% [markdown]
# The counters of the first four launches of the cell `check`; before them come
# four launches of these kernels by the program and by the cell `launch`.

# %% count
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
ACTIVE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
WAIT = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = {
    "global memory": WAIT.format("long_scoreboard"),
    "barrier": WAIT.format("barrier"),
    "shared memory": WAIT.format("short_scoreboard"),
    "queue to it": WAIT.format("mio_throttle"),
    "dispatch": WAIT.format("dispatch_stall"),
}
RUNG = "sgemm_(warp_tile|double_buffer|async_copy|multi_stage)"
found = ct.profile_launches(
    "gemm/double_buffering",
    kernel=f"regex:^{RUNG}$",
    metrics=[FFMA, INSTRUCTIONS, ACTIVE, *STALLS.values()],
    launches=len(COUNTED),
    skip=4,
)
counters = dict(zip(COUNTED, found))
if counters:
    ct.table(
        "2048 x 2048 x 2048",
        {
            name: {
                "FMAs among instructions": 100
                * (one[FFMA] / 32 / one[INSTRUCTIONS]),
                "issue slots used": one[ACTIVE],
            }
            for name, one in counters.items()
        },
        corner="rung",
        units={"FMAs among instructions": "%", "issue slots used": "%"},
    )
    ct.table(
        "cycles that a warp waits, per instruction",
        {
            name: {what: one[metric] for what, metric in STALLS.items()}
            for name, one in counters.items()
        },
        corner="rung",
    )
