# ---
# jupyter:
#   cudatut:
#     title: {en: "Double buffering: claims", zh: "双缓冲：有关说法"}
#     requires: sm_80
#     timeout_s: 60
#     sizes: {large: [4096, 128], depth: [512, 64], first: [24, 2], count: [16, 4], most: [64, 1]}
# ---

# %% [markdown]
# CUDATutorial's order of work: two buffers, one barrier, and each tile loaded
# right before it is multiplied. First beside one buffer and two barriers.

# %% setup
import math

import numpy as np
from cudatut.book.gemm.ladder.ladder import Gemm

import cudatut as ct

FILE = "gemm/double_buffering/double_buffering.cu"
large = 4096
depth = 512
first = 24
count = 16
most = 64


def order(name, stamped):
    flag = "true" if stamped else "false"
    return ct.Kernel(FILE, f"ordered<8, {name}, true, {flag}>")


# %% claim-barriers
problem = Gemm(large, large, large)
unused = ct.to_device(np.zeros(1, "uint32"))


def launcher(kernel):
    p, tiles = problem, (large // 128, large // 128)
    arguments = p.a, p.b, p.c, p.n, p.k, unused, 0, 0
    return lambda: kernel(*arguments, grid=tiles, block=256)


runs = {
    "one buffer": launcher(order("ONE_BUFFER", False)),
    "two buffers": launcher(order("TWO_BUFFERS", False)),
    "again": launcher(order("ONE_BUFFER", False)),
}
for name, run in runs.items():
    ct.poison(problem.c)
    run()
    problem.compare(name)
times = ct.bench(runs, flops=problem.flops, rounds=9, name=f"n = {large}")
base = times["one buffer"].median_us
ct.claim(
    id="double-buffer-fewer-barriers",
    source="CUDATutorial 11/04",
    place={"en": "section 4", "zh": "第 4 节"},
    form="said",
    statement={
        "en": "Double buffering trades space for time: with more shared memory "
        "there are fewer barriers, so the product is faster. Two buffers and "
        "one barrier per tile, beside one buffer and two barriers.",
        "zh": "双缓冲用空间换时间：共享内存多了，同步次数少了，计算效率就提高了。"
        "这里比较的是每个分块两个缓冲区、一次同步，与一个缓冲区、两次同步。",
    },
    expected=1.0,
    measured=base / times["two buffers"].median_us,
    unit="×",
    rule="above",
    control=(
        {"en": "one buffer against itself", "zh": "一个缓冲区与它自己相比"},
        base / times["again"].median_us,
        (0.97, 1.03),
    ),
)

# %% [markdown]
# Then what a step takes, by the clock of the SM, with one block per SM: nobody
# else can fill the gaps.

# %% claim-late
sms = ct.device().sm_count
wide = min(most, math.isqrt(sms))
high = min(2 * most, sms // wide)
problem = Gemm(128 * high, 128 * wide, depth)
BEGUN = 2  # of four times that a step notes


def step_of(name):
    """Median cycles from one step to the next."""
    kernel = order(name, True)
    stamps = ct.to_device(np.zeros((wide * high, count, 4), "uint32"))
    for _ in range(2):  # the first launch brings A and B into the L2 cache
        ct.poison(problem.c)
        kernel(
            problem.a, problem.b, problem.c, problem.n, problem.k, stamps,
            first, count, grid=(wide, high), block=256,
        )  # fmt: skip
    problem.compare(name)
    raw = stamps.get()
    at = (raw - raw[:, :1, :1]).astype("int32")
    return float(np.median(np.diff(at[:, :, BEGUN], axis=1)))


one, again = step_of("ONE_BUFFER"), step_of("ONE_BUFFER")
two = step_of("TWO_BUFFERS")
early = step_of("THROUGH_REGISTERS")
ct.claim(
    id="double-buffer-seed",
    source="CUDATutorial 11/04",
    place={
        "en": "section 2, after the second listing",
        "zh": "第 2 节，第二段代码之后",
    },
    form="said",
    statement={
        "en": "The code computes right after its barrier, while the next "
        "tile is written into the other buffer, so reading and storing "
        "go on in parallel. Then a step should gain as much as where "
        "each tile is asked for before the one before is multiplied "
        "(expected): how many times as fast as with one buffer.",
        "zh": "代码在同步之后直接计算，同时把下一轮数据写入另一块共享内存，这"
        "样读取和存储就并行了。那么一步的提速应与“在乘上一个分块之前就"
        "请求下一个”的做法相同（即按原说法应为的值）。这里是与一个缓冲区相比的速"
        "度倍数。",
    },
    expected=one / early,
    measured=one / two,
    unit="×",
    rule="gain",
    control=(
        {
            "en": "one buffer against itself",
            "zh": "一个缓冲区与它自己相比",
        },
        one / again,
        (0.97, 1.03),
    ),
)
