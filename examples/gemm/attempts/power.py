# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel: watts", zh: "通向最终 kernel 的路：功率"}
#     requires: sm_80
#     timeout_s: 600
#     long: true
#     sizes: {side: [8192, 136]}
# ---

# %% [markdown]
# The final kernel and cuBLAS, over and over for a minute each, while nvidia-smi
# reads the GPU's clock, power and temperature: with random matrices, and then,
# for a shorter time, with zeros, for which the instructions are the same.

# %% setup
import cudatut as ct
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.gemm.ladder.ladder import Gemm
from cudatut.book.measure.sustained import sustained

side = 8192
LONG, SHORT = 60, 10  # seconds
gpu = ct.device()
problem = Gemm(side, side, side)
ours = sgemm.prepare(problem.a, problem.b, problem.c)

# %% check
ct.poison(problem.c)
ours()
problem.compare(f"n = {side}")

# %% [markdown]
# Beside them the probe that measures the FMA limit: 32 chains of FMAs per
# thread, and nothing else.

# %% limit
BLOCKS, STEPS = gpu.sm_count * 8, 1 << 15
fmas = ct.empty(BLOCKS * 256, "float32")


def fma_probe():
    ct.limits.probe("fma_probe")(
        fmas, 0.9999, 0.0001, STEPS, grid=BLOCKS, block=256
    )


# %% random
runs = {} if ct.tool.running() else {"final kernel": ours, **problem.vendors()}
found = {
    name: sustained(run, problem.flops, LONG)
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
if runs:
    flops = 2 * 32 * STEPS * BLOCKS * 256
    found["FMA probe"] = sustained(fma_probe, flops, SHORT)

# %% compare
if found:
    rows = {}
    for name, run in found.items():
        late = run.late()
        rows[name] = {
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
            "rate": "TFLOP/s",
            "clock": "MHz",
            "power": "W",
            "temperature": "°C",
            "energy of an FMA": "pJ",
        },
    )
    wanted = 0.9 * rows["FMA probe"]["rate"]  # TFLOP/s
    ct.facts(
        "what it takes",
        {
            "highest clock": (ct.attributes()["CLOCK_RATE"] / 1e3, "MHz"),
            "power limit": (late.limit, "W"),
        }
        | {
            f"{name}: power at nine tenths of the probe's rate": (
                rows[name]["energy of an FMA"] * wanted / 2,
                "W",
            )
            for name in runs
            if name in rows
        },
    )

# %% clock
if found:
    ct.series(
        "clock while the kernel runs again and again",
        x=("time", "s"),
        y=("clock", "MHz"),
        lines={
            name: [
                (i / 2, one.mhz) for i, one in enumerate(found[name].readings)
            ]
            for name in runs
            if name in found
        },
    )
