# ---
# jupyter:
#   cudatut:
#     title: {en: "Caches: what stays in L2", zh: "缓存：什么留在 L2 里"}
#     requires: sm_80
#     timeout_s: 180
#     sizes:
#       hot_share: [0.5, 0.001]
#       stream_caches: [10, 0.01]
#       rounds: [9, 1]
#       loads: [8192, 64]
# ---

# %% [markdown]
# A hot array that fits into L2, and a stream of other data that does not. How much
# of the hot array is still there after the stream? A ring through its lines tells
# by its latency.

# %% setup
import random

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.caches.staircase import (
    CG, CS, LINE, SOURCE, Room, ring,
)  # fmt: skip
from cudatut.book.memory.caches.window import Window

gpu = ct.device()
sms = gpu.sm_count
step = 16 * 1024 * sms  # 16 bytes for each of 1024 threads on each SM
window = Window()
hot_share = 0.5  # of what may be set aside
stream_caches = 10
rounds = 9
loads = 8192


def array(nbytes, seed):
    """Random words, as many as all SMs read alike."""
    words = max(1, int(nbytes) // step) * step // 8
    host = ct.rng(seed).integers(0, 1 << 62, words, dtype="int64")
    return ct.to_device(host)


hot = array(hot_share * window.most, 1)
other = array(stream_caches * gpu.l2_bytes, 2)
elsewhere = array(hot_share * window.most, 3)
room = Room(words=hot)
lines = hot.nbytes // LINE
room.link(16 * ring(lines, ct.rng(0)))
sums, spent = ct.empty((sms, 1024), "uint32"), ct.empty(sms, "int64")
slices = {x: ct.Kernel(SOURCE, f"read_slices<{x}>") for x in (CG, CS)}
FIRST, LAST = range(2)  # as policy.cu numbers them
policies = {
    x: ct.Kernel("memory/caches/policy.cu", f"read_with_policy<{x}>")
    for x in (FIRST, LAST)
}


def read(data, hint=CG, policy=None, stream=None):
    """All SMs read an array once, each a slice."""
    vectors, words = data.nbytes // 16 // sms, data.view("uint32")
    how = {"grid": sms, "block": 1024, "stream": stream}
    if policy is None:
        slices[hint](words, vectors, 1, sums, spent, **how)
    else:
        policies[policy](words, vectors, sums, **how)


# %% check
words = hot.get().view("uint32").reshape(sms, -1, 1024, 4)
total = (words.sum(axis=(1, 3), dtype="uint64") % 2**32).astype("uint32")
for name, keywords in {
    "__ldcg": {},
    "__ldcs": {"hint": CS},
    "evict_first": {"policy": FIRST},
    "evict_last": {"policy": LAST},
}.items():
    ct.poison(sums)
    read(hot, **keywords)
    ct.check(sums, total, name=f"sums of the hot array, {name}")

# %% [markdown]
# One round: all SMs read the hot array, then the stream; then one thread walks
# through lines of the hot array. The window lies on the PyCUDA stream, so it holds
# for all of it. In the end everything is as it was before.

# %% ways
queue = cuda.Stream()
order = random.Random(0)


def latency(first=None, hot_policy=None, streamed=True, **of_stream):
    """Cycles of a load from the hot array; first: what the window is on."""
    window.reset()
    if first is not None:
        window.put(queue, first)
    try:
        read(hot, policy=hot_policy, stream=queue)
        if streamed:
            read(other, stream=queue, **of_stream)
        start = order.randrange(lines)
        found = room.walk(CG, 0, loads, start=start, stream=queue)
    finally:
        window.clear(queue)
    return float(found[0] / loads)


ways = {
    "no stream": {"streamed": False},
    "nothing": {},
    "window": {"first": hot},
    "control: window elsewhere": {"first": elsewhere},
    "stream by __ldcs": {"hint": CS},
    "stream by evict_first": {"policy": FIRST},
    "hot array by evict_last": {"hot_policy": LAST},
}
unkept = "control: window, nothing set aside"
times = {name: [] for name in [*ways, unkept]}
try:
    window.set_aside(window.most)
    names = list(ways)
    for _ in range(rounds):
        order.shuffle(names)
        for name in names:
            times[name].append(latency(**ways[name]))
    window.set_aside(0)
    for _ in range(rounds):
        times[unkept].append(latency(first=hot))
finally:
    window.set_aside(0)
    window.reset()

# %% kept
median = {name: float(np.median(some)) for name, some in times.items()}
here, gone = median["no stream"], median["nothing"]
rows = {}
for name, some in times.items():
    p20, p80 = (float(x) for x in np.percentile(some, (20, 80)))
    share = 100 * (gone - median[name]) / (gone - here) if gone > here else 0.0
    rows[name] = {
        "latency": median[name],
        "p20": p20,
        "p80": p80,
        "kept": share,
    }
ct.table(
    "the hot array after a stream",
    rows,
    corner="what keeps it",
    units={"latency": "cycles", "p20": "cycles", "p80": "cycles", "kept": "%"},
)

# %% sizes
MIB = 1 << 20
ct.facts(
    "sizes",
    {
        "L2 as the driver says": (gpu.l2_bytes / MIB, "MiB"),
        "may be set aside, at most": (window.most / MIB, "MiB"),
        "hot array": (hot.nbytes / MIB, "MiB"),
        "stream": (other.nbytes / MIB, "MiB"),
        "gone / here": gone / here,
    },
)
