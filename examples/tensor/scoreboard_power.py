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
import statistics
import subprocess
import time

import pycuda.driver as cuda
from ladder import LADDER, Gemm

import cudatut as ct

side = 8192
LONG, SHORT = 60, 10  # seconds
problem = Gemm(side, side, side)
ours = problem.launcher(LADDER["final"])

# %% check
problem.check(LADDER["final"])

# %% watch
ASKED = "clocks.sm,power.draw.instant,temperature.gpu,power.limit"


def watched():
    """nvidia-smi, which prints what is asked of this GPU twice a second."""
    command = ["nvidia-smi", "-i", cuda.Device(0).pci_bus_id(), "-lms", "500"]
    command += [f"--query-gpu={ASKED}", "--format=csv,noheader,nounits"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def sustained(launch, seconds):
    """TFLOP/s in the second half of so many seconds, and what nvidia-smi says:
    for each half second MHz, watts, degrees and the limit in watts."""
    launch()
    ct.synchronize()
    done = []  # seconds since the start, after every 16 launches
    with watched() as smi:
        start = time.monotonic()
        while not done or done[-1] < seconds:
            for _ in range(16):
                launch()
            ct.synchronize()
            done.append(time.monotonic() - start)
        smi.terminate()
        seen = [
            tuple(map(float, line.split(",")))
            for line in smi.stdout
            if line.endswith("\n")
        ]
    late = [at for at in done if at >= seconds / 2]
    work = 16 * (len(late) - 1) * problem.flops
    return work / (late[-1] - late[0]) / 1e12, seen


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
found = {name: sustained(run, LONG) for name, run in runs.items() if run}

# %% zeros
for operand in (problem.a, problem.b):
    operand.fill(0)
ours()
ct.check(problem.c, 0 * problem.c.get(), name="zeros", rtol=0)
found |= {
    f"{name}, zeros": sustained(run, SHORT) for name, run in runs.items() if run
}

# %% compare
if found:
    rows = {}
    for name, (rate, seen) in found.items():
        late = seen[len(seen) // 2 :]
        mhz, watts, degrees, limit = map(statistics.median, zip(*late))
        once = None if "zeros" in name else burst[name].value
        rows[name] = {
            "one run at a time": once,
            "rate": rate,
            "clock": mhz,
            "power": watts,
            "temperature": degrees,
            "energy of an FMA": 2 * watts / rate,
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
        "power limit": (limit, "W"),
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
            name: [(i / 2, mhz) for i, (mhz, *_) in enumerate(found[name][1])]
            for name in runs
            if name in found
        },
    )
