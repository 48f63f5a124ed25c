# ---
# jupyter:
#   cudatut:
#     title: {en: "One kernel, from 126 registers down to 32", zh: "同一个 kernel，从 126 个寄存器压到 32 个"}
#     requires: sm_75
#     timeout_s: 180
# ---

# %% [markdown]
# Fewer registers per thread make room for more threads, until what no longer fits has to travel.

# %% setup
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from machine_code import compile_report, executed, sass

import cudatut as ct
from cudatut.profiler import profile_launches

FILE = "basics/registers.cu"
gpu = ct.device()
block, RING, rounds = 256, 64, 64
n = ct.size(
    300_032, 9_632, profiled=300_032
)  # threads, whole warps; each holds a ring of 64 values
warps = n // 32

# %% allowed
MIN_BLOCKS = (1, 3, 4, 5, 6, 8)


def registers_allowed(blocks):
    """Registers per thread so that `blocks` blocks fit on an SM: given out in units of 256 per warp."""
    per_warp = gpu.registers_per_sm // (blocks * block // 32)
    return min(per_warp // 256 * 8, 255)


ct.facts("allowed", {f"min {b}": registers_allowed(b) for b in MIN_BLOCKS})

# %% compile
ring = {b: ct.Kernel(FILE, "ring", defines={"MIN_BLOCKS": b}) for b in MIN_BLOCKS}
for b in MIN_BLOCKS:
    ct.show(ring[b].resources(block))

# %% check
# Before what follows in the file, so that the profiler comes to these launches soon.
x_host = ct.rng(0).standard_normal((RING, n), dtype="float32")
x = ct.to_device(x_host)
part = np.float32(0.25)

# One round as a matrix: value i moves towards value i + 1, the last towards the new first.
step = np.eye(RING)
for i in range(RING):
    step[i] += part * (step[(i + 1) % RING] - step[i])
all_rounds = np.linalg.matrix_power(step, rounds)


def launch(b, x, out, m):
    ring[b](x, out, m, part, rounds, grid=ct.cdiv(m, block), block=block)


outs = {b: ct.empty((RING, n), "float32") for b in MIN_BLOCKS}
for b in MIN_BLOCKS:
    launch(b, x, outs[b], n)
expected = all_rounds[:8] @ x_host  # eight values of every thread's ring; each depends on all of it
for b in MIN_BLOCKS:
    ct.check(outs[b][:8], expected, name=f"min {b}", rtol=1e-4)
for m in (1, 31, 33, 1000):
    few, result = ct.to_device(np.ascontiguousarray(x_host[:, :m])), ct.empty((RING, m), "float32")
    wanted = all_rounds @ x_host[:, :m]
    for b in MIN_BLOCKS:
        ct.poison(result)
        launch(b, few, result, m)
        ct.check(result, wanted, name=f"min {b}, n={m}", rtol=1e-4)

# %% ptxas
SHOWN = (1, 3, 4, 8)
with ThreadPoolExecutor() as pool:  # nvcc once for each of them
    found = pool.map(lambda b: compile_report(FILE, "ring", MIN_BLOCKS=b), MIN_BLOCKS)
    reports = dict(zip(MIN_BLOCKS, found))
ct.facts(
    "ptxas",
    {f"min {b}: {what}": value for b in SHOWN for what, value in vars(reports[b]).items()},
)
for b in MIN_BLOCKS:
    needs = ring[b].resources(block)
    driver = [needs.registers, needs.spill_bytes]
    ct.check(np.array(driver), np.array([reports[b].registers, reports[b].stack]), name=f"min {b}")

# %% sass
with ThreadPoolExecutor() as pool:  # cuobjdump takes a while for each
    code = dict(zip(MIN_BLOCKS, pool.map(lambda b: sass(FILE, "ring", MIN_BLOCKS=b), MIN_BLOCKS)))
for op in ("STL", "LDL"):
    print(next(i.text for i in code[8] if i.op == op))


# %% predict
def words(b, op):
    """32-bit words that a warp's lanes each move by `op` (LDL or STL) in a whole run, read off the SASS."""
    width = {"64": 2, "128": 4}
    return sum(
        times * width.get(i.text.split()[0].rpartition(".")[2], 1)
        for i, times in executed(code[b], rounds)
        if i.op == op
    )


def sectors(b, op):
    """A word of 32 lanes lies in 128 bytes, four sectors: local memory is interleaved by thread."""
    return 4 * warps * words(b, op)


def resident_kb(b):
    """Local memory of all threads that are on an SM together."""
    needs = ring[b].resources(block)
    return needs.spill_bytes * needs.blocks_per_sm * block / 1024


bandwidth, fma = ct.limits.bandwidth(), ct.limits.fma()
ct.facts(
    "bounds of the kernel without spills",
    {
        "global memory": (2 * 4 * RING * n / bandwidth / 1e3, "us"),
        # Two instructions per value and round; the measured rate counts two operations per instruction.
        "arithmetic": (2 * RING * rounds * n / (fma * 1e6 / 2), "us"),
        "L1 and shared memory of an SM, at least": (gpu.shared_per_sm / 1024, "KiB"),
        "L2": (gpu.l2_bytes / 2**20, "MiB"),
    },
)
ct.facts(
    "local memory",
    {
        key: value
        for b in MIN_BLOCKS
        if reports[b].stack
        for key, value in {
            f"min {b}: per SM": (resident_kb(b), "KiB"),
            f"min {b}: all SMs": (resident_kb(b) * gpu.sm_count / 1024, "MiB"),
            f"min {b}: loads": (32 * sectors(b, "LDL") / 1e6, "MB"),
            f"min {b}: stores": (32 * sectors(b, "STL") / 1e6, "MB"),
        }.items()
    },
)

# %% bench
ct.bench(
    {f"min {b}": lambda b=b: launch(b, x, outs[b], n) for b in MIN_BLOCKS},
    flops=2 * 2 * RING * rounds * n,
    name="ring, by blocks per SM that the compiler must make room for",
)

# %% counters
COUNTERS = [
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_hit.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
]
# The first launches of `ring` are those of the check, one for each of MIN_BLOCKS.
counted = dict(
    zip(
        MIN_BLOCKS,
        profile_launches("basics/registers", "ring", COUNTERS, launches=len(MIN_BLOCKS)),
    )
)

# %% compare
for b in (4, 8):
    if counted:
        value = counted[b]
        ct.facts(
            f"min {b}",
            {
                "loads, predicted": (sectors(b, "LDL"), "sectors"),
                "loads, measured": (value[COUNTERS[0]], "sectors"),
                "stores, predicted": (sectors(b, "STL"), "sectors"),
                "stores, measured": (value[COUNTERS[1]], "sectors"),
                "loads that hit L1": (100 * value[COUNTERS[2]] / value[COUNTERS[0]], "%"),
                "memory, without spills": (2 * 4 * RING * n / 1e6, "MB"),
                "memory, measured": ((value[COUNTERS[3]] + value[COUNTERS[4]]) / 1e6, "MB"),
            },
        )

# %% parameters
from_bank = [i.text for i in code[1] if re.search(r"c\[0x0\]\[0x[1-9a-f][0-9a-f]+\]", i.text)]
from_shared = [i.text for i in code[1] if i.op == "LDS"]
print(*from_bank[:4], sep="\n")
ct.claim(
    id="parameters-in-shared-memory",
    source="Learn CUDA Programming, notes",
    statement={
        "en": "A kernel's parameters lie in shared memory or registers.",
        "zh": "kernel 的参数存放在共享内存或寄存器里。",
    },
    predicted="c[0x0]: 0",
    measured=f"c[0x0]: {len(from_bank)}, LDS: {len(from_shared)}",
    verdict="refuted" if from_bank and not from_shared else "confirmed",
)
