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
# What other sources say of bank conflicts, tried.

# %% setup
import numpy as np
import cudatut as ct

from ladder import LADDER, Sum

block = 256

# %% conflicts-claim
# By the rule of the chapter a block of 256 has 35 extra passes of stores.
blocks = (1 << 25) // block
Sum(1 << 20).check(LADDER["interleaved"])
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
launches = ct.profile_launches(
    "reduction/bank_conflicts_claims",
    kernel="reduce_interleaved",
    metrics=[CONFLICTS],
    launches=1,
)
if launches:
    measured = round(launches[0][CONFLICTS] / ((1 << 20) // block) * blocks)
    ct.claim(
        id="reduction-store-conflicts",
        source="CUDATutorial 09/02",
        statement={
            "en": "nvprof counts 4,587,520 store conflicts for 32 Mi elements in blocks of 256. "
            "The rule says 35 per block; this GPU's counter, scaled to as many blocks, says:",
            "zh": "32 Mi 个元素、每块 256 个线程，nvprof 数出 4,587,520 次存储冲突。"
            "按规则每块 35 次；这块 GPU 的计数器，换算到同样多的线程块：",
        },
        predicted=35 * blocks,
        measured=measured,
        verdict="confirmed"
        if abs(measured / 4_587_520 - 1) < 0.01
        else "depends",
    )

# %% by-round-claim
FILE = "reduction/bank_conflicts.cu"
LOADERS = {
    words: ct.Kernel(FILE, "shared_loads", defines={"WORDS": words})
    for words in (1, 2, 4)
}
warps = 32
turns = 256


def measure(lanes, words=1):
    """Cycles per load when 32 warps do nothing else, each lane from its own
    word; the sums, got and expected."""
    word = np.full(32, -1, "int32")
    word[: len(lanes)] = lanes
    total = ct.empty(32 * warps, "float32")
    begin, end = ct.empty(warps, "int64"), ct.empty(warps, "int64")
    for _ in range(2):  # the first run fetches the code
        LOADERS[words](
            ct.to_device(word),
            total,
            begin,
            end,
            turns,
            grid=1,
            block=32 * warps,
        )
    places = (
        word[:, None, None] + np.arange(words)[:, None] + 32 * np.arange(16)
    )
    sums = np.where(word < 0, 0, turns * (places % 64).sum(axis=(1, 2)))
    cycles = int(end.get().max() - begin.get().min()) / (warps * turns * 16)
    return cycles, total, np.tile(sums, warps)


lane = np.arange(32)
timed = {}
for step in (2**r for r in range(8)):
    words = 2 * step * np.arange(block // (2 * step))[:32]
    timed[step], total, sums = measure(list(words))
    ct.check(total, sums, name=f"step {step}", rtol=0)
first = ", ".join(str(round(timed[step])) for step in (1, 2, 4))
ct.claim(
    id="reduction-first-conflicts",
    source="CUDATutorial 09/02",
    statement={
        "en": "In the first round the conflicts are 2-way, in the second 4-way, in the third 8-way.",
        "zh": "第一轮是 2 路冲突，第二轮 4 路，第三轮 8 路。",
    },
    predicted="2, 4, 8",
    measured=first,
    verdict="confirmed" if first == "2, 4, 8" else "refuted",
)

# %% banks-claim
passes, total, sums = measure(list(32 + lane))
ct.check(total, sums, name="warp 1: words 32 to 63", rtol=0)
ct.claim(
    id="reduction-warp-one-bank",
    source="CUDATutorial 09/02",
    statement={
        "en": "Each warp visits one bank: warp 0 bank 0, warp 1 bank 1. Then 32 neighboring words take 32 passes.",
        "zh": "每个线程束访问一个存储体：线程束 0 访问 0 号，线程束 1 访问 1 号。照此说来，相邻的 32 个字要 32 趟。",
    },
    predicted=32,
    measured=round(passes),
    verdict="confirmed" if round(passes) == 32 else "refuted",
)

# %% table-claim
# The table of the source, in us and GB/s, for 32 Mi int32.
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
speedup = TABLE["baseline"][0] / TABLE["sequential"][0]
ct.claim(
    id="reduction-speed-up-printed",
    source="CUDATutorial 09",
    statement={
        "en": "Sequential addressing is 2.29 times as fast as the baseline. Checked against the times of the same table.",
        "zh": "连续寻址是基线的 2.29 倍。用同一张表里的时间来核对。",
    },
    predicted=2.29,
    measured=speedup,
    unit="×",
    verdict="confirmed" if abs(speedup - 2.29) < 0.01 else "refuted",
)
