# ---
# jupyter:
#   cudatut:
#     title: {en: "Softmax", zh: "Softmax：把分数变成份额"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       rows: [4096, 8, 8]
#       SHORT: [[8192, 8192], [8, 8192], [8192, 8192]]
#       LOGITS: [[1056, 49152], [4, 49152]]
#       LONG: [[528, 128256], [4, 128256], [528, 128256]]
#       SHAPES:
#         - [[100000, 128, 4], [65536, 576, 2], [16384, 4096, 2], [2048, 32768, 4]]
#         - [[40, 128, 4], [40, 576, 2], [9, 4096, 2], [3, 32768, 4]]
# ---

# %% [markdown]
# Rows of numbers become rows of shares. First the kernel that reads each row
# once, as a whole program.

# %% program
import numpy as np
import cudatut as ct

rows = 4096
width = 8192
x = ct.to_device(ct.rng(0).standard_normal((rows, width), dtype="float32"))
out = ct.empty((rows, width), "float32")

# 512 threads have a row, and each of them 4 vectors of 4 floats.
kernel = ct.Kernel(
    "llm/kernels/softmax.cu", "softmax_fused<float,float,4,512,4>"
)
scale, queries, lengths = 1.0, 0, np.uint64(0)  # every row sees all columns
kernel(
    x, width, out, width, rows, width, scale, queries, lengths,
    grid=rows, block=512,
)  # fmt: skip

few = x[:8].get().astype("float64")
powers = np.exp(few - few.max(axis=1, keepdims=True))
ct.check(out[:8], powers / powers.sum(axis=1, keepdims=True), rtol=2e-5)

# %% setup
from cudatut.book.llm.model.reference import softmax as softmax_numpy
from cudatut.book.llm.kernels.row_softmax import (
    RUNGS,
    SOURCE,
    cluster_share,
    rungs,
    softmax,
)
from cudatut.book.llm.kernels.rows import kernel as instance
from cudatut.book.llm.kernels.rows import share
from cudatut.book.measure.spread import medians
from cudatut.book.rivals.torch_rival import rival
from cudatut.book.numbers.bf16 import to_bf16

SHORT = (8192, 8192)  # rows, floats of a row
LOGITS = (1056, 49152)  # a row for each token: the vocabulary of SmolLM2
LONG = (528, 128256)  # and that of Llama 3
ON_ONE_SM = RUNGS[:4]
# Clusters, if there are any.
OF_LONG = ("three_pass", "online", *rungs()[4:])
MIB = 1 << 20


def pair(shape, seed):
    """Random rows on the GPU, and room for the result."""
    x = ct.rng(seed).standard_normal(shape, dtype="float32")
    return ct.to_device(x), ct.empty(shape, "float32")


def check_rows(x, out, name):
    few = x[:4].get().astype("float64")
    ct.check(out[:4], softmax_numpy(few), name=name, rtol=2e-5)


# %% launch
of_short, of_long = pair(SHORT, 1), pair(LONG, 2)
for by in ON_ONE_SM:  # the profiler counts these launches
    softmax(*of_short, by=by)
for by in OF_LONG:
    softmax(*of_long, by=by)
check_rows(*of_long, name=f"softmax_{OF_LONG[-1]}")

# %% [markdown]
# The largest number and the sum, one number after the other.

# %% recurrence
row = [1.0, 3.0, 2.0, 5.0]
largest, sum_ = float("-inf"), 0.0
steps = {}
for number, x in enumerate(row, 1):
    before, largest = largest, max(largest, x)
    factor = float(np.exp(before - largest))  # 1 if there is no larger one
    sum_ = sum_ * factor + float(np.exp(x - largest))
    steps[f"number {number}"] = {
        "x": x,
        "largest so far": largest,
        "old sum times": factor,
        "sum so far": sum_,
    }
ct.table("the row 1, 3, 2, 5", steps, corner="after")
# %% recurrence-check
at_once = float(np.exp(np.array(row) - max(row)).sum())
ct.check([sum_], [at_once], name="the sum in one step", rtol=1e-12)

# %% [markdown]
# What each kernel moves, before the run.

# %% predict
PASSES = {"three_pass": 3, "online": 2, "fused": 1, "shared": 1, "cluster": 1}
ct.table(
    "if every pass goes to the memory",
    {
        f"softmax_{by}": {
            "reads of x": reads,
            "writes": 1,
            "of the speed of a copy": 100 * 2 / (reads + 1),
        }
        for by, reads in PASSES.items()
    },
    corner="kernel",
    units={"of the speed of a copy": "%"},
)

# %% resident
gpu = ct.device()


def blocks_at_once(by, width):
    """Blocks, that is rows, which the GPU works on at the same time."""
    threads = max(128, share(width, 4)[0])
    run = instance(SOURCE, f"softmax_{by}", "float", "float", 4, threads)
    return run.resources(threads).blocks_per_sm * gpu.sm_count


table = {}
for _, width in (SHORT, LONG):
    count = blocks_at_once("three_pass", width)
    table[f"rows of {width}"] = {
        "one row": width * 4 / 1024,
        "rows at a time": count,
        "together": count * width * 4 / MIB,
        "L2": gpu.l2_bytes / MIB,
    }
ct.table(
    "what the blocks of `three_pass` work on at a time",
    table,
    corner="x",
    units={"one row": "KiB", "together": "MiB", "L2": "MiB"},
)

# %% shares
ct.table(
    "fp32, 4 numbers a load",
    {
        f"{width} floats": dict(
            zip(("threads of a row", "loads of a thread"), share(width, 4))
        )
        for width in (16, 128, 768, 1024, 8192, 32768)
    },
    corner="row",
)

# %% clusters
table = {}
for width in (LOGITS[1], LONG[1], 8 * 32768):
    threads, per, blocks = cluster_share(width, 4)
    table[f"{width} floats"] = {
        "blocks of the cluster": blocks,
        "threads of a block": threads,
        "loads of a thread": per,
        "of the row in a block": width * 4 / blocks / 1024,
    }
ct.table(
    "rows in clusters, fp32, 4 numbers a load",
    table,
    corner="row",
    units={"of the row in a block": "KiB"},
)

# %% [markdown]
# Right before fast: odd widths, every kernel; then rows that see a part.

# %% check
for n, width in ((7, 769), (33, 17), (40, 1000)):
    x, out = pair((n, width), n)
    want = softmax_numpy(0.7 * x.get().astype("float64"))
    for by in rungs():
        ct.poison(out)
        softmax(x, out, 0.7, by=by)
        ct.check(out, want, name=f"softmax_{by}, {n} x {width}", rtol=2e-5)

# %% masks
# Two matrices of 40 queries and 1000 keys. What a row must not see is NaN.
queries, width = 40, 1000
scores = ct.rng(3).standard_normal((2 * queries, width), dtype="float32")
seen = width - queries + 1 + np.arange(2 * queries) % queries
lengths = ct.rng(4).integers(0, width + 1, 2 * queries).astype("int32")
seen = np.minimum(seen, lengths)
want = np.zeros(scores.shape)
for r, count in enumerate(seen):
    scores[r, count:] = np.nan
    if count:
        want[r, :count] = softmax_numpy(scores[r, :count].astype("float64"))
masked = ct.to_device(scores)
lengths = ct.to_device(lengths)
out = ct.empty(scores.shape, "float32")
for by in rungs():
    ct.poison(out)
    softmax(masked, out, lengths=lengths, queries=queries, by=by)
    ct.check(out, want, name=f"causal and lengths, softmax_{by}", rtol=2e-5)

# %% [markdown]
# The counters, and the clock.

# %% count
ASKED = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
# The first launch is that of the program.
counted = ct.profile_launches(
    "llm/softmax",
    kernel="regex:^softmax_(three_pass|online|fused|shared|cluster)$",
    metrics=[ASKED, READ, WRITTEN],
    launches=len(ON_ONE_SM + OF_LONG),
    skip=1,
)
labels = [(by, SHORT) for by in ON_ONE_SM]
labels += [(by, LONG) for by in OF_LONG]
table = {}
for (by, (n, width)), got in zip(labels, counted):
    nbytes = 4 * n * width
    table[f"softmax_{by}, rows of {width}"] = {
        "loads ask for": got[ASKED] * 32 / nbytes,
        "read from memory": got[READ] / nbytes,
        "written to memory": got[WRITTEN] / nbytes,
    }
if table:
    ct.table("bytes, in times of those of x", table, corner="kernel")

# %% count-check
if table:
    ct.check(
        [row["loads ask for"] for row in table.values()],
        [float(PASSES[by]) for by, _ in labels],
        name="passes over x",
        rtol=0.1,
    )


# %% bench
def contest(x, out, rungs):
    """Kernels beside a copy of as many bytes, and PyTorch."""
    runs = {"copy": ct.vendor.copy(out, x)}
    for by in rungs:
        runs[f"softmax_{by}"] = lambda by=by: softmax(x, out, by=by)
    runs["PyTorch"] = rival(lambda torch, t: lambda: torch.softmax(t, -1), x)
    name = "{} rows of {} floats".format(*x.shape)
    return ct.bench(runs, bytes=2 * x.nbytes, name=name)


short_times = contest(*of_short, ON_ONE_SM)

# %% bench-logits
logits_times = contest(*pair(LOGITS, 5), ("shared", *OF_LONG))

# %% bench-long
long_times = contest(*of_long, OF_LONG)


# %% compare
def ratio(times, slow, fast):
    return times[slow].median_us / times[fast].median_us


three, online, fused = (f"softmax_{by}" for by in RUNGS[:3])
found = {
    "three walks / one walk, rows of 8192": ratio(short_times, three, fused),
    "three walks / two walks, rows of 8192": ratio(short_times, three, online),
    "three walks / two walks, rows of 128256": ratio(long_times, three, online),
    "three walks / two walks, from memory": 4 / 3,
    "three walks / one walk, from memory": 4 / 2,
}
if "PyTorch" in [row.name for row in short_times.rows]:  # not under a tool
    found["PyTorch / one walk, rows of 8192"] = ratio(
        short_times, "PyTorch", fused
    )
ct.facts("time, by the number of walks over x", found)

# %% shapes
# Rows, width, bytes of a number.
SHAPES = ((100000, 128, 4), (65536, 576, 2), (16384, 4096, 2), (2048, 32768, 4))


def beside_copy(n, width, size):
    x = ct.rng(7).standard_normal((n, width), dtype="float32")
    x = ct.to_device(x if size == 4 else to_bf16(x))
    out = ct.empty((n, width), x.dtype)
    runs = {
        "copy": ct.vendor.copy(out, x),
        "softmax_fused": lambda: softmax(x, out, by="fused"),
        "PyTorch": rival(lambda torch, t: lambda: torch.softmax(t, -1), x),
    }
    us = medians(runs)
    return {
        n: us["copy"] / us[n] if {n, "copy"} <= us.keys() else None
        for n in list(runs)[1:]
    }


table = {}
for n, width, size in SHAPES:
    name = f"{n} x {width}, {'fp32' if size == 4 else 'bf16'}"
    table[name] = beside_copy(n, width, size)
if not ct.tool.running():
    ct.table("speed, in times of that of a copy", table, corner="rows")

# %% bench-causal
n, width = SHORT
x, out = of_short
whole = 2 * x.nbytes
half = whole // 2 + sum(4 * min(width, width - n + 1 + r) for r in range(n))
causal_times = ct.bench(
    {
        "copy": ct.vendor.copy(out, x),
        "all columns": lambda: softmax(x, out),
        "causal": lambda: softmax(x, out, queries=n),
    },
    bytes={"copy": whole, "all columns": whole, "causal": half},
    name="softmax_fused, {} x {}".format(*SHORT),
)
ct.facts(
    "causal",
    {
        "time, predicted": half / whole,
        "time, measured": causal_times["causal"].median_us
        / causal_times["all columns"].median_us,
    },
)

# %% [markdown]
# Without the largest number.

# %% ranges
ct.table(
    "the largest x whose exp(x) is finite",
    {
        name: {"largest number": f"{limit:.4g}", "x": float(np.log(limit))}
        for name, limit in (
            ("fp16", 65504.0),
            ("bf16", (2 - 2.0**-7) * 2.0**127),
            ("fp32", np.finfo("float32").max),
        )
    },
    corner="type",
)

# %% overflow
unsafe = ct.Kernel(
    """
__global__ void softmax_unsafe(const float *x, float *out, int width) {
  float sum = 0.0f;
  for (int c = 0; c < width; ++c) sum += expf(x[c]);
  for (int c = 0; c < width; ++c) out[c] = expf(x[c]) / sum;
}
""",
    "softmax_unsafe",
)
row = np.array([1, 3, 2, 5], "float32")
table = {}
for shift in (0, 80, 84, -110):
    x = ct.to_device((row + shift)[None])
    wild, safe = ct.empty((1, 4), "float32"), ct.empty((1, 4), "float32")
    unsafe(x, wild, 4, grid=1, block=1)  # one thread is enough here
    softmax(x, safe)
    table[f"all numbers {shift:+d}"] = {
        name: "NaN" if np.isnan(found) else float(found)
        for name, found in (
            ("without the largest", wild.get()[0, 3]),
            ("with it", safe.get()[0, 3]),
        )
    }
ct.table("the share of 5 in the row 1, 3, 2, 5", table, corner="row")
