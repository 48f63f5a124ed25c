# ---
# jupyter:
#   cudatut:
#     title: {en: "Two elements per thread: claims", zh: "每个线程两个元素：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {n: [33554432, 16384, 1048576]}
# ---

# %% [markdown]
# What CUDATutorial says of adding while loading, tried.

# %% setup
import numpy as np
import cudatut as ct

from ladder import LADDER

n = 33_554_432
block = 256

# %% speed-up-claim
bench = LADDER.bench(["sequential", "two_per_thread"], n=n, name="the step")
before = bench["sequential"].median_us
after = bench["two_per_thread"].median_us
ct.claim(
    id="reduction-add-while-loading",
    source="CUDATutorial 09/03",
    statement={
        "en": "Adding while loading makes the sum 1.95 times as fast (758.38 us after 1475.2 us).",
        "zh": "边加载边加，求和快到原来的 1.95 倍（1475.2 us 降到 758.38 us）。",
    },
    predicted=1475.2 / 758.38,
    measured=before / after,
    unit="×",
    verdict="confirmed"
    if abs(before / after * 758.38 / 1475.2 - 1) < 0.1
    else "depends",
)

# %% grid-claim
length = 513
kernel = LADDER["two_per_thread"].compile(BLOCK=block, ELEMENT="int")
grid = (length + block - 1) // (2 * block)
out = ct.empty(grid, "int32")
ones = ct.to_device(np.ones(length, "int32"))
kernel(ones, out, length, grid=grid, block=block)
got = int(out.get().sum())
ct.claim(
    id="reduction-grid-of-two",
    source="CUDATutorial 09/03",
    statement={
        "en": "A grid of (len + bs - 1) / (2 * bs) blocks covers every length; here 513 ones in blocks of 256.",
        "zh": "(len + bs - 1) / (2 * bs) 个线程块能覆盖任意长度；这里是 513 个 1，每块 256 个线程。",
    },
    predicted=length,
    measured=got,
    verdict="confirmed" if got == length else "refuted",
)

# %% idle-claim
# Of the two-element block: 256 additions while loading, 255 in the tree, in
# 9 steps of 256 threads; counted in the chapter's cell `count`.
count = ct.Kernel(
    "reduction/idle_threads.cu", "count_additions", defines={"PER_THREAD": 2}
)
additions, rounds = ct.empty(block, "int32"), ct.empty(1, "int32")
count(additions, rounds, grid=1, block=block)
steps = int(rounds.get()[0]) + 1
share = 100 * (1 - additions.get().sum() / (block * steps))
ct.claim(
    id="reduction-idle-threads",
    source="CUDATutorial 09/03",
    statement={
        "en": "Adding while loading removes the idle threads: share of threads without an addition, over all steps.",
        "zh": "边加载边加，就不再有空闲的线程：所有步骤中没有加法可做的线程所占的比例。",
    },
    predicted=0,
    measured=round(share, 1),
    unit="%",
    verdict="confirmed" if share < 1 else "refuted",
)
