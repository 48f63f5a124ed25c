# ---
# jupyter:
#   cudatut:
#     title: {en: "Vectorized access", zh: "向量化访存"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Four words per instruction: instructions and passes counted before the run, the machine code, ragged sizes, alignment.

# %% setup
from block_tiles_lanes import LANES, passes, place, sectors
from ladder import LADDER, Gemm, earlier_rungs
from loops import count, disassemble, main_turn, share

import cudatut as ct
from cudatut.profiler import profile_launches

side = ct.size(1024, 48, profiled=1024)  # m = n = k of the counted launches
BM, BN, BK, TM, TN = 128, 128, 8, 8, 8
PAIR = ("block_tile_2d", "vectorized")

# %% check
for rung in PAIR:  # these launches come first: the profiler counts them
    LADDER.check(rung, [{"m": side, "n": side, "k": side}])
# k and n multiples of 4, then one of them not, then neither; extents below and above a tile
SHAPES = [
    (129, 132, 36),
    (129, 132, 33),
    (129, 130, 36),
    (1, 1, 1),
    (31, 33, 7),
    ct.size((257, 259, 101), (130, 131, 37)),
]
LADDER.check("vectorized", [{"m": m, "n": n, "k": k} for m, n, k in SHAPES])
LADDER.check(
    "vectorized", [{"m": 100, "n": 70, "k": 50, "alpha": 0.5, "beta": -2.0}]
)

# %% predict
x, y = place(LANES, BN, TM, TN)  # first results of the lanes of warp 0
pair_of_lanes = LANES // 2
row, inner = (
    pair_of_lanes % BM,
    pair_of_lanes // BM * 8 + LANES % 2 * 4,
)  # what they bring of A
words, threads = BM * BK, BM * BN // (TM * TN)
moved = {  # instructions of a thread in a step of depth BK, one word each and four words each
    "LDG": (2 * words // threads, 2 * words // threads // 4),
    "STS": (2 * words // threads, words // threads + words // threads // 4),
    "LDS": (BK * (TM + TN), BK * (TM + TN) // 4),
}
ct.facts(
    "instructions of a thread in one step of depth 8",
    {
        f"{name}, {how}": n
        for name, both in moved.items()
        for how, n in zip(("1", "4"), both)
    },
)
ct.facts(
    "passes of a warp in one step of depth 8",
    {
        "store A, turned": sum(
            passes((inner + d) * BM + row) for d in range(4)
        ),
        "store B": passes(4 * LANES, 4),
        "read A": BK * sum(passes(y + r, 4) for r in range(0, TM, 4)),
        "read B": BK * sum(passes(x + c, 4) for c in range(0, TN, 4)),
        "read A, in block_tile_2d": BK
        * sum(passes((y + r) * BK, 2) for r in range(TM))
        // 2,
    },
)
ct.facts(
    "sectors of a warp's loads",
    {
        "A, four words each": sectors(row * side + inner, 4),
        "B, four words each": sectors(4 * LANES, 4),
    },
)

# %% turn
turns = {
    name: main_turn(disassemble(LADDER[name].compile()), BK * TM * TN)
    for name in PAIR
}
made_of = {name: count(turn) for name, turn in turns.items()}
MEMORY = ("LDG", "LDG.128", "STS", "STS.128", "LDS", "LDS.64", "LDS.128")
for name in PAIR:
    found = made_of[name]
    ct.facts(
        f"{name}: instructions of a warp in one step of depth 8",
        {
            **{what: found[what] for what in MEMORY if found[what]},
            "FFMA": found["FFMA"],
            "others": found.total()
            - found["FFMA"]
            - sum(found[what] for what in MEMORY),
            "all": found.total(),
            "FMAs": (100 * share(turns[name]), "%"),
        },
    )
ct.facts(
    "predicted from the instructions alone",
    {
        "block_tile_2d / vectorized": made_of[PAIR[0]].total()
        / made_of[PAIR[1]].total()
    },
)

# %% lines
# The loads and stores of one step in the order of the machine code, up to the first loads from shared memory.
moves = [
    i.text for i, _ in turns["vectorized"] if i.op in ("LDG", "STS", "LDS")
]
print("\n".join(moves[:11]))

# %% claim-float4
ct.claim(
    id="float4-one-instruction",
    source="CUDATutorial 11/02",
    statement={
        "en": "The GPU computes a float4 in one instruction. Then 512 FMAs of a thread are 128 instructions",
        "zh": "GPU 用一条指令就能完成一个 float4 的计算。照此说来，一个线程的 512 次 FMA 是 128 条指令",
    },
    predicted=BK * TM * TN // 4,
    measured=made_of["vectorized"]["FFMA"],
    unit="FFMA",
    verdict="confirmed"
    if made_of["vectorized"]["FFMA"] == BK * TM * TN // 4
    else "refuted",
)

# %% resources
ct.show(LADDER["block_tile_2d"].compile().resources(block=256))
ct.show(LADDER["vectorized"].compile().resources(block=256))

# %% count
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
LOADS = "smsp__inst_executed_op_shared_ld.sum"
LOAD_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORE_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
counted = profile_launches(
    "gemm/vectorized",
    kernel="regex:^sgemm_(block_tile|vectorized)$",
    metrics=[REQUESTS, SECTORS, LOADS, LOAD_PASSES, STORE_PASSES, INSTRUCTIONS],
    launches=2,
)
steps = side // BK * side**2 / (BM * BN) * threads / 32  # of all warps together
for name, got in zip(PAIR, counted):
    ct.facts(
        f"{name}, counted, per warp and step",
        {
            "requests, global": got[REQUESTS] / steps,
            "sectors, global": got[SECTORS] / steps,
            "load instructions, shared": got[LOADS] / steps,
            "load passes, shared": got[LOAD_PASSES] / steps,
            "store passes, shared": got[STORE_PASSES] / steps,
            "instructions": got[INSTRUCTIONS] / steps,
        },
    )

# %% bench
large = ct.size(4096, 48)
times = LADDER.bench(
    [*earlier_rungs()[1:], *PAIR],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
gain = times["block_tile_2d"].median_us / times["vectorized"].median_us
ct.claim(
    id="vectorized-gain",
    source="SGEMM worklog, kernels 5 and 6 (RTX A6000)",
    statement={
        "en": "Accesses of four words make the product 1.14 times as fast (15,972 to 18,237 GFLOP/s)",
        "zh": "一次访问四个字，乘法的速度变为 1.14 倍（15972 到 18237 GFLOP/s）",
    },
    predicted=1.14,
    measured=gain,
    unit="×",
    verdict="confirmed" if abs(gain / 1.14 - 1) < 0.05 else "depends",
)

# %% predict-ragged
# The same 16 x 16 blocks for each size, all on the SMs at once. Of the FMAs that they do, those count that are inside.
SIZES = [ct.size(n, n - 1900) for n in (1999, 2000, 2048)]
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

# %% misaligned
program = """
import numpy as np
import cudatut as ct
import pycuda.driver as cuda

n = 256
one = np.ones((n, n), "float32")
room, b, c = ct.to_device(np.ones(n * n + 4, "float32")), ct.to_device(one), ct.empty((n, n), "float32")
a = room[OFFSET : OFFSET + n * n].reshape(n, n)  # n is a multiple of 4; where a begins is another matter
kernel = ct.Kernel("gemm/vectorized.cu", "sgemm_vectorized<128,128,8,8,8>")
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
ct.claim(
    id="float4-multiple-of-four",
    source="CUDATutorial 11/02",
    statement={
        "en": "For accesses of four words it is enough that the matrix's extents are multiples of 4",
        "zh": "矩阵的各维是 4 的倍数，就可以一次访问四个字",
    },
    predicted="True",
    measured=said[1],
    unit="a 256 x 256, 4 bytes into an allocation",
    verdict="refuted" if "misaligned" in said[1] else "confirmed",
)
