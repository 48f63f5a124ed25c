# ---
# jupyter:
#   cudatut:
#     title: {en: "What a tensor core computes", zh: "张量核心算的是什么"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [4096, 128, 4096]
#       SHAPES: [[16, 16, 16, 128, 128, 64, 31, 33, 7, 257, 260, 132, 5, 3, 0], [31, 33, 7]]
#       steps: [4096, 2]
#       l2_size: [16777216, 16384]
#       rounds: [64, 2]
#       runs_timed: [11, 1]
# ---

# %% [markdown]
# The tensor cores by WMMA. First one product of 16 x 16 x 16 by one warp.

# %% program
import numpy as np

import cudatut as ct

a = ct.rng(0).standard_normal((16, 16)).astype("float16")
b = ct.rng(1).standard_normal((16, 16)).astype("float16")
d = ct.empty((16, 16), "float32")

kernel = ct.Kernel("tensor/tensor_cores/tensor_cores.cu", "first_wmma")
kernel(ct.to_device(a), ct.to_device(b), d, grid=1, block=32)

ct.check(d, a.astype("float64") @ b, atol=1e-4, name="16 x 16 results")

# %% setup
from statistics import median

from cudatut.book.rivals import cublas_types

from cudatut.book.published.basics import ladder as BASICS
from cudatut.book.published.gemm import ladder as GEMM
from cudatut.book.measure import l2, loops  # loops reads machine code

gpu = ct.device()
n = 4096
once = ct.time_once_bare if ct.tool.running() else ct.time_hidden
runs_timed = 11

# %% large
# One large product, by every kernel of this chapter. In this order the profiler
# counts them.
problem = GEMM.Gemm(n, n, n)
half_a, half_b = (
    ct.to_device(x.astype("float16")) for x in (problem.host_a, problem.host_b)
)
direct = ct.Kernel("tensor/tensor_cores/tensor_cores.cu", "wmma_direct")
tiled = ct.Kernel("tensor/tensor_cores/tensor_cores.cu", "wmma_tiled")


def wmma_direct(a, b, c):
    """C = A B; every extent a multiple of 16."""
    (m, k), n = a.shape, b.shape[1]
    if m % 16 or n % 16 or k % 16:
        raise ValueError("wmma_direct takes whole tiles of 16 x 16")
    grid = ct.cdiv(n, 32), ct.cdiv(m, 32)
    direct(a, b, c, m, n, k, grid=grid, block=128)


def wmma_tiled(a, b, c):
    """C = A B, for any extents."""
    (m, k), n = a.shape, b.shape[1]
    grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
    tiled(a, b, c, m, n, k, grid=grid, block=256)


runs = {
    "tiled": problem.launcher(BASICS.LADDER["tiled"]),
    "double_buffer": problem.launcher(GEMM.LADDER["double_buffer"]),
}
runs["wmma_direct"] = lambda: wmma_direct(half_a, half_b, problem.c)
runs["wmma_tiled"] = lambda: wmma_tiled(half_a, half_b, problem.c)
for run in runs.values():
    run()

# %% [markdown]
# Right before fast.


# %% check
def bound(a, b):
    """What sums in fp32 may miss of any element: four times what rounding to
    nearest could, since a tensor core may cut off."""
    k = a.shape[1]
    return 4 * k * 2.0**-24 * np.max(abs(a) @ abs(b), initial=0.0) + 1e-30


def check(name, multiply, m, n, k, integers):
    rng = ct.rng(m + n + k)
    if integers:  # exact in fp16 and in sums in fp32
        a, b = rng.integers(-8, 9, (m, k)), rng.integers(-8, 9, (k, n))
    else:
        a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a, b = a.astype("float16"), b.astype("float16")
    c = ct.empty((m, n), "float32")
    multiply(ct.to_device(a), ct.to_device(b), c)
    a, b = a.astype("float64"), b.astype("float64")
    atol = 0.0 if integers else bound(a, b)
    kind = ", integers" if integers else ""
    name = f"{name}, {m} x {n} x {k}{kind}"
    ct.check(c, a @ b, name=name, rtol=0.0, atol=atol)


SHAPES = (16, 16, 16, 128, 128, 64, 31, 33, 7, 257, 260, 132, 5, 3, 0)
for shape in zip(SHAPES[::3], SHAPES[1::3], SHAPES[2::3]):
    for integers in (True, False):
        check("wmma_tiled", wmma_tiled, *shape, integers)
        if not any(extent % 16 for extent in shape):
            check("wmma_direct", wmma_direct, *shape, integers)

# %% check-large
if not ct.tool.running():
    some = problem.rows  # rows of C that are compared
    exact_a = half_a.get()[some].astype("float64")
    exact_b = half_b.get().astype("float64")
    expected, atol = exact_a @ exact_b, bound(exact_a, exact_b)
    for name in ("wmma_direct", "wmma_tiled"):
        ct.poison(problem.c)
        runs[name]()
        out = ct.to_device(problem.c.get()[some])
        ct.check(out, expected, name=f"{name}, n = {n}", rtol=0.0, atol=atol)

# %% [markdown]
# Which lane holds what: matrices of the numbers 0 to 255, as the lanes have
# them.

# %% lanes
numbers = np.arange(256)
in_half = ct.to_device(numbers.astype("float16").reshape(16, 16))
in_float = ct.to_device(numbers.astype("float32").reshape(16, 16))
# A lane has 16 numbers of A, 16 of B, 8 of the sums.
held = [ct.empty((32, count), "float32") for count in (16, 16, 8)]
who_holds = ct.Kernel("tensor/tensor_cores/tensor_cores.cu", "who_holds")
who_holds(in_half, in_half, in_float, *held, grid=1, block=32)

DIGITS = "0123456789abcdefghijklmnopqrstuv"  # 0 to 31
fragments, holders = {}, {}
for name, out in zip("ABC", held):
    got = out.get().astype(int)
    lane, place = np.empty(256, int), np.empty(256, int)
    for i in reversed(range(got.shape[1])):  # where it is first
        lane[got[:, i]], place[got[:, i]] = range(32), i
    ct.check(np.sort(np.unique(got)), numbers, name=f"{name}: every element")
    fragments[name] = {
        "numbers of a lane": got.shape[1],
        "different ones": len(set(got[0])),
        "rows of lane 5": ", ".join(
            str(row) for row in sorted({int(e) // 16 for e in got[5]})
        ),
    }
    holders[f"{name}: lane"] = "".join(DIGITS[number] for number in lane)
    holders[f"{name}: place in x"] = "".join(DIGITS[i] for i in place)

# %% fragments
ct.table("fragments", fragments, corner="matrix")

# %% holders
# For the drawing on the page: row by row, a digit for each element.
ct.facts("who holds each element", holders)

# %% [markdown]
# The instructions of that product, and of the same one by fp32 FMAs.

# %% instructions
SHAPE = {"16816": (16, 8, 16), "1688": (16, 8, 8)}


def fmas_of(instruction):
    """Multiplications and additions of one instruction of a warp."""
    if instruction.op == "FFMA":
        return 32  # one per lane
    rows, columns, depth = SHAPE[instruction.name.split(".")[1]]
    return rows * columns * depth


first_fma = ct.Kernel("tensor/tensor_cores/tensor_cores.cu", "first_fma")
# A sanitizer has nothing to find in reading code.
found = {}
if not ct.tool.running():
    for op, one in (("FFMA", first_fma), ("HMMA", kernel)):
        code = [i for i in loops.disassemble(one) if i.op == op]
        found[op] = {
            "FMAs of an instruction": fmas_of(code[0]),
            "instructions": len(code),
            "FMAs": sum(fmas_of(i) for i in code),
        }
        if op == "HMMA":
            print(*(i.text for i in code), sep="\n")

# %% predict
if found:
    ct.table("16 x 16 x 16 by one warp", found, corner="instruction")

# %% check-first
for op, row in found.items():
    ct.check(np.array(row["FMAs"]), 16**3, name=f"FMAs by {op}")
out = ct.empty((16, 16), "float32")
x, y = (ct.to_device(z.astype("float32")) for z in (a, b))
first_fma(x, y, out, grid=1, block=32)
ct.check(out, a.astype("float64") @ b, atol=1e-4, name="first_fma")

# %% [markdown]
# How fast these instructions can be issued: the roofs.

# %% chains
CHAINS = (1, 2, 4)
WARPS = (4, 8, 16, 32)
steps = 4096
peaks = {c: ct.Kernel("tensor/tensor_cores/tensor_peak.cu", f"peak_wmma<{c}>")
         for c in CHAINS}  # fmt: skip
peak_fma = ct.Kernel("tensor/tensor_cores/tensor_peak.cu", "peak_fma")
peak_a, peak_b = (
    ct.to_device(ct.rng(s).standard_normal((16, 16)).astype("float16"))
    for s in (2, 3)
)
cycles = ct.empty(gpu.sm_count, "int64")


def peak(kernel, inputs, steps, warps, fmas):
    """TFLOP/s, and FMAs of an SM per cycle; fmas: of a warp in a step."""
    out = ct.empty(gpu.sm_count * warps * 32, "float32")

    def launch():
        kernel(*inputs, out, cycles, steps, grid=gpu.sm_count, block=32 * warps)

    launch()
    took = median(once(launch) for _ in range(runs_timed))
    done = warps * steps * fmas  # by an SM
    per_cycle = done / float(np.median(cycles.get()))
    return 2 * gpu.sm_count * done / took / 1e6, per_cycle


tensor = {
    chains: {
        warps: peak(
            peaks[chains], (peak_a, peak_b), steps, warps, chains * 16**3
        )
        for warps in WARPS
    }
    for chains in CHAINS
}
ct.series(
    "rate of mma_sync",
    ("warps per SM", ""),
    ("rate", "TFLOP/s"),
    {
        f"{c} at a time": [(w, rate) for w, (rate, _) in line.items()]
        for c, line in tensor.items()
    },
)

# %% roofs
fma_rate, fma_cycles = peak(peak_fma, (0.9999, 0.0001), 16 * steps, 32, 16 * 32)
tensor_rate, tensor_cycles = max(
    value for line in tensor.values() for value in line.values()
)
bandwidth = ct.limits.bandwidth()
ct.table(
    "roofs",
    {
        "FFMA": {
            "FMAs of an SM per cycle": fma_cycles,
            "rate": fma_rate,
            "FLOPs for a byte of memory": 1e3 * fma_rate / bandwidth,
        },
        "HMMA": {
            "FMAs of an SM per cycle": tensor_cycles,
            "rate": tensor_rate,
            "FLOPs for a byte of memory": 1e3 * tensor_rate / bandwidth,
        },
    },
    corner="instruction",
    units={"rate": "TFLOP/s"},
)

# %% l2
l2_size = 16_777_216  # bytes
rounds = 64
l2_rate = l2.read_rate(l2_size, rounds, runs_timed)
ct.facts(
    "what brings the factors",
    {"memory": (bandwidth, "GB/s"), "L2 cache": (l2_rate, "GB/s")},
)

# %% [markdown]
# The product by all of them.

# %% bench
times = ct.bench(
    {
        **runs,
        "cuBLAS, fp32": ct.vendor.gemm(problem.a, problem.b, problem.c),
        "cuBLAS, fp16": cublas_types.fp16(half_a, half_b, problem.c),
    },
    name=f"{n} x {n} x {n}",
)

# %% speeds
HALF = ("wmma_direct", "wmma_tiled", "cuBLAS, fp16")
speeds = {}
for row in times.rows:
    rate = problem.flops / row.median_us / 1e6
    roof = tensor_rate if row.name in HALF else fma_rate
    speeds[row.name] = {
        "factors": "fp16" if row.name in HALF else "fp32",
        "time": row.median_us,
        "rate": rate,
        "of its roof": 100 * rate / roof,
    }
ct.table(
    f"n = {n}",
    speeds,
    corner="kernel",
    units={"time": "us", "rate": "TFLOP/s", "of its roof": "%"},
)


# %% gains
def gain(name, over):
    return {"gain": speeds[name]["rate"] / speeds[over]["rate"]}


ct.table(
    "what the tensor cores bring",
    {
        "roof of HMMA over roof of FFMA": {"gain": tensor_rate / fma_rate},
        "wmma_direct over tiled": gain("wmma_direct", "tiled"),
        "wmma_direct over double_buffer": gain("wmma_direct", "double_buffer"),
        "wmma_tiled over double_buffer": gain("wmma_tiled", "double_buffer"),
    },
    corner="rates",
)

# %% [markdown]
# Bytes between the L2 cache and the SMs, counted by the profiler at the first
# launch of each, and what the two roofs allow.

# %% count
SECTORS = "lts__t_sectors_srcunit_tex.sum"  # of 32 bytes
COUNTED = ("tiled", "double_buffer", "wmma_direct", "wmma_tiled")
counters = ct.profile_launches(
    "tensor/tensor_cores",
    kernel="regex:matmul_tiled|sgemm_double_buffer|wmma_direct|wmma_tiled",
    metrics=[SECTORS],
    launches=len(COUNTED),
)
counted = {
    name: problem.flops / (32 * c[SECTORS])
    for name, c in zip(COUNTED, counters)
}

# %% bound
table = {}
for name, intensity in counted.items():
    roof = tensor_rate if name in HALF else fma_rate
    by_bytes = l2_rate * intensity / 1e3
    table[name] = {
        "FLOPs per byte": intensity,
        "by the bytes": by_bytes,
        "by the instructions": roof,
        "measured": speeds[name]["rate"],
        "of the lower": 100 * speeds[name]["rate"] / min(by_bytes, roof),
    }
if table:
    ct.table(
        "bound",
        table,
        corner="kernel",
        units={
            **dict.fromkeys(
                ("by the bytes", "by the instructions", "measured"), "TFLOP/s"
            ),
            "of the lower": "%",
        },
    )

# %% loop
# The main loop of wmma_direct: of all loops the shortest with most products.
if not ct.tool.running():
    code = loops.disassemble(direct)
    turns = [loops.count((i, 1) for i in loop) for loop in loops.loops_of(code)]
    turn = max(turns, key=lambda one: (one["HMMA"], -one.total()))
    loads = sum(count for op, count in turn.items() if op.startswith("LDG"))
    known = {"HMMA": turn["HMMA"], "LDG": loads, "MOVM": turn["MOVM"]}
    others = turn.total() - sum(known.values())
    ct.facts("a turn of the main loop", {**known, "others": others})
