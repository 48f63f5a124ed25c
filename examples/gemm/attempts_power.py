# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel: watts", zh: "通向最终 kernel 的路：功率"}
#     requires: sm_80
#     sizes: {side: [8192, 136]}
# ---

# %% [markdown]
# The final kernel and cuBLAS, over and over for about a second, while
# nvidia-smi reads the GPU's clock and power: with random matrices, and with
# zeros, for which the instructions are the same.

# %% setup
import statistics
import subprocess
import time

import pycuda.driver as cuda
import sgemm
from ladder import Gemm

import cudatut as ct

side = 8192
SECONDS = 0.9
gpu = ct.device()
problem = Gemm(side, side, side)
ours = sgemm.prepare(problem.a, problem.b, problem.c)

# %% check
ct.poison(problem.c)
ours()
problem.compare(f"n = {side}")


# %% watch
def watched():
    """nvidia-smi, which prints this GPU's clock in MHz, its power and the
    limit of it in watts ten times a second."""
    command = ["nvidia-smi", "-i", cuda.Device(0).pci_bus_id(), "-lms", "100"]
    command += [
        "--query-gpu=clocks.sm,power.draw.instant,power.limit",
        "--format=csv,noheader,nounits",
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def sustained(launch, flops):
    """TFLOP/s, MHz, watts and their limit while the GPU does nothing else,
    medians of the second half."""
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
if found:
    ct.table(
        "for about a second",
        {
            name: {
                "rate": rate,
                "clock": mhz,
                "power": watts,
                "energy of an FMA": 2 * watts / rate,
            }
            for name, (rate, mhz, watts, _) in found.items()
        },
        units={
            "rate": "TFLOP/s",
            "clock": "MHz",
            "power": "W",
            "energy of an FMA": "pJ",
        },
    )
    wanted = 0.9 * found["FMA probe"][0]  # TFLOP/s
    rows = {
        "highest clock": (ct.attributes()["CLOCK_RATE"] / 1e3, "MHz"),
        "power limit": (found["final kernel"][3], "W"),
    }
    for name in runs:
        if name in found:
            rate, _, watts, _ = found[name]
            rows[f"{name}: power at nine tenths of the probe's rate"] = (
                watts * wanted / rate,
                "W",
            )
    ct.facts("what it takes", rows)
