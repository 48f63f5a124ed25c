# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of sums", zh: "求和排行榜"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       POWERS: [[10, 12, 14, 16, 18, 20, 22, 24, 26], [10, 12, 14]]
#       LONG: [[268435456, 1073741824], [4096, 16384]]
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

one_thread = ct.Kernel("reduction/scoreboard/scoreboard.cu", "sum_serial")
kahan = ct.Kernel("reduction/scoreboard/scoreboard.cu", "sum_kahan")
exact = math.fsum(x.get().tolist())
for name, kernel in (("one thread", one_thread), ("Kahan", kahan)):
    kernel(x, out, n, grid=1, block=1)
    error = abs(float(out.get()[0]) - exact) / exact
    print(f"{name:10}  relative error {error:.1e}")

# %% setup
import math
import re

import numpy as np
from cudatut.book.reduction.ladder.ladder import LADDER, Sum
from cudatut.book.reduction.ladder.large import Repeated

import cudatut as ct

gpu = ct.device()
DTYPES = ("float32", "int32")
POWERS = (10, 12, 14, 16, 18, 20, 22, 24, 26)
SIZES = [1 << power for power in POWERS]
LONG = (268_435_456, 1_073_741_824)
LARGEST = LONG[-1]
MIDDLE = 1_048_576
RUNGS = [LADDER[name] for name in LADDER.names]
FINALISTS = ("limit", "bulk", "flags")  # still in the race at 2^30
LAST = RUNGS[-1]
tiny = Sum(SIZES[0])

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
    return len(tiny.plan(rung).steps(n))


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
for n in LONG:
    times["float32"][n] = contest(FINALISTS, n, "float32", rounds=60)

# %% largest-int
for n in LONG:
    times["int32"][n] = contest(FINALISTS, n, "int32", rounds=60)

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

# %% cub
# CUB has parameters for some compute capabilities; a GPU takes those of the
# nearest that is not above its own.
header = (
    ct.find_nvcc().resolve().parents[1]
    / "include/cccl/cub/device/dispatch/tuning/tuning_reduce.cuh"
)
if header.is_file():
    found = re.findall(r"ChainedPolicy<(\d+)0,", header.read_text())
    policies = sorted(int(number) / 10 for number in found)
    own = float("{}.{}".format(*gpu.compute_capability))
    ct.facts(
        "CUB's parameters for sums",
        {
            "compute capabilities with parameters": ", ".join(
                map(str, policies)
            ),
            "compute capability of this GPU": str(own),
            "parameters taken": str(max(p for p in policies if p <= own)),
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
            "2^26": against("CUB", dtype, 1 << 26),
            "2^28": against("CUB", dtype, LONG[0]),
            "2^30": against("CUB", dtype, LARGEST),
            "2^30, of the theoretical bandwidth": share,
        }
    goals = (1.3, 1.3, 1.3, 1.02, 1.02, 1.02, 95)
    rows["goal"] = dict(zip(rows[dtype], goals))
    ct.table(
        "times as fast as CUB",
        rows,
        corner="type",
        units={"2^30, of the theoretical bandwidth": "%"},
    )

# %% left
empty = ct.Kernel("__global__ void nothing() {}", "nothing")
# A kernel that waits for its data, and adds up no more than a thread can.
waits = ct.Kernel("reduction/scoreboard/scoreboard.cu", "wait_and_store")


def shortest_of(sums, sizes):
    out = ct.empty(1, "float32")
    threads = sums.n // 16
    candidates = {
        "empty launch": lambda: empty(grid=1, block=32),
        "wait and store": lambda: waits(sums.x, out, grid=1, block=threads),
    }
    for block in sizes:
        candidates[f"blocks of {block}"] = sums.launcher(LAST, block)
    return ct.bench(
        {**candidates, **sums.vendors()},
        name=f"sum of {sums.n} float32, {LAST.name}",
    )


sizes = (64, 256, 512, 1024)
shortest = shortest_of(tiny, sizes)
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

# %% left-4096
shortest_of(Sum(4096), (256, 512, 1024))

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
    plan = problem.plan(rung)
    block, blocks = plan.block, plan.grid(accuracy_n)
    # A tree over the warp, one over the warps.
    in_block = 5 + max(1, int(math.log2(block // 32)))
    if plan.rung.name in ("limit", "bulk", "flags"):
        # 3 in a vector of four, and one for each further vector.
        of_thread = 2 + ct.cdiv(accuracy_n, 4 * blocks * block)
        # A thread takes one partial sum per turn, or a vector of four.
        each = 1 if plan.rung.name == "flags" else 4
        partials = each * ct.cdiv(blocks, each * block)
        return of_thread + in_block + partials + in_block
    if plan.rung.options.get("grid") == "resident":
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


FILE = "reduction/scoreboard/scoreboard.cu"


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
    "tolerance of ct.check": problem.tolerance_of(
        problem.plan(LAST).depth(accuracy_n)
    ),
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
