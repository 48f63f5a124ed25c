# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard: primitives", zh: "并行算法排行榜"}
#     requires: sm_75
#     timeout_s: 300
#     sizes:
#       most: [268_435_456, 65_536]
#       exponents: [[10, 12, 14, 16, 18, 20, 22, 24, 26, 28], [10, 12]]
#       checked: [[10, 15, 20], [10, 13]]
#       largest: [28, 12]
#       middle: [24, 12]
#       columns: [128_256, 1_024]
#       rounds: [20, 1]
# ---

# %% [markdown]
# A kernel at every size. Two numbers describe its times: that of the shortest
# array, and the rate for the longest one.

# %% program
import random

import numpy as np

import cudatut as ct

most = 268_435_456
exponents = (10, 12, 14, 16, 18, 20, 22, 24, 26, 28)
rounds = 20
gelu = ct.Kernel("primitives/fusion/gelu.cu", "gelu<float,4,2,256,0>")
x, out = ct.empty(most, "float32"), ct.empty(most, "float32")
x.fill(np.float32(1))


def run(n):
    gelu(x, out, n, grid=ct.cdiv(n, 2048), block=256)  # 8 elements a thread


sizes = [2**e for e in exponents]
turns = {f"{n}": lambda n=n: run(n) for n in sizes}
runs = ct.take_turns(turns, rounds, random.Random(0))
us = {n: float(np.median(runs[f"{n}"])) for n in sizes}
first, rate = us[sizes[0]], sizes[-1] / us[sizes[-1]]
print("elements  measured  first + n / rate  of the rate")
for e, n in zip(exponents, sizes):
    share = n / us[n] / rate
    print(f"2^{e}  {us[n]:12.1f} us {first + n / rate:12.1f} us  {share:10.1%}")
half = first * rate
print(f"half length: {half / 1e6:.2f} million, 2^{np.log2(half):.1f}")
ct.check(out[:1], [0.8413447], name="gelu(1)")

# %% [markdown]
# What must move, and how often a kernel is launched.

# %% predict
from cudatut.book.primitives.scoreboard.field import BYTES, ROWS, Field, check

largest = 28
limit = ct.limits.bandwidth()
LAUNCHES = dict.fromkeys(BYTES, 1) | {"sort": 6}
ct.table(
    f"what 2^{largest} elements need",
    {
        name: {
            "bytes of an element": each,
            "launches": LAUNCHES[name],
            "time of the bytes": each * 2**largest / limit / 1e3,
        }
        for name, each in BYTES.items()
    },
    corner="primitive",
    units={"time of the bytes": "us"},
)

# %% [markdown]
# Right before fast: each kernel as the scoreboard launches it, against the
# host.

# %% check
field = Field(most)
checked = (10, 15, 20)
for e in checked:
    for name in BYTES:
        field.contest(name, e)["ours"]()
        check(field, name, e)

# %% [markdown]
# Every primitive at every size, beside its rivals. One function runs a contest,
# and others show what came out.

# %% setup
times = {}  # times[name][exponent]: a benchmark


def race(name, sizes=exponents):
    """A contest for each size: all take turns in random order."""
    times[name] = {
        e: ct.bench(
            field.contest(name, e),
            bytes=BYTES[name] * 2**e,
            name=f"{name} of 2^{e}",
            rounds=rounds,
        )
        for e in sizes
    }


def rivals_of(one):
    """A copy does less work, so it is no rival but a limit."""
    return [row.name for row in one.rows if row.name not in ("ours", "copy")]


def ratios(name):
    """By rival: how many times as fast ours is, for each size."""
    lines = {}
    for e, one in times[name].items():
        for rival in rivals_of(one):
            ratio = one.ratio("ours", rival).median
            lines.setdefault(rival, []).append((2**e, ratio))
    return lines


def chart(title, lines):
    if not ct.tool.running():
        ct.series(
            title,
            x=("elements", ""),
            y=("time of the rival / ours", ""),
            lines=lines,
        )


def table(name):
    if not ct.tool.running():
        ct.table(
            f"{name}, microseconds",
            {
                f"2^{e}": {row.name: row.median_us for row in one.rows}
                for e, one in times[name].items()
            },
            corner="elements",
        )


# %% races
for name in ("transpose", "GELU", "fused", "scan", "compaction", "sort"):
    race(name)
race("top-k", [e for e in exponents if 2**e >= 256 * ROWS] or exponents)
race("random")

# %% [markdown]
# How many times as fast ours is.

# %% maps-ratios
if not ct.tool.running():
    chart(
        "beside PyTorch",
        {
            name: ratios(name)["PyTorch"]
            for name in ("transpose", "GELU", "fused")
            if "PyTorch" in ratios(name)
        },
    )

# %% scan-ratios
chart("scan", ratios("scan") if not ct.tool.running() else {})

# %% compaction-ratios
chart("compaction", ratios("compaction") if not ct.tool.running() else {})

# %% sort-ratios
chart("sort", ratios("sort") if not ct.tool.running() else {})

# %% others-ratios
if not ct.tool.running():
    by_name = {
        f"{name}, {rival}": line
        for name in ("top-k", "random")
        for rival, line in ratios(name).items()
    }
    chart("top-k and random numbers", by_name)

# %% tables
for name in times:
    table(name)

# %% [markdown]
# Two numbers for each primitive, and how well they foretell a third.

# %% two-numbers
if not ct.tool.running():
    rows = {}
    for name, by_size in times.items():
        short, long = min(by_size), max(by_size)
        first = by_size[short]["ours"].median_us
        last = by_size[long]["ours"].median_us
        between = by_size[20]["ours"].median_us
        rate = 2**long / last
        rows[name] = {
            "shortest": first,
            "rate": rate / 1e3,
            "half length, 2^": float(np.log2(first * rate)),
            "2^20, of the sum": between / (first + 2**20 / rate),
            "of the limit": 100 * BYTES[name] * rate / 1e3 / limit,
        }
    ct.table(
        "two numbers",
        rows,
        corner="primitive",
        units={
            "shortest": "us",
            "rate": "10^9/s",
            "2^20, of the sum": "×",
            "of the limit": "%",
        },
    )

# %% [markdown]
# The fastest rival of each size.

# %% summary
SHOWN = (10, 14, 18, 20, 24, 28)
if not ct.tool.running():
    ct.table(
        "time of the fastest rival / ours",
        {
            name: {
                f"2^{e}": min(
                    by_size[e].ratio("ours", rival).median
                    for rival in rivals_of(by_size[e])
                )
                if e in by_size and rivals_of(by_size[e])
                else None
                for e in SHOWN
            }
            for name, by_size in times.items()
        },
        corner="primitive",
    )

# %% [markdown]
# The goals, and what came out.

# %% finals
columns = 128_256
topk = ct.bench(
    field.topk(columns),
    bytes=4 * ROWS * columns,
    name=f"the best 50 of {columns}, {ROWS} rows",
    rounds=rounds,
)
pairs = ct.bench(
    field.pairs(largest),
    bytes=68 * 2**largest,
    name=f"sort of 2^{largest} pairs",
    rounds=rounds,
)

# %% goals
if not ct.tool.running():
    last = {name: by_size[max(by_size)] for name, by_size in times.items()}
    short = min(
        (one for e, one in times["scan"].items() if e <= 20),
        key=lambda one: one.ratio("ours", "CUB").median,
    )
    wanted = {
        "transpose / copy": last["transpose"].goal("ours", "copy", 0.95),
        "GELU / copy": last["GELU"].goal("ours", "copy", 0.97),
        "scan / CUB": last["scan"].goal("ours", "CUB", 1.0),
        "scan / CUB, least up to 2^20": short.goal("ours", "CUB", 1.2),
        "compaction / CUB": last["compaction"].goal("ours", "CUB", 1.0),
        "sort, keys / CUB": last["sort"].goal("ours", "CUB", 1.0),
        "sort, pairs / CUB": pairs.goal("ours", "CUB", 1.0),
        "top-k / PyTorch": topk.goal("ours", "PyTorch", 2.0),
        "random / cuRAND": last["random"].goal("ours", "cuRAND", 1.0),
    }
    ct.goals("goals of this part", wanted)

# %% [markdown]
# Every comparison in which a rival is faster, beyond what chance allows.

# %% behind
if not ct.tool.running():
    found = {
        f"{name} of 2^{e}, {rival}": (one.ratio("ours", rival), one, rival)
        for name, by_size in times.items()
        for e, one in by_size.items()
        for rival in rivals_of(one)
    }
    verdicts = [ratio.verdict(1.0) for ratio, *_ in found.values()]
    ct.facts(
        "comparisons",
        {
            "all": len(verdicts),
            "ours is faster": verdicts.count("reached"),
            "the rival is faster": verdicts.count("missed"),
            "not decided": verdicts.count("undecided"),
        },
    )
    lost = {
        name: {
            "ours": one["ours"].median_us,
            "rival": one[rival].median_us,
            "rival / ours": ratio.median,
        }
        for name, (ratio, one, rival) in found.items()
        if ratio.verdict(1.0) == "missed"
    }
    if lost:
        ct.table(
            "where a rival is faster",
            lost,
            corner="contest",
            units={"ours": "us", "rival": "us", "rival / ours": "×"},
        )

# %% [markdown]
# Launches alone: what six of them cost that do nothing, and a sort that has as
# many.

# %% launches
from cudatut.book.primitives.sort.sort import Sweep

empty = ct.Kernel("__global__ void nothing() {}", "nothing")
few, sweeps = 2 ** exponents[0], Sweep("uint32")


def nothing(count):
    for _ in range(count):
        empty(grid=1, block=32)


launches = ct.bench(
    {
        "one empty launch": lambda: nothing(1),
        "six empty launches": lambda: nothing(6),
        "sort, by sweeps": lambda: sweeps(field.keys[:few], field.sorted[:few]),
        "sort, ours": field.contest("sort", exponents[0])["ours"],
        "sort, CUB": field.contest("sort", exponents[0])["CUB"],
    },
    name=f"sort of 2^{exponents[0]}, and launches",
)

# %% [markdown]
# Does a rival do the same work? PyTorch's sort also returns where each key
# stood, in 64 bits.

# %% same-work
middle = 24
work = ct.bench(
    {
        "CUB, keys": field.contest("sort", middle)["CUB"],
        "CUB, pairs": field.pairs(middle)["CUB"],
        "PyTorch": field.contest("sort", middle)["PyTorch"],
        "ours, keys": field.contest("sort", middle)["ours"],
    },
    name=f"sort of 2^{middle}, with and without values",
    rounds=rounds,
)

# %% [markdown]
# Who took part.

# %% rivals
if not ct.tool.running():
    from importlib.metadata import version

    from cudatut.book.rivals import compute, cub

    ct.facts(
        "rivals of this run",
        {
            "CUB": cub.version(),
            "PyTorch": version("torch"),
            "cuda.compute": compute.version() or "not installed",
        },
    )
