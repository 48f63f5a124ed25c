# ---
# jupyter:
#   cudatut:
#     title: {en: "Knowing your GPU: solutions", zh: "认识你的 GPU：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
#     sizes:
#       least: [0.2, 0.0]
#       most: [1.02, 1000000000.0]
# ---
# %% [markdown]
# The memory moves two bits per line of the bus and clock, a byte has eight bits, and an FMA counts as two operations.

# %% given-1
CARDS = {  # memory clock, bus, clock, multiprocessors, units of each
    "T4": (5_001_000, 256, 1_590_000, 40, 64),
    "RTX 3080": (9_501_000, 320, 1_710_000, 68, 128),
    "A100 40 GB": (1_215_000, 5120, 1_410_000, 108, 64),
}


# %% solution-1
def peaks(memory_clock, bus, clock, sms, units):
    """Peak bandwidth in GB/s and peak arithmetic in TFLOP/s."""
    bytes_per_second = 2 * memory_clock * 1e3 * bus / 8
    operations_per_second = 2 * clock * 1e3 * sms * units
    return bytes_per_second / 1e9, operations_per_second / 1e12


# %% check-1
import numpy as np
import cudatut as ct

# GB/s and TFLOP/s of the data sheets.
sheets = {"T4": (320, 8.1), "RTX 3080": (760, 29.8), "A100 40 GB": (1555, 19.5)}
for name, card in CARDS.items():
    print(name, *(f"{value:.1f}" for value in peaks(*card)))
    ct.check(
        np.array(peaks(*card)), np.array(sheets[name]), rtol=0.01, name=name
    )
gpu = ct.device()
units = 64 if gpu.compute_capability in ((7, 0), (7, 5), (8, 0)) else 128
mine = peaks(
    gpu.memory_clock_khz, gpu.bus_bits, gpu.clock_khz, gpu.sm_count, units
)
print("your GPU", *(f"{value:.1f}" for value in mine))
reached = np.array([ct.limits.bandwidth() / mine[0], ct.limits.fma() / mine[1]])
# Nothing reaches more than its peak, and a good kernel comes near it.
least = 0.2
most = 1.02
between = (reached > least) & (reached < most)
ct.check(between, np.array([True, True]), name="measured / peak")

# %% [markdown]
# Take the target apart: its kind, its digits, and the letter at the end.

# %% given-2
TARGETS = ["sm_75", "sm_80", "sm_90", "sm_90a", "compute_80", "compute_90a"]
GPUS = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]


# %% solution-2
def runs(target, capability):
    """Does code for this target run on a GPU of this capability?"""
    kind, digits = target.split("_")
    exact = digits.endswith("a")
    digits = digits.rstrip("a")
    built = (int(digits[:-1]), int(digits[-1]))
    if exact:
        return built == capability
    if kind == "sm":
        return built[0] == capability[0] and built[1] <= capability[1]
    return built <= capability


# %% check-2
import numpy as np
import cudatut as ct

wanted = {
    "sm_75": [1, 0, 0, 0, 0, 0, 0],
    "sm_80": [0, 1, 1, 1, 0, 0, 0],
    "sm_90": [0, 0, 0, 0, 1, 0, 0],
    "sm_90a": [0, 0, 0, 0, 1, 0, 0],
    "compute_80": [0, 1, 1, 1, 1, 1, 1],
    "compute_90a": [0, 0, 0, 0, 1, 0, 0],
}
for target in TARGETS:
    got = [int(runs(target, capability)) for capability in GPUS]
    ct.check(np.array(got), np.array(wanted[target]), name=target)
ct.check(np.array([runs("sm_120", (12, 0))]), np.array([True]), name="sm_120")
