# ---
# jupyter:
#   cudatut:
#     title: {en: "One launch, and the limit", zh: "一次启动，直达极限"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# The last three rungs: the block that finishes last adds up; enough bytes in flight to fill the memory; and for short
# arrays a partial sum that carries its own flag.

# %% setup
from dataclasses import dataclass, field

import numpy as np
import pycuda.driver as cuda
from ladder import LADDER, Sum
from large import Repeated
from latency import dram_ns, handover_ns, l2_ns

import cudatut as ct
from cudatut.ladder import Rung, read_rung
from cudatut.profiler import profile_launches

gpu = ct.device()
ONE, LIMIT, FLAGS = (LADDER[name] for name in ("one_launch", "limit", "flags"))
profiled_n = 1 << 21  # what a profiler sees
n = ct.size(1 << 25, 1 << 14, profiled=profiled_n)
problem, short_n = Sum(n), ct.size(1 << 16, 1 << 12)


@dataclass(frozen=True)
class Variant(Rung):
    """A rung with macros of its own."""

    defines: dict = field(default_factory=dict)

    def compile(self, **defines):
        return super().compile(**{**defines, **self.defines})


def variant(vectors):
    """Rung 9 with another number of loads per thread."""
    options = {**LIMIT.options, "vectors": str(vectors)}
    name = f"limit, {vectors} x 16 bytes"
    return Variant(
        name, LIMIT.path, LIMIT.kernel, options, {"VECTORS": vectors}
    )


# Rung 9 with the blocks that rung 10 has on a short array.
SMALLER = Rung(
    "limit, blocks of 256",
    LIMIT.path,
    LIMIT.kernel,
    {**LIMIT.options, "block": "256"},
)


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
rows = {}
for name, loads, size in (
    ("shuffle", 2, 4),
    ("one_launch", 4, 4),
    ("limit", 4, 16),
):
    rung = LADDER[name]
    block = rung.number("block")
    threads = (
        rung.compile(BLOCK=block, ELEMENT="float")
        .resources(block)
        .blocks_per_sm
        * block
    )
    rows |= {
        f"{name}: threads per SM": threads,
        f"{name}: bytes of each": loads
        * size,  # loads that the compiler issues before one is used
        f"{name}: in flight per SM": (threads * loads * size / 1e3, "kB"),
        f"{name}: of what is needed": threads * loads * size / needed,
    }
ct.facts("in flight, by rung", rows)


# %% predict
def requests(name, m):
    """Warp-wide loads: of the elements, and of the partial sums by the last block."""
    if name == "one_launch":
        blocks = ONE_BLOCKS
        return ct.cdiv(m, 32) + ct.cdiv(blocks, 32)
    blocks = ct.cdiv(m, 8192)
    return ct.cdiv(m, 4 * 32) + ct.cdiv(blocks, 4 * 32)


ONE_BLOCKS = (
    ONE.compile(BLOCK=256, ELEMENT="float").resources(256).blocks_per_sm
    * gpu.sm_count
)
TILES = ct.cdiv(n, 8192)
ct.facts(
    "prediction",
    {
        "few_blocks: launches": 2,
        "one_launch: launches": 1,
        "limit: launches": 1,
        "one_launch: partial sums": ONE_BLOCKS,
        "limit: partial sums": TILES,
        "one_launch: load instructions": requests("one_launch", n),
        "limit: load instructions": requests("limit", n),
        "time of the bytes": (4 * n / bandwidth / 1e3, "us"),
    },
)

# %% predict-flags
# From the moment at which the last of the other blocks has its partial sum, with nothing else to wait for:
l2, steps = l2_ns(), handover_ns()
by_ticket = steps["store and fence"] + steps["ticket"] + steps["fence"] + l2
# Half a trip for the store, half a poll in vain on average, half a trip for the answer:
by_flag = 1.5 * l2
ct.facts(
    "prediction: handing over",
    {
        "ticket: store and fence": (steps["store and fence"], "ns"),
        "ticket: atomic": (steps["ticket"], "ns"),
        "ticket: second fence": (steps["fence"], "ns"),
        "ticket: load from L2": (l2, "ns"),
        "ticket: together": (by_ticket, "ns"),
        "flag: store and poll": (by_flag, "ns"),
        "saved by the flag": ((by_ticket - by_flag) / 1e3, "us"),
    },
)

# %% check
for rung in (ONE, LIMIT, FLAGS):
    problem.check(rung)
Sum(short_n).check(FLAGS)

# %% check-all
for rung in (ONE, LIMIT, FLAGS):
    LADDER.check(
        rung.name,
        [{"n": m, "dtype": d} for d in ("float32", "int32") for m in ct.RAGGED],
    )
for ragged in map(Sum, ct.size((100_003, 250_007, 1_111_111), (100_003,))):
    for rung in (ONE, LIMIT, FLAGS):
        for threads in rung.numbers("blocks"):
            ragged.check(rung, threads)

# %% bench
bench = LADDER.bench(LADDER.names, n=n, name=f"sum of {n} float32")

# %% bench-short
few = ["shuffle", "few_blocks", "one_launch", "limit", SMALLER, "flags"]
short = LADDER.bench(few, n=short_n, name=f"sum of {short_n} float32")

# %% compare
ct.facts(
    "one launch: predicted and measured",
    {
        "predicted, if only bytes count": (4 * n / bandwidth / 1e3, "us"),
        "few_blocks": (bench["few_blocks"].median_us, "us"),
        "one_launch": (bench["one_launch"].median_us, "us"),
        "limit": (bench["limit"].median_us, "us"),
        "saved by one launch": (
            bench["few_blocks"].median_us - bench["one_launch"].median_us,
            "us",
        ),
        "the same, 65536 elements": (
            short["few_blocks"].median_us - short["one_launch"].median_us,
            "us",
        ),
        "saved by the flag, predicted": ((by_ticket - by_flag) / 1e3, "us"),
        "saved by the flag, measured": (
            short[SMALLER.name].median_us - short["flags"].median_us,
            "us",
        ),
    },
)

# %% counters
counted = profile_launches(
    "reduction/one_launch",
    kernel="regex:reduce_(one_launch|limit)",
    metrics=[
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "smsp__inst_executed.sum",
    ],
    launches=2,
)
for name, run in zip(("one_launch", "limit"), counted):
    loads, sectors, executed = run.values()
    ct.facts(
        f"{name}: {profiled_n} elements",
        {
            "load instructions, predicted": requests(name, profiled_n),
            "load instructions, measured": loads,
            "sectors per load, predicted": 4 if name == "one_launch" else 16,
            "sectors per load, measured": sectors / loads,
            "warp instructions per 32 elements": executed / (profiled_n / 32),
        },
    )

# %% twenty-runs
FILE = "reduction/atomic_sum.cu"
atomic = {
    "float": ct.Kernel(FILE, "sum_atomic", defines={"ELEMENT": "float"}),
    "int": ct.Kernel(FILE, "sum_atomic", defines={"ELEMENT": "int"}),
}
problems = {"float": problem, "int": Sum(n, "int32")}


def by_atomics(dtype):
    kernel, x, out = (
        atomic[dtype],
        problems[dtype].x,
        ct.empty(1, problems[dtype].dtype),
    )

    def run():
        cuda.memset_d32(out.gpudata, 0, 1)
        kernel(x, out, n, grid=8 * gpu.sm_count, block=256)

    run.out = out
    return run


def results(run):
    found = []
    for _ in range(ct.size(20, 2)):
        run()
        found.append(run.out.get()[0].item())
    return found


twenty = {f"atomicAdd, {dtype}": results(by_atomics(dtype)) for dtype in atomic}
twenty |= {
    f"{rung.name}, float": results(problem.launcher(rung))
    for rung in (ONE, LIMIT)
}
words = Sum(ct.size(1 << 20, 1 << 14))  # few enough blocks for the words
twenty["flags, float"] = results(words.launcher(FLAGS))
spread = {}
for name, of in (
    ("atomicAdd, float", problem),
    ("limit, float", problem),
    ("flags, float", words),
):
    values, exact = (
        np.array(twenty[name]),
        np.full(len(twenty[name]), float(of.expected[0])),
    )
    ct.check(values, exact, rtol=0, atol=of.tolerance, name=f"20 sums: {name}")
    spread[name] = float(values.max() - values.min())
ct.facts(
    "distinct sums of 20 runs",
    {name: len(set(values)) for name, values in twenty.items()}
    | {"atomicAdd, float: largest - least": spread["atomicAdd, float"]},
)

# %% linear
linear = ct.Kernel(FILE, "sum_linear")
ones, out = ct.to_device(np.ones(960, "int32")), ct.empty(1, "int32")


def sum_of_ones(block, runs=1):
    cuda.memset_d32(out.gpudata, 0, 1)
    for _ in range(runs):
        linear(ones, out, 960, grid=960 // block, block=block, shared=4 * block)
    return int(out.get()[0])


def tree(threads):
    """What the halving tree leaves of that many ones."""
    sums, half = [1] * threads, threads // 2
    while half:
        sums[:half] = [sums[t] + sums[t + half] for t in range(half)]
        half //= 2
    return sums[0]


ct.facts(
    "960 ones",
    {
        "blocks of 32": sum_of_ones(32),
        "blocks of 96, predicted": 10 * tree(96),
        "blocks of 96, measured": sum_of_ones(96),
        "second run, output not zeroed": sum_of_ones(32, runs=2),
    },
)
for id, block, runs, english, chinese in (
    (
        "atomic-any-block",
        96,
        1,
        "sums for any block size; here 960 ones in blocks of 96",
        "线程块多大都能求和；这里是 960 个 1，每块 96 个线程",
    ),
    (
        "atomic-any-output",
        32,
        2,
        "leaves the sum in its output, whatever was there",
        "不管输出里原来是什么，运行之后就是总和",
    ),
):
    measured = sum_of_ones(block, runs)
    ct.claim(
        id=f"reduction-{id}",
        source="CS179 notes: cudaSum_linear_kernel",
        statement={
            "en": f"The kernel with one atomic addition per block {english}.",
            "zh": f"每块做一次原子加的 kernel，{chinese}。",
        },
        predicted=960,
        measured=measured,
        verdict="confirmed" if measured == 960 else "refuted",
    )

# %% launches-claim
run = problems["int"].launcher(ONE)
ct.poison(run.out)
run()
enough = int(run.out.get()[0]) == int(problems["int"].expected[0])
ct.claim(
    id="reduction-blocks-cannot-synchronize",
    source="CS179 notes",
    statement={
        "en": "Blocks of one launch cannot synchronize, so summing their partial sums takes a second launch.",
        "zh": "同一次启动的线程块之间无法同步，所以把部分和加起来要再启动一次。",
    },
    predicted=2,
    measured=1 if enough else 2,  # launches after which the total is right
    unit="launches",
    verdict="refuted" if enough else "confirmed",
)

# %% tried
WALK, SERIAL = (
    read_rung("reduction/limit_walk.cu"),
    read_rung("reduction/limit_serial.cu"),
)
ragged = Sum(ct.size(1_111_111, 50_003))
for rung in (WALK, SERIAL, variant(1), variant(2), variant(8)):
    ragged.check(rung)
large = Repeated(ct.size(1 << 28, 1 << 14))
candidates = {f"{v} x 16 bytes": (variant(v), None) for v in (1, 2, 4, 8)}
candidates |= {
    "4 x 16 bytes, blocks of 256": (LIMIT, 256),
    "4 x 16 bytes, blocks of 1024": (LIMIT, 1024),
    "resident blocks that walk": (WALK, None),
    "4 x 4 bytes, one_launch": (ONE, None),
}
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

# %% tail
# What the last block does alone: it waits once per turn of its loop, and the sums lie in L2.
huge = ct.size(1 << 30, 1 << 14)
tiles = ct.cdiv(huge, 8192)
wait = l2 / 1e3
predicted = {
    "one by one": (ct.cdiv(tiles, 512) * wait, "us"),
    "4 x 16 bytes": (ct.cdiv(tiles, 4 * 4 * 512) * wait, "us"),
}
ct.facts(
    "prediction: the tail",
    {"partial sums": tiles, "one load from L2": (1e3 * wait, "ns")} | predicted,
)


# %% limit-float
def contest(dtype):
    problem, rungs = Repeated(huge, dtype), (ONE, WALK, SERIAL, LIMIT)
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
theoretical = (
    2 * gpu.memory_clock_khz * gpu.bus_bits / 8 / 1e6
)  # two transfers per clock
rows = {
    "theoretical bandwidth": (theoretical, "GB/s"),
    "measured limit": (bandwidth, "GB/s"),
}
for dtype, bench_at in at_limit.items():
    rows |= {
        f"{dtype}: limit": (bench_at["limit"].value, "GB/s"),
        f"{dtype}: of the theoretical": (
            100 * bench_at["limit"].value / theoretical,
            "%",
        ),
    }
    if any(row.vendor for row in bench_at.rows_):
        rows[f"{dtype}: against CUB"] = (
            bench_at["CUB"].median_us / bench_at["limit"].median_us
        )
ct.facts("what is reached", rows)

# %% tail-compare
turns = ct.cdiv(tiles, 512) - ct.cdiv(
    tiles, 4 * 4 * 512
)  # more of them, loading one by one
ct.facts(
    "what the serial tail costs",
    {
        "predicted, with the sums in L2": (turns * wait, "us"),
        "the same, with the sums in memory": (turns * latency / 1e3, "us"),
    }
    | {
        f"measured, {dtype}": (
            bench_at["limit_serial"].median_us - bench_at["limit"].median_us,
            "us",
        )
        for dtype, bench_at in at_limit.items()
    },
)
