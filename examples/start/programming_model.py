# ---
# jupyter:
#   cudatut:
#     title: {en: "The programming model, measured", zh: "实测编程模型"}
#     requires: sm_75
#     timeout_s: 180
# ---

# %% [markdown]
# Where blocks run, how long a load takes and what hides it, and which of two limits a kernel meets.

# %% setup
import numpy as np

import cudatut as ct

FILE = "start/programming_model.cu"
gpu = ct.device()
rng = ct.rng(0)


def fma_steps(x, steps):
    """`steps` times v = 0.999 * v + 0.001 in closed form, with the constants as float32 holds them."""
    a, b = np.float64(np.float32(0.999)), np.float64(np.float32(0.001))
    return a**steps * x + b * (1 - a**steps) / (1 - a)


# %% v100
elements = 128 * 1024 * 128  # out = x + y in float32: two reads, one write, one addition each
moved, additions = 3 * 4 * elements, elements
bandwidth, fp32 = 900e9, 15.7e12  # data sheet of the V100 SXM2, bytes/s and FLOP/s
ct.facts(
    "out = x + y on a V100",
    {
        "bytes": (moved / 1e6, "MB"),
        "memory time": (1e6 * moved / bandwidth, "us"),
        "compute time": (1e6 * additions / fp32, "us"),
        "memory time / compute time": moved / bandwidth / (additions / fp32),
        "intensity": (additions / moved, "FLOP/B"),
        "ridge": (fp32 / bandwidth, "FLOP/B"),
    },
)

# %% predict
bandwidth, fma = ct.limits.bandwidth(), ct.limits.fma()  # GB/s and TFLOP/s, measured here
ridge = 1e3 * fma / bandwidth
ct.facts(
    "this GPU",
    {
        "bandwidth": (bandwidth, "GB/s"),
        "fp32": (fma, "TFLOP/s"),
        "ridge": (ridge, "FLOP/B"),
        "ridge, FMAs per 8 bytes": ridge * 8 / 2,
    },
)


def gemm_intensity(n):
    """C = alpha A B + beta C: 2 n^3 operations; A, B and C read once, C written once."""
    return 2 * n**3 / (4 * 4 * n**2)


ct.facts(
    "intensity",
    {
        "add": (1 / 12, "FLOP/B"),
        "GEMV 4096": (2 * 4096**2 / (4 * (4096**2 + 2 * 4096)), "FLOP/B"),
        "GEMM 64": (gemm_intensity(64), "FLOP/B"),
        "GEMM 4096": (gemm_intensity(4096), "FLOP/B"),
        "GEMM 4096, work": (2 * 4096**3 / 1e9, "GFLOP"),
        "GEMM 4096, traffic": (4 * 4 * 4096**2 / 1e6, "MB"),
    },
)

# %% where
where_am_i = ct.Kernel(FILE, "where_am_i")
threads = gpu.max_threads_per_block
fit = gpu.max_threads_per_sm // threads * gpu.sm_count  # blocks that can be resident together
blocks = 3 * fit + 7
sm = ct.empty(blocks, "int32")
start, stop = ct.empty(blocks, "int64"), ct.empty(blocks, "int64")
where_am_i(sm, start, stop, ct.size(50_000, 5_000), grid=blocks, block=threads)
sm, start, stop = sm.get(), start.get(), stop.get()
per_sm = np.unique(sm, return_counts=True)[1]

# Walk through all starts and ends in time; at equal times the ends come first.
changes = sorted([(t, 1) for t in start.tolist()] + [(t, -1) for t in stop.tolist()])
at_once = int(np.cumsum([change for _, change in changes]).max())
ct.check(np.minimum(at_once, fit), at_once, name="blocks at once <= blocks that fit")
ct.facts(
    "where blocks run",
    {
        "blocks": blocks,
        "threads": blocks * threads,
        "SMs used": per_sm.size,
        "blocks of an SM, fewest": per_sm.min(),
        "blocks of an SM, most": per_sm.max(),
        "blocks that fit": fit,
        "blocks at once": at_once,
        "threads at once": at_once * threads,
        "blocks that waited": int((start >= stop.min()).sum()),
    },
)

# %% issue
fma_chain = ct.Kernel(FILE, "fma_chain")
chain_steps, rates = ct.size(16_384, 256), {}
x_host = rng.standard_normal(1024, dtype="float32")
x = ct.to_device(x_host)
for warps in (1, 2, 4, 8, 16, 32):
    last = ct.empty(32 * warps, "float32")
    begin, end = ct.empty(warps, "int64"), ct.empty(warps, "int64")
    for _ in range(2):  # the first run fetches the code and x
        fma_chain(x, last, begin, end, chain_steps, grid=1, block=32 * warps)
    expected = fma_steps(x_host[: 32 * warps], chain_steps)
    ct.check(last, expected, name=f"warps={warps}", rtol=1e-4)
    cycles = int(end.get().max() - begin.get().min())
    rates[f"warps={warps}"] = warps * chain_steps / cycles
ct.facts("FMA instructions per cycle of one SM", rates)

# %% spaces
ct.facts(
    "capacity",
    {
        "registers per SM": (4 * gpu.registers_per_sm / 1024, "KiB"),
        "shared memory per SM": (gpu.shared_per_sm / 1024, "KiB"),
        "shared memory per block": (gpu.shared_per_block_optin / 1024, "KiB"),
        "constant memory": (ct.attributes()["TOTAL_CONSTANT_MEMORY"] / 1024, "KiB"),
        "L2": (gpu.l2_bytes / 2**20, "MiB"),
        "global memory": (gpu.memory_bytes / 2**30, "GiB"),
        "registers of all SMs": (4 * gpu.registers_per_sm * gpu.sm_count / 2**20, "MiB"),
    },
)

# %% latency
chase = ct.Kernel(FILE, "chase")
chase_shared = ct.Kernel(FILE, "chase_shared")


def chain(places, words):
    """A random cycle through `places` ints, `words` apart, from place 0; and the order of its places."""
    order = np.concatenate([[0], 1 + rng.permutation(places - 1)])
    following = np.zeros((places, words), "int32")
    following[order, 0] = words * np.roll(order, -1)
    return ct.to_device(following.reshape(-1)), order * words


def latency(name, places, steps, words=32, warm=0):
    """Cycles and nanoseconds per step; 32 words are a cache line of 128 bytes."""
    following, order = chain(places, words)
    last, ticks = ct.empty(1, "int32"), ct.empty(2, "int64")
    evict = ct.empty(2 * gpu.l2_bytes, "uint8")  # filling it empties the L2 cache of the chain
    if words == 1:
        chase_shared(following, last, ticks, places, steps, grid=1, block=256)
    else:
        chase(following, last, ticks, warm, steps, grid=1, block=1)
    ct.check(last, order[[(warm + steps) % places]], name=name)
    del evict
    return ticks.get() / steps


l2_lines = ct.size(gpu.l2_bytes // 8 // 128, 512)
cycles = {
    "shared memory": latency("shared memory", 4096, ct.size(20_000, 500), words=1)[0],
    "L1": latency("L1", 128, ct.size(20_000, 500), warm=256)[0],
    "L2": latency("L2", l2_lines, ct.size(20_000, 500), warm=l2_lines)[0],
}
dram_cycles, dram_ns = latency("DRAM", ct.size(2**21, 2**10), ct.size(20_000, 500))
ct.facts(
    "one dependent load",
    {
        **{name: (value, "cycles") for name, value in cycles.items()},
        "DRAM": (dram_cycles, "cycles"),
        "DRAM, time": (dram_ns, "ns"),
        "clock": (dram_cycles / dram_ns, "GHz"),
    },
)

# %% little
# Little's law: bytes in flight = bandwidth x latency. One load of a warp is 32 x 4 bytes.
full = gpu.max_threads_per_sm // 32
per_warp = 128 * gpu.sm_count / dram_ns  # GB/s from one warp per SM with one load in flight
ct.facts(
    "bandwidth that the bytes in flight allow",
    {
        "in flight for full bandwidth": (bandwidth * dram_ns / 1e3, "kB"),
        "the same, per SM": (bandwidth * dram_ns / 1e3 / gpu.sm_count, "kB"),
        **{f"warps={w}": (min(w * per_warp, bandwidth), "GB/s") for w in (1, 2, 4, 8, 16, 32)},
        "warps per SM, full": full,
        "full": (min(full * per_warp, bandwidth), "GB/s"),
        "full, 4 loads": (min(4 * full * per_warp, bandwidth), "GB/s"),
    },
)

# %% warps-check
read_one, read_four = ct.Kernel(FILE, "read_one"), ct.Kernel(FILE, "read_four")
length = ct.size(33_333_333, 40_009)
data_host = rng.standard_normal(length, dtype="float32")
data = ct.to_device(data_host)
sums = ct.empty(gpu.sm_count * gpu.max_threads_per_sm, "float32")


def reader(kernel, warps, n=length):
    """A launch with `warps` resident warps on every SM."""
    block = min(32 * warps, 512) if warps > 32 else 32 * warps
    grid = gpu.sm_count * 32 * warps // block
    return lambda: kernel(data, sums, n, grid=grid, block=block)


def expected_sums(n, threads):
    padded = np.zeros(ct.cdiv(n, threads) * threads)
    padded[:n] = data_host[:n]
    return padded.reshape(-1, threads).sum(axis=0)


lengths = [m for m in ct.RAGGED if m < length]
for kernel, warps in ((read_one, 1), (read_one, 32), (read_one, full), (read_four, full)):
    for m in (*lengths, length) if warps == full else lengths:
        ct.poison(sums)
        reader(kernel, warps, m)()
        threads = gpu.sm_count * 32 * warps
        label = f"{kernel.name}, warps={warps}, n={m}"
        ct.check(sums[:threads], expected_sums(m, threads), name=label, rtol=1e-4)

# %% warps
ct.bench(
    {
        "warps=1": reader(read_one, 1),
        "warps=2": reader(read_one, 2),
        "warps=4": reader(read_one, 4),
        "warps=8": reader(read_one, 8),
        "warps=16": reader(read_one, 16),
        "warps=32": reader(read_one, 32),
        "full": reader(read_one, full),
        "full, 4 loads": reader(read_four, full),
    },
    bytes=data.nbytes,
    name="read, by resident warps per SM",
)

# %% roofline-check
fma_k = ct.Kernel(FILE, "fma_k")
result = ct.empty(length, "float32")


def fmas(k, n=length):
    fma_k(data, result, n, k, grid=ct.cdiv(n, 4 * 256), block=256)


for k in (0, 1, 77, 512):
    for m in (*lengths, length) if k == 77 else lengths[-1:]:
        ct.poison(result)
        fmas(k, m)
        ct.check(result[:m], fma_steps(data_host[:m], k), name=f"k={k}, n={m}", rtol=1e-4)

# %% bound
KS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def bound_us(k, n=length):
    """The two-case formula: the slower of moving 8 bytes per element and computing 2k operations."""
    return max(8 * n / bandwidth / 1e3, 2 * k * n / fma / 1e6)


ct.facts("bound", {f"k={k}": (bound_us(k), "us") for k in KS})

# %% roofline
roofline = ct.bench(
    {f"k={k}": lambda k=k: fmas(k) for k in KS}, bytes=8 * length, name="k FMAs per element"
)
ct.facts(
    "k FMAs per element",
    {f"k={k}": (2 * k * length / roofline[f"k={k}"].median_us / 1e6, "TFLOP/s") for k in KS[1:]},
)

# %% add
add = ct.Kernel(FILE, "add")
elements = ct.size(128 * 1024 * 128, 4_099)
y_host = rng.standard_normal(elements, dtype="float32")
x, y, out = data[:elements], ct.to_device(y_host), ct.empty(elements, "float32")


def add_vectors(n=elements):
    add(x, y, out, n, grid=ct.cdiv(n, 256), block=256)


for m in (*(m for m in ct.RAGGED if m < elements), elements):
    ct.poison(out)
    add_vectors(m)
    ct.check(out[:m], data_host[:m] + y_host[:m], name=f"add, n={m}")

# %% add-bound
ct.facts("out = x + y here", {"memory time": (12 * elements / bandwidth / 1e3, "us")})

# %% add-bench
ct.bench(
    {"add": add_vectors, "CuPy": ct.vendor.add(x, y, out)}, bytes=12 * elements, name="out = x + y"
)
