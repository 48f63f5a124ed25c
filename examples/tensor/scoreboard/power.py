# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of tensor cores: watts", zh: "张量核心排行榜：功率"}
#     requires: sm_90a
#     timeout_s: 600
#     long: true
#     sizes: {side: [8192, 136]}
# ---

# %% [markdown]
# The final kernel and cuBLAS, over and over for a minute each, while nvidia-smi
# reads the GPU's clock, power and temperature: in parts, which of the two comes
# first drawn anew for each pair of parts. And for a shorter time on zeros, for
# which the instructions are the same.

# %% setup
import random
import statistics

from cudatut.book.tensor.ladder.ladder import LADDER, Gemm
from cudatut.book.measure.sustained import median, sustained

import cudatut as ct

side = 8192
PARTS = 5  # of a minute
LONG, SHORT = 60 // PARTS, 10  # seconds
A_SECOND = 2  # readings
problem = Gemm(side, side, side)
ours = problem.launcher(LADDER["final"])

# %% check
problem.check(LADDER["final"])

# %% [markdown]
# One run at a time, with pauses between them, in which the GPU cools.

# %% burst
burst = ct.bench(
    {"final": ours, **problem.vendors()},
    flops=problem.flops,
    rounds=15,
    name=f"{side} x {side} x {side}",
)

# %% random
runs = {} if ct.tool.running() else {"final": ours, **problem.vendors()}
runs = {name: run for name, run in runs.items() if run}
found = {name: [] for name in runs}
order, names = random.Random(side), list(runs)
for _ in range(PARTS):
    order.shuffle(names)
    for name in names:
        found[name].append(
            sustained(
                runs[name], problem.flops, LONG, every_ms=1000 // A_SECOND
            )
        )

# %% zeros
for operand in (problem.a, problem.b):
    operand.fill(0)
ours()
ct.check(problem.c, 0 * problem.c.get(), name="zeros", rtol=0)
found |= {
    f"{name}, zeros": [sustained(run, problem.flops, SHORT)]
    for name, run in runs.items()
}

# %% compare
if found:
    rows = {}
    for name, parts in found.items():
        late = median(part.late() for part in parts)
        rate = statistics.median(part.rate for part in parts)
        once = None if "zeros" in name else burst[name].value
        rows[name] = {
            "one run at a time": once,
            "rate": rate,
            "clock": late.mhz,
            "power": late.watts,
            "temperature": late.degrees,
            "energy of an FMA": 2 * late.watts / rate,
        }
    ct.table(
        "in the second half of each run",
        rows,
        units={
            "one run at a time": "TFLOP/s",
            "rate": "TFLOP/s",
            "clock": "MHz",
            "power": "W",
            "temperature": "°C",
            "energy of an FMA": "pJ",
        },
    )

# %% minute
if found:
    facts = {
        "highest clock": (ct.attributes()["CLOCK_RATE"] / 1e3, "MHz"),
        "power limit": (late.limit, "W"),
    }
    if "cuBLAS" in rows:
        ratios = [
            one.rate / other.rate
            for one, other in zip(found["final"], found["cuBLAS"])
        ]
        facts["sustained, times cuBLAS"] = statistics.median(ratios)
        facts["sustained: least of the pairs"] = min(ratios)
        facts["sustained: most of the pairs"] = max(ratios)
        facts["one run at a time, times cuBLAS"] = (
            burst["final"].value / burst["cuBLAS"].value
        )
    ct.facts("over a minute", facts)

# %% parts
if found:
    ct.table(
        "rate of each part",
        {
            f"pair {number + 1}": {
                name: found[name][number].rate for name in runs
            }
            for number in range(PARTS)
        },
        corner="part",
        units=dict.fromkeys(runs, "TFLOP/s"),
    )

# %% clock
if found:
    ct.series(
        "clock while the kernel runs again and again",
        x=("time it has run", "s"),
        y=("clock", "MHz"),
        lines={
            name: [
                (number * LONG + i / A_SECOND, reading.mhz)
                for number, part in enumerate(found[name])
                for i, reading in enumerate(part.readings[: LONG * A_SECOND])
            ]
            for name in runs
        },
    )
