# ---
# jupyter:
#   cudatut:
#     title: {en: "Few blocks that walk", zh: "少量线程块，走遍整个数组"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# The seventh rung: as many blocks as fit on the GPU walk the array, and cooperative groups add up.

# %% setup
import numpy as np
from ladder import LADDER, Sum
from latency import dram_ns

import cudatut as ct
from cudatut.profiler import profile_launches

gpu = ct.device()
SHUFFLE, FEW = LADDER["shuffle"], LADDER["few_blocks"]
profiled_n = 1 << 21  # what a profiler sees
n, block = ct.size(1 << 25, 1 << 14, profiled=profiled_n), 256
problem = Sum(n)

# %% resident
walk = FEW.compile(BLOCK=block, ELEMENT="float")
need, warps = walk.resources(block), block // 32
of_warp = 256 * ct.cdiv(
    32 * need.registers, 256
)  # registers, given out to warps in units of 256
of_block = 128 * ct.cdiv(
    need.shared_bytes + 1024, 128
)  # bytes; 1 KiB of them for CUDA itself
fits = {
    "threads": gpu.max_threads_per_sm // block,
    "blocks": gpu.max_blocks_per_sm,
    "registers": 4
    * (gpu.registers_per_sm // 4 // of_warp)
    // warps,  # a quarter per scheduler
    "shared memory": gpu.shared_per_sm // of_block,
}
resident = need.blocks_per_sm * gpu.sm_count
ct.show(need)
ct.facts(
    "blocks of 256 threads per SM",
    {
        **{f"limit by {what}": count for what, count in fits.items()},
        "predicted": min(fits.values()),
        "measured": need.blocks_per_sm,  # what the driver says
        "SMs": gpu.sm_count,
        "resident blocks": resident,
    },
)

# %% predict
grids = {
    "shuffle": lambda m: ct.cdiv(m, 2 * block),
    "few_blocks": lambda m: (
        1 if m <= resident else min(resident, ct.cdiv(m, block))
    ),
}


def launches(kernel, m):
    """(elements, blocks) of every launch until one sum is left."""
    steps = [(m, grids[kernel](m))]
    while steps[-1][1] > 1:
        left = steps[-1][1]
        steps.append((left, grids[kernel](left)))
    return steps


def instructions(kernel, m):
    """Warp instructions of all launches, counted in the machine code that nvcc 13.0 makes for sm_90."""
    total = 0
    for elements, blocks in launches(kernel, m):
        if kernel == "shuffle":
            total += blocks * (
                warps * 41 + (warps - 1) * 3 + 27
            )  # as in the chapter before
            continue
        first = 32 * np.arange(blocks * warps)  # where each warp begins
        turns = np.maximum(
            0, -(-(elements - first) // (blocks * block))
        )  # its elements per lane
        by_four, one_by_one = (
            turns // 4,
            turns % 4,
        )  # the compiler unrolled the walk four times
        each = (
            82
            + (by_four > 0) * 5
            + 23 * by_four
            + (one_by_one > 0) * 5
            + 12 * one_by_one
        )
        total += (
            int(np.where(turns, each, 43).sum()) + blocks * 23
        )  # the rest by warp 0
    return total


bandwidth = ct.limits.bandwidth()
issued = (
    gpu.sm_count * 4 * gpu.clock_khz / 1e3
)  # warp instructions per us: 4 schedulers per SM
for kernel in grids:
    steps = launches(kernel, n)
    blocks = sum(count for _, count in steps)
    moved = 4 * (n + blocks + sum(elements for elements, _ in steps[1:]))
    ct.facts(
        f"{kernel}: prediction",
        {
            "launches": len(steps),
            "blocks": " + ".join(str(count) for _, count in steps),
            "bytes of partial sums": ((moved - 4 * n) / 1e3, "kB"),
            "elements per thread": n / (steps[0][1] * block),
            "warps that meet at a barrier": blocks * warps,
            "warp instructions": (instructions(kernel, n) / 1e6, "million"),
            "time to issue them": (instructions(kernel, n) / issued, "us"),
            "time of the bytes": (moved / bandwidth / 1e3, "us"),
        },
    )

# %% check
problem.check(SHUFFLE)
problem.check(FEW)
LADDER.check(
    "few_blocks",
    [{"n": m, "dtype": d} for d in ("float32", "int32") for m in ct.RAGGED],
)
ragged = Sum(ct.RAGGED[-1])
for threads in FEW.numbers("blocks"):
    ragged.check(FEW, threads)

# %% bench
bench = LADDER.bench(
    LADDER.upto("few_blocks"), data=problem.host, name=f"sum of {n} float32"
)

# %% bench-short
short = LADDER.bench(
    ["shuffle", "few_blocks"],
    n=ct.size(1 << 20, 1 << 12),
    name=f"sum of {1 << 20} float32",
)

# %% counters
counted = profile_launches(
    "reduction/cooperative",
    kernel="regex:reduce_(shuffle|few_blocks)",
    metrics=["smsp__inst_executed.sum", "smsp__warps_launched.sum"],
    launches=len(launches("shuffle", profiled_n))
    + len(launches("few_blocks", profiled_n)),
)
if counted:
    split = len(launches("shuffle", profiled_n))
    for kernel, runs in {
        "shuffle": counted[:split],
        "few_blocks": counted[split:],
    }.items():
        ct.facts(
            f"{kernel}: {profiled_n} elements",
            {
                "launches": len(runs),
                "warps, predicted": warps
                * sum(b for _, b in launches(kernel, profiled_n)),
                "warps, measured": sum(
                    run["smsp__warps_launched.sum"] for run in runs
                ),
                "instructions, predicted": instructions(kernel, profiled_n),
                "instructions, measured": sum(
                    run["smsp__inst_executed.sum"] for run in runs
                ),
            },
        )

# %% compare
old, new = bench["shuffle"].median_us, bench["few_blocks"].median_us
ct.facts(
    "few_blocks: predicted and measured",
    {
        "predicted, if only bytes count": (4 * n / bandwidth / 1e3, "us"),
        "predicted, if instructions decide": (
            old * instructions("few_blocks", n) / instructions("shuffle", n),
            "us",
        ),
        "measured": (new, "us"),
        "shuffle": (old, "us"),
    },
)

# %% in-flight
# Little's law: bytes in flight = bandwidth x latency. A thread has four loads of 4 bytes on their way.
latency = dram_ns()
PER_SM = (1, 2, 4, 8, 16, 64)


def allowed(per_sm):
    """GB/s that the bytes in flight of so many blocks per SM allow; beyond the resident ones they wait."""
    return min(
        bandwidth,
        gpu.sm_count
        * min(per_sm, need.blocks_per_sm)
        * block
        * 4
        * 4
        / latency,
    )


ct.facts(
    "prediction: bytes in flight",
    {
        "latency": (latency, "ns"),
        "in flight for full bandwidth, per SM": (
            bandwidth * latency / 1e3 / gpu.sm_count,
            "kB",
        ),
        "in flight, 8 blocks per SM": (8 * block * 4 * 4 / 1e3, "kB"),
        **{f"{k} per SM": (allowed(k), "GB/s") for k in PER_SM},
    },
)

# %% grids
out = ct.empty(1, "float32")


def with_grid(blocks):
    """Both launches, the first with so many blocks."""
    partial = ct.empty(blocks, "float32")

    def run():
        walk(problem.x, partial, n, grid=blocks, block=block)
        walk(partial, out, blocks, grid=1, block=block)

    run()
    ct.check(
        out,
        problem.expected,
        name=f"{blocks} blocks",
        rtol=0,
        atol=problem.tolerance,
    )
    return run


ct.bench(
    {f"{k} per SM": with_grid(k * gpu.sm_count) for k in PER_SM}
    | {"1 per 256 elements": with_grid(ct.cdiv(n, block))},
    bytes=problem.bytes,
    name="few_blocks, by the size of its grid",
    rounds=30,
)

# %% in-place
IN_PLACE = """
__global__ void sum_in_place(int* data, int n, long long delay) {
  __shared__ int sums[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  if (blockIdx.x == 0) {  // block 0 is late; nothing in CUDA promises that it is not
    const long long begin = clock64();
    while (clock64() - begin < delay) {}
  }
  __syncthreads();
  sums[t] = i < n ? data[i] : 0;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) data[blockIdx.x] = sums[0];  // where block blockIdx.x / 256 reads, or will read
}
"""
sum_in_place = ct.Kernel(IN_PLACE, "sum_in_place")
pieces = 256
numbers = ct.rng(1).integers(0, 1000, pieces * 256, dtype="int32")


def in_place(delay):
    """Two launches that write where they read."""
    data = ct.to_device(numbers)
    sum_in_place(data, data.size, delay, grid=pieces, block=256)
    sum_in_place(data, pieces, 0, grid=1, block=256)
    return int(data.get()[0])


right = int(numbers.sum())
partials = numbers.reshape(pieces, 256).sum(axis=1)
# A late block 0 finds its own first number, and in the other 255 places the sums of the others.
wrong = int(numbers[0] + 2 * partials[1:].sum())
late = in_place(ct.size(2_000_000, 100_000))  # cycles: about a millisecond
ct.facts(
    "a sum in place, 256 blocks",
    {
        "right": right,
        "block 0 on time": in_place(0),
        "predicted, block 0 late": wrong,
        "measured, block 0 late": late,
    },
)
ct.claim(
    id="reduction-in-place",
    source="Learn CUDA Programming, notes: sharedReduction",
    statement={
        "en": "A reduction may write its partial sums over its own input, with one launch for several blocks: "
        "reduce(output, output).",
        "zh": "规约可以把部分和写回自己的输入，一次启动多个线程块：reduce(output, output)。",
    },
    predicted=right,
    measured=late,
    verdict="confirmed" if late == right else "refuted",
)

# %% second-launch
integers = Sum(ct.size(1 << 20, 1 << 12), "int32")
walk_int = FEW.compile(BLOCK=block, ELEMENT="int")
blocks = grids["few_blocks"](integers.n)
partial, total = ct.empty(blocks, "int32"), ct.empty(1, "int32")
walk_int(integers.x, partial, integers.n, grid=blocks, block=block)
walk_int(
    integers.x, total, blocks, grid=1, block=block
)  # the slip: `integers.x`, not `partial`
slip = int(total.get()[0])
walk_int(partial, total, blocks, grid=1, block=block)
ct.check(total, integers.expected, name="second launch on the partial sums")
ct.facts(
    "second launch on the input",
    {
        "sum of all": int(integers.expected[0]),
        "predicted: sum of as many elements as there are blocks": int(
            integers.host[:blocks].sum()
        ),
        "measured": slip,
    },
)
ct.claim(
    id="reduction-second-launch",
    source="Learn CUDA Programming, notes: warplevelPrimitiveReduction",
    statement={
        "en": "The second launch of the few-blocks sum is called with the input again, and leaves the total.",
        "zh": "少量线程块求和的第二次启动，仍把输入数组传进去，得到的就是总和。",
    },
    predicted=int(integers.expected[0]),
    measured=slip,
    verdict="confirmed" if slip == int(integers.expected[0]) else "refuted",
)

# %% grid-group
GRID = """
#include <cooperative_groups.h>
extern "C" __global__ void ask(int* out) {
  const auto grid = cooperative_groups::this_grid();
  if (grid.thread_rank() == 0) out[0] = grid.is_valid();  // may grid.sync() be called?
}
"""
valid = ct.empty(1, "int32")
ct.Kernel(GRID, "ask")(valid, grid=gpu.sm_count, block=32)
ct.facts(
    "a grid launched as usual", {"this_grid().is_valid()": bool(valid.get()[0])}
)
