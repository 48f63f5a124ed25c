# ---
# jupyter:
#   cudatut:
#     title: {en: "Sums from register to register: claims", zh: "在寄存器之间求和：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [33554432, 16384, 1048576], turns: [4096, 4]}
# ---

# %% [markdown]
# What NVIDIA's blog passed on about shuffles when they were new, tried.

# %% setup
from dataclasses import replace

import numpy as np
import cudatut as ct

from cudatut.book.reduction.ladder.ladder import LADDER

SOURCE = "NVIDIA, CUDA Pro Tip: Do The Kepler Shuffle"
n = 33_554_432
turns = 4096

# %% one-for-three-claim
kernels = {
    by: ct.Kernel(
        "reduction/shuffles/shuffles.cu", "sums_of_sums", defines={"BY": by}
    )
    for by in ("SHARED", "SHUFFLE")
}
NAMES = {"SHARED": "shared memory", "SHUFFLE": "shuffle"}


def cycles(by):
    """Cycles of one sum of a warp that sums the sums; checked on three."""
    kernel = kernels[by]
    data, took = ct.to_device(np.ones(32, "int32")), ct.empty(1, "int64")
    kernel(data, took, 3, grid=1, block=32)  # and fetches the code
    name = f"{NAMES[by]}: three sums of sums"
    ct.check(data, np.full(32, 32**3, "int32"), name=name)
    kernel(data, took, turns, grid=1, block=32)
    return int(took.get()[0]) / turns


shared = cycles("SHARED")
ct.claim(
    id="reduction-shuffle-one-for-three",
    source=SOURCE,
    place={
        "en": "the third paragraph, quoted from Acceleware's blog",
        "zh": "第三段，转引自 Acceleware 的博客",
    },
    form="said",
    statement={
        "en": "A shuffle is faster than shared memory, for it is one "
        "instruction in place of three (write, synchronize, read). The "
        "sum of one warp, alone, with a second wait before the next "
        "write; time by shared memory / by shuffles:",
        "zh": "洗牌用一条指令代替三条（写、同步、读），所以比共享内存快。单独"
        "一个线程束的求和，共享内存的版本在下一次写之前还要再同步一次；"
        "用共享内存的时间 / 用洗牌的时间：",
    },
    expected=1.0,
    measured=shared / cycles("SHUFFLE"),
    unit="×",
    rule="above",
    control=(
        {"en": "shared memory against itself", "zh": "共享内存与它自己相比"},
        shared / cycles("SHARED"),
        (0.97, 1.03),
    ),
)

# %% whole-reduction
UNROLLED = LADDER["unrolled"]
bench = LADDER.bench(
    [UNROLLED, replace(UNROLLED, name="again"), "shuffle"],
    n=n,
    name="the step",
)
before = bench["unrolled"].median_us
ct.facts(
    "a whole reduction, time by shared memory / by shuffles",
    {
        "shuffles": before / bench["shuffle"].median_us,
        "shared memory again": before / bench["again"].median_us,
    },
)
