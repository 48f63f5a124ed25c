# ---
# jupyter:
#   cudatut:
#     title: {en: "wgmma: products of a warpgroup", zh: "wgmma：线程束组的乘法"}
#     requires: sm_90a
#     timeout_s: 180
#     sizes:
#       side: [4096, 128]
# ---

# %% [markdown]
# Four warps multiply together, and their factors stay in shared memory. First
# one product as a whole program.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16

m, n, k = 1000, 1200, 800
a = to_bf16(ct.rng(0).standard_normal((m, k)))
b = to_bf16(ct.rng(1).standard_normal((k, n)))
c = ct.empty((m, n), "uint16")

# Boxes of 64 rows and 64 columns, 128 bytes to a line, swizzled.
on_gpu = ct.to_device(a), ct.to_device(b)
map_a, map_b = (ct.tensor_map(x, (64, 64), swizzle=128) for x in on_gpu)
# `wgmma` is an instruction of Hopper alone: code for it is for sm_90a.
kernel = ct.Kernel("tensor/ladder/wgmma.cu", "gemm_wgmma<128>", arch="sm_90a")
grid = ct.cdiv(n, 128), ct.cdiv(m, 64)
kernel(map_a, map_b, c, m, n, k, grid=grid, block=128)

expected = to_float(a) @ to_float(b)
ct.check(to_float(c.get()), expected, rtol=2**-8, atol=1e-2)

# %% setup
import textwrap
from collections import Counter
from dataclasses import replace

from cudatut.book.tensor.ladder import faults
from cudatut.book.tensor.wgmma import layouts

from cudatut.book.tensor.ladder.ladder import LADDER, Gemm, launcher

from cudatut.book.measure import loops


def variant(columns):
    """The rung with another width of its tile."""
    return replace(
        LADDER["wgmma"],
        name=f"wgmma, 64 x {columns}",
        kernel=f"gemm_wgmma<{columns}>",
        options={**LADDER["wgmma"].options, "tile": f"{columns}x64"},
    )


widths = {columns: variant(columns) for columns in (64, 128, 256)}

# %% [markdown]
# Right before fast: whole numbers allow no error at all.

# %% check
LADDER.check("wgmma", LADDER.trials[:-1])
for columns in (64, 256):
    for m, n, k in ((64, 64, 64), (130, 520, 200)):
        Gemm(m, n, k, integers=True).check(widths[columns])
side = 4096
problem = Gemm(side, side, side)
problem.check(LADDER["wgmma"])

# %% [markdown]
# What one instruction does, and what it reads from shared memory. An SM of the
# H100 does 4096 FLOPs in bf16 and reads 128 bytes of shared memory in a cycle.


# %% predict
def per_step(rows, columns):
    """FLOPs of rows x columns results for 16 steps of depth, and the bytes that
    are read for them when each factor is read once."""
    return 2 * rows * columns * 16, (rows + columns) * 16 * 2


table = {}
for name, rows, columns, at_once in (
    ("mma.sync, 64 x 64 by a warp", 64, 64, 2 * 16 * 8 * 16),
    ("wgmma, 64 x 64", 64, 64, None),
    ("wgmma, 64 x 128", 64, 128, None),
    ("wgmma, 64 x 256", 64, 256, None),
):
    flops, read = per_step(rows, columns)
    table[name] = {
        "FLOPs of an instruction": at_once or flops,
        "instructions": flops // at_once if at_once else 1,
        "cycles": flops / 4096,
        "bytes read in a cycle": read / (flops / 4096),
    }
ct.table(
    "16 steps of depth at the full rate of an SM",
    table,
    corner="product",
    units={"bytes read in a cycle": "B"},
)

# %% [markdown]
# What a descriptor says, tried out: B brought in boxes, and distances that are
# right or wrong. A NumPy model of the layouts predicts what wgmma reads.


# %% model
def swizzled(address):
    """Where the bytes at this place of a box really stand."""
    return address ^ (address >> 7 & 7) << 4  # the piece, by the line


def address(along, leading, stride, line, depth):
    """Where element (row or column `line`, depth below 16) stands."""
    if along:
        return line % 8 * 128 + line // 8 * stride + depth * 2
    inside = line % 64 * 2 + depth % 8 * 128
    return inside + line // 64 * leading + depth // 8 * stride


for along, leading, stride in ((True, 16, 1024), (False, 8192, 1024)):
    for line, depth in np.ndindex(128, 16):
        given = along, leading, stride, line, depth
        assert address(*given) == layouts.address(*given)

# %% descriptors
COLUMNS = 128
rng = ct.rng(3)
a_host, b_host = (
    rng.integers(-4, 5, shape) for shape in ((64, 64), (64, COLUMNS))
)
out = ct.empty((64, COLUMNS), "float32")


def tried(along, leading, stride, next_depth):
    """Share of right results in %, by the model and on the GPU, and whether
    both have the same."""
    b = b_host.T if along else b_host
    on_gpu = [ct.to_device(to_bf16(x)) for x in (a_host, b)]
    maps = [ct.tensor_map(x, (64, 64), swizzle=128) for x in on_gpu]
    name = "one_wgmma<128, true>" if along else "one_wgmma<128, false>"
    kernel = ct.Kernel("tensor/wgmma/one_wgmma.cu", name, arch="sm_90a")
    kernel(*maps, out, leading, stride, next_depth, grid=1, block=128)
    boxes = b.reshape(-1, 64, 64) if along else np.split(b, COLUMNS // 64, 1)
    memory = layouts.image(boxes)
    read = layouts.factor(memory, along, leading, stride, COLUMNS, next_depth)
    right, model, found = a_host @ b_host, a_host @ read.T, out.get()
    return {
        "right by the model": 100 * np.mean(model == right),
        "right on the GPU": 100 * np.mean(found == right),
        "the same": bool((found == model).all()),
    }


BOX = 64 * 128
table = {
    "lines across: leading 8192, stride 1024, next 2048": tried(
        False, BOX, 1024, 2048
    ),
    "leading and stride exchanged": tried(False, 1024, BOX, 2048),
    "next 32, as if lines ran along": tried(False, BOX, 1024, 32),
    "lines along: stride 1024, next 32": tried(True, 16, 1024, 32),
    "stride 2048": tried(True, 16, 2048, 32),
}
ct.table(
    f"64 x 64 times 64 x {COLUMNS}",
    table,
    corner="descriptor of B",
    units={"right by the model": "%", "right on the GPU": "%"},
)
for row in ("lines across: leading 8192, stride 1024, next 2048",
            "lines along: stride 1024, next 32"):  # fmt: skip
    assert table[row]["right on the GPU"] == 100, row

# %% [markdown]
# The times: beside the best of mma.sync, and for three widths.

# %% bench
times = ct.bench(
    {
        "mma_spread": problem.launcher(LADDER["mma_spread"]),
        **{rung.name: problem.launcher(rung) for rung in widths.values()},
        **problem.vendors(),
    },
    flops=problem.flops,
    rounds=11,
    name=f"{side} x {side} x {side}",
)

# %% sass
WATCHED = ("HGMMA", "HMMA", "LDSM", "UTMALDG", "LDGSTS", "BAR", "SYNCS")
counts = {}
for name in ("mma_spread", "wgmma"):
    code = loops.disassemble(LADDER[name].compile())
    found = Counter(i.op.split(".")[0] for i in code)
    counts[name] = {op: found[op] for op in WATCHED}
    counts[name]["others"] = len(code) - sum(counts[name].values())
table = {
    op: {name: counts[name][op] for name in counts}
    for op in (*WATCHED, "others")
}
ct.table("instructions in the whole machine code", table, corner="instruction")

# %% [markdown]
# A block copies, waits, multiplies, waits. How much of this do other blocks on
# the same SM hide? More dynamic shared memory than a block needs leaves room
# for fewer blocks.

# %% resident
kernel = LADDER["wgmma"].compile()
runs = {}
for blocks in (1, 2, 3, 4, 5):
    spare = (227 << 10) // blocks - (26 << 10)
    spare = max(0, min(spare, (227 << 10) - (25 << 10))) // 1024 * 1024
    resident = kernel.resources(128, spare).blocks_per_sm
    runs[f"{resident} on an SM"] = launcher(
        LADDER["wgmma"], problem.a, problem.b, problem.c, kernel, spare
    )
ct.bench(runs, flops=problem.flops, rounds=7, name="blocks of gemm_wgmma<128>")

# %% [markdown]
# Planted faults, each in a process of its own: what a check notices.

# %% faults
FAULTS = {
    "no fault": ("float sum", "float sum"),
    "the parity never changes": (", parity ^= 1)", ")"),
    "nobody waits for the copies": ("wait(&arrived, parity);", ""),
    "no swizzle in the descriptor": ("1ull << 62", "0ull"),
    "the sums are not fenced": ("  fence_sums();\n", ""),
    "a stage is copied over while others read": (
        "__syncthreads();  // everyone has read the stage",
        "",
    ),
}
table = {
    name: faults.seen("wgmma", change)
    for name, change in FAULTS.items()
    if not ct.tool.running()
}
if table:
    units = {"wrong": "%"}
    ct.table("planted faults", table, corner="fault", units=units)

# %% [markdown]
# Why were some stopped? With one step of depth no barrier gets a second
# arrival; with spare shared memory behind it, B may be read past its end.

# %% reasons
ONE_STEP, ROOM = {"depth": 64}, {"spare": 32 << 10}
REASONS = {
    "the parity never changes, one step": ONE_STEP,
    "nobody waits for the copies, one step": ONE_STEP,
    "no swizzle in the descriptor, 32 KiB to spare": ROOM,
}
table = {
    name: faults.seen("wgmma", FAULTS[name.partition(", ")[0]], **how)
    for name, how in REASONS.items()
    if not ct.tool.running()
}
if table:
    ct.table("the same faults", table, corner="fault", units=units)

# %% [markdown]
# What the compiler says of the other two, and what it makes of them.

# %% compiler
correct, table = LADDER["wgmma"].compile(), {}
for name, change in FAULTS.items() if not ct.tool.running() else ():
    if name not in (
        "the sums are not fenced",
        "a stage is copied over while others read",
    ):
        continue
    remarks = faults.remarks(LADDER["wgmma"], change)
    for line in remarks[:1]:
        print(*textwrap.wrap(line, 80), sep="\n")
    changed = faults.broken(LADDER["wgmma"], change)
    before, after = (
        sum(i.op.startswith("BAR") for i in loops.disassemble(one))
        for one in (correct, changed)
    )
    table[name] = {
        "remarks": len(remarks),
        "the same code": changed.machine_code() == correct.machine_code(),
        "barriers missing": before - after,
    }
if table:
    ct.table("what the compiler made of them", table, corner="fault")
