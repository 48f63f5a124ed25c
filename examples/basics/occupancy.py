# ---
# jupyter:
#   cudatut:
#     title: {en: "Occupancy, counted and put to the test", zh: "占用率：先算清楚，再检验它值多少"}
#     requires: sm_75
#     timeout_s: 180
# ---

# %% [markdown]
# How many blocks an SM holds follows from four divisions; how fast it is does not follow from that number alone.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.profiler import profile_launches

FILE = "basics/occupancy.cu"
gpu = ct.device()
sms = gpu.sm_count
rng = ct.rng(0)

# %% rules
from collections import namedtuple

# Of one SM: the most warps and blocks, 32-bit registers, bytes of shared memory. Of one block: bytes of
# shared memory that the system keeps, and the unit in which shared memory is given out.
Sm = namedtuple("Sm", "warps blocks registers shared reserved unit")
GPUS = {  # by compute capability
    "7.5": Sm(32, 16, 65536, 64 * 1024, 0, 256),
    "8.0": Sm(64, 32, 65536, 164 * 1024, 1024, 128),
    "8.6": Sm(48, 16, 65536, 100 * 1024, 1024, 128),
    "8.9": Sm(48, 24, 65536, 100 * 1024, 1024, 128),
    "9.0": Sm(64, 32, 65536, 228 * 1024, 1024, 128),
    "10.0": Sm(64, 32, 65536, 228 * 1024, 1024, 128),
    "12.0": Sm(48, 24, 65536, 100 * 1024, 1024, 128),
}


def round_up(n, unit):
    return -(-n // unit) * unit


def limits(sm, threads, registers, shared):
    """How many blocks each resource of an SM has room for."""
    warps = round_up(threads, 32) // 32
    per_warp = round_up(32 * registers, 256)
    # Each quarter of the SM has a quarter of the registers, and holds whole warps.
    per_quarter = sm.registers // 4 // per_warp
    per_block = round_up(shared + sm.reserved, sm.unit)
    return {
        "warps": sm.warps // warps,
        "blocks": sm.blocks,
        "registers": 4 * per_quarter // warps,
        "shared memory": sm.shared // per_block if per_block else sm.blocks,
    }


def resident(sm, threads, registers, shared):
    """Blocks that are resident on an SM together, and the occupancy, 0 to 1."""
    blocks = min(limits(sm, threads, registers, shared).values())
    return blocks, blocks * round_up(threads, 32) / 32 / sm.warps


# %% here
# The same numbers as the driver gives them for this GPU.
here = Sm(
    warps=gpu.max_threads_per_sm // gpu.warp_size,
    blocks=gpu.max_blocks_per_sm,
    registers=gpu.registers_per_sm,
    shared=gpu.shared_per_sm,
    reserved=gpu.shared_per_sm - gpu.shared_per_block_optin,
    unit=256 if gpu.compute_capability < (8, 0) else 128,
)
ct.facts("one SM of this GPU", here._asdict())
if (row := "{}.{}".format(*gpu.compute_capability)) in GPUS:
    ct.check(np.array(here), np.array(GPUS[row]), name=f"table, {row}")

# %% compile
KERNELS = {  # with the largest block that each allows
    ct.Kernel("basics/naive_columns.cu", "matmul_naive_columns"): 1024,
    ct.Kernel("basics/tiled.cu", "matmul_tiled"): 1024,
    ct.Kernel("basics/thread_tile.cu", "matmul_thread_tile"): 512,
    ct.Kernel("basics/registers.cu", "ring", defines={"MIN_BLOCKS": 1}): 256,
    ct.Kernel("start/programming_model.cu", "fma_k"): 1024,
    ct.Kernel(FILE, "read_vectors", defines={"LOADS": 4}): 1024,
}

# %% predict
for kernel, threads in list(KERNELS.items())[1:4]:
    needs = kernel.resources(threads)
    allowed = limits(here, threads, needs.registers, needs.shared_bytes)
    blocks, occupancy = resident(here, threads, needs.registers, needs.shared_bytes)
    ct.facts(
        f"{kernel.name}, {threads} threads",
        {
            "registers per thread": needs.registers,
            "shared memory per block": (needs.shared_bytes, "B"),
            **{f"blocks, by {what}": count for what, count in allowed.items()},
            "blocks, predicted": blocks,
            "blocks, driver": needs.blocks_per_sm,
            "occupancy": (100 * occupancy, "%"),
        },
    )

# %% compare
SIZES = sorted({1, 33, 100, 1000, *range(32, 1025, 32)})
DYNAMIC = (0, 1, 1_000, 8_192, 15_000, 32_768)  # bytes on top of what the kernel declares
for kernel, largest in KERNELS.items():
    predicted, driver = [], []
    for threads in (size for size in SIZES if size <= largest):
        for shared in DYNAMIC:
            needs = kernel.resources(threads, shared)
            predicted.append(resident(here, threads, needs.registers, needs.shared_bytes)[0])
            driver.append(needs.blocks_per_sm)
    ct.check(np.array(driver), np.array(predicted), name=kernel.name)

# %% k3
K3 = {"threads": 1024, "registers": 37, "shared": 8192}
blocks, occupancy = resident(GPUS["8.6"], **K3)
ct.facts(
    "K3, RTX A6000 (8.6)", {f"blocks, by {k}": v for k, v in limits(GPUS["8.6"], **K3).items()}
)
ct.claim(
    id="k3-occupancy",
    source="SGEMM worklog, kernel 3",
    statement={
        "en": "Kernel 3 (37 registers, 8192 B, 1024 threads) has one block per SM on an A6000: 66 % occupancy.",
        "zh": "第 3 个 kernel（37 个寄存器、8192 B、1024 个线程）在 A6000 上每个 SM 只放得下一个线程块，占用率 66 %。",
    },
    predicted=66,
    measured=100 * occupancy,
    unit="%",
    verdict="confirmed" if blocks == 1 and int(100 * occupancy) == 66 else "refuted",
)
ct.facts(
    "the same needs on other GPUs",
    {name: (100 * resident(sm, **K3)[1], "%") for name, sm in GPUS.items()},
)

# %% old-limits
ct.claim(
    id="sm-holds-8-blocks",
    source="CUDATutorial 00",
    statement={
        "en": "An SM holds 8 blocks and 1536 threads.",
        "zh": "一个 SM 可容纳 8 个线程块、1536 个线程。",
    },
    predicted="8, 1536",
    measured=f"{here.blocks}, {32 * here.warps}",
    verdict="confirmed" if (here.blocks, 32 * here.warps) == (8, 1536) else "refuted",
)

# %% stay
stay, stay_filled = ct.Kernel(FILE, "stay"), ct.Kernel(FILE, "stay_filled")
threads, longer = 256, 8
per_sm = stay.resources(threads).blocks_per_sm
# Shared memory of which `per_sm` blocks leave nothing over.
filling = (here.shared // per_sm - here.reserved) // here.unit * here.unit
grid = 8 * per_sm * sms
left = ct.empty(grid, "int32")
for kernel, shared in ((stay, 0), (stay_filled, filling)):
    ct.poison(left)
    kernel(left, 20_000, longer, grid=grid, block=threads, shared=shared)
    ct.check(left, np.ones(grid, "int32"), name=kernel.name)

warps = threads // 32
theoretical = stay_filled.resources(threads, filling).occupancy
ct.facts(
    "prediction, if a block keeps its place until its last warp ends",
    {
        "theoretical occupancy": (100 * theoretical, "%"),
        # `warps` warps for one unit of time, then one warp for the rest.
        "achieved occupancy": (100 * theoretical * (warps + longer - 1) / (warps * longer), "%"),
    },
)

# %% achieved
LIMITS = {
    "warps": "warps",
    "blocks": "blocks",
    "registers": "registers",
    "shared_mem": "shared memory",
}
MOST = "sm__maximum_warps_per_active_cycle_pct"
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
# The profiler runs this file again and watches the two launches of the cell above.
without, filled = profile_launches(
    "basics/occupancy",
    kernel="regex:^stay",
    metrics=[*(f"launch__occupancy_limit_{what}" for what in LIMITS), MOST, ACHIEVED],
    launches=2,
) or ({}, {})
for kernel, counted in (("stay_filled", filled), ("stay", without)):
    if counted:
        ct.facts(
            f"{kernel}, by the profiler",
            {
                **{
                    f"blocks, by {name}": counted[f"launch__occupancy_limit_{what}"]
                    for what, name in LIMITS.items()
                },
                "theoretical occupancy": (counted[MOST], "%"),
                "achieved occupancy": (counted[ACHIEVED], "%"),
            },
        )

# %% chains-check
CHAINS, WARPS = (1, 2, 4, 8), (4, 8, 16, 32, 64)
a, b = np.float32(0.999), np.float32(0.001)
x_host = rng.random(1024, dtype="float32")
x = ct.to_device(x_host)


def after(v, registers, steps):
    """Where a chain that starts at v is after `steps` FMAs."""
    if registers == 3:
        power = np.float64(a) ** steps
        return power * v + b * (1 - power) / (1 - np.float64(a))
    for _ in range(min(steps, 400)):  # long before that it stands at its fixed point
        v = v * v - 0.5
    return v


def run_chains(warps, c, registers=1):
    """FMA instructions of an SM per clock cycle; every combination does the same number of them."""
    steps = ct.size(1024, 16) * 64 * 8 // (warps * c)
    block = min(32 * warps, 1024)
    grid = sms * 32 * warps // block
    kernel = ct.Kernel(FILE, "chains", defines={"CHAINS": c, "REGISTERS": registers})
    out = ct.empty(grid * block, "float32")
    begin, end, sm = ct.empty(grid, "int64"), ct.empty(grid, "int64"), ct.empty(grid, "int32")
    for _ in range(2):  # the first run fetches the code
        kernel(x, out, begin, end, sm, a, b, steps, grid=grid, block=block)
    start = x_host[:block, None] * (1 - 0.1 * np.arange(c))
    expected = after(start.astype("float64"), registers, steps).sum(axis=1)
    name = f"{warps} warps, {c} chains, {registers} registers"
    ct.check(out, np.tile(expected, grid), name=name, rtol=1e-4)
    begin, end, sm = begin.get(), end.get(), sm.get()
    return float(
        np.median(
            [
                (sm == one).sum()
                * block
                / 32
                * c
                * steps
                / (end[sm == one].max() - begin[sm == one].min())
                for one in np.unique(sm)
            ]
        )
    )


rate = {(warps, c): run_chains(warps, c) for c in CHAINS for warps in WARPS}

# %% chains-predict
latency = 4 / rate[4, 1]  # cycles: four warps, one on each scheduler, one FMA in flight each
UNROLLED, LOOP = 16, 3  # steps in a turn of the loop; its own instructions: count, compare, jump


def fmas_per_cycle(warps, c):
    """An SM starts at most four instructions a cycle, and no more FMAs than are ready."""
    return min(4 * UNROLLED * c / (UNROLLED * c + LOOP), warps * c / latency)


ct.facts(
    "latency of an FMA", {"latency": (latency, "cycles"), "in flight for 4 per cycle": 4 * latency}
)
ct.facts(
    "predicted: FMAs per cycle",
    {
        f"{w} warps, {c} chains": fmas_per_cycle(w, c)
        for w, c in ((8, 1), (16, 1), (64, 1), (4, 4), (8, 4), (64, 4))
    },
)

# %% chains
ct.facts(
    "measured: FMAs per cycle",
    {
        f"{w} warps, {c} chains": rate[w, c]
        for w, c in ((4, 1), (8, 1), (16, 1), (64, 1), (4, 4), (8, 4), (64, 4))
    },
)
ct.series(
    "FMA instructions of an SM per cycle",
    x=("warps per SM", "warps"),
    y=("rate", "per cycle"),
    lines={f"{c} chains" if c > 1 else "1 chain": [(w, rate[w, c]) for w in WARPS] for c in CHAINS},
    limit=4,
)

# %% operands
ct.facts(
    "32 warps, FMAs per cycle",
    {
        f"{c} chains, {registers} registers": run_chains(32, c, registers)
        for registers in (1, 3)
        for c in (1, 4)
    },
)

# %% clocks
ct.claim(
    id="eight-fma-eight-clocks",
    source="CUDA slides 2.3",
    statement={
        "en": "One output of eight multiply-adds takes 8 clocks.",
        "zh": "一个输出要做 8 次乘加，需要 8 个时钟周期。",
    },
    predicted=8,
    measured=8 * latency,
    unit="cycles",
    verdict="confirmed" if 8 * latency < 1.5 * 8 else "refuted",
)
per_instruction = 4 / rate[64, 8]  # of one scheduler, with work enough
ct.claim(
    id="warp-instruction-four-cycles",
    source="CUDATutorial 00",
    statement={
        "en": "Each warp instruction occupies its scheduler for 4 cycles.",
        "zh": "每条线程束指令占用调度器 4 个周期。",
    },
    predicted=4,
    measured=per_instruction,
    unit="cycles",
    verdict="confirmed" if per_instruction > 3 else "refuted",
)

# %% read-check
READERS = {  # name: kernel, floats per load, loads in flight
    "1 x 4 B": (ct.Kernel(FILE, "read_words", defines={"LOADS": 1}), 1, 1),
    "4 x 4 B": (ct.Kernel(FILE, "read_words", defines={"LOADS": 4}), 1, 4),
    "4 x 16 B": (ct.Kernel(FILE, "read_vectors", defines={"LOADS": 4}), 4, 4),
}
length = ct.size(33_333_332, 400_004)
data_host = rng.random(length, dtype="float32")
data = ct.to_device(data_host)
sums = ct.empty(sms * 64 * 32, "float32")
READ_WARPS = (8, 16, 32, 64)


def reader(name, warps, n=length):
    """A launch with `warps` resident warps on each SM, and the number of its threads."""
    kernel, width, _ = READERS[name]
    block = 256
    grid = sms * warps * 32 // block
    return lambda: kernel(data, sums, n // width, grid=grid, block=block), grid * block


for name, (_, width, _) in READERS.items():
    for warps, lengths in ((8, (0, width, 31 * width)), (64, (123_456, length))):
        for n in lengths:
            ct.poison(sums)
            launch, threads = reader(name, warps, n)
            launch()
            turn = threads * width  # floats that all threads together take at a time
            padded = np.zeros(ct.cdiv(max(n, 1), turn) * turn, "float32")
            padded[:n] = data_host[:n]
            by_place = padded.reshape(-1, turn).sum(axis=0, dtype="float64")
            expected = by_place.reshape(threads, width).sum(axis=1)
            label = f"{name}, {warps} warps, n={n}"
            ct.check(sums[:threads], expected, name=label, rtol=1e-4)

# %% read
reads = ct.bench(
    {f"{name}, {w} warps": reader(name, w)[0] for name in READERS for w in READ_WARPS},
    bytes=4 * length,
    name="read, by loads in flight per thread and resident warps per SM",
)

# %% read-predict
# Little's law, from the slowest row: how long a load takes, and what that allows the others.
slowest = reads["1 x 4 B, 8 warps"]
load_us = slowest.median_us * (8 * sms * 32 * 4) / (4 * length)


def allowed(name, warps):
    _, width, loads = READERS[name]
    in_flight = warps * sms * 32 * 4 * width * loads
    return min(in_flight / load_us / 1e3, ct.limits.bandwidth())


ct.facts("latency of a load, from the slowest row", {"latency": (1e3 * load_us, "ns")})
ct.facts(
    "bandwidth that the loads in flight allow",
    {f"{name}, {w} warps": (allowed(name, w), "GB/s") for name in READERS for w in READ_WARPS},
)
ct.series(
    "read bandwidth",
    x=("warps per SM", "warps"),
    y=("bandwidth", "GB/s"),
    lines={
        name: [(w, 4 * length / reads[f"{name}, {w} warps"].median_us / 1e3) for w in READ_WARPS]
        for name in READERS
    },
    limit=ct.limits.bandwidth(),
)
