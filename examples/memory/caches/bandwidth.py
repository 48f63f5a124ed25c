# ---
# jupyter:
#   cudatut:
#     title: {en: "Caches: the staircase of bandwidth", zh: "缓存：带宽的台阶"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       mib_in_all: [8192, 1]
#       slices_kib: [[64, 128, 192, 256, 320, 384, 448, 512, 1024, 4096], [64]]
#       rounds: [5, 1]
# ---

# %% [markdown]
# The same staircase from its other side. All SMs read, each a slice of its own,
# again and again, and no load waits for another. Once with a barrier after each
# pass: without it, some warps may be passes ahead of others, and what L1 has to hold
# at a time is then less than a slice.

# %% read
from random import Random

import numpy as np

import cudatut as ct

from cudatut.book.memory.caches.staircase import CG, PLAIN, SOURCE

mib_in_all = 8192
slices_kib = (64, 128, 192, 256, 320, 384, 448, 512, 1024, 4096)
rounds = 5
sms = ct.device().sm_count
host = ct.rng(1).integers(
    0, 1 << 32, sms * slices_kib[-1] * 256, dtype="uint32"
)
data = ct.to_device(host)
sums, spent = ct.empty((sms, 1024), "uint32"), ct.empty(sms, "int64")
read = {x: ct.Kernel(SOURCE, f"read_slices<{x}>") for x in (PLAIN, CG)}
TOGETHER = "together"
read[TOGETHER] = ct.Kernel("memory/caches/passes.cu", "read_together")
LABELS = {
    PLAIN: "plain load",
    TOGETHER: "plain load, barrier after each pass",
    CG: "__ldcg",
}


def reading(hint, slice_kib):
    vectors = 64 * slice_kib  # of 16 bytes
    passes = max(1, mib_in_all * 1024 // (sms * slice_kib))

    def launch():
        read[hint](data, vectors, passes, sums, spent, grid=sms, block=1024)

    launch.nbytes = passes * sms * slice_kib * 1024
    launch.passes = passes
    return launch


for hint, label in LABELS.items():
    launch = reading(hint, slices_kib[0])
    launch()
    part = host[: sms * slices_kib[0] * 256].reshape(sms, -1)
    total = part.sum(axis=1, dtype="uint64") * launch.passes
    found = sums.get().sum(axis=1, dtype="uint64")
    ct.check(
        (found % 2**32).astype("uint32"),
        (total % 2**32).astype("uint32"),
        name=f"sums of all slices, {label}",
    )

# %% rates
runs = {
    (hint, one): reading(hint, one) for hint in LABELS for one in slices_kib
}
how = ct.time_once_bare if ct.tool.running() else ct.time_hidden
times = ct.take_turns(runs, rounds, Random(0), how)
rate = {
    (hint, one): runs[hint, one].nbytes / np.median(some) / 1e3
    for (hint, one), some in times.items()
}
ct.series(
    "reading by working set",
    x=("working set of all SMs", "MiB"),
    y=("rate", "GB/s"),
    lines={
        label: [(sms * one / 1024, rate[hint, one]) for one in slices_kib]
        for hint, label in LABELS.items()
    },
    limit=ct.limits.bandwidth(),
)

# %% bandwidth
clock = ct.device().clock_khz / 1e6  # GHz, at most
from_l1, from_l2 = rate[PLAIN, slices_kib[0]], rate[CG, slices_kib[0]]
from_memory = rate[CG, slices_kib[-1]]
beyond = 384 if 384 in slices_kib else slices_kib[-1]  # more than L1 holds
ct.facts(
    "rates of all SMs",
    {
        "128 bytes per cycle and SM": (128 * sms * clock, "GB/s"),
        "from L1": (from_l1, "GB/s"),
        "from L2": (from_l2, "GB/s"),
        "from memory": (from_memory, "GB/s"),
        "measured limit of the memory": (ct.limits.bandwidth(), "GB/s"),
        "L1 / predicted": from_l1 / (128 * sms * clock),
        "384 KiB per SM, barrier / none": (
            rate[TOGETHER, beyond] / rate[PLAIN, beyond]
        ),
        "384 KiB per SM, barrier / L2": rate[TOGETHER, beyond] / from_l2,
    },
)
