# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of sums", zh: "求和排行榜"}
#     requires: sm_75
#     timeout_s: 180
# ---

# %% [markdown]
# Every rung, CUB and PyTorch, from a thousand elements to a billion; and how exact each of them is.

# %% setup
import math

import numpy as np
from ladder import LADDER, Sum
from large import Repeated

import cudatut as ct

gpu = ct.device()
DTYPES = ("float32", "int32")
SIZES = [1 << k for k in (10, 14, 18, 20, 22, 24, 26) if 1 << k <= ct.size(1 << 26, 1 << 14)]
LARGEST = ct.size(1 << 30, 1 << 18)
LAST = ("few_blocks", "one_launch", "limit")  # the rungs that are still in the race at 2^30

# %% predict
bandwidth = ct.limits.bandwidth()
theoretical = 2 * gpu.memory_clock_khz * gpu.bus_bits / 8 / 1e6  # two transfers per clock
ct.facts(
    "bounds",
    {
        "theoretical bandwidth": (theoretical, "GB/s"),
        "measured limit": (bandwidth, "GB/s"),
        "measured limit, of the theoretical": (100 * bandwidth / theoretical, "%"),
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
        return 1 if n <= kernel.resources(block).blocks_per_sm * gpu.sm_count else 2
    count, per_block = 0, rung.number("block") * rung.number("per_thread")
    while count == 0 or n > 1:
        n, count = ct.cdiv(n, per_block), count + 1
    return count


ct.facts(
    "launches",
    {
        f"{rung.name}, 2^{k}": launches(rung, 1 << k)
        for rung in LADDER.upto("limit")
        if rung.name in ("naive", "shuffle", *LAST)
        for k in (10, 20, 30)
    },
)

# %% check
for dtype in DTYPES:
    for m in ct.RAGGED:
        ragged = Sum(m, dtype)
        for rung in LADDER.upto("limit"):
            ragged.check(rung)

# %% sweep
times = {dtype: {} for dtype in DTYPES}  # times[dtype][n]: a benchmark


def contest(rungs, n, dtype, rounds):
    problem = Repeated(n, dtype)
    candidates = {}
    for name in rungs:
        problem.check(LADDER[name])
        candidates[name] = problem.launcher(LADDER[name])
    return ct.bench(
        {**candidates, **problem.vendors(), "PyTorch": ct.vendor.torch_sum(problem.x)},
        bytes=problem.bytes,
        name=f"sum of {n} {dtype}",
        rounds=rounds,
    )


for dtype in DTYPES:
    for n in SIZES:
        times[dtype][n] = contest(LADDER.names, n, dtype, rounds=40)

# %% largest-float
times["float32"][LARGEST] = contest(LAST, LARGEST, "float32", rounds=100)

# %% largest-int
times["int32"][LARGEST] = contest(LAST, LARGEST, "int32", rounds=100)


# %% series
def lines(dtype):
    """GB/s by length, for every contestant."""
    found = {}
    for n, bench in times[dtype].items():
        for row in bench.rows_:
            found.setdefault(row.name, []).append((n, row.value))
    return found


for dtype in DTYPES:
    ct.series(
        f"sum of {dtype}",
        x=("length", "elements"),
        y=("bandwidth", "GB/s"),
        lines=lines(dtype),
        limit=bandwidth,
    )


# %% ratios
def against(rival, dtype, n):
    """How many times as fast as the rival the last rung is."""
    bench = times[dtype][n]
    return bench[rival].median_us / bench["limit"].median_us


vendors = [row.name for row in times["float32"][SIZES[0]].rows_ if row.vendor]
for dtype in DTYPES:
    for rival in vendors:
        ct.facts(
            f"limit against {rival}, {dtype}",
            {f"2^{int(math.log2(n))}": against(rival, dtype, n) for n in times[dtype]},
        )

# %% targets
if "CUB" in vendors:
    rows = {}
    for dtype in DTYPES:
        short = [n for n in SIZES if n <= 1 << 20]
        largest = times[dtype][LARGEST]["limit"]
        rows |= {
            f"{dtype}: 2^30 against CUB, wanted": (1.02, "times"),
            f"{dtype}: 2^30 against CUB, measured": (against("CUB", dtype, LARGEST), "times"),
            f"{dtype}: 2^30 of the theoretical, wanted": (95, "%"),
            f"{dtype}: 2^30 of the theoretical, measured": (100 * largest.value / theoretical, "%"),
            f"{dtype}: up to 2^20 against CUB, wanted": (1.3, "times"),
            f"{dtype}: up to 2^20 against CUB, least": (
                min(against("CUB", dtype, n) for n in short),
                "times",
            ),
        }
    ct.facts("wanted and measured", rows)

# %% left
largest = times["float32"][LARGEST]["limit"]
empty = ct.Kernel("__global__ void nothing() {}", "nothing")
nothing = ct.bench(
    {
        "one empty launch": lambda: empty(grid=1, block=32),
        "two empty launches": lambda: (empty(grid=1, block=32), empty(grid=1, block=32)),
    },
    name="what a launch costs",
)
smallest = times["float32"][SIZES[0]]["limit"].median_us
ct.facts(
    "what is left",
    {
        "2^30: limit": (largest.median_us, "us"),
        "2^30: at the theoretical bandwidth": (4 * LARGEST / theoretical / 1e3, "us"),
        "2^30: at the measured limit": (4 * LARGEST / bandwidth / 1e3, "us"),
        "2^10: limit": (smallest, "us"),
        "2^10: an empty launch": (nothing["one empty launch"].median_us, "us"),
    },
)

# %% depth
EPS = float(np.finfo("float32").eps)
accuracy_n = ct.size(1 << 20, 1 << 12)


def depth(rung, n):
    """How many roundings an element passes at most on its way into the sum."""
    block = rung.number("block")
    in_block = 5 + max(1, int(math.log2(block // 32)))  # a tree over the warp, one over the warps
    if rung.name in ("one_launch", "few_blocks"):
        kernel = rung.compile(BLOCK=block, ELEMENT="float")
        blocks = min(kernel.resources(block).blocks_per_sm * gpu.sm_count, ct.cdiv(n, block))
        return ct.cdiv(n, blocks * block) + in_block + ct.cdiv(blocks, block) + in_block
    if rung.name == "limit":
        blocks = ct.cdiv(n, 4 * 4 * block)
        partials = 4 * ct.cdiv(blocks, 4 * block)  # a vector of four per turn
        return 6 + in_block + partials + in_block  # 3 in a vector, 3 over four vectors
    each = rung.number("per_thread") - 1 + int(math.log2(block))
    return launches(rung, n) * each


ct.facts(
    f"additions on the way of an element, n = {accuracy_n}",
    {"one thread": accuracy_n - 1}
    | {rung.name: depth(rung, accuracy_n) for rung in LADDER.upto("limit")},
)

# %% accuracy
positive = ct.rng(2).random(accuracy_n, dtype="float32")  # in [0, 1): nothing cancels
problem = Sum(data=positive)
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
host = float(np.cumsum(positive)[-1])  # cumsum adds in order, as the thread does
ct.check(np.array([host]), np.array([sums["one thread"]]), rtol=0, name="host and one thread agree")
for rung in LADDER.upto("limit"):
    run = problem.launcher(rung)
    run()
    sums[rung.name] = float(run.out.get()[0])
for name, call in problem.vendors().items():
    if call:
        returned = call()
        sums[name] = float(call.out.get()[0] if hasattr(call, "out") else returned)
sums["nearest float32"] = float(np.float32(exact))
rows = {name: (value - exact) / exact / EPS for name, value in sums.items()}
ct.facts(
    f"relative error of the sum of {accuracy_n} float32 in [0, 1), in units of eps = 2^-23", rows
)

# %% bounds
magnitude = float(np.abs(positive).sum(dtype="float64"))
rows = {}
for name, passes in {
    "one thread": accuracy_n - 1,
    **{rung.name: depth(rung, accuracy_n) for rung in LADDER.upto("limit")},
}.items():
    error = abs(sums[name] - exact)
    rows |= {f"{name}: bound": passes * EPS / 2 * magnitude, f"{name}: error": error}
    ct.check(
        np.array([error]),
        np.array([0.0]),
        name=f"{name} within its bound",
        atol=passes * EPS / 2 * magnitude,
    )
ct.facts("absolute error and bound", rows | {"tolerance of ct.check": problem.tolerance})

# %% tolerance-claim
best = abs(sums["nearest float32"] - exact)
ct.claim(
    id="sum-absolute-tolerance",
    source="CUDA slides 2.3",
    statement={
        "en": "A float32 result is right when it differs from the reference by less than 1e-4. Held against the float32 "
        "number nearest to the exact sum, the best that any float32 kernel can return.",
        "zh": "float32 的结果与参考值相差不到 1e-4，就算正确。这里拿离精确和最近的 float32 数来检验，它是任何 float32 kernel 能给出的最好结果。",
    },
    predicted=1e-4,
    measured=best,
    unit="largest difference",
    verdict="confirmed" if best < 1e-4 else "refuted",
)

# %% order
serial, parallel = abs(sums["one thread"] - exact), abs(sums["limit"] - exact)
ct.facts(
    "order of the additions",
    {
        "one after another: error": serial,
        "limit: error": parallel,
        "times as large": serial / max(parallel, best),
    },
)
