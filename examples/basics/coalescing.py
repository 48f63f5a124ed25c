# ---
# jupyter:
#   cudatut:
#     title: {en: "Coalesced access", zh: "合并访问"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# A warp's loads travel in sectors of 32 bytes: how many, predicted from the addresses of its lanes, then counted.

# %% setup
import numpy as np
from ladder import LADDER

import cudatut as ct
from cudatut.profiler import profile_launches

FILE = "basics/coalescing.cu"
SECTOR, LINE, WORD = 32, 128, 4  # bytes
lane = np.arange(32)


def sectors(words):
    """Sectors that a warp's request touches, from the index of the word that each lane wants."""
    return len(np.unique(WORD * np.asarray(words) // SECTOR))


# %% patterns
PATTERNS = {  # name: stride, offset, turn, flip, as read_pattern has them
    "aligned": (1, 0, 1, 0),
    "one word on": (1, 1, 1, 0),
    "eight words on": (1, 8, 1, 0),
    "reversed": (1, 0, 1, 31),
    "shuffled": (1, 0, 13, 6),
    "all the same word": (0, 0, 1, 0),
    "stride 2": (2, 0, 1, 0),
    "stride 3": (3, 0, 1, 0),
    "stride 4": (4, 0, 1, 0),
    "stride 8": (8, 0, 1, 0),
    "stride 16": (16, 0, 1, 0),
    "stride 32": (32, 0, 1, 0),
}


def words(stride, offset, turn, flip):
    """The word of each lane in the first warp; the other warps follow 32 * stride words on."""
    return offset + stride * (lane * turn % 32 ^ flip)


predicted = {name: sectors(words(*pattern)) for name, pattern in PATTERNS.items()}
useful = {
    name: WORD * len(np.unique(words(*pattern))) / (SECTOR * predicted[name])
    for name, pattern in PATTERNS.items()
}
ct.facts("predicted: sectors per request", predicted)
ct.facts("predicted: useful bytes / moved bytes", useful)

# %% read-pattern
read_pattern = ct.Kernel(FILE, "read_pattern")
threads = 64 * 256
source_host = ct.rng(0).random(32 * threads + 8, dtype="float32")
source = ct.to_device(source_host)
for name, (stride, offset, turn, flip) in PATTERNS.items():
    out = ct.empty(threads, "float32")
    read_pattern(source, out, stride, offset, turn, flip, grid=64, block=256)
    place = np.arange(threads).reshape(-1, 32)[:, lane * turn % 32 ^ flip]
    ct.check(out, source_host[offset + stride * place.reshape(-1)], name=name)

# %% strides
n = 1 << 24  # words: 64 MiB, more than the L2 cache, which is flushed before each run
strided = ct.Kernel(FILE, "read_strided")
each, block = 8, 256
numbers_host = ct.rng(1).random(n + 8, dtype="float32")
numbers = ct.to_device(numbers_host)
READS = {  # name: stride, offset
    "stride 1": (1, 0),
    "one word on": (1, 1),
    "stride 2": (2, 0),
    "stride 4": (4, 0),
    "stride 8": (8, 0),
    "stride 16": (16, 0),
    "stride 32": (32, 0),
}


def read(stride, offset, out):
    strided(numbers, out, n // stride, stride, offset,
            grid=n // stride // (each * block), block=block)  # fmt: skip


outs = {}
for name, (stride, offset) in READS.items():
    out = outs[name] = ct.empty(n // stride // each, "float32")
    read(stride, offset, out)
    chosen = numbers_host[offset : offset + n : stride].reshape(-1, each, block)
    ct.check(out, chosen.sum(axis=1, dtype="float64").reshape(-1), name=name)

# %% check-matmul
# In the file this stands before the profiler is called, so that one run of it counts everything.
side = ct.size(1024, 96, profiled=1024)
MATMULS = ("naive_rows", "naive_columns")
for name in MATMULS:  # the first launches of both are those that the profiler counts
    LADDER.check(name, [{"m": side, "n": side, "k": side}])
for name in MATMULS:
    LADDER.check(name, [{"m": 100, "n": 70, "k": 50}, {"m": 1, "n": 33, "k": 31}])

# %% count-patterns
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STORE_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
PASSES = "l1tex__data_pipe_lsu_wavefronts.sum"
READ = "dram__bytes_read.sum"
TIME = "gpu__time_duration.sum"
# The profiler runs this file again and watches the first launches of these kernels, in the order
# of the cells above: the patterns, the strides, and the matrix products, which come later.
counted = profile_launches(
    "basics/coalescing",
    kernel="regex:^(read_(pattern|strided)|matmul_naive_(rows|columns))$",
    metrics=[REQUESTS, SECTORS, STORE_REQUESTS, STORE_SECTORS, PASSES, READ, TIME],
    launches=len(PATTERNS) + len(READS) + len(MATMULS),
)
first, second = len(PATTERNS), len(PATTERNS) + len(READS)
measured = {name: c[SECTORS] / c[REQUESTS] for name, c in zip(PATTERNS, counted)}
from_memory = {name: c[READ] for name, c in zip(READS, counted[first:])}
of_matmul = dict(zip(MATMULS, counted[second:]))
if counted:
    ct.facts("measured: sectors per request", measured)
    ct.facts(
        "measured: bytes read from memory",
        {name: (number / 1e6, "MB") for name, number in from_memory.items()},
    )

# %% claim-order
if counted:
    ct.claim(
        id="coalescing-in-order",
        source="CUDA C Programming Guide, compute capability 1.0",
        statement={
            "en": "An access is coalesced only if lane k wants word k; in another order each lane is served alone",
            "zh": "只有 lane k 恰好访问第 k 个字时才算合并访问；换成别的顺序，就要逐个 lane 分别处理",
        },
        predicted=32,
        measured=measured["shuffled"],
        unit="sectors per request, shuffled",
        verdict="refuted" if measured["shuffled"] == measured["aligned"] else "confirmed",
    )

# %% predict-strides
wanted = {name: WORD * n // stride for name, (stride, _) in READS.items()}
moved = {}  # whole sectors, read once each; the sums that are written come on top
for name, (stride, offset) in READS.items():
    place = np.arange(offset, offset + n, stride, dtype="int32")  # in rising order
    moved[name] = SECTOR * (1 + np.count_nonzero(np.diff(place // (SECTOR // WORD))))
written = {name: WORD * n // stride // each for name, (stride, _) in READS.items()}
bandwidth = ct.limits.bandwidth()
ct.facts("useful bytes read", {name: (wanted[name] / 1e6, "MB") for name in READS})
ct.facts("bytes read in whole sectors", {name: (moved[name] / 1e6, "MB") for name in READS})
ct.facts(
    "predicted time",
    {name: ((moved[name] + written[name]) / bandwidth / 1e3, "us") for name in READS},
)

# %% bench-strides
times = ct.bench(
    {name: lambda s=s, name=name: read(*s, outs[name]) for name, s in READS.items()},
    bytes={name: wanted[name] + written[name] for name in READS},
    name="64 MiB, every word to every 32nd",
)

# %% claim-misaligned
shifted = times["one word on"].median_us / times["stride 1"].median_us
ct.claim(
    id="misaligned-half-speed",
    source="CUDA C Programming Guide, compute capability 1.2",
    statement={
        "en": "A warp whose addresses begin one word off an aligned segment needs two transactions instead of one; "
        "if the time follows them, it doubles",
        "zh": "起始地址只要偏离对齐边界一个字，一次传输就变成两次；时间若由传输次数决定，就要加倍",
    },
    predicted=2.0,
    measured=shifted,
    unit="time, one word on / aligned",
    verdict="refuted" if shifted < 1.25 else "confirmed" if shifted > 1.75 else "depends",
)

# %% predict-matmul
MAPPINGS = {  # name: row and column of each lane in the first warp of a 32 x 32 block
    "naive_rows": (lane, 0 * lane),
    "naive_columns": (0 * lane, lane),
}
expected = {}
for name, (row, column) in MAPPINGS.items():
    # At step i of the loop. A step further all lanes move alike, so that i = 0 stands for all.
    touched = {"A": row * side, "B": column, "C": row * side + column}
    expected[name] = {matrix: sectors(words) for matrix, words in touched.items()}
    expected[name]["lines"] = sum(
        len(np.unique(WORD * touched[matrix] // LINE)) for matrix in ("A", "B")
    )
    ct.facts(
        f"{name}, predicted",
        {
            "A, sectors per request": expected[name]["A"],
            "B, sectors per request": expected[name]["B"],
            "C, sectors per request": expected[name]["C"],
            "A and B, sectors per step": expected[name]["A"] + expected[name]["B"],
            "A and B, cache lines per step": expected[name]["lines"],
        },
    )
steps = {name: e["A"] + e["B"] for name, e in expected.items()}
ct.facts(
    "naive_rows / naive_columns, predicted",
    {
        "sectors": steps["naive_rows"] / steps["naive_columns"],
        "cache lines": expected["naive_rows"]["lines"] / expected["naive_columns"]["lines"],
    },
)

# %% count-matmul
for name, c in of_matmul.items():
    e = expected[name]
    ct.facts(
        f"{name}, predicted and measured",
        {
            "predicted loads, sectors per request": (e["A"] + e["B"]) / 2,
            "measured loads, sectors per request": c[SECTORS] / c[REQUESTS],
            "predicted stores, sectors per request": e["C"],
            "measured stores, sectors per request": c[STORE_SECTORS] / c[STORE_REQUESTS],
            "predicted sectors loaded": side**3 // 32 * (e["A"] + e["B"]),
            "measured sectors loaded": c[SECTORS],
            "passes through the L1 cache": c[PASSES],
            "bytes read from memory": (c[READ] / 1e6, "MB"),
            "time": (c[TIME] / 1e3, "us"),
        },
    )

# %% bench-matmul
large = ct.size(2048, 96)
matmul_times = LADDER.bench(
    list(MATMULS), m=large, n=large, k=large, rounds=5, name="2048 x 2048 x 2048"
)

# %% claim-matmul
faster = matmul_times["naive_rows"].median_us / matmul_times["naive_columns"].median_us
worklog = 1986.5 / 309  # GFLOP/s of its kernels 2 and 1 at 4092, on an RTX A6000
ct.claim(
    id="matmul-coalesced",
    source="SGEMM worklog, kernels 1 and 2 (RTX A6000)",
    statement={
        "en": "The same matrix product runs six times as fast once the lanes of a warp walk along a row",
        "zh": "同一个矩阵乘法，只要让线程束里的线程沿着行走，速度就变成六倍",
    },
    predicted=worklog,
    measured=faster,
    unit="time, naive_rows / naive_columns",
    verdict="refuted"
    if faster < 1.5
    else "confirmed"
    if 0.75 < faster / worklog < 1.33
    else "depends",
)
