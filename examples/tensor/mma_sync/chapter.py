# ---
# jupyter:
#   cudatut:
#     title: {en: "mma.sync: the Ampere way", zh: "mma.sync：Ampere 的做法"}
#     requires: sm_80
#     timeout_s: 240
#     sizes:
#       side: [4096, 256]
#       large: [8192, 256]
#       STEPS: [4096, 64]
# ---

# %% [markdown]
# Products on tensor cores on every GPU since Ampere, from WMMA to a large tile
# in four stages, with copies between the products. First one product as a whole program.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16

m, n, k = 1000, 1200, 800
a = to_bf16(ct.rng(0).standard_normal((m, k)))
b = to_bf16(ct.rng(1).standard_normal((k, n)))
c = ct.empty((m, n), "uint16")

kernel = ct.Kernel("tensor/ladder/mma_sync.cu", "gemm_mma_sync")
grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
kernel(ct.to_device(a), ct.to_device(b), c, m, n, k, grid=grid, block=256)

expected = to_float(a) @ to_float(b)
ct.check(to_float(c.get()), expected, rtol=2**-8, atol=1e-2)

# %% setup
from collections import Counter

from cudatut.book.tensor.ladder import faults
from cudatut.book.tensor.ladder import ladder
from cudatut.book.tensor.mma_sync import stages
from cudatut.book.measure import stamps
from cudatut.book.tensor.ladder.ladder import LADDER, Gemm

from cudatut.book.measure import loops

# With as many stages as fit: on an H100 all that they want.
RUNGS = stages.fitting(LADDER.upto("mma_spread"))

# %% [markdown]
# Right before fast: whole numbers allow no error at all.

# %% check
for rung in RUNGS.values():
    for sizes in LADDER.trials[:-1]:
        Gemm(**sizes).check(rung)
side = 4096
problem = Gemm(side, side, side)
for rung in RUNGS.values():
    problem.check(rung)
large = 8192
big = Gemm(large, large, large)
for rung in RUNGS.values():
    big.check(rung)

# %% [markdown]
# What a block reads from shared memory for each step of depth 16, by what a
# warp computes. An SM of the H100 does 4096 FLOPs in bf16 in a cycle, and
# shared memory delivers 128 bytes.


# %% predict
def share_of_time(warp_rows, warp_columns, rows, columns):
    """Cycles that shared memory needs, per cycle that the tensor cores need."""
    warps = rows // warp_rows * columns // warp_columns
    read = warps * (warp_rows + warp_columns) * 16 * 2 / 128
    return read / (2 * rows * columns * 16 / 4096)


ct.table(
    "cycles of shared memory per cycle of the tensor cores",
    {
        "16 x 16 by a warp": {"reads": share_of_time(16, 16, 128, 128)},
        "64 x 32 by a warp": {"reads": share_of_time(64, 32, 128, 128)},
        "64 x 64 by a warp": {"reads": share_of_time(64, 64, 128, 256)},
    },
    corner="a warp computes",
)


# %% [markdown]
# Bank conflicts of ldmatrix: it reads eight rows of 16 bytes at a time.


# %% passes
def passes(address):
    """Passes for the eight rows of a matrix: the most in one group of banks."""
    groups = [address(row) // 16 % 8 for row in range(8)]
    return max(Counter(groups).values())


PIECE = 3  # of a line of 128 bytes
LAYOUTS = {
    "lines of 128 bytes": lambda row: row * 128 + PIECE * 16,
    "lines of 144 bytes, padded": lambda row: row * 144 + PIECE * 16,
    "swizzled": lambda row: row * 128 + (PIECE ^ row % 8) * 16,
}
ct.table(
    "a matrix of ldmatrix",
    {
        name: {
            "passes": passes(address),
            "bytes of a tile of 128 lines": (144 if "144" in name else 128)
            * 128,
        }
        for name, address in LAYOUTS.items()
    },
    corner="layout",
)

# %% bench
times = ct.bench(
    {
        **{name: problem.launcher(rung) for name, rung in RUNGS.items()},
        **problem.vendors(),
    },
    flops=problem.flops,
    rounds=9,
    name=f"{side} x {side} x {side}",
)

# %% large
times = ct.bench(
    {
        **{name: big.launcher(rung) for name, rung in RUNGS.items()},
        **big.vendors(),
    },
    flops=big.flops,
    rounds=9,
    name=f"{large} x {large} x {large}",
)

# %% stages
variants = {}
for name in ("mma_stages", "mma_spread"):
    variants |= stages.variants(LADDER[name], (2, 3, 4))
for rung in variants.values():
    Gemm(257, 520, 200, integers=True).check(rung)
ct.bench(
    {name: problem.launcher(rung) for name, rung in variants.items()},
    flops=problem.flops,
    rounds=7,
    name=f"{side} x {side} x {side}",
)

# %% [markdown]
# The limit of the instruction itself: products of what is in registers. Thread
# 0 of each block stamps the beginning and the end with the cycles of its SM and
# with the time: so the clock during a measurement is known.

# %% peak
STEPS = 4096
ORDERS = (
    "eight with the same A",
    "four with the same B",
    "each with others",
)
WARPS, PRODUCTS = 8, 32  # of a block, of a step
words = ct.rng(5).standard_normal(256)
factors = ct.to_device(ladder.to_bf16(words).view("uint32"))
blocks = ct.device().sm_count
out = ct.empty(blocks * 256, "float32")
seen = {name: stamps.space(blocks) for name in ORDERS}
runs = {}
for i, name in enumerate(ORDERS):
    kernel = ct.Kernel("tensor/mma_sync/mma_peak.cu", f"mma_peak<{i}>")
    runs[name] = lambda kernel=kernel, seen=seen[name]: kernel(
        factors, out, seen, STEPS, grid=blocks, block=32 * WARPS
    )
peak = ct.bench(
    runs,
    flops=blocks * WARPS * STEPS * PRODUCTS * 2 * 16 * 8 * 16,
    rounds=9,
    name="mma.sync from registers",
)

# %% limit
table = {}
for name, words in seen.items():
    cycles, mhz = stamps.between(words)
    # a quarter of an SM has two of the eight warps
    cycles /= STEPS * PRODUCTS * WARPS / 4
    table[name] = {"a product": cycles, "clock": mhz}
if not ct.tool.running():
    ct.table(
        "a quarter of an SM",
        table,
        corner="products that follow each other",
        units={"a product": "cycles", "clock": "MHz"},
    )

# %% shares
# TFLOP/s in bf16, dense: of an H100 SXM, an A100
DATA_SHEETS = {(9, 0): 989, (8, 0): 312}
if not ct.tool.running():
    limit = peak[ORDERS[0]].value
    data_sheet = DATA_SHEETS.get(ct.device().compute_capability)
    ct.table(
        f"shares, {large} x {large} x {large}",
        {
            name: {
                "of mma.sync's limit": 100 * times[name].value / limit,
                "of the data sheet": 100 * times[name].value / data_sheet
                if data_sheet
                else None,
            }
            for name in RUNGS
        },
        corner="rung",
        units={"of mma.sync's limit": "%", "of the data sheet": "%"},
    )

# %% sass
MOVES = ("LDSM", "LD", "MOVM", "LDS", "STS", "LDGSTS", "LDG")
WATCHED = ("HMMA", *MOVES, "FFMA", "BAR")
table = {}
for name, rung in RUNGS.items():
    code = loops.disassemble(rung.compile())
    found = Counter(i.op.split(".")[0] for i in code)
    table[name] = {op: found[op] for op in WATCHED}
ct.table("instructions in the whole machine code", table, corner="rung")

# %% [markdown]
# A cp.async that nobody waits for is right in most places.

# %% misconception
BROKEN = {
    "no fault": ("BK = 64", "BK = 64"),
    "no barrier after the wait": (
        "__syncthreads();  // everyone's copies have arrived",
        "",
    ),
    "no wait before the barrier": ("wait_for_all_but<0>();", ""),
    "no barrier before the next copies": (
        "__syncthreads();  // everyone has read the stage",
        "",
    ),
}
small = Gemm(1024, 1024, 1024, integers=True)
want = ladder.to_float(ladder.to_bf16(small.reference[0]))
table = {}
for name, change in BROKEN.items() if not ct.tool.running() else ():
    kernel = faults.broken(LADDER["mma_sync"], change)
    worst = 0.0
    for _ in range(5):
        ct.poison(small.c)
        kernel(small.a, small.b, small.c, 1024, 1024, 1024, grid=(8, 8),
               block=256)  # fmt: skip
        wrong = np.mean(ladder.to_float(small.c.get()) != want)
        worst = max(worst, 100 * wrong)
    table[name] = {"wrong at worst": worst}
if table:
    ct.table(
        "five launches of gemm_mma_sync",
        table,
        corner="fault",
        units={"wrong at worst": "%"},
    )
