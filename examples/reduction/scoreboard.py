# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of sums", zh: "求和排行榜"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       POWERS: [[10, 12, 14, 16, 18, 20, 22, 24, 26], [10, 12, 14]]
#       LARGEST: [1073741824, 16384]
#       MIDDLE: [1048576, 4096]
#       accuracy_n: [1048576, 4096]
# ---

# %% [markdown]
# Every rung, CUB and PyTorch, from a thousand elements to a billion; and how
# exact each of them is. First the two sums whose order is known.

# %% program
import math

import cudatut as ct

n = 1 << 20
x = ct.to_device(ct.rng(0).random(n, dtype="float32"))
out = ct.empty(1, "float32")

one_thread = ct.Kernel("reduction/scoreboard.cu", "sum_serial")
kahan = ct.Kernel("reduction/scoreboard.cu", "sum_kahan")
exact = math.fsum(x.get().tolist())
for name, kernel in (("one thread", one_thread), ("Kahan", kahan)):
    kernel(x, out, n, grid=1, block=1)
    error = abs(float(out.get()[0]) - exact) / exact
    print(f"{name:10}  relative error {error:.1e}")

# %% setup
import math

import numpy as np
from ladder import LADDER, Sum
from large import Repeated

import cudatut as ct

gpu = ct.device()
DTYPES = ("float32", "int32")
POWERS = (10, 12, 14, 16, 18, 20, 22, 24, 26)
SIZES = [1 << power for power in POWERS]
LARGEST = 1_073_741_824
MIDDLE = 1_048_576
RUNGS = [LADDER[name] for name in LADDER.names]
FINALISTS = LADDER.names[-3:]  # the rungs that are still in the race at 2^30
LAST = RUNGS[-1]

# %% [markdown]
# Two bounds, and the number of launches.

# %% predict
bandwidth = ct.limits.bandwidth()
# Two transfers per clock.
theoretical = 2 * gpu.memory_clock_khz * gpu.bus_bits / 8 / 1e6
ct.facts(
    "bounds",
    {
        "theoretical bandwidth": (theoretical, "GB/s"),
        "measured limit": (bandwidth, "GB/s"),
        "measured limit, of the theoretical": (
            100 * bandwidth / theoretical,
            "%",
        ),
        "2^10: time of the bytes": (4 * 2**10 / bandwidth / 1e3, "us"),
        "2^20: time of the bytes": (4 * 2**20 / bandwidth / 1e3, "us"),
        "2^30: time of the bytes": (4 * 2**30 / bandwidth / 1e3, "us"),
    },
)


def launches(rung, n):
    """Launches of a rung until one sum is left."""
    if rung.options.get("launches") == "one":
        return 1
    if rung.options.get("grid") == "resident":
        block = rung.number("block")
        kernel = rung.compile(BLOCK=block, ELEMENT="float")
        return (
            1
            if n <= kernel.resources(block).blocks_per_sm * gpu.sm_count
            else 2
        )
    count, per_block = 0, rung.number("block") * rung.number("per_thread")
    while count == 0 or n > 1:
        n, count = ct.cdiv(n, per_block), count + 1
    return count


ct.facts(
    "launches",
    {
        f"{rung.name}, 2^{k}": launches(rung, 1 << k)
        for rung in RUNGS
        if rung.name in ("naive", "shuffle", "few_blocks", LAST.name)
        for k in (10, 20, 30)
    },
)

# %% [markdown]
# Right before fast, then every length.

# %% check
for dtype in DTYPES:
    for m in ct.RAGGED:
        ragged = Sum(m, dtype)
        for rung in RUNGS:
            ragged.check(rung)
tiny = Sum(SIZES[0])
for block in LAST.numbers("blocks"):
    tiny.check(LAST, block)

# %% sweep
times = {dtype: {} for dtype in DTYPES}  # times[dtype][n]: a benchmark


def contest(rungs, n, dtype, rounds):
    problem = Repeated(n, dtype)
    candidates = {}
    for name in rungs:
        problem.check(LADDER[name])
        candidates[name] = problem.launcher(LADDER[name])
    return ct.bench(
        {
            **candidates,
            **problem.vendors(),
            "PyTorch": ct.vendor.torch_sum(problem.x),
        },
        bytes=problem.bytes,
        name=f"sum of {n} {dtype}",
        rounds=rounds,
    )


for dtype in DTYPES:
    for n in SIZES:
        # What the early rungs do in float32 they do in int32.
        rungs = LADDER.names if dtype == "float32" else FINALISTS
        times[dtype][n] = contest(rungs, n, dtype, rounds=40)

# %% by-launches
rows = {}
for n in (SIZES[0], MIDDLE):
    if n in times["float32"]:
        groups = {}
        for rung in RUNGS:
            took = times["float32"][n][rung.name].median_us
            groups.setdefault(launches(rung, n), []).append(took)
        for count, took in sorted(groups.items()):
            rows[f"2^{int(math.log2(n))}, launches: {count}"] = {
                "fastest": min(took),
                "slowest": max(took),
            }
if rows:
    ct.table(
        "rungs by their launches, float32",
        rows,
        corner="elements",
        units={"fastest": "us", "slowest": "us"},
    )

# %% largest-float
times["float32"][LARGEST] = contest(FINALISTS, LARGEST, "float32", rounds=60)

# %% largest-int
times["int32"][LARGEST] = contest(FINALISTS, LARGEST, "int32", rounds=60)

# %% series
vendors = [row.name for row in times["float32"][SIZES[0]].rows if row.vendor]


def lines(dtype, names):
    """GB/s by length."""
    found = {}
    for n, bench in times[dtype].items():
        for row in bench.rows:
            if row.name in names:
                found.setdefault(row.name, []).append((n, row.value))
    return found


for dtype, names in (("float32", LADDER.names), ("int32", [LAST.name])):
    ct.series(
        f"sum of {dtype}",
        x=("length", "elements"),
        y=("bandwidth", "GB/s"),
        lines=lines(dtype, [*names, *vendors]),
        limit=bandwidth,
        foreground=[
            name
            for name in ("naive", "shuffle", "one_launch", LAST.name, *vendors)
            if name in [*names, *vendors]
        ],
    )

# %% [markdown]
# Beside the rivals, and beside what was wanted.


# %% ratios
def against(rival, dtype, n):
    """How many times as fast as the rival the last rung is."""
    bench = times[dtype][n]
    return bench[rival].median_us / bench[LAST.name].median_us


ratios = {
    f"{rival}, {dtype}": [(n, against(rival, dtype, n)) for n in times[dtype]]
    for rival in vendors
    for dtype in DTYPES
}
if ratios:
    ct.series(
        "time of the rival / time of the last rung",
        x=("length", "elements"),
        y=("ratio", ""),
        lines=ratios,
    )

# %% least
if ratios:
    ct.facts(
        "least ratio",
        {
            f"{name}: least": min(ratio for _, ratio in line)
            for name, line in ratios.items()
        },
    )

# %% targets
if "CUB" in vendors:
    rows = {}
    for dtype in DTYPES:
        middle = [
            against("CUB", dtype, n) for n in SIZES if 1 << 14 <= n <= 1 << 20
        ]
        share = 100 * times[dtype][LARGEST][LAST.name].value / theoretical
        rows[dtype] = {
            "2^10": against("CUB", dtype, 1 << 10),
            "2^12": against("CUB", dtype, 1 << 12),
            "2^14 to 2^20": min(middle),
            "2^30": against("CUB", dtype, LARGEST),
            "2^30, of the theoretical bandwidth": share,
        }
    rows["goal"] = dict(zip(rows[dtype], (1.3, 1.3, 1.3, 1.02, 95)))
    ct.table(
        "times as fast as CUB",
        rows,
        corner="type",
        units={"2^30, of the theoretical bandwidth": "%"},
    )

# %% left
empty = ct.Kernel("__global__ void nothing() {}", "nothing")
candidates = {"empty launch": lambda: empty(grid=1, block=32)}
sizes = (64, 256, 512, 1024)
for block in sizes:
    candidates[f"blocks of {block}"] = tiny.launcher(LAST, block)
shortest = ct.bench(
    {**candidates, **tiny.vendors()},
    name=f"sum of {SIZES[0]} float32, {LAST.name}",
)
nothing = shortest["empty launch"].median_us
rows = {
    "2^30: last rung": (times["float32"][LARGEST][LAST.name].median_us, "us"),
    "2^30: at the measured limit": (4 * LARGEST / bandwidth / 1e3, "us"),
    "2^30: at the theoretical bandwidth": (
        4 * LARGEST / theoretical / 1e3,
        "us",
    ),
}
if "CUB" in vendors:
    cub = shortest["CUB"].median_us
    fastest = min(shortest[f"blocks of {block}"].median_us for block in sizes)
    rows |= {
        "2^10: CUB / empty launch": (cub / nothing, "times"),
        "2^10: CUB / fastest block": (cub / fastest, "times"),
    }
ct.facts("what is left", rows)

# %% [markdown]
# How exact: the depth of each order of additions, and the errors.

# %% depth
EPS = float(np.finfo("float32").eps)
accuracy_n = 1_048_576
# In [0, 1): nothing cancels.
positive = ct.rng(2).random(accuracy_n, dtype="float32")
problem = Sum(data=positive)


def depth(rung):
    """How many roundings an element passes at most on its way into the sum."""
    block = (
        problem.fitting(rung) if "few" in rung.options else rung.number("block")
    )
    in_block = 5 + max(
        1, int(math.log2(block // 32))
    )  # a tree over the warp, one over the warps
    if rung.options.get("grid") == "tiles":
        blocks = problem.tiles(rung, block)
        # A thread that adds the partial sums takes one per turn, or in a longer
        # array a vector of four.
        partials = (
            ct.cdiv(blocks, block)
            if "few" in rung.options
            else 4 * ct.cdiv(blocks, 4 * block)
        )
        return (
            3 + (rung.number("vectors") - 1) + in_block + partials + in_block
        )  # 3 in a vector
    if rung.options.get("grid") == "resident":
        kernel = rung.compile(BLOCK=block, ELEMENT="float")
        blocks = min(
            kernel.resources(block).blocks_per_sm * gpu.sm_count,
            ct.cdiv(accuracy_n, block),
        )
        return (
            ct.cdiv(accuracy_n, blocks * block)
            + in_block
            + ct.cdiv(blocks, block)
            + in_block
        )
    each = rung.number("per_thread") - 1 + int(math.log2(block))
    return launches(rung, accuracy_n) * each


depths = {"one thread": accuracy_n - 1} | {
    rung.name: depth(rung) for rung in RUNGS
}
ct.facts(f"additions on the way of an element, n = {accuracy_n}", depths)

# %% accuracy
exact = math.fsum(positive.tolist())


FILE = "reduction/scoreboard.cu"


def one_thread(kernel):
    out = ct.empty(1, "float32")
    kernel(problem.x, out, accuracy_n, grid=1, block=1)
    return float(out.get()[0])


sums = {
    "one thread": one_thread(ct.Kernel(FILE, "sum_serial")),
    "one thread, Kahan": one_thread(ct.Kernel(FILE, "sum_kahan")),
    "NumPy, pairwise": float(positive.sum()),
}
host = float(
    np.cumsum(positive)[-1]
)  # cumsum adds in order, as the thread does
ct.check(
    np.array([host]),
    np.array([sums["one thread"]]),
    rtol=0,
    name="host and one thread agree",
)
for rung in RUNGS:
    run = problem.launcher(rung)
    run()
    sums[rung.name] = float(run.out.get()[0])
for name, call in {
    **problem.vendors(),
    "PyTorch": ct.vendor.torch_sum(problem.x),
}.items():
    if call:
        returned = call()
        sums[name] = float(
            call.out.get()[0] if hasattr(call, "out") else returned
        )
sums["nearest float32"] = float(np.float32(exact))
rows = {name: (value - exact) / exact / EPS for name, value in sums.items()}
ct.facts(
    "relative error, in units of eps = 2^-23",
    rows,
)

# %% bounds
magnitude = float(np.abs(positive).sum(dtype="float64"))
bounds = {name: passes * EPS / 2 * magnitude for name, passes in depths.items()}
errors = {name: abs(sums[name] - exact) for name in bounds}
share = np.array([errors[name] / bounds[name] for name in bounds])
ct.check(
    share,
    np.zeros(len(share)),
    name="error / bound of every order",
    rtol=0,
    atol=1,
)
rows = {}
for name in ("one thread", "naive", LAST.name):
    rows |= {f"{name}: bound": bounds[name], f"{name}: error": errors[name]}
rows |= {
    "largest error, of its bound": (100 * float(share.max()), "%"),
    "tolerance of ct.check": problem.tolerance,
}
ct.facts("absolute error and bound", rows)

# %% order
serial, parallel = errors["one thread"], errors[LAST.name]
best = abs(sums["nearest float32"] - exact)
ct.facts(
    "order of the additions",
    {
        "one after another: error": serial,
        "last rung: error": parallel,
        "times as large": serial / max(parallel, best),
    },
)
