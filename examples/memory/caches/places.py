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
#       most_pages: [32768, 4]
#       pieces: [4096, 4]
#       freed_mib: [256, 1]
# ---

# %% [markdown]
# Is L2 equally far from everywhere? One block times every single load of a ring
# that L2 holds, while all other SMs have a block that does nothing. Each SM in turn
# times the same lines. If two SMs find the same lines near, their times agree; if
# one finds near what the other finds far, they are opposed.

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
few = 1024
spent = ct.empty(lines, "uint16")
# So much shared memory that an SM has room for one block only.
shared = min(gpu.shared_per_sm // 2, gpu.shared_per_block_optin - 16384)


def timed(room, who, warm, count):
    """Cycles of each of `count` loads by block `who`."""
    how = {"grid": gpu.sm_count, "block": 1, "shared": shared}
    time_each(room.first(), warm, count, int(who), spent, **how)
    return spent.get()[:count].astype("float64")


small = Room(few * LINE)
small.link(16 * ring(few, rng))
seen = np.array([timed(small, who, few, few) for who in range(gpu.sm_count)])
again = timed(small, 0, few, few)

# %% from-all


def agreement(a, b):
    """Correlation: 1 for the same, -1 for opposed, about 0 for neither."""
    return float(np.corrcoef(a, b)[0, 1]) if a.std() * b.std() else 0.0


agree = np.array([agreement(seen[0], one) for one in seen])
found = agree[1:]
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

# %% [markdown]
# Has each line a side? Then the time that one group of SMs takes, less that of the
# other group, has two peaks. The code splits values where two groups explain most of
# their variance. The controls: the same with SMs divided at random, and a bell
# curve, which has no groups.

# %% groups
groups = [np.flatnonzero(agree > 0.3), np.flatnonzero(agree < -0.3)]
if not all(group.size for group in groups):
    groups = [np.arange(0, gpu.sm_count, 2), np.arange(1, gpu.sm_count, 2)]


def difference(one, other):
    return seen[other].mean(axis=0) - seen[one].mean(axis=0)


shuffled = np.array_split(rng.permutation(gpu.sm_count), 2)
rows = {}
for label, values in {
    "one SM": seen[0],
    "difference of the two groups of SMs": difference(*groups),
    "control: SMs divided at random": difference(*shuffled),
    "control: a bell curve": 300 + 50 * rng.standard_normal(lines),
}.items():
    limit, explained = two_groups(values)
    rows[label] = {
        "low": float(np.median(values[values <= limit])),
        "high": float(np.median(values[values > limit]))
        if values.max() > limit
        else None,
        "explained by two groups": explained,
    }
ct.table(
    "two groups of lines",
    rows,
    corner="values",
    units={"low": "cycles", "high": "cycles"},
)

# %% [markdown]
# An SM reads lines that only one other SM has read before it. NVIDIA writes of the
# A100 that each part of L2 caches data for the SMs that are connected to it. So we
# predict: if both SMs are of one group, the lines are near. If not, some are far the
# first time, and all are near the second time. Beside them: lines that nobody has
# read, and rings below and above half of L2, which one SM walks again and again.

# %% first
parts = (0.125, 0.75)
WIDE = 20
room = Room(lines * LINE)
room.link(16 * ring(lines, rng))
reader, *same = groups[0][:5]
samples = {}


def note(label, values):
    samples.setdefault(label, []).append(values)


for label, others in (("same group", same), ("other group", groups[1][:4])):
    for who in others:
        ct.flush_l2()
        note("nobody has read them", timed(room, who, 0, lines))
        ct.flush_l2()
        timed(room, reader, 0, lines)
        for turn in ("first time", "second time"):
            note(f"{label}, {turn}", timed(room, who, 0, lines))
for part in parts:
    n = max(int(part * gpu.l2_bytes) // LINE, lines)
    large = Room(n * LINE)
    large.link(16 * ring(n, rng))
    note(f"ring of {part:g} of L2", timed(large, reader, 3 * n, lines))
samples = {label: np.concatenate(some) for label, some in samples.items()}
# Near: as nearly all loads of the lines that an SM of this group has read.
limit = 1.25 * float(np.percentile(samples["same group, second time"], 90))
ct.table(
    "loads of lines that another SM has read",
    {
        label: {
            "p10": float(np.percentile(values, 10)),
            "median": float(np.median(values)),
            "p90": float(np.percentile(values, 90)),
            "not near": 100 * float(np.mean(values > limit)),
        }
        for label, values in samples.items()
        if label != "same group, second time"  # that is what near means
    },
    corner="lines",
    units={
        "p10": "cycles",
        "median": "cycles",
        "p90": "cycles",
        "not near": "%",
    },
)

# %% far
across = samples["other group, first time"]
ct.facts(
    "near and far",
    {
        "near is a load of at most": (limit, "cycles"),
        "across, first time, near": (
            float(np.median(across[across <= limit]))
            if across.min() <= limit
            else 0.0,
            "cycles",
        ),
        "across, first time, others": (
            float(np.median(across[across > limit]))
            if across.max() > limit
            else 0.0,
            "cycles",
        ),
        "explained by two groups": two_groups(across)[1],
    },
)

# %% histogram


def histogram(values):
    bins = np.arange(200, 1000 + WIDE, WIDE)
    count, edges = np.histogram(values, bins)
    share = 100 * count / len(values)
    return [(float(x), float(y)) for x, y in zip(edges, share)]


ct.series(
    "single loads",
    x=("latency", "cycles"),
    y=("share of the loads", "%"),
    lines={
        label: histogram(values)
        for label, values in samples.items()
        if label != "same group, second time"
    },
)
del room, small, large

# %% [markdown]
# Addresses have to be translated, and what was translated is kept in a cache of
# its own, the TLB. Rings with one line in each piece of 2 MiB need few lines and
# many translations; rings of as many lines in a row need hardly any.

# %% pages
MIB = 1 << 20
PIECE = 2 * MIB
count = 16384
repeats = 3
most_pages = 32768
most = min(most_pages, int(0.4 * gpu.memory_bytes) // PIECE)
pages = sorted({min(2**k, most) for k in range(16)})
room = Room(most * PIECE)
apart, in_a_row = [], []


def spread(order):
    """One place in each piece, not the same in all: so none share a set."""
    return order * (PIECE // 8) + order * 17 * 16 % (PIECE // 8)


for n in pages:
    order = ring(n, rng)
    for curve, places in ((apart, spread(order)), (in_a_row, 16 * order)):
        room.link(places)
        loads = max(n, count)
        walks = [room.walk(CG, 2 * n, loads)[0] for _ in range(repeats)]
        curve.append((n * PIECE, float(np.median(walks)) / loads))

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
        "largest reach": (apart[-1][0] / 1024 / MIB, "GiB"),
        "at the end": (apart[-1][1], "cycles"),
        "at the end, lines in a row": (in_a_row[-1][1], "cycles"),
        "one line in each / lines in a row": apart[-1][1] / in_a_row[-1][1],
    },
)

# %% [markdown]
# The other way: make the GPU forget translations. Freeing an allocation takes its
# translations away, and perhaps all others too. L2 keeps the data. So if the first
# walk after it has slow loads, these are translations that were made anew. The
# controls: the walk before, the one after, and as many lines in a row.

# %% fresh
import pycuda.driver as cuda

pieces = 4096
freed_mib = 256
walked = min(pieces, most)
rows = {}
for label, places in {
    "one line in each": spread(np.arange(walked)),
    "as many lines in a row": 16 * np.arange(walked),
}.items():
    room.link(places)
    timed(room, 0, 2 * walked, walked)  # L2 and the TLB know them
    walks = {"walk before it": timed(room, 0, 0, walked)}
    cuda.mem_alloc(freed_mib * MIB).free()
    walks["first walk after it"] = timed(room, 0, 0, walked)
    walks["second walk after it"] = timed(room, 0, 0, walked)
    usual = float(np.median(walks["walk before it"]))
    for turn, values in walks.items():
        slow = np.flatnonzero(values > 1.5 * usual)
        rows[f"{label}, {turn}"] = {
            "median": float(np.median(values)),
            "slow loads": len(slow),
            "such a load": float(np.median(values[slow]))
            if len(slow)
            else None,
            "from one to the next": float(np.median(np.diff(slow)))
            * PIECE
            / MIB
            if len(slow) > 1 and label == "one line in each"
            else None,
        }
ct.table(
    "loads before and after an allocation was freed",
    rows,
    corner="lines",
    units={
        "median": "cycles",
        "such a load": "cycles",
        "from one to the next": "MiB",
    },
)

# %% walks
ct.facts(
    "walks before and after an allocation was freed",
    {
        "loads of a walk": walked,
        "pieces of 2 MiB": (walked * PIECE / 1024 / MIB, "GiB"),
        "allocation that was freed": (freed_mib, "MiB"),
    },
)
