# ---
# jupyter:
#   cudatut:
#     title: {en: "FP8", zh: "FP8：8 位浮点数的矩阵乘法"}
#     requires: sm_90a
#     timeout_s: 180
#     sizes:
#       DEPTHS: [[256, 1024, 4096, 16384], [256, 384]]
#       side: [4096, 256]
#       large: [8192, 256]
# ---

# %% [markdown]
# Products of 8-bit numbers on tensor cores. First one as a whole program.

# %% program
import numpy as np

import cudatut as ct

from cudatut.book.numbers import e4m3
from cudatut.book.tensor.gemm import fp8_product as fp8

m, n, k = 1000, 1200, 2048
x = ct.to_device(ct.rng(0).standard_normal((m, k), dtype="float32"))
w = ct.to_device(ct.rng(1).standard_normal((n, k), dtype="float32"))
a, b = fp8.quantize(x), fp8.quantize(w)  # codes, and a scale for each matrix
c = ct.empty((m, n), "float32")
fp8.prepare(a, b, c)()  # two levels of sums

scale = float(a.scales.get()[0]) * float(b.scales.get()[0])
numbers = [e4m3.from_e4m3(one.codes.get()) for one in (a, b)]
expected = scale * numbers[0] @ numbers[1].T
ct.check(c, expected, name="the numbers in e4m3", atol=0.2)
lost = c.get() - x.get().astype("float64") @ w.get().T
print(f"of the fp32 product it misses {100 * lost.std() / c.get().std():.1f} %")

# %% [markdown]
# The same product by hand, with what `prepare` chooses: clusters of two blocks,
# each with 128 x 256 results, summed up in parts of 128 columns, in four
# stages. A map says which box one copy brings: each block fetches its own rows
# of A, and half of the rows of B for both. C is fp32 and stored by threads, and
# one scale needs no map: two maps stay empty.

# %% launch
kernel = ct.Kernel(
    "tensor/gemm/fp8.cu",
    "fp8_product<TwoLevels<256,128,false>,float,4,2,2>",
    arch="sm_90a",
)
maps = [ct.tensor_map(x.codes, (128, 128), swizzle=128) for x in (a, b)]
maps += [bytes(128), bytes(128)]
# 8: tiles of a cluster below each other, one after the other.
where = (int(x.gpudata) for x in (a.scales, b.scales, c))
work = fp8.Work(m, n, k, 8, *where)
tiles = ct.cdiv(m, 2 * 128) * ct.cdiv(n, 256)
clusters = min(tiles, ct.device().sm_count // 2)
# Bytes of a stage: A and B, scales of 128 rows, two barriers. And C's boxes.
stage = (128 + 256) * 128 + 128 * 4 + 2 * 8
shared = 4 * stage + 2 * 2 * 64 * 128

ct.poison(c)
kernel(*maps, work, grid=2 * clusters, block=384, shared=shared)
ct.check(c, expected, name="launched by hand", atol=0.2)

# %% setup
from collections import Counter

from cudatut.book.numbers.bf16 import to_bf16, to_float

from cudatut.book.measure import loops

SCALES = {"tensor": ("tensor", "tensor"), "blocks": ("rows", "tiles")}


def whole(codes, scale=1.0):
    """Codes of the host with one scale, on the GPU."""
    scales = ct.to_device(np.full(1, scale, "float32"))
    return fp8.Scaled(ct.to_device(codes), scales, "tensor")


def exact(a, b):
    """A B^T of what the codes and scales stand for, in float64."""
    factors = []
    for one in (a, b):
        scales, shape = one.scales.get().astype("float64"), one.codes.shape
        if one.by == "rows":  # [k / 128, rows]
            scales = e4m3.spread(scales.T, shape, (1, 128))
        elif one.by == "tiles":
            scales = e4m3.spread(scales, shape, (128, 128))
        factors.append(e4m3.from_e4m3(one.codes.get()) * scales)
    return factors[0] @ factors[1].T


# %% [markdown]
# Quantized by the GPU and in NumPy: every code and every scale is the same.

# %% quantize
for rows, columns in ((128, 128), (1, 16), (300, 1040)):
    x_host = 5 * ct.rng(2).standard_normal((rows, columns), dtype="float32")
    x_host[0, 0] = 1000
    bits = to_bf16(x_host)
    for kind, array, numbers in (
        ("fp32", x_host, x_host),
        ("bf16", bits, to_float(bits)),
    ):
        for by in ("tensor", "rows", "tiles"):
            got = fp8.quantize(ct.to_device(array), by)
            codes, scales = e4m3.quantize(numbers, by)
            found = got.scales.get().reshape(-1, got.scales.shape[-1])
            found = found[:, : scales.shape[1]]  # without what pads a line
            name = f"{rows} x {columns}, {kind}, {by}"
            ct.check(got.codes, codes, name=f"codes, {name}")
            ct.check(found, scales, name=f"scales, {name}", rtol=0)

# %% [markdown]
# Whole numbers and scales that are powers of two allow no error at all.

# %% check
KINDS = {
    "one level": (1, "tensor"),
    "two levels": (2, "tensor"),
    "scales of blocks": (2, "blocks"),
}


def integers(rows, k, by, seed):
    """Whole numbers from -2 to 2, and scales of 1/2, 1 or 2."""
    rng = ct.rng(seed)
    codes = e4m3.to_e4m3(rng.integers(-2, 3, (rows, k)))
    across, down = ct.cdiv(k, 128), ct.cdiv(rows, 128)
    shape = {
        "tensor": (1,),
        "rows": (across, 4 * ct.cdiv(rows, 4)),
        "tiles": (down, across),
    }[by]
    scales = 2.0 ** rng.integers(-1, 2, shape)
    return fp8.Scaled(
        ct.to_device(codes), ct.to_device(scales.astype("float32")), by
    )


for m, n, k in ((1, 8, 16), (128, 256, 128), (300, 520, 720)):
    for name, (levels, scales) in KINDS.items():
        a, b = (
            integers(rows, k, by, rows)
            for rows, by in zip((m, n), SCALES[scales])
        )
        c = ct.empty((m, n), "uint16")
        fp8.prepare(a, b, c, levels)()
        ct.check(
            to_float(c.get()),
            to_float(to_bf16(exact(a, b))),
            name=f"{name}, {m} x {n} x {k}",
            rtol=0,
        )

# %% [markdown]
# How a tensor core adds products of e4m3: three of them, 2^16, 2^(16 - e) and
# -2^16, at chosen places along the depth. All else is zero.

# %% bits
PLACES = {
    "the same instruction": (0, 1, 2),
    "the next instruction": (0, 32, 64),
    "the next 128": (0, 128, 256),
}
DEPTH, LAST, ROWS = 384, 33, 48


def kept(places, run_of):
    """The largest e for which something is left of the second product."""
    first, second, third = places
    a, b = np.zeros((ROWS, DEPTH)), np.zeros((16, DEPTH))
    a[:, first], b[:, first] = 256, 256
    a[:, third], b[:, third] = -256, 256
    # The second: 2^(8 - e) by 2^8, in column 0, or 2^(25 - e) by 2^-9, in
    # column 1. Between them they reach all e.
    e = np.arange(LAST + 1)
    a[e, second] = 2.0 ** np.where(e <= 16, 8 - e, 25 - e)
    b[0, second], b[1, second] = 2.0**8, 2.0**-9
    c = ct.empty((ROWS, 16), "float32")
    run = run_of(whole(e4m3.to_e4m3(a)), whole(e4m3.to_e4m3(b)), c)
    if not run:
        return None
    run()
    out = c.get()[e]
    left = np.where(e <= 16, out[:, 0], out[:, 1])
    return int(max(e[left != 0], default=-1))


WAYS = {
    "one level": lambda a, b, c: fp8.prepare(a, b, c, 1),
    "two levels": lambda a, b, c: fp8.prepare(a, b, c, 2),
    "PyTorch, fast": lambda a, b, c: fp8.rival(a, b, c, True),
    "PyTorch, not fast": lambda a, b, c: fp8.rival(a, b, c, False),
}
ct.table(
    "2^16 + 2^(16 - e) - 2^16: the last e of which something is left",
    {
        place: {way: kept(at, run_of) for way, run_of in WAYS.items()}
        for place, at in PLACES.items()
    },
    corner="each product in",
)

# %% [markdown]
# The error of whole products, by depth, against float64.

# %% errors
DEPTHS = (256, 1024, 4096, 16384)


def error(a, b, c, want):
    """Of C beside the exact result, in % of its typical size."""
    typical = np.sqrt(np.mean(want**2))
    return 100 * float(np.sqrt(np.mean((c.get() - want) ** 2)) / typical)


found = {"positive": {}, "both signs": {}}
for kind, table in found.items():
    for k in DEPTHS:
        rng = ct.rng(k)
        if kind == "positive":
            host = rng.random((128, k)), rng.random((256, k))
        else:
            host = rng.standard_normal((128, k)), rng.standard_normal((256, k))
        a, b = (fp8.quantize(ct.to_device(x.astype("float32"))) for x in host)
        want, c = exact(a, b), ct.empty((128, 256), "float32")
        row = {}
        for way, run_of in WAYS.items():
            if run := run_of(a, b, c):
                ct.poison(c)
                run()
                row[way] = error(a, b, c, want)
        table[f"k = {k}"] = row
# %% errors-positive
units = dict.fromkeys(row, "%")  # of the ways that can run here
ct.table("numbers from 0 to 1", found["positive"], corner="depth", units=units)
# %% errors-signed
ct.table("both signs", found["both signs"], corner="depth", units=units)

# %% [markdown]
# What scales are for: one number of A is large. How far are the other rows of C
# from the product in fp32?

# %% outlier
k, table = 1024, {}
x_host = ct.rng(5).standard_normal((128, k), dtype="float32")
w = ct.to_device(ct.rng(6).standard_normal((256, k), dtype="float32"))
for size in (1, 1_000, 100_000, 1_000_000):
    x_host[5, 7] = size
    want = x_host.astype("float64") @ w.get().T
    row = {}
    for scales, (by_a, by_b) in SCALES.items():
        a, b = fp8.quantize(ct.to_device(x_host), by_a), fp8.quantize(w, by_b)
        c = ct.empty((128, 256), "float32")
        fp8.prepare(a, b, c)()
        others = np.arange(128) != 5
        off = (c.get() - want)[others]
        row[f"scales of {scales}"] = 100 * float(off.std() / want[others].std())
    table[f"{size}"] = row
units = dict.fromkeys(row, "%")
ct.table(
    "error of the other rows", table, corner="the large number", units=units
)

# %% [markdown]
# The times.

# %% bench
from cudatut.book.rivals import cublaslt
from cudatut.book.measure.sustained import sustained

side = 4096
large = 8192


def operands(side, scales):
    """Random matrices, quantized, and C in bf16."""
    made = []
    for seed, by in enumerate(SCALES[scales]):
        numbers = ct.rng(seed).standard_normal((side, side), dtype="float32")
        made.append(fp8.quantize(ct.to_device(to_bf16(numbers)), by))
    return *made, ct.empty((side, side), "uint16")


def searched(a, b, c, fast):
    """The fastest of what cublasLt offers."""
    return cublaslt.fastest(
        a.codes,
        b.codes,
        c,
        "e4m3",
        transpose_b=True,
        scales=(a.scales, b.scales),
        fast=fast,
    )


def contestants(side, scales):
    a, b, c = operands(side, scales)
    runs = {
        name: fp8.prepare(a, b, c, levels)
        for name, (levels, which) in KINDS.items()
        if which == scales
    }
    if scales == "tensor":  # fast sums are nothing for scales of blocks
        runs["PyTorch, fast"] = fp8.rival(a, b, c, True)
    runs["PyTorch, not fast"] = fp8.rival(a, b, c, False)
    if scales == "tensor":
        runs["cublasLt, fast"] = searched(a, b, c, True)
        runs["cublasLt, not fast"] = searched(a, b, c, False)
    return runs


def contest(side, scales, runs):
    return ct.bench(
        runs,
        flops=2 * side**3,
        rounds=50,
        name=f"{side} x {side} x {side}, scales of {scales}",
    )


small_times = contest(side, "tensor", contestants(side, "tensor"))
# %% bench-large
large_runs = contestants(large, "tensor")
large_times = contest(large, "tensor", large_runs)
# %% bench-blocks
block_times = contest(large, "blocks", contestants(large, "blocks"))

# %% [markdown]
# The large ones again and again for two seconds, without pauses: what
# nvidia-smi reads in the second half.

# %% held
held = {}
for name in ("one level", "PyTorch, fast", "two levels", "PyTorch, not fast"):
    run = large_runs.get(name)
    if ct.tool.running() or not run:
        continue
    found = sustained(run, 2 * large**3, seconds=2, every_ms=100)
    late = found.late()
    held[name] = {
        "one run at a time": large_times[name].value,
        "rate": found.rate,
        "clock": late.mhz,
        "power": late.watts,
    }
if held:
    ct.table(
        f"{large} x {large} x {large}, for two seconds",
        held,
        corner="kernel",
        units={
            "one run at a time": "TFLOP/s",
            "rate": "TFLOP/s",
            "clock": "MHz",
            "power": "W",
        },
    )

# %% quantize-bench
x = to_bf16(ct.rng(7).standard_normal((large, large), dtype="float32"))
x = ct.to_device(x)
ct.bench(
    {by: fp8.quantizer(x, by) for by in ("tensor", "rows", "tiles")},
    bytes={"tensor": 5 * x.size, "rows": 3 * x.size, "tiles": 3 * x.size},
    name=f"{large} x {large} from bf16",
)

# %% [markdown]
# What a consumer does for a stage, in the machine code.

# %% sass
table = {}
for name, (levels, scales) in KINDS.items():
    function = fp8.kernel(levels, scales == "blocks", fp8.Tile(), "uint16")
    code = loops.disassemble(function)
    count = Counter(i.op for i in code)
    table[name] = {
        "products": count["QGMMA"],
        "FMAs and additions": count["FFMA"] + count["FADD"],
        "waits for products": sum(
            i.name.startswith("WARPGROUP.DEPBAR") for i in code
        ),
    }
ct.table("instructions in the machine code", table, corner="kernel")
