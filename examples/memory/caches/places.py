# ---
# jupyter:
#   cudatut:
#     title: {en: "Caches: where a line lies", zh: "缓存：缓存行在哪里"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       lines: [8192, 64]
#       parts: [[0.125, 0.75], [0.001]]
#       few: [1024, 64]
#       count: [16384, 64]
#       repeats: [3, 1]
#       most_pages: [16384, 4]
# ---

# %% [markdown]
# Is L2 equally far from everywhere? One block times every single load of a ring
# that L2 holds, while all other SMs have a block that does nothing.

# %% each
import numpy as np

import cudatut as ct
from cudatut.book.memory.caches.staircase import (
    CG, LINE, SOURCE, Room, ring, steps, two_groups,
)  # fmt: skip

rng = ct.rng(0)
gpu = ct.device()
time_each = ct.Kernel(SOURCE, f"time_each<{CG}>")
lines = 8192  # as many as a launch can time
parts = (0.125, 0.75)
spent = ct.empty(lines, "uint16")
# So much shared memory that an SM has room for one block only.
shared = min(gpu.shared_per_sm // 2, gpu.shared_per_block_optin - 16384)


def timed(room, who, warm, count):
    """Cycles of each of `count` loads by block `who`."""
    how = {"grid": gpu.sm_count, "block": 1, "shared": shared}
    time_each(room.first(), warm, count, who, spent, **how)
    return spent.get()[:count].astype("float64")


rooms = {}
for part in parts:
    n = max(int(part * gpu.l2_bytes) // LINE, lines)
    rooms[part] = Room(n * LINE)
    rooms[part].link(16 * ring(n, rng))
    rooms[part].size = n
cycles = {
    part: timed(room, 0, room.size, lines) for part, room in rooms.items()
}

# %% histogram
WIDE = 10


def histogram(values):
    bins = np.arange(100, 1000 + WIDE, WIDE)
    count, edges = np.histogram(values, bins)
    share = 100 * count / len(values)
    return [(float(x), float(y)) for x, y in zip(edges, share)]


ct.series(
    "single loads from L2",
    x=("latency", "cycles"),
    y=("share of the loads", "%"),
    lines={
        f"ring of {part:g} of L2": histogram(values)
        for part, values in cycles.items()
    },
)

# %% [markdown]
# Two groups? The code splits the times where two groups explain most of their
# variance. A bell curve, which has no groups, is the control.

# %% groups
rows = {}
samples = {f"ring of {part:g} of L2": values for part, values in cycles.items()}
samples["control: a bell curve"] = 300 + 50 * rng.standard_normal(lines)
for label, values in samples.items():
    limit, explained = two_groups(values)
    rows[label] = {
        "near": float(np.median(values[values <= limit])),
        "far": float(np.median(values[values > limit]))
        if values.max() > limit
        else None,
        "far, share": 100 * float(np.mean(values > limit)),
        "explained by two groups": explained,
    }
ct.table(
    "two groups of loads",
    rows,
    corner="loads",
    units={"near": "cycles", "far": "cycles", "far, share": "%"},
)

# %% [markdown]
# Whose distance is it, the line's or the SM's? Each SM in turn times the same
# lines. If two SMs find the same lines near, their times agree; if one finds near
# what the other finds far, they are opposed.

# %% from-all
few = 1024
small = Room(few * LINE)
small.link(16 * ring(few, rng))
seen = np.array([timed(small, who, few, few) for who in range(gpu.sm_count)])
again = timed(small, 0, few, few)


def agreement(a, b):
    """Correlation: 1 for the same, -1 for opposed, about 0 for neither."""
    return float(np.corrcoef(a, b)[0, 1]) if a.std() * b.std() else 0.0


found = np.array([agreement(seen[0], other) for other in seen[1:]])
ct.facts(
    "the same lines from every SM",
    {
        "SMs that agree with the first": int(np.sum(found > 0.3)),
        "SMs that are opposed to it": int(np.sum(found < -0.3)),
        "neither": int(np.sum(abs(found) <= 0.3)),
        "control: the first SM again": agreement(seen[0], again),
        "control: lines in another order": agreement(
            seen[0], rng.permutation(again)
        ),
        "fastest SM, median": (float(np.median(seen, axis=1).min()), "cycles"),
        "slowest SM, median": (float(np.median(seen, axis=1).max()), "cycles"),
    },
)
del rooms, small

# %% [markdown]
# Addresses have to be translated, and what was translated is kept in a cache of
# its own, the TLB. Rings with one line in each piece of 2 MiB need few lines and
# many translations; rings of as many lines in a row need hardly any.

# %% pages
MIB = 1 << 20
PIECE = 2 * MIB
count = 16384
repeats = 3
most_pages = 16384
pages = [
    2**k
    for k in range(15)
    if 2**k <= most_pages and 2**k * PIECE <= gpu.memory_bytes // 4
]
room = Room(pages[-1] * PIECE)
apart, in_a_row = [], []
for n in pages:
    order = ring(n, rng)
    # Each line at another place of its piece, so that none share a set.
    spread = order * (PIECE // 8) + order * 17 * 16 % (PIECE // 8)
    for curve, places in ((apart, spread), (in_a_row, 16 * order)):
        room.link(places)
        walks = [room.walk(CG, 2 * n, count)[0] for _ in range(repeats)]
        curve.append((n * PIECE, float(np.median(walks)) / count))

# %% translation
ct.series(
    "latency by how far the lines lie apart",
    x=("lines times 2 MiB", "MiB"),
    y=("latency", "cycles"),
    lines={
        "one line in each": [(x / MIB, y) for x, y in apart],
        "as many lines in a row": [(x / MIB, y) for x, y in in_a_row],
    },
)
jumps = steps(apart)
ct.facts(
    "translations",
    {
        "steps found": len(jumps),
        "first step begins at": (
            (jumps[0].holds if jumps else apart[-1][0]) / MIB,
            "MiB",
        ),
        "before": (apart[0][1], "cycles"),
        "at the end": (apart[-1][1], "cycles"),
        "at the end, lines in a row": (in_a_row[-1][1], "cycles"),
    },
)
