# ---
# jupyter:
#   cudatut:
#     title: {en: "Coalesced access", zh: "合并访问"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [16777216, 65536, 16777216]
#       side: [1024, 96, 1024]
#       large: [2048, 96]
# ---

# %% [markdown] about
# A warp's loads travel in sectors of 32 bytes. The program reads an array with
# different strides, predicts from the addresses how many sectors each takes, and
# measures the time.

# %% program
import numpy as np

import cudatut as ct

SECTOR, WORD = 32, 4  # bytes

source = """
#define EACH 8  // words that one thread adds

__global__ void read_strided(const float* __restrict__ in,
                             float* __restrict__ out,
                             int reads, int stride, int offset) {
  int first = blockIdx.x * blockDim.x * EACH + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < EACH; ++j) {
    int i = first + j * blockDim.x;  // neighboring threads, neighboring i
    if (i < reads) sum += in[offset + (size_t)i * stride];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
kernel = ct.Kernel(source, "read_strided")

n = 16_777_216
each, block = 8, 256
numbers_host = ct.rng(1).random(n + 1, dtype="float32")
numbers = ct.to_device(numbers_host)
lane = np.arange(32)
READS = {  # name: stride, offset
    "stride 1": (1, 0),
    "one word on": (1, 1),
    "stride 2": (2, 0),
    "stride 4": (4, 0),
    "stride 8": (8, 0),
    "stride 16": (16, 0),
    "stride 32": (32, 0),
}


def sectors(words):
    """Sectors that a warp's request touches, from the word of each lane."""
    return len(np.unique(WORD * np.asarray(words) // SECTOR))


def read(stride, offset, out):
    reads = n // stride
    grid = reads // (each * block)
    kernel(numbers, out, reads, stride, offset, grid=grid, block=block)


print("predicted    sectors  used bytes")
outs = {}
for name, (stride, offset) in READS.items():
    out = outs[name] = ct.empty(n // stride // each, "float32")
    read(stride, offset, out)
    chosen = numbers_host[offset : offset + n : stride]
    sums = chosen.reshape(-1, each, block).sum(axis=1, dtype="float64")
    assert np.allclose(out.get(), sums.reshape(-1), rtol=1e-5)
    count = sectors(offset + stride * lane)
    print(f"{name:11s}  {count:7d}  {100 * 128 / (count * 32):8.1f} %")


def reader(name):
    return lambda: read(*READS[name], outs[name])


times = ct.bench(
    {name: reader(name) for name in READS},
    bytes={name: WORD * n // stride for name, (stride, _) in READS.items()},
    name="64 MiB, every word to every 32nd",
)
one = times["stride 1"].median_us
gains = {
    f"{name}, times as fast as stride 1": (one / times[name].median_us, "x")
    for name in ("stride 2", "stride 8", "stride 32")
}
ct.yours("basics/coalescing#program", gains)

# %% [markdown] about-patterns
# The order of the lanes can be changed, too. Twelve patterns: the sectors are
# predicted here and counted by the profiler further down.

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
    """The word of each lane in the first warp."""
    return offset + stride * (lane * turn % 32 ^ flip)


predicted = {name: sectors(words(*p)) for name, p in PATTERNS.items()}
useful = {
    name: WORD * len(np.unique(words(*p))) / (SECTOR * predicted[name])
    for name, p in PATTERNS.items()
}

# %% check-strides
for name, (stride, offset) in READS.items():
    ct.poison(outs[name])
    read(stride, offset, outs[name])
    chosen = numbers_host[offset : offset + n : stride]
    sums = chosen.reshape(-1, each, block).sum(axis=1, dtype="float64")
    ct.check(outs[name], sums.reshape(-1), name=name)

# %% read-pattern
read_pattern = ct.Kernel("basics/coalescing/coalescing.cu", "read_pattern")
threads = 64 * 256
data_host = ct.rng(0).random(32 * threads + 8, dtype="float32")
data = ct.to_device(data_host)
for name, (stride, offset, turn, flip) in PATTERNS.items():
    out = ct.empty(threads, "float32")
    read_pattern(data, out, stride, offset, turn, flip, grid=64, block=256)
    order = lane * turn % 32 ^ flip
    place = np.arange(threads).reshape(-1, 32)[:, order].reshape(-1)
    ct.check(out, data_host[offset + stride * place], name=name)

# %% [markdown] about-matmul
# The two naive matrix products, checked here so that the profiler, which runs
# this file once more, meets them after the kernels above.

# %% check-matmul
from cudatut.book.basics.ladder.ladder import LADDER

side = 1024
MATMULS = ("naive_rows", "naive_columns")
for name in MATMULS:
    LADDER.check(name, [{"m": side, "n": side, "k": side}])
RAGGED = [{"m": 100, "n": 70, "k": 50}, {"m": 1, "n": 33, "k": 31}]
for name in MATMULS:
    LADDER.check(name, RAGGED)

# %% count

REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STORE_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
PASSES = "l1tex__data_pipe_lsu_wavefronts.sum"
MEMORY = "dram__bytes_read.sum"
TIME = "gpu__time_duration.sum"
# The first launches of these kernels, in the order of the cells above.
names = "read_(strided|pattern)|matmul_naive_(rows|columns)"
first = len(READS)  # `program` launches each twice, `check-strides` once
second, third = 3 * first, 3 * first + len(PATTERNS)
counted = ct.profile_launches(
    "basics/coalescing",
    kernel=f"regex:^({names})$",
    metrics=[
        REQUESTS,
        SECTORS,
        STORE_REQUESTS,
        STORE_SECTORS,
        PASSES,
        MEMORY,
        TIME,
    ],
    launches=third + len(MATMULS),
)
of_read = dict(zip(READS, counted[:first]))
of_pattern = dict(zip(PATTERNS, counted[second:third]))
of_matmul = dict(zip(MATMULS, counted[third:]))

# %% count-patterns
if counted:
    ct.table(
        "Sectors per request",
        {
            name: {
                "predicted": predicted[name],
                "counted": c[SECTORS] / c[REQUESTS],
                "useful bytes": 100 * useful[name],
            }
            for name, c in of_pattern.items()
        },
        corner="pattern",
        units={"useful bytes": "%"},
    )

# %% predict-strides
bandwidth = ct.limits.bandwidth()  # GB/s, as measured on this GPU
wanted, moved, written, expected_us = {}, {}, {}, {}
for name, (stride, offset) in READS.items():
    place = np.arange(offset, offset + n, stride, dtype="int32")  # rising
    changes = np.count_nonzero(np.diff(place // (SECTOR // WORD)))
    wanted[name] = WORD * n // stride
    moved[name] = SECTOR * (1 + changes)  # whole sectors, each read once
    written[name] = wanted[name] // each
    expected_us[name] = (moved[name] + written[name]) / bandwidth / 1e3

# %% strides-table
if counted:
    ct.table(
        "Reads of 64 MiB",
        {
            name: {
                "wanted": wanted[name] / 1e6,
                "in sectors": moved[name] / 1e6,
                "from memory": of_read[name][MEMORY] / 1e6,
                "predicted": expected_us[name],
                "measured": times[name].median_us,
            }
            for name in READS
        },
        corner="read",
        units={
            "wanted": "MB",
            "in sectors": "MB",
            "from memory": "MB",
            "predicted": "us",
            "measured": "us",
        },
    )
    shifted = times["one word on"].median_us / times["stride 1"].median_us
    ct.facts("One word on", {"time, one word on / aligned": shifted})

# %% [markdown] about-mappings
# One warp of each matrix product at one step of its loop: which words of A, B
# and C its lanes want, and how many sectors and cache lines that is.

# %% predict-matmul
LINE = 128  # bytes


def cache_lines(words):
    """Cache lines that a warp's request touches."""
    return len(np.unique(WORD * words // LINE))


MAPPINGS = {  # row and column of each lane in the first warp of a block
    "naive_rows": (lane, 0 * lane),
    "naive_columns": (0 * lane, lane),
}
steps = {}
for name, (row, column) in MAPPINGS.items():
    # Step i = 0 stands for all: at each further step all lanes move alike.
    of_a, of_b, of_c = row * side, column, row * side + column
    steps[name] = {
        "sectors of A": sectors(of_a),
        "sectors of B": sectors(of_b),
        "sectors of C": sectors(of_c),
        "cache lines of A and B": cache_lines(of_a) + cache_lines(of_b),
    }
ct.table("One warp, predicted", steps, corner="kernel")

# %% count-matmul
warps_steps = side**3 // 32  # every warp makes `side` steps
if counted:
    rows = {}
    for name, c in of_matmul.items():
        rows[name] = {
            "sectors per step": c[SECTORS] / warps_steps,
            "passes per step": c[PASSES] / warps_steps,
            "sectors per store": c[STORE_SECTORS] / c[STORE_REQUESTS],
            "from memory": c[MEMORY] / 1e6,
        }
    units = {"from memory": "MB"}
    ct.table("One warp, counted", rows, corner="kernel", units=units)
    gpu = ct.device()
    ct.facts(
        "Passes per clock cycle of an SM",
        {
            name: c[PASSES] / gpu.sm_count / (c[TIME] * gpu.clock_khz / 1e6)
            for name, c in of_matmul.items()
        },
    )

# %% bench-matmul
large = 2048
matmul_times = LADDER.bench(
    list(MATMULS),
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="2048 x 2048 x 2048",
)

# %% gain
rows, columns = (steps[name] for name in MATMULS)
slow, fast = (matmul_times[name].median_us for name in MATMULS)
by_sectors = [s["sectors of A"] + s["sectors of B"] for s in (rows, columns)]
by_lines = [s["cache lines of A and B"] for s in (rows, columns)]
ct.facts(
    "naive_rows / naive_columns",
    {
        "predicted by sectors": by_sectors[0] / by_sectors[1],
        "predicted by cache lines": by_lines[0] / by_lines[1],
        "measured time": slow / fast,
    },
)
