# ---
# jupyter:
#   cudatut:
#     title: {en: "Caches: claims", zh: "缓存：说法的检验"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       count: [16384, 64]
#       in_caches: [8, 0.001]
#       lines: [8192, 64]
#       gib_in_all: [8, 0.001]
#       repeats: [5, 1]
# ---

# %% [markdown]
# How far apart are the levels, and is there one L2 for all?

# %% latency
import random

import numpy as np

import cudatut as ct
from cudatut.book.memory.caches.staircase import (
    CG, LINE, PLAIN, SOURCE, Room, ring,
)  # fmt: skip

gpu, rng = ct.device(), ct.rng(0)
count = 16384
in_caches = 8  # the ring through memory, in L2 caches
repeats = 5


def latency(nbytes, hint):
    """Cycles of a load of a ring through so many bytes."""
    n = int(nbytes) // LINE
    room = Room(n * LINE)
    room.link(16 * ring(n, rng))
    warm = n if nbytes < gpu.l2_bytes else 0
    ct.flush_l2()  # what linked the ring has left
    walks = [
        room.walk(hint, warm, count, start=int(rng.integers(n)))[0]
        for _ in range(repeats)
    ]
    return float(np.median(walks)) / count


cycles = {
    "L1": latency(16 << 10, PLAIN),
    "L2": latency(gpu.l2_bytes // 8, CG),
    "memory": latency(in_caches * gpu.l2_bytes, CG),
}
again = latency(gpu.l2_bytes // 16, CG)
l2_l1, memory_l2 = cycles["L2"] / cycles["L1"], cycles["memory"] / cycles["L2"]
ct.facts("latencies", {name: (x, "cycles") for name, x in cycles.items()})

# %% orders-latency
ct.claim(
    id="latency-orders-of-magnitude",
    source="Learn CUDA Programming, notes",
    place={
        "en": "section Memory Hierarchy, the box 'Important'",
        "zh": "Memory Hierarchy 一节，标着 Important 的方框",
    },
    form="said",
    statement={
        "en": "The latencies of the memories differ by orders of magnitude. The "
        "smaller of two factors, from L1 to L2 and from L2 to memory, would have "
        "to be more than 10:",
        "zh": "各级内存的延迟相差若干个数量级。从 L1 到 L2、从 L2 到显存，两个倍数"
        "中较小的一个应当大于 10：",
    },
    expected=10,
    measured=min(l2_l1, memory_l2),
    rule="above",
    unit="×",
    control=(
        {
            "en": "L2 with two sizes of the ring",
            "zh": "同样在 L2 里，环的大小不同",
        },
        cycles["L2"] / again,
        (0.9, 1.1),
    ),
)

# %% slowest
ct.claim(
    id="global-memory-slowest",
    source="CUDA slides 2.7",
    place={
        "en": "slide 'Shared memory vs Global memory'",
        "zh": "“Shared memory vs Global memory”那一页",
    },
    form="said",
    statement={
        "en": "Shared memory and the caches are on the chip, and global memory "
        "has the highest latency. A load from memory over one from L2:",
        "zh": "共享内存和缓存在片上，全局内存的延迟最高。从显存读取与从 L2 "
        "读取之比：",
    },
    expected=1,
    measured=memory_l2,
    rule="above",
    unit="×",
    control=(
        {
            "en": "an array in global memory that L1 holds, over L2",
            "zh": "同样是全局内存里的数组，放得进 L1 时与 L2 之比",
        },
        1 / l2_l1,
        (0.01, 0.9),
    ),
)

# %% rates
gib_in_all = 8
sms = gpu.sm_count
slices_kib = {"L1": 64, "L2": 64, "memory": 4096}
words = sms * slices_kib["memory"] * 256
data = ct.to_device(rng.integers(0, 1 << 32, words, dtype="uint32"))
sums, spent = ct.empty((sms, 1024), "uint32"), ct.empty(sms, "int64")
read = {x: ct.Kernel(SOURCE, f"read_slices<{x}>") for x in (PLAIN, CG)}


def reading(level):
    kernel = read[PLAIN if level == "L1" else CG]
    kib = slices_kib[level]
    passes = max(1, int(gib_in_all * (1 << 20)) // (sms * kib))

    def launch():
        kernel(data, 64 * kib, passes, sums, spent, grid=sms, block=1024)

    launch.nbytes = passes * sms * kib * 1024
    return launch


runs = {level: reading(level) for level in slices_kib}
runs["L2 again"] = reading("L2")
how = ct.time_once_bare if ct.tool.running() else ct.time_hidden
times = ct.take_turns(runs, 2 * repeats, random.Random(0), how)
rates = {
    level: float(runs[level].nbytes / np.median(some) / 1e3)
    for level, some in times.items()
}
ct.facts("rates", {level: (rate, "GB/s") for level, rate in rates.items()})

# %% orders-bandwidth
ct.claim(
    id="bandwidth-orders-of-magnitude",
    source="Learn CUDA Programming, notes",
    place={
        "en": "section Memory Hierarchy, the box 'Important'",
        "zh": "Memory Hierarchy 一节，标着 Important 的方框",
    },
    form="said",
    statement={
        "en": "The bandwidths of the memories differ by orders of magnitude. The "
        "smaller of two factors, from memory to L2 and from L2 to L1, would have "
        "to be more than 10:",
        "zh": "各级内存的带宽相差若干个数量级。从显存到 L2、从 L2 到 L1，两个倍数"
        "中较小的一个应当大于 10：",
    },
    expected=10,
    measured=min(rates["L1"] / rates["L2"], rates["L2"] / rates["memory"]),
    rule="above",
    unit="×",
    control=(
        {"en": "L2 beside itself", "zh": "L2 与自己相比"},
        rates["L2"] / rates["L2 again"],
        (0.97, 1.03),
    ),
)

# %% [markdown]
# One block reads some lines, and blocks on other SMs read them after it. Do these
# find them in L2? A load counts as one from L2 if it is faster than 99 of 100 loads
# of lines that nobody has read. The control repeats these.

# %% one-l2
lines = 8192
spent_each = ct.empty(lines, "uint16")
time_each = ct.Kernel(SOURCE, f"time_each<{CG}>")
shared = min(gpu.shared_per_sm // 2, gpu.shared_per_block_optin - 16384)
room = Room(lines * LINE)
room.link(16 * ring(lines, rng))


def timed(who, warm=0):
    how = {"grid": sms, "block": 1, "shared": shared}
    time_each(room.first(), warm, lines, who, spent_each, **how)
    return spent_each.get().astype("float64")


others = range(1, sms, max(1, sms // 8))
found, unread = [], []
for who in others:
    ct.flush_l2()
    limit = np.percentile(timed(who), 1)
    ct.flush_l2()
    unread.append(100 * np.mean(timed(who) < limit))
    ct.flush_l2()
    timed(0)
    found.append(100 * np.mean(timed(who) < limit))
ct.claim(
    id="one-l2-for-all",
    source="SGEMM worklog (Chinese translation)",
    place={"en": "note 61", "zh": "注 61"},
    form="said",
    statement={
        "en": "L2 is a cache of global memory, and the whole GPU has only one. Of "
        "the lines that one SM has read, another SM would have to find more than "
        "90 % in it:",
        "zh": "L2 是全局内存的缓存，整块 GPU 只有一个。一个 SM 读过的缓存行，另一个 "
        "SM 应当有 90% 以上能在其中找到：",
    },
    expected=90,
    measured=float(np.median(found)),
    rule="above",
    unit="%",
    control=(
        {"en": "lines that nobody has read", "zh": "谁也没有读过的缓存行"},
        float(np.median(unread)),
        (0.0, 10.0),
    ),
)
