# ---
# jupyter:
#   cudatut:
#     title: {en: "Occupancy", zh: "占用率"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [33333333, 400003, 33333333]
#       work: [524288, 8192]
# ---

# %% [markdown] about
# How many blocks does an SM hold? The program works it out with four divisions,
# for five launches, and asks the driver too. Each launch then adds up an array.
# Then two ways to read it are timed: with a full SM, and with a quarter of that.

# %% program
import numpy as np

import cudatut as ct

source = """
__global__ void add_up(const float* __restrict__ x,
                       float* __restrict__ out, int n) {
  size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  size_t threads = (size_t)gridDim.x * blockDim.x;
  float sum = 0;
#pragma unroll 1
  for (size_t i = t; i < n; i += LOADS * threads) {
    float v[LOADS];
#pragma unroll
    for (int l = 0; l < LOADS; ++l) {  // all loads are sent off ...
      size_t j = i + l * threads;
      v[l] = j < n ? x[j] : 0;
    }
#pragma unroll
    for (int l = 0; l < LOADS; ++l) sum += v[l];  // ... before one is used
  }
  out[t] = sum;
}
"""

gpu = ct.device()
sm = {  # one SM of this GPU, as the driver describes it
    "warps": gpu.max_threads_per_sm // 32,
    "blocks": gpu.max_blocks_per_sm,
    "registers": gpu.registers_per_sm,
    "shared": gpu.shared_per_sm,
    "reserved": gpu.shared_per_sm - gpu.shared_per_block_optin,
}


def room(sm, threads, registers, shared):
    """How many blocks each resource of an SM has room for."""
    warps = ct.cdiv(threads, 32)
    per_warp = 256 * ct.cdiv(32 * registers, 256)
    per_block = 128 * ct.cdiv(shared + sm["reserved"], 128)
    quarter = sm["registers"] // 4 // per_warp  # warps beside one scheduler
    return {
        "warps": sm["warps"] // warps,
        "blocks": sm["blocks"],
        "registers": 4 * quarter // warps,
        "shared memory": sm["shared"] // max(per_block, 1),
    }


kernel = ct.Kernel(source, "add_up", defines={"LOADS": 4})
n = 33_333_333
x_host = ct.rng(0).random(n, dtype="float32")
x, total = ct.to_device(x_host), x_host.sum(dtype="float64")

print("threads  shared B  predicted  driver")
for threads, shared in (32, 0), (256, 0), (256, 40_000), (768, 0), (1024, 0):
    needs = kernel.resources(threads, shared)
    blocks = min(room(sm, threads, needs.registers, shared).values())
    share = blocks * ct.cdiv(threads, 32) / sm["warps"]
    grid = blocks * gpu.sm_count  # as many blocks as the GPU holds
    out = ct.empty(grid * threads, "float32")
    kernel(x, out, n, grid=grid, block=threads, shared=shared)
    assert np.isclose(out.get().sum(dtype="float64"), total)
    print(f"{threads:7d}  {shared:8d}  {share:9.1%}  {needs.occupancy:6.1%}")


def read(loads, warps):
    """A launch that adds up x with so many warps on each SM."""
    kernel = ct.Kernel(source, "add_up", defines={"LOADS": loads})
    grid = gpu.sm_count * warps // 4  # blocks of four warps
    out = ct.empty(grid * 128, "float32")
    return lambda: kernel(x, out, n, grid=grid, block=128)


FULL, QUARTER = "1 load, full SM", "16 loads, a quarter of the warps"
launches = {FULL: read(1, sm["warps"]), QUARTER: read(16, sm["warps"] // 4)}
times = ct.bench(launches, bytes=4 * n, name="Read bandwidth")
gain = times[QUARTER].value / times[FULL].value
ct.yours("basics/occupancy#program", {f"rate, {QUARTER} / {FULL}": (gain, "x")})

# %% [markdown] about-reads
# The same array, added up with one, four and sixteen loads on the way per
# thread, by few warps and by as many as fit.

# %% check-reads
LOADS = {"1 load": 1, "4 loads": 4, "16 loads": 16}
WARPS = {"8 warps": 8, "16 warps": 16, "32 warps": 32, "full SM": sm["warps"]}
CASES = [(loads, warps) for loads in LOADS for warps in WARPS]
block = 128
adders = {
    loads: ct.Kernel(source, "add_up", defines={"LOADS": count})
    for loads, count in LOADS.items()
}
sums = {
    warps: ct.empty(gpu.sm_count * count * 32, "float32")
    for warps, count in WARPS.items()
}


def read(loads, warps, m=n):
    """Add up x with so many resident warps on each SM."""
    out = sums[warps]
    adders[loads](x, out, m, grid=out.size // block, block=block)


for loads, warps in CASES:
    ct.poison(sums[warps])
    read(loads, warps)
    of_all = np.array([sums[warps].get().sum(dtype="float64")])
    ct.check(of_all, np.array([total]), name=f"{loads}, {warps}", rtol=1e-5)

# %% check-lengths
for loads in LOADS:
    out = sums["8 warps"]
    for m in (0, 1, 31, out.size + 1, min(n, 123_457)):
        ct.poison(out)
        read(loads, "8 warps", m)
        padded = np.zeros(ct.cdiv(m + 1, out.size) * out.size, "float32")
        padded[:m] = x_host[:m]
        expected = padded.reshape(-1, out.size).sum(axis=0, dtype="float64")
        ct.check(out, expected, name=f"{loads}, n = {m}")

# %% bench-reads
times = ct.bench(
    {f"{a}, {b}": lambda a=a, b=b: read(a, b) for a, b in CASES},
    bytes=4 * n,
    name="read, by loads per thread and warps per SM",
)

# %% reads
rate = {
    loads: {
        warps: 4 * n / times[f"{loads}, {warps}"].median_us / 1e3
        for warps in WARPS
    }
    for loads in LOADS
}
gb_s = dict.fromkeys(WARPS, "GB/s")
ct.table("Read bandwidth", rate, corner="per thread", units=gb_s)

# %% gain
quarter, whole = rate["16 loads"]["16 warps"], rate["16 loads"]["full SM"]
ct.facts(
    "A quarter of the warps",
    {
        "16 loads, 16 warps / 1 load, full SM": quarter
        / rate["1 load"]["full SM"],
        "16 loads: full SM / 16 warps": whole / quarter,
    },
)

# %% little
# Little's law, with the latency taken from the slowest case.
in_flight = {  # bytes on the way in the whole GPU
    loads: {w: 4 * sums[w].size * count for w in WARPS}
    for loads, count in LOADS.items()
}
latency_ns = in_flight["1 load"]["8 warps"] / rate["1 load"]["8 warps"]
allowed = {
    loads: {
        warps: min(held / latency_ns, ct.limits.bandwidth())
        for warps, held in by_warps.items()
    }
    for loads, by_warps in in_flight.items()
}
ct.facts("Latency of a load", {"from the slowest case": (latency_ns, "ns")})
ct.table(
    "Bandwidth that the loads on the way allow",
    allowed,
    corner="per thread",
    units=gb_s,
)

# %% [markdown] about-kernels
# Six kernels of this book with every block size that they allow: the driver
# must agree each time.

# %% kernels
RING = {"MIN_BLOCKS": 1}
KERNELS = {  # name: kernel, the largest block that it allows
    "matmul_naive_columns": ("basics/ladder/naive_columns.cu", {}, 1024),
    "matmul_tiled": ("basics/ladder/tiled.cu", {}, 1024),
    "matmul_thread_tile": ("basics/ladder/thread_tile.cu", {}, 512),
    "ring": ("basics/registers/registers.cu", RING, 256),
    "chains": ("basics/occupancy/occupancy.cu", {}, 1024),
    "stay": ("basics/occupancy/occupancy.cu", {}, 1024),
}
compiled = {
    name: ct.Kernel(file, name, defines=defines)
    for name, (file, defines, _) in KERNELS.items()
}
rows = {}
for name in ("matmul_tiled", "matmul_thread_tile", "ring"):
    threads = KERNELS[name][2]
    needs = compiled[name].resources(threads)
    fits = room(sm, threads, needs.registers, needs.shared_bytes)
    rows[name] = {
        "threads": threads,
        "registers": needs.registers,
        "shared memory": needs.shared_bytes,
        "blocks": min(fits.values()),
        "occupancy": 100 * needs.occupancy,
    }
ct.table(
    "Three kernels",
    rows,
    corner="kernel",
    units={"shared memory": "B", "occupancy": "%"},
)

# %% check-driver
SIZES = sorted({1, 33, 100, 1000, *range(32, 1025, 32)})
DYNAMIC = (0, 1, 1_000, 8_192, 15_000, 32_768)  # bytes beside its own
for name, (_, _, largest) in KERNELS.items():
    predicted, driver = [], []
    for threads in (size for size in SIZES if size <= largest):
        for shared in DYNAMIC:
            needs = compiled[name].resources(threads, shared)
            fits = room(sm, threads, needs.registers, needs.shared_bytes)
            predicted.append(min(fits.values()))
            driver.append(needs.blocks_per_sm)
    ct.check(np.array(driver), np.array(predicted), name=name)

# %% other-gpus
GPUS = {  # one SM of other GPUs, by compute capability
    "7.5": (32, 16, 65536, 65536, 0),
    "8.0": (64, 32, 65536, 167936, 1024),
    "8.6": (48, 16, 65536, 102400, 1024),
    "8.9": (48, 24, 65536, 102400, 1024),
    "9.0": (64, 32, 65536, 233472, 1024),
    "10.0": (64, 32, 65536, 233472, 1024),
    "12.0": (48, 24, 65536, 102400, 1024),
}
GPUS = {name: dict(zip(sm, values)) for name, values in GPUS.items()}
if (row := "{}.{}".format(*gpu.compute_capability)) in GPUS:
    table, here = list(GPUS[row].values()), list(sm.values())
    ct.check(np.array(here), np.array(table), name=f"one SM of {row}")

# %% here
ct.facts(
    "One SM of this GPU",
    {
        "warps": sm["warps"],
        "blocks": sm["blocks"],
        "registers": sm["registers"],
        "shared memory": (sm["shared"], "B"),
        "reserved per block": (sm["reserved"], "B"),
    },
)

# %% [markdown] about-achieved
# Occupancy as the profiler saw it, in two launches of the cells above: one load
# per thread on a full SM, sixteen loads with 16 warps.

# %% achieved

THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
DRAM = "dram__bytes_read.sum.per_second"
first = 7  # launches of `program`
counted = ct.profile_launches(
    "basics/occupancy",
    kernel="add_up",
    metrics=[THEORETICAL, ACHIEVED, DRAM],
    launches=first + len(CASES),
)
if counted:
    of = dict(zip(CASES, counted[first:]))
    shown = {
        "1 load, full SM": of["1 load", "full SM"],
        "16 loads, 16 warps": of["16 loads", "16 warps"],
    }
    ct.table(
        "Occupancy of two launches",
        {
            name: {
                "theoretical": c[THEORETICAL],
                "achieved": c[ACHIEVED],
                "from memory": c[DRAM] / 1e9,
            }
            for name, c in shown.items()
        },
        corner="launch",
        units={"theoretical": "%", "achieved": "%", "from memory": "GB/s"},
    )

# %% [markdown] about-stay
# Warps of one block that end at different times: what is left of the occupancy?

# %% stay
FILE = "basics/occupancy/occupancy.cu"
stay, stay_filled = ct.Kernel(FILE, "stay"), ct.Kernel(FILE, "stay_filled")
threads, longer = 256, 8
per_sm = stay.resources(threads).blocks_per_sm
# Shared memory of which `per_sm` blocks leave nothing over.
filling = (sm["shared"] // per_sm - sm["reserved"]) // 256 * 256
grid = 8 * per_sm * gpu.sm_count
cycles = 20_000
stayed = ct.empty((grid, threads // 32), "int32")  # by each warp
long_enough = np.full((grid, threads // 32), cycles)
long_enough[:, 0] *= longer
for waiting, shared in ((stay, 0), (stay_filled, filling)):
    ct.poison(stayed)
    waiting(stayed, cycles, longer, grid=grid, block=threads, shared=shared)
    found = stayed.get()
    ct.check(np.minimum(found, long_enough), long_enough, name=waiting.name)
    # A sanitizer slows each look at the clock down.
    assert ct.tool.running() or (found < 1.5 * long_enough).all()

# %% stay-achieved
warps = threads // 32
if_kept = stay_filled.resources(threads, filling).occupancy
if_kept *= (warps + longer - 1) / (warps * longer)
counted = ct.profile_launches(
    "basics/occupancy",
    kernel="regex:^stay",
    metrics=[THEORETICAL, ACHIEVED],
    launches=2,
)
if counted:
    without, filled = counted
    ct.table(
        "One warp in eight stays longer",
        {
            "predicted": {"theoretical": 100.0, "achieved": 100 * if_kept},
            "with shared memory": {
                "theoretical": filled[THEORETICAL],
                "achieved": filled[ACHIEVED],
            },
            "without shared memory": {
                "theoretical": without[THEORETICAL],
                "achieved": without[ACHIEVED],
            },
        },
        corner="launch",
        units={"theoretical": "%", "achieved": "%"},
    )

# %% [markdown] about-chains
# The same trade for arithmetic: chains of FMAs per thread, by warps on an SM.

# %% chains
CHAINS, CHAIN_WARPS = (1, 2, 4, 8), (4, 8, 16, 32, 64)
work = 1024 * 64 * 8
a, b = np.float32(0.999), np.float32(0.001)
starts_host = ct.rng(1).random(1024, dtype="float32")
starts = ct.to_device(starts_host)


def after(v, registers, steps):
    """Where a chain that starts at v is after `steps` FMAs."""
    if registers == 3:
        power = np.float64(a) ** steps
        return power * v + b * (1 - power) / (1 - np.float64(a))
    for _ in range(min(steps, 400)):  # long before that it stands still
        v = v * v - 0.5
    return v


def run_chains(warps, c, registers=1):
    """FMA instructions of an SM per clock cycle; always the same number."""
    steps = work // (warps * c)
    block = min(32 * warps, 1024)
    grid = gpu.sm_count * 32 * warps // block
    defines = {"CHAINS": c, "REGISTERS": registers}
    kernel = ct.Kernel(FILE, "chains", defines=defines)
    out, sm_of = ct.empty(grid * block, "float32"), ct.empty(grid, "int32")
    begin, end = ct.empty(grid, "int64"), ct.empty(grid, "int64")
    for _ in range(2):  # the first run fetches the code
        kernel(
            starts, out, begin, end, sm_of, a, b, steps, grid=grid, block=block
        )
    chained = starts_host[:block, None] * (1 - 0.1 * np.arange(c))
    expected = after(chained.astype("float64"), registers, steps).sum(axis=1)
    name = f"{warps} warps, {c} chains, {registers} registers"
    ct.check(out, np.tile(expected, grid), name=name, rtol=1e-4)
    begin, end, where = begin.get(), end.get(), sm_of.get()
    assert (end > begin).all() and where.min() >= 0
    rates = []
    for one in np.unique(where):
        here = where == one
        cycles = end[here].max() - begin[here].min()
        rates.append(here.sum() * block // 32 * c * steps / cycles)
    return float(np.median(rates))


# %% check-chains
# A long chain stands still in the end: few steps show how many there are.
for c in CHAINS:
    for registers in (1, 3):
        defines = {"CHAINS": c, "REGISTERS": registers}
        kernel = ct.Kernel(FILE, "chains", defines=defines)
        out, sm_of = ct.empty(3 * 96, "float32"), ct.empty(3, "int32")
        begin, end = ct.empty(3, "int64"), ct.empty(3, "int64")
        chained = starts_host[:96, None] * (1 - 0.1 * np.arange(c))
        for steps in (0, 1, 16, 19):
            arrays = starts, out, begin, end, sm_of
            kernel(*arrays, a, b, steps, grid=3, block=96)
            wanted = after(chained.astype("float64"), registers, steps)
            name = f"{c} chains, {registers} registers, {steps} steps"
            ct.check(out, np.tile(wanted.sum(axis=1), 3), name=name, rtol=1e-4)

# %% chains-run
fmas = {
    (warps, c): run_chains(warps, c) for c in CHAINS for warps in CHAIN_WARPS
}

# %% chains-rate
ct.series(
    "FMA instructions of an SM per cycle",
    x=("warps per SM", "warps"),
    y=("rate", "per cycle"),
    lines={
        f"{c} chains" if c > 1 else "1 chain": [
            (w, fmas[w, c]) for w in CHAIN_WARPS
        ]
        for c in CHAINS
    },
    limit=4,
)
fma_latency = 4 / fmas[4, 1]  # four warps, one on each scheduler
ct.facts(
    "Arithmetic",
    {
        "latency of an FMA": (fma_latency, "cycles"),
        "64 warps, 1 chain": (fmas[64, 1], "per cycle"),
        "8 warps, 4 chains": (fmas[8, 4], "per cycle"),
    },
)

# %% operands
operands = {
    f"{registers} registers" if registers > 1 else "1 register": {
        "1 chain": run_chains(32, 1, registers),
        "4 chains": run_chains(32, 4, registers),
    }
    for registers in (1, 3)
}
per_cycle = {"1 chain": "per cycle", "4 chains": "per cycle"}
ct.table("32 warps, FMAs", operands, corner="an FMA reads", units=per_cycle)

# %% reuse
from cudatut.book.measure.machine_code import sass

code = sass(FILE, "chains", CHAINS=4, REGISTERS=3)
fused = [i.text for i in code if i.op == "FFMA"]
print(*fused[:4], sep="\n")
