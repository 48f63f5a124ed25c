# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts, predicted and counted", zh: "存储体冲突：先预测，再计数"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [33554432, 16384, 1048576]
#       warps: [32, 2]
#       turns: [256, 1]
# ---

# %% [markdown]
# Where lanes meet in a bank, computed from their addresses; then the third
# rung, where they do not. First that rung as a whole program.

# %% program
import numpy as np
import cudatut as ct

count = 1 << 20
x = ct.to_device(ct.rng(0).standard_normal(count, dtype="float32"))
kernel = ct.Kernel("reduction/ladder/sequential.cu", "reduce_sequential")

source, left = x, count
while left > 1:
    blocks = ct.cdiv(left, 256)
    partial = ct.empty(blocks, "float32")
    kernel(source, partial, left, grid=blocks, block=256)
    source, left = partial, blocks

ct.check(source, [x.get().sum(dtype="float64")], rtol=0, atol=0.1)

# %% setup
from cudatut.book.reduction.ladder.ladder import LADDER, Sum


gpu = ct.device()
INTERLEAVED, SEQUENTIAL = LADDER["interleaved"], LADDER["sequential"]
n = 33_554_432
block = 256

# %% [markdown]
# The rule, and every access of the strided index by it.

# %% rule
BANKS = 32


def wavefronts(lanes, words=1):
    """Passes that one load or store takes.

    lanes: first word of each active lane; words: 1, 2 or 4 per lane. A pass
    gives one word per bank to every lane that asked for it. Wide accesses go
    in groups of lanes.
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
    """For each round of a block and each warp with work: the words that its
    lanes store to."""
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


ct.table(
    "stores of one block",
    {
        kernel: {
            "extra wavefronts": sum(extra(kernel)),
            # Two operands, in the same pattern.
            "the same, loads": 2 * sum(extra(kernel)),
            "ways, by round": ", ".join(map(str, ways(kernel))),
        }
        for kernel in ("interleaved", "sequential")
    },
    corner="kernel",
)
blocks_of_nvprof = 2**25 // 256
ct.facts(
    "32 Mi elements, blocks of 256",
    {
        "blocks": blocks_of_nvprof,
        "store conflicts": sum(extra("interleaved")) * blocks_of_nvprof,
    },
)

# %% predict
# Instructions before the loop and per round, from the machine code.
CODE = {"interleaved": (25, 14), "sequential": (25, 12)}
blocks = ct.cdiv(n, block) + ct.cdiv(n, block**2)
issued = gpu.sm_count * 4 * gpu.clock_khz / 1e3  # warp instructions per us
# Wavefronts per us: one per cycle and SM.
passed = gpu.sm_count * gpu.clock_khz / 1e3


def per_block(kernel):
    before, in_loop = CODE[kernel]
    return block // 32 * (before + 8 * in_loop + 1) + 9


def shared_per_block(kernel):
    """Wavefronts: a store per warp at the start, three accesses per warp with
    work, a load at the end."""
    plain = block // 32 + 3 * sum(len(warps) for warps in rounds(kernel)) + 1
    return plain + 3 * sum(extra(kernel))


def times(kernel):
    """Microseconds to issue, to pass through shared memory, and the sum."""
    issue = blocks * per_block(kernel) / issued
    passing = blocks * shared_per_block(kernel) / passed
    return issue, passing, issue + passing


ISSUE, PASS, BOTH = "issue", "pass", "one after the other"
ct.table(
    "prediction",
    {
        kernel: {
            "instructions per block": per_block(kernel),
            "wavefronts per block": shared_per_block(kernel),
        }
        | dict(zip((ISSUE, PASS, BOTH), times(kernel)))
        for kernel in CODE
    },
    corner="kernel",
    units={ISSUE: "us", PASS: "us", BOTH: "us"},
)
speed_up = [a / b for a, b in zip(times("interleaved"), times("sequential"))]
ct.facts(
    "speed-up of sequential addressing, predicted",
    {
        "wavefronts": shared_per_block("interleaved")
        / shared_per_block("sequential"),
        "perfect overlap": speed_up[0],
        "no overlap": speed_up[2],
    },
)

# %% [markdown]
# Right before fast, then the time.

# %% check
problem = Sum(n)
problem.check(INTERLEAVED)
problem.check(SEQUENTIAL)
# Integers: no tolerance, which could hide a lost block.
Sum(n, "int32").check(SEQUENTIAL)
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
# What the strided index would take if an instruction cost there what it costs
# in the third rung.
strided = bench["interleaved"].median_us
sequential = bench["sequential"].median_us
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

# %% [markdown]
# The profiler counts what was predicted.

# %% counters
STORE_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
LOAD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
# The profiler runs this file again. The first launches are those of the program
# and of the check: three for a sum of 1 Mi elements with one rung, then three
# with the other.
launches = ct.profile_launches(
    "reduction/bank_conflicts",
    kernel="regex:^reduce_(interleaved|sequential)$",
    metrics=[STORE_CONFLICTS, LOAD_CONFLICTS, STORES, LOADS, INSTRUCTIONS],
    launches=7,
)
PREDICTED = {
    "store conflicts": lambda kernel: sum(extra(kernel)),
    "load conflicts": lambda kernel: 2 * sum(extra(kernel)),
    "wavefronts": shared_per_block,
    "instructions": per_block,
}
# After the three launches of the program: the first launch of each rung.
counted = dict(zip(CODE, launches[3::3]))
measured = {}
for kernel, values in counted.items():
    got = {name: value / ((1 << 20) // block) for name, value in values.items()}
    measured[kernel] = {
        "store conflicts": got[STORE_CONFLICTS],
        "load conflicts": got[LOAD_CONFLICTS],
        "wavefronts": got[STORES] + got[LOADS],
        "instructions": got[INSTRUCTIONS],
    }
if measured:
    table = {what: {} for what in PREDICTED}
    for kernel in CODE:
        for what, predicted in PREDICTED.items():
            table[what][f"{kernel}, predicted"] = predicted(kernel)
            table[what][f"{kernel}, measured"] = measured[kernel][what]
    ct.table("per block", table, corner="counter")

# %% [markdown]
# A second instrument: the clock of the SM.

# %% loads
FILE = "reduction/bank_conflicts/bank_conflicts.cu"
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


def compare(title, patterns, words=1):
    """Passes by the rule, cycles by the clock. Checks that the right words
    came. Returns the cycles."""
    runs = {name: measure(lanes, words) for name, lanes in patterns.items()}
    got = np.stack([total.get() for _, total, _ in runs.values()])
    ct.check(
        got,
        np.stack([sums for _, _, sums in runs.values()]),
        name=title,
        rtol=0,
    )
    cycles = {name: run[0] for name, run in runs.items()}
    ct.table(
        title,
        {
            name: {
                "passes, by the rule": wavefronts(patterns[name], words),
                "cycles, by the clock": cycles[name],
            }
            for name in patterns
        },
        corner="words",
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
compare("interleaved, first warp of each round", by_round)

# %% by-round-1024
# The same for the largest block.
compare(
    "block of 1024, first warp of each round",
    {f"step {2**r}": list(2 ** (r + 1) * lane[: 512 >> r]) for r in range(10)},
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
