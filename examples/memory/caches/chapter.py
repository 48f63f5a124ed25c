# ---
# jupyter:
#   cudatut:
#     title: {en: "Caches: the staircase of latency", zh: "缓存：延迟的台阶"}
#     requires: sm_75
#     timeout_s: 300
#     sizes:
#       kib: [[16, 128, 1024, 8192, 32768, 262144], [1, 4]]
#       count: [16384, 64]
#       finest: [4, 1]
#       octaves: [[12, 32], [12, 14]]
#       most_nodes: [2097152, 64]
#       repeats: [3, 1]
# ---

# %% [markdown]
# One thread walks a ring of addresses: each load gives the address of the next.
# So nothing can overlap, and the time of a load is its latency. The ring goes
# through all cache lines of a working set, in random order.

# %% program
import numpy as np

import cudatut as ct

source = """
__global__ void link_ring(long long *room, const int *order, int n) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  int next = k + 1 < n ? k + 1 : 0;
  // One place in each line of 128 bytes, which is 16 words.
  room[16LL * order[k]] = (long long)(room + 16LL * order[next]);
}

__global__ void chase(const long long *at, int warm, int count,
                      long long *out) {
  for (int i = 0; i < warm; ++i) at = (const long long *)*at;
  long long start = clock64();
  for (int i = 0; i < count; ++i) at = (const long long *)*at;
  out[0] = clock64() - start;
  out[1] = (long long)at;  // used, so the compiler keeps the loads
}
"""
link_ring = ct.Kernel(source, "link_ring")
chase = ct.Kernel(source, "chase")
kib = (16, 128, 1024, 8192, 32768, 262144)
count = 16384
rng, out = ct.rng(0), ct.empty(2, "int64")
room = ct.empty(128 * max(kib), "int64")


def latency(nbytes):
    """Cycles of a load that goes through nbytes in random order."""
    n = nbytes // 128
    order = np.concatenate([[0], 1 + rng.permutation(n - 1)])
    d_order = ct.to_device(order.astype("int32"))
    link_ring(room, d_order, n, grid=ct.cdiv(n, 256), block=256)
    chase(room, n, count, out, grid=1, block=1)  # first one whole round
    cycles, end = out.get()
    assert end == int(room.gpudata) + 128 * order[count % n]
    return cycles / count


measured = {}
for size in kib:
    cycles = latency(1024 * size)
    print(f"{size:8} KiB {cycles:8.1f} cycles")
    measured[f"{size} KiB"] = (float(cycles), "cycles")
ct.yours("memory/caches#program", measured)

# %% [markdown]
# Is it a ring? After as many loads as it has places it is back at the first one,
# and not before; and the way there leads through each place once.

# %% check
from cudatut.book.memory.caches.staircase import (
    CG, LINE, PLAIN, Room, at, level, ring, steps,
)  # fmt: skip

small = Room(1 << 16)
for n in (1, 2, 33, 100):
    places = 16 * ring(n, rng)
    small.link(places)
    walked = [small.walk(PLAIN, 0, k)[2] for k in range(1, n + 1)]
    expected = [small.address(k) for k in range(1, n + 1)]
    ct.check(np.array(walked), np.array(expected), name=f"ring of {n}")
    ct.check(np.sort(walked), np.sort(expected), name=f"ring of {n}, places")

# %% [markdown]
# The same at many sizes, four to each doubling; and once more with loads that
# pass by the L1 cache, as `__ldcg` does.

# %% sweep
octaves = (12, 32)
finest = 4
most_nodes = 2097152
repeats = 3
l2 = ct.device().l2_bytes
sizes = [
    2 ** (k / finest)
    for k in range(finest * octaves[0], finest * octaves[1] + 1)
]
large = Room(1 << octaves[1])


def walks(nbytes, hints, shared=0):
    """For each way to load: cycles and nanoseconds of a load."""
    n = int(nbytes // LINE)
    apart = 16 * ct.cdiv(n, most_nodes)  # words; more where it is very large
    n = min(n, most_nodes, large.words.size // apart)
    large.link(apart * ring(n, rng))
    # Three rounds first; but of far too many lines none are there still.
    warm = 3 * n if nbytes <= 2 * l2 else min(n, count)
    if nbytes > 2 * l2:
        ct.flush_l2()  # or those that were linked last are there
    again = repeats if nbytes < l2 / 2 else 1
    found, start = [], 0
    for hint in hints:
        runs = []
        for _ in range(again):
            runs.append(large.walk(hint, warm, count, shared, start)[:2])
            start += warm + count  # the next goes on where this one ended
            warm = min(3 * n, count)  # L2 is as it was, L1 is empty again
        found.append(np.median(runs, axis=0) / count)
    return found


through, past, ns = [], [], []
for size in sizes:
    (a, _), (b, b_ns) = walks(size, (PLAIN, CG))
    through.append((size, float(a)))
    past.append((size, float(b)))
    ns.append((size, float(b_ns)))

# %% staircase
MIB = 1 << 20
ct.series(
    "latency by working set",
    x=("working set", "MiB"),
    y=("latency", "cycles"),
    lines={
        "plain load": [(x / MIB, y) for x, y in through],
        "__ldcg": [(x / MIB, y) for x, y in past],
    },
)


# %% [markdown]
# Code finds the steps. One that loads past L1 do not have is the end of L1. Of
# the others, those below one and a half times what the driver says of L2 are L2's.


# %% steps
def name(step):
    if not any(step.holds / 2 < x.holds < 2 * step.holds for x in steps(past)):
        return "L1"
    return "L2" if step.holds < 1.5 * l2 else "beyond L2"


rows = {}
for step in steps(through):
    what = name(step)
    what += f" ({1 + sum(row.startswith(what) for row in rows)})"
    rows[what] = {
        "holds": step.holds / MIB,
        "ends": step.ends / MIB,
        "before": step.below,
        "after": step.above,
    }
columns = {"holds": "MiB", "ends": "MiB", "before": "cycles", "after": "cycles"}
ct.table(
    "steps that the code found",
    rows or {"none": dict.fromkeys(columns, 0.0)},
    corner="step",
    units=columns,
)

# %% found
of_l1 = next((x for x in steps(through) if name(x) == "L1"), None)
of_l2 = next((x for x in steps(past) if x.holds < 1.5 * l2), None)
l1_holds = of_l1.holds if of_l1 else sizes[0]
l2_holds = of_l2.holds if of_l2 else sizes[0]
in_l1 = level(through, 0, l1_holds / 2)
in_l2 = level(past, 0, l2_holds / 2)
in_memory = level(past, 8 * l2, 16 * l2)
ct.facts(
    "found, and what the driver says",
    {
        "L1 holds": (l1_holds / 1024, "KiB"),
        "L2 holds": (l2_holds / MIB, "MiB"),
        "L2 as the driver says": (l2 / MIB, "MiB"),
        "L2 holds / as the driver says": l2_holds / l2,
        "in L1": (in_l1, "cycles"),
        "in L2": (in_l2, "cycles"),
        "in memory": (in_memory, "cycles"),
        "in memory, time": (level(ns, 8 * l2, 16 * l2) / 1e3, "us"),
        "L2 / L1": in_l2 / in_l1,
        "memory / L2": in_memory / in_l2,
        "largest working set": (through[-1][1], "cycles"),
    },
)


# %% [markdown]
# How steep is a step? A cache that drops the line used longest ago keeps nothing
# of a ring that is a little too long. One that drops a random line keeps a share
# h of it with h = exp(-r (1 - h)), where r is the size of the ring in caches.


# %% slope
def random_share(r):
    """Hits on a ring of r times a cache that drops random lines."""
    h = 0.0
    for _ in range(200):
        h = np.exp(-r * (1 - h))
    return float(h)


def hits(curve, size, hit, miss):
    share = (miss - at(curve, 0.99 * size)) / (miss - hit)
    return float(min(max(share, 0), 1))


if rows and not ct.tool.running():
    ct.table(
        "hits on a ring that is too long",
        {
            f"{what}, {r:.1f} x": {
                "measured": hits(through, r * holds, hit, miss),
                "drops a random line": random_share(r),
                "drops the oldest": 0.0,
            }
            for what, holds, hit, miss in (
                (what, row["holds"] * MIB, row["before"], row["after"])
                for what, row in rows.items()
            )
            for r in (2**0.5, 2)
        },
        corner="step",
    )

# %% [markdown]
# L1 and shared memory are one memory. The same rings again, by a block that asks
# for as much shared memory as it can have.

# %% carve
most_shared = ct.device().shared_per_block_optin
beside = [
    (x, float(walks(x, [PLAIN], most_shared)[0][0])) for x in sizes if x <= MIB
]
left = next(iter(steps(beside)), None)
# From NVIDIA's tuning guides: L1 and shared memory together, in KiB.
both = {(7, 5): 96, (8, 0): 192, (8, 6): 128, (8, 9): 128, (9, 0): 256}
whole = both.get(ct.device().compute_capability, 0)
ct.facts(
    "L1 beside shared memory",
    {
        "L1 and shared memory together": (whole, "KiB"),
        "block without shared memory, L1 holds": (l1_holds / 1024, "KiB"),
        "shared memory of an SM": (ct.device().shared_per_sm / 1024, "KiB"),
        "that leaves": (
            max(whole - ct.device().shared_per_sm // 1024, 0),
            "KiB",
        ),
        "block with all of it, L1 holds": (
            (left.holds if left else 0) / 1024,
            "KiB",
        ),
    },
)
