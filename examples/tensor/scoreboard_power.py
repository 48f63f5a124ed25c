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
# reads the GPU's clock, power and temperature; and for a shorter time on zeros,
# for which the instructions are the same.

# %% setup
from ladder import LADDER, Gemm
from sustained import sustained

import cudatut as ct

side = 8192
LONG, SHORT = 60, 10  # seconds
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
found = {
    name: sustained(run, problem.flops, LONG, every_ms=1000 // A_SECOND)
    for name, run in runs.items()
    if run
}

# %% zeros
for operand in (problem.a, problem.b):
    operand.fill(0)
ours()
ct.check(problem.c, 0 * problem.c.get(), name="zeros", rtol=0)
found |= {
    f"{name}, zeros": sustained(run, problem.flops, SHORT)
    for name, run in runs.items()
    if run
}

# %% compare
if found:
    rows = {}
    for name, run in found.items():
        late = run.late()
        once = None if "zeros" in name else burst[name].value
        rows[name] = {
            "one run at a time": once,
            "rate": run.rate,
            "clock": late.mhz,
            "power": late.watts,
            "temperature": late.degrees,
            "energy of an FMA": 2 * late.watts / run.rate,
        }
    ct.table(
        "in the second half of the run",
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
        facts["sustained, times cuBLAS"] = (
            rows["final"]["rate"] / rows["cuBLAS"]["rate"]
        )
        facts["one run at a time, times cuBLAS"] = (
            burst["final"].value / burst["cuBLAS"].value
        )
    ct.facts("over a minute", facts)

# %% clock
if found:
    ct.series(
        "clock while the kernel runs again and again",
        x=("time", "s"),
        y=("clock", "MHz"),
        lines={
            name: [
                (i / A_SECOND, reading.mhz)
                for i, reading in enumerate(found[name].readings)
            ]
            for name in runs
            if name in found
        },
    )
