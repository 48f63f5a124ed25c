# ---
# jupyter:
#   cudatut:
#     title: {en: "Vectorized access", zh: "向量化访存"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 48, 1024]
#       large: [4096, 48]
#       ragged: [[257, 259, 101], [130, 131, 37]]
#       SIZES: [[1999, 2000, 2048], [99, 100, 148]]
# ---

# %% [markdown]
# Four words per instruction. First one product as a whole program.

# %% program
import cudatut as ct

m, n, k = 1000, 900, 800
a = ct.to_device(ct.rng(0).random((m, k), dtype="float32"))
b = ct.to_device(ct.rng(1).random((k, n), dtype="float32"))
c = ct.empty((m, n), "float32")

kernel = ct.Kernel(
    "gemm/ladder/vectorized.cu", "sgemm_vectorized<128,128,8,8,8>"
)
grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
kernel(a, b, c, m, n, k, 1.0, 0.0, grid=grid, block=256)

ct.check(c, a.get().astype("float64") @ b.get(), atol=1e-2)

# %% setup
from cudatut.book.gemm.block_tiles.lanes import LANES, passes, place, sectors
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm, earlier_rungs
from cudatut.book.measure.loops import count, disassemble, main_turn, share


side = 1024  # m = n = k of the counted launches
large = 4096  # of the timed ones
ragged = (257, 259, 101)
BM, BN, BK, TM, TN = 128, 128, 8, 8, 8
PAIR = ("block_tile_2d", "vectorized")

# %% [markdown]
# Right before fast.

# %% check
for rung in PAIR:  # the profiler counts these launches
    LADDER.check(rung, [{"m": side, "n": side, "k": side}])
# k and n multiples of 4, then one of them not, then neither; extents below and
# above a tile.
SHAPES = [(129, 132, 36), (129, 132, 33), (129, 130, 36), (1, 1, 1)]
SHAPES += [(31, 33, 7), ragged]
LADDER.check("vectorized", [{"m": m, "n": n, "k": k} for m, n, k in SHAPES])
scaled = {"m": 100, "n": 70, "k": 50, "alpha": 0.5, "beta": -2.0}
LADDER.check("vectorized", [scaled])

# %% [markdown]
# Instructions and passes, counted before the run; then in the machine code.

# %% predict
x, y = place(LANES, BN, TM, TN)  # first results of the lanes of warp 0
row, inner = LANES // 2, LANES % 2 * 4  # what they bring of A
words, threads = BM * BK, BM * BN // (TM * TN)
# Instructions of a thread in a step of depth BK: one word each, four each.
moved = {
    "LDG": (2 * words // threads, 2 * words // threads // 4),
    "STS": (2 * words // threads, words // threads + words // threads // 4),
    "LDS": (BK * (TM + TN), BK * (TM + TN) // 4),
}
ct.table(
    "instructions of a thread in one step of depth 8",
    {
        name: {"word by word": one, "by four": four}
        for name, (one, four) in moved.items()
    },
    corner="instruction",
)
store_a = sum(passes((inner + d) * BM + row) for d in range(4))
read_a = BK * sum(passes(y + r, 4) for r in range(0, TM, 4))
read_a_before = BK * sum(passes((y + r) * BK, 2) for r in range(TM)) // 2
read_b = BK * sum(passes(x + c, 4) for c in range(0, TN, 4))
ct.facts(
    "passes of a warp in one step of depth 8",
    {
        "read A, in block_tile_2d": read_a_before,
        "read A": read_a,
        "read B": read_b,
        "store A, turned": store_a,
        "store B": passes(4 * LANES, 4),
    },
)
assert sectors(row * side + inner, 4) == 32 * 4 // 8  # no word in vain

# %% turn
turns = {
    name: main_turn(disassemble(LADDER[name].compile()), BK * TM * TN)
    for name in PAIR
}
made_of = {name: count(turn) for name, turn in turns.items()}
MEMORY = ("LDG", "LDG.128", "STS", "STS.128", "LDS", "LDS.64", "LDS.128")
table = {}
for name in PAIR:
    found = made_of[name]
    memory = sum(found[what] for what in MEMORY)
    table[name] = {
        "global loads": found["LDG"] + found["LDG.128"],
        "shared stores": found["STS"] + found["STS.128"],
        "shared loads": found["LDS"] + found["LDS.64"] + found["LDS.128"],
        "FFMA": found["FFMA"],
        "others": found.total() - found["FFMA"] - memory,
        "all": found.total(),
        "FMAs": 100 * share(turns[name]),
    }
ct.table(
    "instructions of a warp in one step of depth 8",
    table,
    corner="kernel",
    units={"FMAs": "%"},
)
ct.facts(
    "predicted from the instructions alone",
    {
        "block_tile_2d / vectorized": made_of[PAIR[0]].total()
        / made_of[PAIR[1]].total()
    },
)

# %% lines
# The loads and stores of one step in the order of the machine code, up to the
# first loads from shared memory.
moves = [
    i.text for i, _ in turns["vectorized"] if i.op in ("LDG", "STS", "LDS")
]
print("\n".join(moves[:11]))

# %% [markdown]
# What the profiler counts, and the clock.

# %% count
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
LOADS = "smsp__inst_executed_op_shared_ld.sum"
LOAD_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORE_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
# The first launch is that of the program.
_, *counted = ct.profile_launches(
    "gemm/vectorized",
    kernel="regex:^sgemm_(block_tile|vectorized)$",
    metrics=[REQUESTS, SECTORS, LOADS, LOAD_PASSES, STORE_PASSES, INSTRUCTIONS],
    launches=3,
) or [None]
# Of all warps together.
steps = side // BK * side**2 / (BM * BN) * threads / 32
table = {}
for name, got in zip(PAIR, counted):
    table[name] = {
        "requests, global": got[REQUESTS] / steps,
        "sectors, global": got[SECTORS] / steps,
        "load passes, shared": got[LOAD_PASSES] / steps,
        "store passes, shared": got[STORE_PASSES] / steps,
        "instructions": got[INSTRUCTIONS] / steps,
    }
if table:
    ct.table("counted, per warp and step", table, corner="kernel")
    before, after = (
        row["load passes, shared"] + row["store passes, shared"]
        for row in table.values()
    )
    ct.facts(
        "passes of shared memory", {"before, in times of after": before / after}
    )
    # A word that is loaded twice would not change the result.
    ct.check(
        [row["requests, global"] for row in table.values()],
        list(moved["LDG"]),
        name="requests to global memory",
        rtol=0.01,
    )

# %% bench
times = LADDER.bench(
    [*earlier_rungs()[1:], *PAIR],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
if "cuBLAS" in [row.name for row in times.rows]:  # not under a sanitizer
    mine = times["vectorized"].median_us
    speed = 100 * times["cuBLAS"].median_us / mine
    ct.facts(
        "vectorized",
        {
            "times as fast as before": times["block_tile_2d"].median_us / mine,
            "of the speed of cuBLAS": (speed, "%"),
        },
    )

# %% [markdown]
# Sizes that are no multiple of four, and an address that 16 does not divide.

# %% predict-ragged
# The same 16 x 16 blocks for each size, all on the SMs at once. Of their FMAs,
# those count that are inside.
SIZES = (1999, 2000, 2048)
ct.facts(
    "FMAs that count",
    {
        f"n = {n}": (
            100 * n**3 / ((128 * ct.cdiv(n, 128)) ** 2 * 8 * ct.cdiv(n, 8)),
            "%",
        )
        for n in SIZES
    },
)

# %% ragged
problems = {n: Gemm(n, n, n) for n in SIZES}
runs = {
    f"{name}, {n}": problem.launcher(LADDER[name])
    for name in PAIR
    for n, problem in problems.items()
}
by_size = ct.bench(
    runs,
    flops={label: problems[int(label.split(", ")[1])].flops for label in runs},
    rounds=11,
    name="n x n x n",
)
odd, even = SIZES[:2]
us = {label: by_size[label].median_us for label in runs}
ct.facts(
    "rows of odd length beside rows of even length",
    {
        "vectorized": us[f"vectorized, {odd}"] / us[f"vectorized, {even}"],
        "block_tile_2d": us[f"block_tile_2d, {odd}"]
        / us[f"block_tile_2d, {even}"],
        "block_tile_2d / vectorized, odd": us[f"block_tile_2d, {odd}"]
        / us[f"vectorized, {odd}"],
    },
)

# %% misaligned
program = """
import numpy as np
import cudatut as ct
import pycuda.driver as cuda

n = 256
one = np.ones((n, n), "float32")
room, b = ct.to_device(np.ones(n * n + 4, "float32")), ct.to_device(one)
c = ct.empty((n, n), "float32")
a = room[OFFSET : OFFSET + n * n].reshape(n, n)
kernel = ct.Kernel("gemm/ladder/vectorized.cu", "sgemm_vectorized<128,128,8,8,8>")
try:
    kernel(a, b, c, n, n, n, 1.0, 0.0, grid=(2, 2), block=256)
    ct.synchronize()
    print(bool((c.get() == n).all()))
except cuda.Error as error:
    print(error)
"""
said = {}
for offset in (4, 1):
    child = ct.isolated(program.replace("OFFSET", str(offset)))
    said[offset] = (child.stdout.splitlines() or ["?"])[0]
ct.facts(
    "is the product right? a begins inside an allocation",
    {f"{4 * offset} bytes": what for offset, what in said.items()},
)
