# ---
# jupyter:
#   cudatut:
#     title: {en: "Registers, local memory and spills", zh: "寄存器、本地内存与溢出"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [300032, 9632, 300032]
# ---

# %% [markdown] about
# Each thread of `ring` holds 64 values. The program compiles it four times, for
# more and more blocks on an SM, prints where the values are, and times it.

# %% program
import numpy as np

import cudatut as ct

source = """
#define RING 64

__global__ void __launch_bounds__(256, MIN_BLOCKS)
ring(const float* __restrict__ x, float* __restrict__ out, int n,
     float part, int rounds) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float v[RING];
#pragma unroll
  for (int i = 0; i < RING; ++i) v[i] = x[(size_t)i * n + t];
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < RING; ++i)
      v[i] = fmaf(part, v[(i + 1) % RING] - v[i], v[i]);
  }
#pragma unroll
  for (int i = 0; i < RING; ++i) out[(size_t)i * n + t] = v[i];
}
"""

n = 300_032
size, rounds, block = 64, 64, 256
part = np.float32(0.25)
x_host = ct.rng(0).standard_normal((size, n), dtype="float32")
x, out = ct.to_device(x_host), ct.empty((size, n), "float32")

step = np.eye(size)  # one round as a matrix
for i in range(size):
    step[i] += part * (step[(i + 1) % size] - step[i])
expected = np.linalg.matrix_power(step, rounds)[:8] @ x_host


def allowed(blocks):
    """Registers per thread so that `blocks` blocks fit on an SM."""
    per_warp = ct.device().registers_per_sm // (blocks * block // 32)
    return min(per_warp // 256 * 8, 255)


launches = {}
print("blocks  allowed  registers (KiB of an SM)  local memory (KiB)")
for blocks in (1, 3, 4, 8):
    kernel = ct.Kernel(source, "ring", defines={"MIN_BLOCKS": blocks})

    def launch(kernel=kernel):
        kernel(x, out, n, part, rounds, grid=ct.cdiv(n, block), block=block)

    launch()
    assert np.allclose(out.get()[:8], expected, atol=1e-4)
    needs = kernel.resources(block)
    threads = needs.blocks_per_sm * block / 1024
    used, local = 4 * needs.registers * threads, needs.spill_bytes * threads
    print(f"{blocks:6d}  {allowed(blocks):7d}  {used:24.1f}  {local:18.1f}")
    launches[f"{blocks} must fit"] = launch

times = ct.bench(launches, name="ring, by blocks that must fit")
best = min(row.median_us for row in times.rows)
beside_best = {
    f"{row.name}, time / best": (row.median_us / best, "x")
    for row in times.rows
}
ct.yours("basics/registers#program", beside_best)

# %% [markdown] about-check
# All six settings, checked for several lengths. The file registers.cu holds the
# same kernel, for the tools that want a file.

# %% check-ring
FILE = "basics/registers/registers.cu"
DEMANDS = {"1 block": 1}
DEMANDS |= {f"{blocks} blocks": blocks for blocks in (3, 4, 5, 6, 8)}
kernels = {
    name: ct.Kernel(FILE, "ring", defines={"MIN_BLOCKS": blocks})
    for name, blocks in DEMANDS.items()
}
same = kernel.machine_code() == kernels["8 blocks"].machine_code()
ct.check(np.array([same]), np.array([True]), name="same machine code")


def launch(name, x, out, m):
    kernels[name](x, out, m, part, rounds, grid=ct.cdiv(m, block), block=block)


for name in DEMANDS:
    ct.poison(out)
    launch(name, x, out, n)
    ct.check(out[:8], expected, name=name, rtol=1e-4)
all_rounds = np.linalg.matrix_power(step, rounds)
for m in (1, 31, 33, 1000):
    few = ct.to_device(np.ascontiguousarray(x_host[:, :m]))
    result = ct.empty((size, m), "float32")
    for name in DEMANDS:
        ct.poison(result)
        launch(name, few, result, m)
        wanted = all_rounds @ x_host[:, :m]
        ct.check(result, wanted, name=f"{name}, n = {m}", rtol=1e-4)

# %% bench
times = ct.bench(
    {name: lambda name=name: launch(name, x, out, n) for name in DEMANDS},
    flops=2 * 2 * size * rounds * n,
    name="ring, by blocks that must fit",
)

# %% sweep
needs = {name: kernels[name].resources(block) for name in DEMANDS}
ct.table(
    "One kernel, six demands",
    {
        name: {
            "registers": needs[name].registers,
            "local memory": needs[name].spill_bytes,
            "occupancy": 100 * needs[name].occupancy,
            "time": times[name].median_us,
        }
        for name in DEMANDS
    },
    corner="must fit",
    units={"local memory": "B", "occupancy": "%", "time": "us"},
)
best = times["3 blocks"].median_us
ct.facts(
    "Time / time with 3 blocks",
    {
        "4 blocks": times["4 blocks"].median_us / best,
        "8 blocks": times["8 blocks"].median_us / best,
    },
)

# %% [markdown] about-report
# What ptxas reports, and what the machine code says about loops.

# %% ptxas
from concurrent.futures import ThreadPoolExecutor

from cudatut.book.measure.machine_code import compile_report, executed, sass


def for_each(function):
    """`function` of file, kernel and demand, for all demands at once."""
    with ThreadPoolExecutor() as pool:  # each runs nvcc, which takes a while
        results = pool.map(
            lambda blocks: function(FILE, "ring", MIN_BLOCKS=blocks),
            DEMANDS.values(),
        )
        return dict(zip(DEMANDS, results))


reports = for_each(compile_report)
ct.table(
    "The report of ptxas",
    {
        name: {
            "registers": reports[name].registers,
            "stack frame": reports[name].stack,
            "spill stores": reports[name].spill_stores,
            "spill loads": reports[name].spill_loads,
        }
        for name in ("3 blocks", "4 blocks", "8 blocks")
    },
    corner="must fit",
    units=dict.fromkeys(("stack frame", "spill stores", "spill loads"), "B"),
)
for name, report in reports.items():
    driver = np.array([needs[name].registers, needs[name].spill_bytes])
    told = np.array([report.registers, report.stack])
    ct.check(driver, told, name=f"driver and ptxas, {name}")

# %% sass
code = for_each(sass)
for op in ("STL", "LDL"):
    print(next(i.text for i in code["8 blocks"] if i.op == op))

# %% traffic
warps = n // 32


def sectors(name, op):
    """Sectors of local memory that all warps move, read off the machine code.

    A word of 32 lanes lies in 128 bytes, four sectors; .64 and .128 move two
    and four words.
    """
    width = {"64": 2, "128": 4}
    words = sum(
        times * width.get(i.text.split()[0].rpartition(".")[2], 1)
        for i, times in executed(code[name], rounds)
        if i.op == op
    )
    return 4 * warps * words


gpu = ct.device()
frames = {  # KiB of local memory of the threads on one SM
    name: needs[name].spill_bytes * needs[name].blocks_per_sm * block / 1024
    for name in DEMANDS
}
own_mb = 2 * 4 * size * n / 1e6  # what the kernel has to read and write
ct.facts(
    "Bounds",
    {
        "own reads and writes": (own_mb, "MB"),
        "L1 cache and shared memory of an SM": (
            gpu.shared_per_sm / 1024,
            "KiB",
        ),
        "time of the arithmetic": (
            2 * size * rounds * n / (ct.limits.fma() * 1e6 / 2),
            "us",
        ),
    },
)
ct.table(
    "Local memory",
    {
        name: {
            "frames of an SM": frames[name],
            "frames of the GPU": frames[name] * gpu.sm_count / 1024,
            "loads and stores": 32
            * (sectors(name, "LDL") + sectors(name, "STL"))
            / 1e9,
        }
        for name in DEMANDS
    },
    corner="must fit",
    units={
        "frames of an SM": "KiB",
        "frames of the GPU": "MiB",
        "loads and stores": "GB",
    },
)

# %% counters

LOADS = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
STORES = "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"
HITS = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_hit.sum"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
first = 8  # launches of `program`
counted = ct.profile_launches(
    "basics/registers",
    kernel="ring",
    metrics=[LOADS, STORES, HITS, READ, WRITTEN],
    launches=first + len(DEMANDS),
)
of = dict(zip(DEMANDS, counted[first:]))

# %% spills
if counted:
    ct.table(
        "Where the spills went",
        {
            name: {
                "predicted": sectors(name, "LDL") / 1e6,
                "counted": of[name][LOADS] / 1e6,
                "frames of an SM": frames[name],
                "hit L1": 100 * of[name][HITS] / of[name][LOADS]
                if of[name][LOADS]
                else None,
                "DRAM": (of[name][READ] + of[name][WRITTEN]) / 1e6,
            }
            for name in ("3 blocks", "4 blocks", "8 blocks")
        },
        corner="must fit",
        units={
            "predicted": "million",
            "counted": "million",
            "frames of an SM": "KiB",
            "hit L1": "%",
            "DRAM": "MB",
        },
    )
