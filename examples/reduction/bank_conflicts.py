# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts, predicted and counted", zh: "存储体冲突：先预测，再计数"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Where lanes meet in a bank, computed from their addresses; then the third rung, where none do.

# %% setup
import numpy as np
from ladder import LADDER, Sum

import cudatut as ct
from cudatut.profiler import profile_launches

gpu = ct.device()
INTERLEAVED, SEQUENTIAL = LADDER["interleaved"], LADDER["sequential"]
profiled_n = 1 << 20  # what a profiler sees
n, block = ct.size(1 << 25, 1 << 14, profiled=profiled_n), 256

# %% rule
BANKS = 32


def wavefronts(lanes, words=1):
    """Passes that one load or store takes. lanes: first word of each active lane; words: 1, 2 or 4 per lane.

    A pass gives one word per bank, and everyone who asked for it gets it. Wide accesses go in groups of lanes.
    """
    group, passes = 32 // words, 0
    for first in range(0, len(lanes), group):
        asked = {
            lane + k
            for lane in lanes[first : first + group]
            for k in range(words)
        }
        passes += max(np.bincount([word % BANKS for word in asked]))
    return int(passes)


# %% enumerate
def rounds(kernel):
    """For each round of a block's tree and each warp with work: the words that its lanes store to."""
    found = []
    for step in (2**r for r in range(int(np.log2(block)))):
        half = block // (2 * step)  # threads with work
        words = np.arange(half) * (2 * step if kernel == "interleaved" else 1)
        found.append([words[w : w + 32].tolist() for w in range(0, half, 32)])
    return found


def extra(kernel):
    """Wavefronts beyond one per store, by round."""
    return [
        sum(wavefronts(warp) - 1 for warp in warps) for warps in rounds(kernel)
    ]


def ways(kernel):
    """Into how many passes the worst warp of each round is split."""
    return [max(wavefronts(warp) for warp in warps) for warps in rounds(kernel)]


for kernel in ("interleaved", "sequential"):
    ct.facts(
        f"{kernel}: stores of one block",
        {
            "ways, by round": ", ".join(map(str, ways(kernel))),
            "extra wavefronts, by round": ", ".join(map(str, extra(kernel))),
            "extra wavefronts": sum(extra(kernel)),
            "the same, loads": 2
            * sum(extra(kernel)),  # two operands, in the same pattern
        },
    )

# %% predict
CODE = {
    "interleaved": (25, 14),
    "sequential": (25, 12),
}  # as in the chapter before
blocks = ct.cdiv(n, block) + ct.cdiv(n, block**2)
issued = gpu.sm_count * 4 * gpu.clock_khz / 1e3  # warp instructions per us
passed = (
    gpu.sm_count * gpu.clock_khz / 1e3
)  # wavefronts per us: one per cycle and SM


def per_block(kernel):
    before, in_loop = CODE[kernel]
    return block // 32 * (before + 8 * in_loop + 1) + 9


def shared_per_block(kernel):
    """Wavefronts: one store per warp at the start, three accesses per warp with work, one load at the end."""
    plain = block // 32 + 3 * sum(len(warps) for warps in rounds(kernel)) + 1
    return plain + 3 * sum(extra(kernel))


for kernel in CODE:
    ct.facts(
        f"{kernel}: prediction",
        {
            "warp instructions per block": per_block(kernel),
            "time to issue them": (blocks * per_block(kernel) / issued, "us"),
            "wavefronts per block": shared_per_block(kernel),
            "time of the wavefronts": (
                blocks * shared_per_block(kernel) / passed,
                "us",
            ),
            "both, one after the other": (
                blocks
                * (
                    per_block(kernel) / issued
                    + shared_per_block(kernel) / passed
                ),
                "us",
            ),
        },
    )

# %% check
problem = Sum(n)
problem.check(INTERLEAVED)
problem.check(SEQUENTIAL)
LADDER.check(
    "sequential",
    [{"n": m, "dtype": d} for d in ("float32", "int32") for m in ct.RAGGED],
)
ragged = Sum(ct.RAGGED[-1])
for threads in SEQUENTIAL.numbers("blocks"):
    ragged.check(SEQUENTIAL, threads)

# %% bench
bench = LADDER.bench(LADDER.upto("sequential"), n=n, name=f"sum of {n} float32")

# %% compare
# What the strided index would take if an instruction cost there what it costs in the third rung.
strided, sequential = (
    bench["interleaved"].median_us,
    bench["sequential"].median_us,
)
instructions = sequential * per_block("interleaved") / per_block("sequential")
ct.facts(
    "strided index and sequential addressing",
    {
        "predicted speed-up, perfect overlap": per_block("interleaved")
        / per_block("sequential"),
        "measured speed-up": strided / sequential,
        "strided index, for its instructions": (instructions, "us"),
        "strided index, measured": (strided, "us"),
        "left for the conflicts": (strided - instructions, "us"),
        "conflicts, one after the other": (
            blocks * 3 * sum(extra("interleaved")) / passed,
            "us",
        ),
    },
)

# %% bench-int32
LADDER.bench(
    LADDER.upto("sequential"),
    n=n,
    dtype="int32",
    name=f"sum of {n} int32",
    rounds=20,
)

# %% counters
STORE_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
LOAD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
# The profiler runs this file again. Its first launches are those of the check: three for a sum of
# 1 Mi elements with one rung, then three with the other.
launches = profile_launches(
    "reduction/bank_conflicts",
    kernel="regex:^reduce_(interleaved|sequential)$",
    metrics=[STORE_CONFLICTS, LOAD_CONFLICTS, STORES, LOADS, INSTRUCTIONS],
    launches=4,
)
stores = {}
for kernel, counted in zip(CODE, launches[::3]):
    got = {
        name: value / (profiled_n // block) for name, value in counted.items()
    }
    stores[kernel] = got[STORE_CONFLICTS]
    ct.facts(
        f"{kernel}: per block",
        {
            "store conflicts, predicted": sum(extra(kernel)),
            "store conflicts, measured": got[STORE_CONFLICTS],
            "load conflicts, predicted": 2 * sum(extra(kernel)),
            "load conflicts, measured": got[LOAD_CONFLICTS],
            "wavefronts, predicted": shared_per_block(kernel),
            "wavefronts, measured": got[STORES] + got[LOADS],
            "instructions, predicted": per_block(kernel),
            "instructions, measured": got[INSTRUCTIONS],
        },
    )

# %% conflicts-claim
seed_blocks = (1 << 25) // 256
if stores:
    measured = round(stores["interleaved"] * seed_blocks)
    ct.claim(
        id="reduction-store-conflicts",
        source="CUDATutorial 09/02",
        statement={
            "en": "nvprof counts 4,587,520 store conflicts for 32 Mi elements in blocks of 256. "
            "The rule says 35 per block; this GPU's counter, scaled to as many blocks, says:",
            "zh": "32 Mi 个元素、每块 256 个线程，nvprof 数出 4,587,520 次存储冲突。"
            "按规则每块 35 次；这块 GPU 的计数器，换算到同样多的线程块：",
        },
        predicted=sum(extra("interleaved")) * seed_blocks,
        measured=measured,
        verdict="confirmed"
        if abs(measured / 4_587_520 - 1) < 0.01
        else "depends",
    )

# %% loads
FILE = "reduction/bank_conflicts.cu"
LOADERS = {
    words: ct.Kernel(FILE, "shared_loads", defines={"WORDS": words})
    for words in (1, 2, 4)
}
warps, turns = ct.size(32, 2), ct.size(256, 1)


def measure(lanes, words=1):
    """Cycles per load when 32 warps do nothing else, each lane from its own word; the sums, got and expected."""
    word = np.full(32, -1, "int32")
    word[: len(lanes)] = lanes
    total = ct.empty(32 * warps, "float32")
    begin, end = ct.empty(warps, "int64"), ct.empty(warps, "int64")
    for _ in range(ct.size(2, 1)):  # the first run fetches the code
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


def compare(title, patterns, words=1):
    """Facts: wavefronts by the rule, cycles by the clock. Checks that the right words came. Returns the cycles."""
    runs = {name: measure(lanes, words) for name, lanes in patterns.items()}
    got = np.stack([total.get() for _, total, _ in runs.values()])
    ct.check(
        got,
        np.stack([sums for _, _, sums in runs.values()]),
        name=title,
        rtol=0,
    )
    cycles = {name: run[0] for name, run in runs.items()}
    ct.facts(
        f"{title}: wavefronts predicted, cycles measured",
        {
            name: f"{wavefronts(patterns[name], words)}, {cycles[name]:.2f}"
            for name in patterns
        },
    )
    return cycles


lane = np.arange(32)
STRIDES = (1, 2, 3, 4, 5, 8, 16, 31, 32, 33)
compare("words apart", {f"stride {s}": list(s * lane) for s in STRIDES})

# %% broadcast
compare(
    "shared words",
    {
        "all the same word": [7] * 32,
        "two words, two banks": list(lane % 2),
        "two words, one bank": list(32 * (lane % 2)),
        "a permutation": list(7 * lane % 32),
    },
)

# %% by-round
by_round = {
    f"step {2**r}": found[0] for r, found in enumerate(rounds("interleaved"))
}
timed = compare("interleaved, first warp of each round", by_round)
worst = max(timed.values())
ct.claim(
    id="reduction-conflicts-go-on",
    source="CUDATutorial 09/02",
    statement={
        "en": "Conflicts are 2-way, 4-way, 8-way and so on: they double with every round, up to 32-way.",
        "zh": "冲突依次是 2 路、4 路、8 路……：每一轮翻一番，直到 32 路。",
    },
    predicted=32,
    measured=round(worst),
    verdict="confirmed" if round(worst) == 32 else "refuted",
)

# %% tile
compare(
    "a column of a tile of floats",
    {
        "32 x 32": list(32 * lane),
        "32 x 33": list(33 * lane),
        "16 x 16, two columns": [16 * (k % 16) + k // 16 for k in range(32)],
    },
)

# %% wide
compare(
    "8 bytes per lane",
    {"stride 2": list(2 * lane), "stride 4": list(4 * lane)},
    words=2,
)
compare(
    "16 bytes per lane",
    {
        "stride 4": list(4 * lane),
        "stride 8": list(8 * lane),
        "stride 16": list(16 * lane),
    },
    words=4,
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
for name, (time, rate) in TABLE.items():
    ct.facts(
        f"{name}: as printed",
        {
            "time": (time, "us"),
            "bandwidth, printed": (rate, "GB/s"),
            "bandwidth, bytes / time": (1e3 * megabytes / time, "GB/s"),
            "speed-up by times": TABLE["baseline"][0] / time,
            "speed-up by printed bandwidths": rate / TABLE["baseline"][1],
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
