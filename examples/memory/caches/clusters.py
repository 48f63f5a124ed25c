# ---
# jupyter:
#   cudatut:
#     title: {en: "Caches: another block's shared memory", zh: "缓存：别的线程块的共享内存"}
#     requires: sm_90
#     timeout_s: 120
#     sizes:
#       count: [16384, 64]
#       passes: [2000, 2]
#       clusters: [[2, 4, 8], [2]]
#       repeats: [5, 1]
# ---

# %% [markdown]
# A ring in the shared memory of another block of the cluster, beside one in its
# own, and one in L2.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.memory.caches.staircase import (
    CG, LINE, PLAIN, SOURCE, Room, ring,
)  # fmt: skip

CU = "memory/caches/clusters.cu"
WORDS, VECTORS = 1024, 4096  # as in clusters.cu
count = 16384
passes = 2000
clusters = (2, 4, 8)
repeats = 5
order = ring(WORDS, ct.rng(0))
offsets = np.empty(WORDS, "uint32")
offsets[order] = 4 * np.roll(order, -1)  # of each word: where the next one is
# So much shared memory that each block has an SM of its own.
alone = ct.device().shared_per_sm // 2
d_offsets, out = ct.to_device(offsets), ct.empty(2, "int64")


def kernel(name, clustered, cluster):
    instance = f"{name}<{'true' if clustered else 'false'}>"
    return ct.Kernel(CU, instance, defines={"CLUSTER": cluster})


# %% latency
def chased(cluster, target=None):
    """Cycles of a load from block `target`, or of an ordinary one."""
    chase, found = kernel("chase_shared", target is not None, cluster), []
    for _ in range(repeats):
        how = {"grid": cluster, "block": 256, "shared": alone}
        chase(d_offsets, count, target or 0, out, **how)
        cycles, end = out.get()
        assert end == 4 * order[count % WORDS]
        found.append(cycles / count)
    return float(np.median(found))


largest = clusters[-1]
latency = {"own shared memory": chased(largest)}
latency["own, by the address of the cluster"] = chased(largest, 0)
for cluster in clusters:
    others = [chased(cluster, one) for one in range(1, cluster)]
    latency[f"other block, cluster of {cluster}"] = float(np.median(others))
lines = 4 * WORDS * 4  # a ring that L2 holds
room = Room(lines * LINE)
room.link(16 * ring(lines, ct.rng(1)))
walks = [room.walk(CG, lines, count)[0] / count for _ in range(repeats)]
latency["L2"] = float(np.median(walks))

# %% [markdown]
# Then all blocks read at once: 64 KB of their own, of the block beside, or of L2.
# Each block counts its cycles, so it does not matter how many run at a time.

# %% check-read
grid = ct.device().sm_count // largest * largest
sums, spent = ct.empty((grid, 1024), "uint32"), ct.empty(grid, "int64")


def reading(cluster, shift=None):
    """A launch in which each block reads the one `shift` further."""
    read = kernel("read_other", shift is not None, cluster)
    how = {"grid": grid, "block": 1024, "shared": alone}
    return lambda: read(shift or 0, passes, sums, spent, **how)


first = np.arange(1024)[:, None] + 32 * np.arange(passes)
i = (4 * (first % 1024) + 6 * 1024).sum(axis=1)  # in all passes
for cluster in clusters:
    for shift, whose in (
        (None, "own"),
        (0, "own by cluster"),
        (1, "other block"),
    ):
        ct.poison(sums)
        reading(cluster, shift)()
        rank = (np.arange(grid)[:, None] + (shift or 0)) % cluster
        total = passes * (4 * rank + 28) + 4 * i
        ct.check(
            sums,
            (total % 2**32).astype("uint32"),
            name=f"sums, cluster of {cluster}, {whose}",
        )

# %% bandwidth
host = ct.rng(2).integers(0, 1 << 32, grid * VECTORS * 4, dtype="uint32")
data = ct.to_device(host)
slices = {x: ct.Kernel(SOURCE, f"read_slices<{x}>") for x in (PLAIN, CG)}


def from_cache(hint):
    how = {"grid": grid, "block": 1024}
    return lambda: slices[hint](data, VECTORS, passes, sums, spent, **how)


def per_cycle(launch):
    """Bytes that an SM reads in a cycle, the median of all blocks."""
    launch()
    found = []
    for _ in range(repeats):
        launch()
        found.append(np.median(spent.get()))
    return float(16 * VECTORS * passes / np.median(found))


rate = {
    "own shared memory": per_cycle(reading(largest)),
    "own, by the address of the cluster": per_cycle(reading(largest, 0)),
}
for cluster in clusters:
    label = f"other block, cluster of {cluster}"
    rate[label] = per_cycle(reading(cluster, 1))
rate["L1"] = per_cycle(from_cache(PLAIN))
rate["L2"] = per_cycle(from_cache(CG))

# %% levels
rows = {
    name: {"latency": latency.get(name), "rate": rate[name]} for name in rate
}
ct.table(
    "another block's shared memory, and what lies beside it",
    rows,
    corner="from",
    units={"latency": "cycles", "rate": "bytes per cycle and SM"},
)

# %% compare
other = f"other block, cluster of {largest}"
ct.facts(
    "another block's shared memory",
    {
        "latency, other / own": latency[other] / latency["own shared memory"],
        "latency, L2 / other": latency["L2"] / latency[other],
        "rate, own / other": rate["own shared memory"] / rate[other],
        "rate, other / L2": rate[other] / rate["L2"],
        "of the predicted 128 bytes, own": (
            100 * rate["own shared memory"] / 128,
            "%",
        ),
    },
)
