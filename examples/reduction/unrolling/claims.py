# ---
# jupyter:
#   cudatut:
#     title: {en: "Unrolled, and the last warp on its own: claims", zh: "循环展开，最后一个线程束单独处理：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [33554432, 16384, 1048576]}
# ---

# %% [markdown]
# What CUDATutorial says of unrolling and of the last warp, tried.

# %% setup
import re
from dataclasses import replace

import numpy as np
import cudatut as ct

from cudatut.book.reduction.ladder.ladder import LADDER

SOURCE = "CUDATutorial 09/04"
n = 33_554_432

# %% unroll-claim
LAST_WARP = ct.read_rung("reduction/unrolling/last_warp.cu")
bench = LADDER.bench(
    [LAST_WARP, replace(LAST_WARP, name="again"), "unrolled"],
    n=n,
    name="the step",
)
before = bench["last_warp"].median_us
ct.claim(
    id="reduction-full-unrolling",
    source=SOURCE,
    place={"en": "the table in section 2.2", "zh": "2.2 节的表格"},
    form="printed",
    statement={
        "en": "After the last warp (484.01 us), unrolling the rest of the "
        "loop makes the sum 1.014 times as fast (477.23 us).",
        "zh": "最后一个线程束单独处理之后（484.01 us），再把循环完全展开，求"
        "和快到原来的 1.014 倍（477.23 us）。",
    },
    expected=484.01 / 477.23,
    measured=before / bench["unrolled"].median_us,
    unit="×",
    rule="gain",
    control=(
        {
            "en": "the last warp against itself",
            "zh": "单独处理最后一个线程束的 kernel，与它自己相比",
        },
        before / bench["again"].median_us,
        (0.97, 1.03),
    ),
)

# %% [markdown]
# 4096 sums of ones in each launch, a hundred times; and what racecheck finds in
# one of them. Not under a tool, which would complain of the race.

# %% volatile-claim
ones = ct.to_device(np.ones(512 * 4096, "int32"))
runs = 0 if ct.tool.running() else 100


def wrong_sums(launch, right):
    """How many of all sums are wrong."""
    wrong = 0
    for _ in range(runs):
        out = ct.empty(4096, "int32")
        launch(out)
        wrong += int((out.get() != right).sum())
    return wrong


def volatile(**defines):
    """Wrong sums of 256 ones, the last warp without barriers."""
    kernel = ct.Kernel(
        "reduction/unrolling/unrolling.cu", "reduce_volatile", defines
    )
    return wrong_sums(lambda out: kernel(ones, out, grid=4096, block=256), 256)


def hazards(launch):
    """Errors and warnings of racecheck."""
    report = ct.sanitize(
        f"""
import numpy as np
import cudatut as ct

ones = ct.to_device(np.ones(512, "int32"))
out = ct.empty(1, "int32")
{launch}
print(out.get())
""",
        tool="racecheck",
    )
    found = re.search(r"\((\d+) errors?, (\d+) warnings?\)", report.log)
    return tuple(map(int, found.groups())) if found else (0, 0)


# Rung 5, the same tree with __syncwarp: 512 elements a block.
ordered = LADDER["unrolled"].compile(BLOCK=256, ELEMENT="int")


def launch_ordered(out):
    ordered(ones, out, ones.size, grid=4096, block=256)


ct.claim(
    id="reduction-volatile-warp",
    source=SOURCE,
    place={"en": "sections 1 and 2.1", "zh": "第 1 节和 2.1 节"},
    form="said",
    statement={
        "en": "In the last warp __syncthreads() is unnecessary: its threads "
        "run together anyway; the pointer is volatile. Faults found:",
        "zh": "最后一个线程束里不需要 __syncthreads()：它的线程本来就是同步的；"
        "指针加上 volatile。找到的错误：",
    },
    expected=0,
    depends={
        "en": "whether right sums are enough, or the order has to be promised: "
        "nothing promises lock-step since Volta",
        "zh": "结果对就够了，还是次序必须有保证：Volta 以后，线程束内步调一致不再"
        "有保证",
    },
    sides=(
        (
            {"en": "wrong sums of 409,600", "zh": "409,600 个和里的错误"},
            volatile(),
        ),
        (
            {
                "en": "errors and warnings of racecheck",
                "zh": "racecheck 的错误和警告",
            },
            sum(
                hazards("""
kernel = ct.Kernel("reduction/unrolling/unrolling.cu", "reduce_volatile")
kernel(ones, out, grid=1, block=256)
""")
            ),
        ),
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the same tree with __syncwarp() between the steps, both counts",
            "zh": "同样的树，各步之间有 __syncwarp()，两种计数之和",
        },
        wrong_sums(launch_ordered, 512)
        + sum(
            hazards("""
kernel = ct.Kernel("reduction/ladder/unrolled.cu", "reduce_unrolled",
                   defines={"ELEMENT": "int"})
kernel(ones, out, 512, grid=1, block=256)
""")
        ),
        0,
    ),
)

# %% needed-claim
ct.claim(
    id="reduction-volatile-needed",
    source=SOURCE,
    place={"en": "section 2.1, the tip", "zh": "2.1 节的提示"},
    form="said",
    statement={
        "en": "Without volatile the compiler keeps words in registers, and a "
        "thread may read values that are out of date. Wrong sums of "
        "409,600 without it:",
        "zh": "不加 volatile，编译器会把值缓存在寄存器里，可能读到旧的值。"
        "不加时 409,600 个和里的错误数：",
    },
    expected=0,
    measured=volatile(NO_VOLATILE=1),
    rule="above",
    control=({"en": "with volatile", "zh": "加上 volatile"}, volatile(), 0),
)
