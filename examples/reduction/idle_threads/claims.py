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
from dataclasses import replace

import numpy as np
import cudatut as ct

from cudatut.book.reduction.ladder.ladder import LADDER

SOURCE = "CUDATutorial 09/03"
n = 33_554_432
block = 256

# %% speed-up-claim
SEQUENTIAL = LADDER["sequential"]
bench = LADDER.bench(
    [SEQUENTIAL, replace(SEQUENTIAL, name="again"), "two_per_thread"],
    n=n,
    name="the step",
)
before = bench["sequential"].median_us
ct.claim(
    id="reduction-add-while-loading",
    source=SOURCE,
    place={"en": "the table in section 2", "zh": "第 2 节的表格"},
    form="printed",
    statement={
        "en": "Adding while loading makes the sum 1.95 times as fast "
        "(758.38 us after 1475.2 us).",
        "zh": "边加载边加，求和快到原来的 1.95 倍（1475.2 us 降到 758.38 us）。",
    },
    expected=1475.2 / 758.38,
    measured=before / bench["two_per_thread"].median_us,
    unit="×",
    rule="gain",
    control=(
        {
            "en": "sequential addressing against itself",
            "zh": "连续寻址与它自己相比",
        },
        before / bench["again"].median_us,
        (0.97, 1.03),
    ),
)

# %% [markdown]
# The additions of a full block, counted by its loops: adding while loading is
# one step more, in which every thread adds.

# %% idle-claim
FILE = "reduction/idle_threads/idle_threads.cu"


def idle(per_thread, threads=block):
    """Percent of threads without an addition, over all steps of a block."""
    count = ct.Kernel(
        FILE, "count_additions", defines={"PER_THREAD": per_thread}
    )
    additions, rounds = ct.empty(threads, "int32"), ct.empty(1, "int32")
    count(additions, rounds, grid=1, block=threads)
    added, steps = additions.get(), int(rounds.get()[0]) + per_thread - 1
    elements = per_thread * threads
    name = f"additions of {elements} elements"
    ct.check(added.sum(keepdims=True), np.array([elements - 1]), name=name)
    return round(100 * (1 - float(added.sum()) / (threads * steps)), 1)


before = idle(1)
ct.claim(
    id="reduction-idle-threads",
    source=SOURCE,
    place={
        "en": "section 3, the summary (the table says 'removed')",
        "zh": "第 3 节总结（表格里写的是“去除”）",
    },
    form="said",
    statement={
        "en": "Adding while loading reduces the idle threads. Share of threads "
        f"without an addition over all steps of a block, {before} % before:",
        "zh": "边加载边加，减少了空闲的线程。线程块所有步骤中没有加法可做的线程"
        f"所占的比例，之前是 {before}%：",
    },
    expected=before,
    measured=idle(2),
    unit="%",
    rule="below",
    control=(
        {
            "en": "a block of 2 that adds once; by hand, 50 %",
            "zh": "2 个线程、只加一次的线程块；用手算，50%",
        },
        idle(1, threads=2),
        50.0,
    ),
)
