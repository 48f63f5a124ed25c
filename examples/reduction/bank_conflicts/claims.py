# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts: claims", zh: "存储体冲突：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       warps: [32, 2]
#       turns: [256, 1]
# ---

# %% [markdown]
# What another source says of bank conflicts, tried.

# %% setup
import numpy as np
import cudatut as ct

from cudatut.book.reduction.ladder.ladder import LADDER, Sum

block = 256

# %% [markdown]
# The source counted the conflicts of two kernels. The same counter here, on
# fewer elements, scaled to as many blocks.

# %% conflicts-claim
blocks = (1 << 25) // block
problem = Sum(1 << 20)
problem.check(LADDER["interleaved"])
problem.check(LADDER["sequential"])
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
# The profiler runs this file again: three launches of one rung, then three of
# the other.
launches = ct.profile_launches(
    "reduction/bank_conflicts_claims",
    kernel="regex:^reduce_(interleaved|sequential)$",
    metrics=[CONFLICTS],
    launches=4,
)
if launches:
    strided, sequential = (
        round(launch[CONFLICTS] / ((1 << 20) // block) * blocks)
        for launch in launches[::3]
    )
    ct.claim(
        id="reduction-store-conflicts",
        source="CUDATutorial 09/02",
        place={
            "en": "section 1, the output of nvprof",
            "zh": "第 1 节，nvprof 的输出",
        },
        form="printed",
        statement={
            "en": "The strided index makes 4,587,520 conflicts of stores for "
            "32 Mi elements in blocks of 256. Counted here on 1 Mi elements, "
            "times 32:",
            "zh": "32 Mi 个元素、每块 256 个线程，跨步索引产生 4,587,520 次"
            "存储冲突。这里用 1 Mi 个元素计数，再乘以 32：",
        },
        expected=4_587_520,
        measured=strided,
        rule="equal",
        found="counted",
        control=(
            {
                "en": "sequential addressing; there the source prints 0 too",
                "zh": "连续寻址；原文印出的也是 0",
            },
            sequential,
            0,
        ),
    )

# %% [markdown]
# Passes by the clock: 32 warps that only load, each lane from its own word.

# %% by-round-claim
shared_loads = ct.Kernel(
    "reduction/bank_conflicts/bank_conflicts.cu", "shared_loads"
)
warps = 32
turns = 256
lane = np.arange(32)


def passes(lanes, name):
    """Cycles per load, rounded; the loads are checked by their sums."""
    word = np.full(32, -1, "int32")
    word[: len(lanes)] = lanes
    total = ct.empty(32 * warps, "float32")
    begin, end = ct.empty(warps, "int64"), ct.empty(warps, "int64")
    words = ct.to_device(word)
    for _ in range(2):  # the first run fetches the code
        shared_loads(words, total, begin, end, turns, grid=1, block=32 * warps)
    places = word[:, None] + 32 * np.arange(16)
    sums = np.where(word < 0, 0, turns * (places % 64).sum(axis=1))
    ct.check(total, np.tile(sums, warps), name=name, rtol=0)
    cycles = int(end.get().max() - begin.get().min())
    return round(cycles / (warps * turns * 16))


steps = {step: list(2 * step * lane) for step in (1, 2, 4)}
ct.claim(
    id="reduction-first-conflicts",
    source="CUDATutorial 09/02",
    place={
        "en": "section 1, the two paragraphs around the first figure",
        "zh": "第 1 节，第一幅图前后的两段",
    },
    form="said",
    statement={
        "en": "With the strided index the conflicts are 2-way in the first "
        "round, 4-way in the second, 8-way in the third. Passes per load:",
        "zh": "用跨步索引，第一轮是 2 路冲突，第二轮 4 路，第三轮 8 路。"
        "每次读取的趟数：",
    },
    expected=(2, 4, 8),
    measured=tuple(
        passes(lanes, f"step {step}") for step, lanes in steps.items()
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "three times neighboring words: one pass each",
            "zh": "三次都读相邻的字：各一趟",
        },
        tuple(passes(list(k + lane), f"from word {k}") for k in (0, 1, 32)),
        (1, 1, 1),
    ),
)

# %% banks-claim
ct.claim(
    id="reduction-warp-one-bank",
    source="CUDATutorial 09/02",
    place={
        "en": "section 2, the paragraph below the layout figure",
        "zh": "第 2 节，布局图之后的一段",
    },
    form="said",
    statement={
        "en": "If each warp visits a bank of its own, there are no conflicts. "
        "Passes of a load whose 32 words all lie in bank 0:",
        "zh": "让每个线程束各访问一个存储体，就能避免冲突。"
        "32 个字都在 0 号存储体的一次读取，趟数是：",
    },
    expected=1,
    measured=passes(list(32 * lane), "one bank"),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "32 words of 32 banks, which is what the source's code does, "
            "and what the first sentence of its section asks for",
            "zh": "32 个字在 32 个存储体里，原文的代码正是这样做的，该节第一句话"
            "也是这样要求的",
        },
        passes(list(lane), "32 banks"),
        1,
    ),
)

# %% [markdown]
# The table of the source, in us and GB/s, for 32 Mi int32. Nothing runs here:
# its columns are compared with each other.

# %% table-claim
TABLE = {
    "baseline": (3118.4, 42.503),
    "strided": (1904.4, 73.522),
    "sequential": (1475.2, 97.536),
}
megabytes = 4 * (1 << 25) / 1e6
ct.table(
    "as printed",
    {
        name: {
            "time": time,
            "bandwidth, printed": rate,
            "bandwidth, bytes / time": 1e3 * megabytes / time,
            "speed-up by times": TABLE["baseline"][0] / time,
            "speed-up by printed bandwidths": rate / TABLE["baseline"][1],
        }
        for name, (time, rate) in TABLE.items()
    },
    corner="kernel",
    units={
        "time": "us",
        "bandwidth, printed": "GB/s",
        "bandwidth, bytes / time": "GB/s",
    },
)


def speed_up(kernel):
    """By the times of the table, to the two decimals that it prints."""
    return round(TABLE["baseline"][0] / TABLE[kernel][0], 2)


ct.claim(
    id="reduction-speed-up-printed",
    source="CUDATutorial 09/02",
    place={"en": "the table in section 2", "zh": "第 2 节的表格"},
    form="printed",
    statement={
        "en": "Sequential addressing is 2.29 times as fast as the baseline "
        "(1475.2 us after 3118.4 us). Computed from these times:",
        "zh": "连续寻址是基线的 2.29 倍（3118.4 us 降到 1475.2 us）。"
        "由这两个时间算出：",
    },
    expected=2.29,
    measured=speed_up("sequential"),
    unit="×",
    rule="equal",
    found="computed",
    control=(
        {
            "en": "the row of the strided index, printed as 1.64",
            "zh": "跨步索引那一行，印的是 1.64",
        },
        speed_up("strided"),
        1.64,
    ),
)
