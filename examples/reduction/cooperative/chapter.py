# ---
# jupyter:
#   cudatut:
#     title: {en: "Few blocks that walk", zh: "少量线程块，走遍整个数组"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [33554432, 16384, 2097152]
#       short_n: [1048576, 4096]
#       delay: [2000000, 100000]
# ---

# %% [markdown]
# The seventh rung: as many blocks as fit on the GPU walk the array, and
# cooperative groups add up. First as a whole program.

# %% program
import numpy as np
import cudatut as ct

count = 1 << 20
x = ct.to_device(ct.rng(0).standard_normal(count, dtype="float32"))
kernel = ct.Kernel("reduction/ladder/few_blocks.cu", "reduce_few_blocks")

blocks = kernel.resources(256).blocks_per_sm * ct.device().sm_count
partial, total = ct.empty(blocks, "float32"), ct.empty(1, "float32")
kernel(x, partial, count, grid=blocks, block=256)
kernel(partial, total, blocks, grid=1, block=256)

ct.check(total, [x.get().sum(dtype="float64")], rtol=0, atol=0.1)

# %% setup
from cudatut.book.reduction.ladder.ladder import LADDER, Sum
from cudatut.book.reduction.one_launch.latency import dram_ns

gpu = ct.device()
SHUFFLE, FEW = LADDER["shuffle"], LADDER["few_blocks"]
n = 33_554_432
block = 256
problem = Sum(n)

# %% [markdown]
# How many blocks the GPU holds: four quotients, and what the driver says.

# %% resident
walk = FEW.compile(BLOCK=block, ELEMENT="float")
need, warps = walk.resources(block), block // 32
# Registers are given out to warps in units of 256; shared memory to blocks in
# units of 128 bytes, with 1 KiB for CUDA itself.
of_warp = 256 * ct.cdiv(32 * need.registers, 256)
of_block = 128 * ct.cdiv(need.shared_bytes + 1024, 128)
# A scheduler has a quarter of the registers.
warps_by_registers = 4 * (gpu.registers_per_sm // 4 // of_warp)
fits = {
    "threads": gpu.max_threads_per_sm // block,
    "blocks": gpu.max_blocks_per_sm,
    "registers": warps_by_registers // warps,
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

# %% [markdown]
# What follows from the grid, before anything is timed.

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
    """Warp instructions of all launches, counted in the machine code that
    nvcc 13.0 makes for sm_90."""
    total = 0
    for elements, blocks in launches(kernel, m):
        if kernel == "shuffle":  # as in the chapter before
            total += blocks * (warps * 41 + (warps - 1) * 3 + 27)
            continue
        # Where each warp begins, and its elements per lane.
        first = 32 * np.arange(blocks * warps)
        turns = np.maximum(0, -(-(elements - first) // (blocks * block)))
        # The compiler unrolled the walk four times.
        by_four, one_by_one = turns // 4, turns % 4
        each = 82 + (by_four > 0) * 5 + 23 * by_four
        each += (one_by_one > 0) * 5 + 12 * one_by_one
        total += int(np.where(turns, each, 43).sum())
        total += blocks * 23  # the rest by warp 0
    return total


bandwidth = ct.limits.bandwidth()
# Warp instructions per us: 4 schedulers per SM.
issued = gpu.sm_count * 4 * gpu.clock_khz / 1e3
table = {}
for kernel in grids:
    steps = launches(kernel, n)
    blocks = sum(count for _, count in steps)
    moved = 4 * (n + blocks + sum(elements for elements, _ in steps[1:]))
    table[kernel] = {
        "launches": len(steps),
        "blocks": blocks,
        "elements per thread": n / (steps[0][1] * block),
        "warp instructions": instructions(kernel, n) / 1e6,
        "time to issue": instructions(kernel, n) / issued,
        "time of the bytes": moved / bandwidth / 1e3,
    }
ct.table(
    "prediction",
    table,
    corner="kernel",
    units={
        "warp instructions": "million",
        "time to issue": "us",
        "time of the bytes": "us",
    },
)
left = instructions("few_blocks", n) / instructions("shuffle", n)
ct.facts(
    "few_blocks after shuffle",
    {"instructions that are left": (100 * left, "%")},
)

# %% [markdown]
# The two launches of the rung, in the open.

# %% launch
partial = ct.empty(resident, "float32")
total = ct.empty(1, "float32")
walk(problem.x, partial, n, grid=resident, block=256)
walk(partial, total, resident, grid=1, block=256)

# %% [markdown]
# Right before fast, then the time of a long array and of a short one.

# %% check
problem.check(SHUFFLE)
problem.check(FEW)
# Integers: no tolerance, which could hide a lost block.
Sum(n, "int32").check(FEW)
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

# %% compare
old, new = bench["shuffle"].median_us, bench["few_blocks"].median_us
ct.facts(
    "few_blocks: predicted and measured",
    {
        "predicted, if only bytes count": (4 * n / bandwidth / 1e3, "us"),
        "predicted, if instructions decide": (old * left, "us"),
        "measured": (new, "us"),
        "speed-up": (old / new, "times"),
    },
)

# %% bench-short
short_n = 1_048_576
short = LADDER.bench(
    ["shuffle", "few_blocks"], n=short_n, name=f"sum of {short_n} float32"
)

# %% [markdown]
# Warps and instructions, by the profiler.

# %% counters
INSTRUCTIONS, WARPS = "smsp__inst_executed.sum", "smsp__warps_launched.sum"
profiled_n = 1 << 21
before = 4  # two launches of the program, two of the cell 'launch'
expected = {kernel: launches(kernel, profiled_n) for kernel in grids}
# The profiler runs this file again; after those come the launches of the check.
counted = ct.profile_launches(
    "reduction/cooperative",
    kernel="regex:^reduce_(shuffle|few_blocks)$",
    metrics=[INSTRUCTIONS, WARPS],
    launches=before + sum(map(len, expected.values())),
)
table = {}
for kernel, steps in expected.items():
    runs = counted[before : before + len(steps)]
    before += len(steps)
    if runs:
        table[kernel] = {
            "launches": len(runs),
            "warps, predicted": warps * sum(b for _, b in steps),
            "warps, measured": sum(run[WARPS] for run in runs),
            "instructions, predicted": instructions(kernel, profiled_n),
            "instructions, measured": sum(run[INSTRUCTIONS] for run in runs),
        }
if table:
    ct.table(f"{profiled_n} elements", table, corner="kernel")

# %% [markdown]
# How many blocks are enough: Little's law, and a benchmark over grids.

# %% in-flight
# A thread has four loads of 4 bytes on their way.
latency = dram_ns()
PER_SM = (1, 2, 4, 8, 16, 64)


def allowed(per_sm):
    """GB/s that the bytes in flight of so many blocks per SM allow; beyond the
    resident ones they wait."""
    threads = gpu.sm_count * min(per_sm, need.blocks_per_sm) * block
    return min(bandwidth, threads * 4 * 4 / latency)


ct.facts(
    "prediction: bytes in flight",
    {
        "latency": (latency, "ns"),
        "in flight for full bandwidth, per SM": (
            bandwidth * latency / 1e3 / gpu.sm_count,
            "kB",
        ),
        "in flight, 8 blocks per SM": (8 * block * 4 * 4 / 1e3, "kB"),
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


of_grids = ct.bench(
    {f"{k} per SM": with_grid(k * gpu.sm_count) for k in PER_SM}
    | {"1 per 256 elements": with_grid(ct.cdiv(n, block))},
    bytes=problem.bytes,
    name="few_blocks, by the size of its grid",
    rounds=30,
)

# %% enough
ct.table(
    "bandwidth by the size of the grid",
    {
        f"{k} per SM": {
            "by Little's law": allowed(k),
            "measured": of_grids[f"{k} per SM"].value,
        }
        for k in PER_SM
    },
    corner="blocks",
    units={"by Little's law": "GB/s", "measured": "GB/s"},
)

# %% [markdown]
# A sum in place, with a block that comes late.

# %% in-place
IN_PLACE = """
__global__ void sum_in_place(int* data, int n, long long delay) {
  __shared__ int sums[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  if (blockIdx.x == 0) {  // late; nothing in CUDA promises that it is not
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
  // Where block blockIdx.x / 256 reads, or will read.
  if (t == 0) data[blockIdx.x] = sums[0];
}
"""
sum_in_place = ct.Kernel(IN_PLACE, "sum_in_place")
# In cycles: about a millisecond.
delay = 2_000_000
pieces = 256
numbers = ct.rng(1).integers(0, 1000, pieces * 256, dtype="int32")


def in_place(delay):
    """Two launches that write where they read."""
    data = ct.to_device(numbers)
    sum_in_place(data, data.size, delay, grid=pieces, block=256)
    sum_in_place(data, pieces, 0, grid=1, block=256)
    return int(data.get()[0])


partials = numbers.reshape(pieces, 256).sum(axis=1)
ct.facts(
    "a sum in place, 256 blocks",
    {
        "right": int(numbers.sum()),
        "block 0 on time": in_place(0),
        # It finds its own first number, and in the other 255 places the sums
        # of the others.
        "predicted, block 0 late": int(numbers[0] + 2 * partials[1:].sum()),
        "measured, block 0 late": in_place(delay),
    },
)

# %% [markdown]
# A second launch that reads the input again.

# %% second-launch
integers = Sum(short_n, "int32")
walk_int = FEW.compile(BLOCK=block, ELEMENT="int")
blocks = grids["few_blocks"](integers.n)
partial, total = ct.empty(blocks, "int32"), ct.empty(1, "int32")
walk_int(integers.x, partial, integers.n, grid=blocks, block=block)
# The slip: `integers.x`, not `partial`.
walk_int(integers.x, total, blocks, grid=1, block=block)
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

# %% [markdown]
# May a grid that was launched as usual call `grid.sync()`?

# %% grid-group
GRID = """
#include <cooperative_groups.h>
extern "C" __global__ void ask(int* out) {
  const auto grid = cooperative_groups::this_grid();
  // May grid.sync() be called?
  if (grid.thread_rank() == 0) out[0] = grid.is_valid();
}
"""
valid = ct.empty(1, "int32")
ct.Kernel(GRID, "ask")(valid, grid=gpu.sm_count, block=32)
ct.facts(
    "a grid launched as usual", {"this_grid().is_valid()": bool(valid.get()[0])}
)
