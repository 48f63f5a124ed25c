# ---
# jupyter:
#   cudatut:
#     title: {en: "One launch, and the limit", zh: "一次启动，直达极限"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [33554432, 16384, 2097152]
#       short_n: [65536, 4096]
#       words_n: [1048576, 16384]
#       lengths: [[100003, 250007, 1111111], [100003]]
#       ragged_n: [1111111, 50003]
#       large_n: [268435456, 16384]
#       huge: [1073741824, 16384]
#       times: [20, 2]
#       repeats: [50, 2]
# ---

# %% [markdown]
# The last rungs: the block that finishes last adds up; enough bytes in flight
# to fill the memory, from registers or by a copy engine; and for short arrays a
# partial sum that carries its own flag. First the eighth rung as a whole
# program.

# %% program
import numpy as np
import cudatut as ct

count = 1_000_000
x = ct.to_device(ct.rng(0).standard_normal(count, dtype="float32"))
kernel = ct.Kernel("reduction/ladder/one_launch.cu", "reduce_one_launch")
blocks = kernel.resources(256).blocks_per_sm * ct.device().sm_count

total = ct.empty(1, "float32")
partials = ct.empty(blocks, "float32")
ticket = ct.to_device(np.zeros(1, "uint32"))  # 0 before the first launch
kernel(x, total, count, partials, ticket, grid=blocks, block=256)

ct.check(total, [x.get().sum(dtype="float64")], rtol=0, atol=0.1)

# %% setup
from dataclasses import dataclass, field

import pycuda.driver as cuda
from cudatut.book.reduction.ladder.ladder import LADDER, Sum
from cudatut.book.reduction.ladder.large import Repeated
from cudatut.book.reduction.one_launch.latency import (
    dram_ns,
    handover_ns,
    l2_ns,
)


gpu = ct.device()
LATE = [LADDER[name] for name in ("one_launch", "limit", "bulk", "flags")]
ONE, LIMIT, BULK, FLAGS = LATE
n = 33_554_432
short_n = 65_536
problem, integers = Sum(n), Sum(n, "int32")
TILE = problem.plan(LIMIT).block * 4 * 4  # elements of a block of rung 9


@dataclass(frozen=True)
class Variant(ct.Rung):
    """A rung with macros of its own."""

    defines: dict = field(default_factory=dict)

    def compile(self, **defines):
        return super().compile(**{**defines, **self.defines})


def variant(vectors):
    """Rung 9 with another number of loads per thread."""
    options = {**LIMIT.options, "vectors": str(vectors)}
    name = f"limit, {vectors} x 16 bytes"
    return Variant(
        name,
        LIMIT.path,
        LIMIT.kernel,
        options,
        defines={"VECTORS": vectors},
    )


# Rung 9 with the blocks that rung 11 has on a short array.
SMALLER = ct.Rung(
    "limit, blocks of 256",
    LIMIT.path,
    LIMIT.kernel,
    {**LIMIT.options, "block": "256"},
)

# %% [markdown]
# How many bytes must be in flight, and how many each rung has in flight.

# %% in-flight
# Little's law: bytes in flight = bandwidth x latency.
bandwidth, latency = ct.limits.bandwidth(), dram_ns()
needed = bandwidth * latency / gpu.sm_count  # bytes per SM
ct.facts(
    "Little's law",
    {
        "bandwidth": (bandwidth, "GB/s"),
        "latency": (latency, "ns"),
        "in flight for full bandwidth": (bandwidth * latency / 1e3, "kB"),
        "the same, per SM": (needed / 1e3, "kB"),
    },
)
# Loads of a thread that are issued before the first one is used, and the bytes
# of each: from the machine code.
LOADS = {"shuffle": (2, 4), "one_launch": (4, 4), "limit": (4, 16)}
rows = {}
for name, (loads, size) in LOADS.items():
    plan = problem.plan(LADDER[name])
    threads = plan.kernel.resources(plan.block).blocks_per_sm * plan.block
    rows[name] = {
        "threads per SM": threads,
        "bytes of a thread": loads * size,
        "in flight per SM": threads * loads * size / 1e3,
        "of what is needed": threads * loads * size / needed,
    }
ct.table(
    "in flight, by rung",
    rows,
    corner="rung",
    units={"in flight per SM": "kB", "of what is needed": "×"},
)


# %% predict
def requests(name, m):
    """Warp-wide loads: of the elements, and of the partial sums by the last
    block."""
    if name == "one_launch":
        return ct.cdiv(m, 32) + ct.cdiv(ONE_BLOCKS, 32)
    return ct.cdiv(m, 4 * 32) + ct.cdiv(ct.cdiv(m, TILE), 4 * 32)


ONE_BLOCKS = problem.plan(ONE).grid(n)
ct.table(
    "prediction",
    {
        "one_launch": {
            "partial sums": ONE_BLOCKS,
            "load instructions": requests("one_launch", n),
        },
        "limit": {
            "partial sums": ct.cdiv(n, TILE),
            "load instructions": requests("limit", n),
        },
    },
    corner="rung",
)
ct.facts(
    "limit of the time",
    {"time of the bytes": (4 * n / bandwidth / 1e3, "us")},
)

# %% predict-flags
# From the moment at which the last of the other blocks has its partial sum,
# with nothing else to wait for:
l2, handing = l2_ns(), handover_ns()
by_ticket = (
    handing["store and fence"] + handing["ticket"] + handing["fence"] + l2
)
# Half a trip for the store, half a poll in vain on average, half a trip for the
# answer:
by_flag = 1.5 * l2
ct.facts(
    "prediction: handing over",
    {
        "ticket: store and fence": (handing["store and fence"], "ns"),
        "ticket: atomic": (handing["ticket"], "ns"),
        "ticket: second fence": (handing["fence"], "ns"),
        "ticket: load from L2": (l2, "ns"),
        "ticket: together": (by_ticket, "ns"),
        "flag: store and poll": (by_flag, "ns"),
        "saved by the flag": ((by_ticket - by_flag) / 1e3, "us"),
    },
)

# %% [markdown]
# Right before fast: the rungs, ragged lengths, every block size. Integers add
# up exactly, so they would show a single lost tile.

# %% check
for sums in (problem, integers):
    for rung in LATE:
        sums.check(rung)
Sum(short_n).check(FLAGS)
Sum(short_n, "int32").check(FLAGS)

# %% check-all
for rung in LATE:
    LADDER.check(
        rung.name,
        [{"n": m, "dtype": d} for d in ("float32", "int32") for m in ct.RAGGED],
    )
lengths = (100_003, 250_007, 1_111_111)
for ragged in [Sum(m, d) for m in lengths for d in ("float32", "int32")]:
    for rung in LATE:
        for threads in rung.numbers("blocks"):
            ragged.check(rung, threads)

# %% [markdown]
# The time of a long array and of a short one.

# %% bench
bench = LADDER.bench(LADDER.names, n=n, name=f"sum of {n} float32")

# %% bench-short
few = ["shuffle", "few_blocks", "one_launch", "limit", SMALLER, "flags"]
short = LADDER.bench(few, n=short_n, name=f"sum of {short_n} float32")

# %% compare
us = {name: bench[name].median_us for name in ("few_blocks", "one_launch")}
short_us = {
    name: short[name].median_us
    for name in ("few_blocks", "one_launch", SMALLER.name, "flags")
}
ct.facts(
    "one launch: predicted and measured",
    {
        "saved by one launch": (us["few_blocks"] - us["one_launch"], "us"),
        f"saved by one launch, {short_n} elements": (
            short_us["few_blocks"] - short_us["one_launch"],
            "us",
        ),
        "saved by the flag, predicted": ((by_ticket - by_flag) / 1e3, "us"),
        "saved by the flag, measured": (
            short_us[SMALLER.name] - short_us["flags"],
            "us",
        ),
        "naive / limit": (
            bench["naive"].median_us / bench["limit"].median_us,
            "×",
        ),
    },
)

# %% [markdown]
# The profiler counts load instructions and sectors.

# %% counters
# The profiler runs this file again. The first launch is that of the program.
counted = ct.profile_launches(
    "reduction/one_launch",
    kernel="regex:reduce_(one_launch|limit)",
    metrics=[
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "smsp__inst_executed.sum",
    ],
    launches=2,
    skip=1,
)
PROFILED = 1 << 21  # elements that the profiler sees
rows = {}
for name, run in zip(("one_launch", "limit"), counted):
    loads, sectors, executed = run.values()
    rows[name] = {
        "load instructions, predicted": requests(name, PROFILED),
        "load instructions, measured": loads,
        "sectors per load": sectors / loads,
        "warp instructions per 32 elements": executed / (PROFILED / 32),
    }
if rows:
    ct.table(f"{PROFILED} elements", rows, corner="rung")
    PER = "warp instructions per 32 elements"
    left = rows["limit"][PER] / rows["one_launch"][PER]
    ct.facts(
        "limit after one_launch",
        {"instructions that are left": (100 * left, "%")},
    )

# %% [markdown]
# Twenty sums of the same data, by atomics and by the rungs.

# %% twenty-runs
FILE = "reduction/one_launch/atomic_sum.cu"
atomic = {
    "float": ct.Kernel(FILE, "sum_atomic", defines={"ELEMENT": "float"}),
    "int": ct.Kernel(FILE, "sum_atomic", defines={"ELEMENT": "int"}),
}
problems = {"float": problem, "int": integers}
times = 20


def by_atomics(dtype):
    kernel, x = atomic[dtype], problems[dtype].x
    out = ct.empty(1, problems[dtype].dtype)

    def run():
        cuda.memset_d32(out.gpudata, 0, 1)
        kernel(x, out, n, grid=8 * gpu.sm_count, block=256)

    run.out = out
    return run


def results(run):
    found = []
    for _ in range(times):
        run()
        found.append(run.out.get()[0].item())
    return found


twenty = {f"atomicAdd, {dtype}": results(by_atomics(dtype)) for dtype in atomic}
twenty |= {
    f"{rung.name}, float": results(problem.launcher(rung))
    for rung in (ONE, LIMIT, BULK)
}
words_n = 1_048_576  # few enough blocks for the words
words = Sum(words_n)
twenty["flags, float"] = results(words.launcher(FLAGS))
spread = {}
for name, of in (
    ("atomicAdd, float", problem),
    ("limit, float", problem),
    ("flags, float", words),
):
    values = np.array(twenty[name])
    exact = np.full(len(values), float(of.expected[0]))
    ct.check(values, exact, rtol=0, atol=of.tolerance, name=f"20 sums: {name}")
    spread[name] = float(values.max() - values.min())
ct.facts(
    "distinct sums of 20 runs",
    {name: len(set(values)) for name, values in twenty.items()}
    | {"atomicAdd, float: largest - least": spread["atomicAdd, float"]},
)

# %% [markdown]
# Two streams, each with many sums of its own data: first with a ticket and
# partial sums for each stream, then with the same for both.


# %% overlap
def sums_on_two_streams(shared):
    """Of so many sums, how many are wrong."""
    block, blocks = 256, problem.plan(ONE).grid(short_n)
    data = [Sum(short_n, "int32", seed=seed) for seed in (0, 1)]
    kernel = data[0].compile(ONE, block)

    def workspace():
        return ct.empty(blocks, "int32"), ct.to_device(np.zeros(1, "uint32"))

    works = [workspace()] * 2 if shared else [workspace(), workspace()]
    kept = [ct.empty(repeats, "int32") for sums in data]
    places = [[out[k : k + 1] for k in range(repeats)] for out in kept]
    streams = [cuda.Stream(), cuda.Stream()]
    for _ in range(30):  # the GPU is busy until all launches are enqueued
        ct.flush_l2()
    for k in range(repeats):
        for i in (0, 1):
            kernel(
                data[i].x,
                places[i][k],
                short_n,
                *works[i],
                grid=blocks,
                block=block,
                stream=streams[i],
            )
    ct.synchronize()
    wrong = [out.get() != sums.expected for out, sums in zip(kept, data)]
    return int(np.sum(wrong))


repeats = 50
ct.facts(
    f"one_launch on two streams, {2 * repeats} sums",
    {
        "wrong, a ticket for each": sums_on_two_streams(shared=False),
        "wrong, one ticket for both": sums_on_two_streams(shared=True),
    },
)

# %% [markdown]
# What was tried for the ninth rung.

# %% tried
WALK = ct.read_rung("reduction/one_launch/limit_walk.cu")
DRAW = ct.read_rung("reduction/one_launch/limit_draw.cu")
SERIAL = ct.read_rung("reduction/one_launch/limit_serial.cu")
ragged_n = 1_111_111
ragged = Sum(ragged_n)
for rung in (WALK, DRAW, SERIAL, variant(1), variant(2), variant(8)):
    ragged.check(rung)
large_n = 268_435_456
candidates = {f"{v} x 16 bytes": (variant(v), None) for v in (1, 2, 4, 8)}
candidates |= {
    "4 x 16 bytes, blocks of 256": (LIMIT, 256),
    "4 x 16 bytes, blocks of 512": (LIMIT, 512),
    "resident blocks that walk": (WALK, None),
    "resident blocks that draw tiles": (DRAW, None),
    "4 x 4 bytes, one_launch": (ONE, None),
    "copy engine, bulk": (BULK, None),
}
large = Repeated(large_n, "int32")
for rung, block in candidates.values():
    large.check(rung, block)
large = Repeated(large_n)
for rung, block in candidates.values():
    large.check(rung, block)
tried = ct.bench(
    {
        name: large.launcher(rung, block)
        for name, (rung, block) in candidates.items()
    },
    bytes=large.bytes,
    name=f"sum of {large.n} float32",
    rounds=60,
)
del large

# %% [markdown]
# 2^30 elements: how long the last block needs alone, predicted and measured.

# %% tail
# What the last block does alone: it waits once per turn of its loop, and the
# sums lie in L2.
huge = 1_073_741_824
tiles, block = ct.cdiv(huge, TILE), problem.plan(LIMIT).block
wait = l2 / 1e3
turns = {"one by one": ct.cdiv(tiles, block)}
turns["4 x 16 bytes"] = ct.cdiv(tiles, 4 * 4 * block)
ct.table(
    "prediction: the tail",
    {
        name: {"waits of a thread": count, "time": count * wait}
        for name, count in turns.items()
    },
    corner="loads of the partial sums",
    units={"time": "us"},
)
ct.facts(
    "the tail", {"partial sums": tiles, "one load from L2": (1e3 * wait, "ns")}
)


# %% limit-float
def contest(dtype):
    problem, rungs = Repeated(huge, dtype), (ONE, WALK, SERIAL, LIMIT, BULK)
    for rung in rungs:
        problem.check(rung)
    return ct.bench(
        {rung.name: problem.launcher(rung) for rung in rungs}
        | problem.vendors(),
        bytes=problem.bytes,
        name=f"sum of {problem.n} {problem.dtype}",
        rounds=60,
    )


at_limit = {"float32": contest("float32")}

# %% limit-int
at_limit["int32"] = contest("int32")

# %% reached
# Two transfers per clock.
theoretical = 2 * gpu.memory_clock_khz * gpu.bus_bits / 8 / 1e6
ct.facts(
    "bandwidth",
    {
        "theoretical bandwidth": (theoretical, "GB/s"),
        "measured limit, 1 GiB": (bandwidth, "GB/s"),
        "limit, 1 GiB": (tried["4 x 16 bytes"].value, "GB/s"),
    },
)
rows = {}
for dtype, bench_at in at_limit.items():
    rate = bench_at["limit"].value
    rows[dtype] = {
        "limit": rate,
        "of the theoretical": 100 * rate / theoretical,
    }
    if any(row.vendor for row in bench_at.rows):
        us = {name: bench_at[name].median_us for name in ("CUB", "limit")}
        rows[dtype]["against CUB"] = us["CUB"] / us["limit"]
ct.table(
    "what is reached",
    rows,
    corner="type",
    units={"limit": "GB/s", "of the theoretical": "%"}
    | ({"against CUB": "×"} if "against CUB" in rows["float32"] else {}),
)

# %% tail-compare
more = turns["one by one"] - turns["4 x 16 bytes"]
costs = {
    dtype: bench_at["limit_serial"].median_us - bench_at["limit"].median_us
    for dtype, bench_at in at_limit.items()
}
whole = at_limit["float32"]["limit_serial"].median_us
ct.facts(
    "what the serial tail costs",
    {
        "predicted, with the sums in L2": (more * wait, "us"),
        "the same, with the sums in memory": (more * latency / 1e3, "us"),
    }
    | {f"measured, {dtype}": (cost, "us") for dtype, cost in costs.items()}
    | {"share of the time": (100 * costs["float32"] / whole, "%")},
)
