# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel: watts", zh: "通向最终 kernel 的路：功率"}
#     requires: sm_80
# ---

# %% [markdown]
# The final kernel and cuBLAS, over and over for about a second, while nvidia-smi reads the GPU's clock and power:
# with random matrices, and with zeros, for which every instruction is the same.

# %% setup
import statistics
import subprocess
import time

import pycuda.driver as cuda
import sgemm
from ladder import Gemm

import cudatut as ct
from cudatut import tool
from cudatut.limits import probe

SIDE, SECONDS = ct.size(8192, 136), 0.9
gpu = ct.device()
problem = Gemm(SIDE, SIDE, SIDE)
ours = sgemm.prepare(problem.a, problem.b, problem.c)

# %% check
ct.poison(problem.c)
ours()
problem.compare(f"n = {SIDE}")


# %% watch
def watched():
    """nvidia-smi, which tells this GPU's clock in MHz, its power and the limit of it in watts ten times a second."""
    command = ["nvidia-smi", "-i", cuda.Device(0).pci_bus_id(), "-lms", "100"]
    command += [
        "--query-gpu=clocks.sm,power.draw.instant,power.limit",
        "--format=csv,noheader,nounits",
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def sustained(launch, flops):
    """TFLOP/s, MHz, watts and their limit while the GPU does nothing else, medians of the second half."""
    begin, end = cuda.Event(), cuda.Event()
    launch()
    cuda.Context.synchronize()
    count, start = 0, time.monotonic()
    with watched() as smi:
        begin.record()
        while time.monotonic() - start < SECONDS:
            for _ in range(4):
                launch()
            count += 4
            cuda.Context.synchronize()
        end.record()
        end.synchronize()
        smi.terminate()
        seen = [
            tuple(map(float, line.split(",")))
            for line in smi.stdout
            if line.endswith("\n")
        ]
    medians = (
        statistics.median(values) for values in zip(*seen[len(seen) // 2 :])
    )
    return count * flops / begin.time_till(end) / 1e9, *medians


# %% limit
BLOCKS, STEPS = gpu.sm_count * 8, 1 << 15
fmas = ct.empty(BLOCKS * 256, "float32")


def fma_probe():
    """What measures the FMA limit: 32 chains of FMAs per thread, and nothing else."""
    probe("fma_probe")(fmas, 0.9999, 0.0001, STEPS, grid=BLOCKS, block=256)


# %% random
runs = {} if tool.running() else {"final kernel": ours, **problem.vendors()}
found = {
    name: sustained(run, problem.flops) for name, run in runs.items() if run
}

# %% zeros
for operand in (problem.a, problem.b):
    operand.fill(0)
ours()
ct.check(problem.c, 0 * problem.c.get(), name="zeros", rtol=0)
found |= {
    f"{name}, zeros": sustained(run, problem.flops)
    for name, run in runs.items()
    if run
}
if runs:
    found["FMA probe"] = sustained(fma_probe, 2 * 32 * STEPS * BLOCKS * 256)

# %% compare
for what, number, unit in (
    ("rate", 0, "TFLOP/s"),
    ("clock", 1, "MHz"),
    ("power", 2, "W"),
):
    ct.facts(
        what, {name: (values[number], unit) for name, values in found.items()}
    )
if found:
    ours_rate, _, ours_power, limit = found["final kernel"]
    rows = {"highest clock": (ct.attributes()["CLOCK_RATE"] / 1e3, "MHz")}
    rows["power limit"] = limit, "W"
    for name, (rate, _, power, _) in found.items():
        rows[f"{name}: energy of an FMA"] = (2 * power / rate, "pJ")
    rows["final kernel: zeros / random"] = (
        found["final kernel, zeros"][0] / ours_rate
    )
    rows["power at nine tenths of the probe's rate"] = (
        ours_power * 0.9 * found["FMA probe"][0] / ours_rate,
        "W",
    )
    ct.facts("what it takes", rows)
