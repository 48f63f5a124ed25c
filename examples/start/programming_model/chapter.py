# ---
# jupyter:
#   cudatut:
#     title: {en: "The programming model, measured", zh: "实测编程模型"}
#     requires: sm_75
#     timeout_s: 240
#     sizes:
#       n: [33554432, 65536]
#       spin_ns: [50000, 5000]
#       chain_steps: [16384, 256]
#       walk: [20000, 500]
#       dram_lines: [2097152, 1024]
#       length: [33333333, 40009]
#       elements: [16777216, 4099]
# ---
# %% [markdown]
# Threads of one block, first one, then up to 1024 of them. Then many blocks. All threads do the same work.

# %% program
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

code = """
__global__ void chain(float *out) {
  float v = threadIdx.x;
  for (int k = 0; k < 400000; ++k) v = 0.999f * v + 0.001f;
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
"""
chain = SourceModule(code).get_function("chain")
sms = cuda.Context.get_device().multiprocessor_count
out = cuda.mem_alloc(4 * 1024 * 2 * (sms + 1))


def milliseconds(blocks, threads):
    times = []
    for _ in range(6):
        start, stop = cuda.Event(), cuda.Event()
        start.record()
        chain(out, grid=(blocks, 1), block=(threads, 1, 1))
        stop.record()
        stop.synchronize()
        times.append(start.time_till(stop))
    return np.median(times[1:])


def show(name, ms):
    print(f"{name:24} {ms:6.3f} ms, {ms / one_block[1]:5.2f} x one thread")


one_block = {}
for threads in (1, 32, 64, 128, 256, 512, 1024):
    one_block[threads] = milliseconds(1, threads)
    show(f"one block, {threads:4} threads", one_block[threads])
every_sm = milliseconds(sms, 1024)
one_more = milliseconds(sms + 1, 1024)
show("one such block per SM", every_sm)
show("one block more", one_more)

# %% [markdown]
# A kernel that does K multiplications and additions for each element that it reads and writes.

# %% program-2
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

source = """
__global__ void work(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i];
    for (int k = 0; k < K; ++k) v = 0.999f * v + 0.001f;
    out[i] = v;
  }
}
"""
n = 2**25
x = np.random.default_rng(1).random(n, dtype=np.float32)
d_x, d_out = cuda.to_device(x), cuda.mem_alloc(x.nbytes)
shape = {"grid": (n // 256, 1), "block": (256, 1, 1)}


def row(k):
    # K in the kernel is replaced by k.
    module = SourceModule(source, options=[f"-DK={k}"])
    work = module.get_function("work")
    times = []
    for _ in range(6):
        start, stop = cuda.Event(), cuda.Event()
        start.record()
        work(d_x, d_out, np.int32(n), **shape)
        stop.record()
        stop.synchronize()
        times.append(start.time_till(stop))
    ms = np.median(times[1:])
    gb, tflop = 8 * n / ms / 1e6, 2 * k * n / ms / 1e9
    print(f"{k:4} {2 * k / 8:9.2f} {ms:8.3f} {gb:8.1f} {tflop:8.2f}")
    return {"ms": ms, "GB/s": gb, "TFLOP/s": tflop}


print("   K  FLOP/byte      ms     GB/s  TFLOP/s")
rows = {k: row(k) for k in (1, 4, 16, 64, 256, 1024)}

# %% [markdown]
# Answers to 'Try it': blocks of half the size, twice as many; and two more values of K.

# %% try-1
show("two blocks of 512 per SM", milliseconds(2 * sms, 512))

# %% try-2
for k in (32, 128):
    row(k)

# %% [markdown]
# What the text says about these outputs, each computed once.

# %% check-warps
import cudatut as ct

ct.facts(
    "warps.py",
    {
        "512 threads / one thread": one_block[512] / one_block[1],
        "1024 threads / 512 threads": one_block[1024] / one_block[512],
        "a block per SM / one block": every_sm / one_block[1024],
        "one block more / a block per SM": one_more / every_sm,
    },
)

# %% check-roofline
ct.table(
    "roofline.py",
    {f"K = {k}": {"FLOP/B": 2 * k / 8, **values} for k, values in rows.items()},
    corner="operations",
    units={
        "ms": "ms",
        "GB/s": "GB/s",
        "TFLOP/s": "TFLOP/s",
        "FLOP/B": "FLOP/B",
    },
)

# %% check-ratios
ct.facts(
    "roofline.py, times",
    {
        "K = 16 / K = 1": rows[16]["ms"] / rows[1]["ms"],
        "K = 1024 / K = 256": rows[1024]["ms"] / rows[256]["ms"],
    },
)

# %% [markdown]
# The kernel of the second program at lengths that fit no block, against the same steps in closed form.


# %% check-work
def fma_steps(x, steps):
    """`steps` times v = 0.999 v + 0.001, with the constants as float32 holds them."""
    a, b = np.float64(np.float32(0.999)), np.float64(np.float32(0.001))
    return a**steps * x + b * (1 - a**steps) / (1 - a)


work = SourceModule(source, options=["-DK=77"]).get_function("work")
for m in ct.RAGGED:
    values = ct.rng(m).standard_normal(m, dtype="float32")
    d_values, result = ct.to_device(values), ct.empty(m, "float32")
    grid = (ct.cdiv(m, 256), 1)
    work(d_values, result, np.int32(m), grid=grid, block=(256, 1, 1))
    ct.check(result, fma_steps(values, 77), name=f"K = 77, n = {m}", rtol=1e-4)

# %% [markdown]
# The kernel of the first program. After 400,000 steps every thread has come to 1, so the number of steps is checked with
# fewer.

# %% check-chain
for steps in (400_000, 77, 1):
    short = code.replace("400000", str(steps))
    few = SourceModule(short).get_function("chain")
    for blocks, threads in ((1, 1), (1, 32), (3, 33), (2, 1024)):
        result = ct.empty(blocks * threads, "float32")
        few(result, grid=(blocks, 1), block=(threads, 1, 1))
        begin = np.tile(np.arange(threads), blocks)
        name = f"{steps} steps, {blocks} x {threads}"
        ct.check(result, fma_steps(begin, steps), name=name, rtol=1e-4)

# %% [markdown]
# The limits of this GPU as the book's probes measure them, and the intensity of some kernels.

# %% predict
FILE = "start/programming_model/programming_model.cu"
gpu = ct.device()
rng = ct.rng(0)
# GB/s and TFLOP/s, measured here.
bandwidth, fma = ct.limits.bandwidth(), ct.limits.fma()
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

# %% [markdown]
# A product of two small matrices: what its bytes and its operations take at least, beside a launch.

# %% gemm-64
small = 64
ct.facts(
    "a product of 64 x 64 matrices takes at least",
    {
        "bytes": (4 * 4 * small**2 / bandwidth / 1e3, "us"),
        "operations": (2 * small**3 / fma / 1e6, "us"),
    },
)

# %% [markdown]
# The worked example of CUDATutorial, with the figures of the V100's data sheet and one system of units.

# %% v100
# out = x + y in float32: two reads, one write and one addition each.
elements = 128 * 1024 * 128
moved, additions = 3 * 4 * elements, elements
# Data sheet of the V100 SXM2, bytes/s and FLOP/s.
v100_bandwidth, fp32 = 900e9, 15.7e12
memory_time, compute_time = moved / v100_bandwidth, additions / fp32
ct.facts(
    "out = x + y on a V100",
    {
        "bytes": (moved / 1e6, "MB"),
        "memory time": (1e6 * memory_time, "us"),
        "compute time": (1e6 * compute_time, "us"),
        "memory time / compute time": memory_time / compute_time,
        "intensity": (additions / moved, "FLOP/B"),
        "ridge": (fp32 / v100_bandwidth, "FLOP/B"),
    },
)

# %% [markdown]
# Each block notes its multiprocessor and when it started and ended.

# %% where
where_am_i = ct.Kernel(FILE, "where_am_i")
threads = gpu.max_threads_per_block
# Blocks that can be resident together.
fit = gpu.max_threads_per_sm // threads * gpu.sm_count
blocks = 3 * fit + 7
sm = ct.empty(blocks, "int32")
start, stop = ct.empty(blocks, "int64"), ct.empty(blocks, "int64")
spin_ns = 50_000
where_am_i(sm, start, stop, spin_ns, grid=blocks, block=threads)
sm, start, stop = sm.get(), start.get(), stop.get()
assert (stop - start).min() >= spin_ns
per_sm = np.unique(sm, return_counts=True)[1]

# Walk through all starts and ends in time; at equal times the ends come first.
changes = sorted(
    [(t, 1) for t in start.tolist()] + [(t, -1) for t in stop.tolist()]
)
at_once = int(np.cumsum([change for _, change in changes]).max())
ct.check(
    np.minimum(at_once, fit), at_once, name="blocks at once <= blocks that fit"
)
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

# %% [markdown]
# Dependent FMAs on one multiprocessor, by the number of warps.

# %% issue
fma_chain = ct.Kernel(FILE, "fma_chain")
chain_steps = 16_384
rates = {}
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

# %% [markdown]
# How large the memories are, and how long one load takes from each.

# %% spaces
ct.facts(
    "capacity",
    {
        "registers per SM": (4 * gpu.registers_per_sm / 1024, "KiB"),
        "shared memory per SM": (gpu.shared_per_sm / 1024, "KiB"),
        "shared memory per block": (gpu.shared_per_block_optin / 1024, "KiB"),
        "constant memory": (
            ct.attributes()["TOTAL_CONSTANT_MEMORY"] / 1024,
            "KiB",
        ),
        "L2": (gpu.l2_bytes / 2**20, "MiB"),
        "global memory": (gpu.memory_bytes / 2**30, "GiB"),
        "registers of all SMs": (
            4 * gpu.registers_per_sm * gpu.sm_count / 2**20,
            "MiB",
        ),
    },
)

# %% latency
chase = ct.Kernel(FILE, "chase")
chase_shared = ct.Kernel(FILE, "chase_shared")


def cycle(places, words):
    """A random cycle through `places` ints, `words` apart, from place 0; and the order of its places."""
    order = np.concatenate([[0], 1 + rng.permutation(places - 1)])
    following = np.zeros((places, words), "int32")
    following[order, 0] = words * np.roll(order, -1)
    return ct.to_device(following.reshape(-1)), order * words


def latency(name, places, steps, words=32, warm=0):
    """Cycles and nanoseconds per step; 32 words are a cache line of 128 bytes."""
    following, order = cycle(places, words)
    last, ticks = ct.empty(1, "int32"), ct.empty(2, "int64")
    # Filling this empties the L2 cache of the chain.
    evict = ct.empty(2 * gpu.l2_bytes, "uint8")
    if words == 1:
        chase_shared(following, last, ticks, places, steps, grid=1, block=256)
    else:
        chase(following, last, ticks, warm, steps, grid=1, block=1)
    ct.check(last, order[[(warm + steps) % places]], name=name)
    del evict
    spent = ticks.get()
    assert spent[0] > 0, spent
    return spent / steps


walk = 20_000
dram_lines = 2**21
l2_lines = gpu.l2_bytes // 8 // 128
cycles = {
    "shared memory": latency("shared memory", 4096, walk, words=1)[0],
    "L1": latency("L1", 128, walk, warm=256)[0],
    "L2": latency("L2", l2_lines, walk, warm=l2_lines)[0],
}
dram_cycles, dram_ns = latency("DRAM", dram_lines, walk)
ct.facts(
    "one dependent load",
    {
        **{name: (value, "cycles") for name, value in cycles.items()},
        "DRAM": (dram_cycles, "cycles"),
        "DRAM, time": (dram_ns, "ns"),
        "clock": (dram_cycles / dram_ns, "GHz"),
    },
)

# %% [markdown]
# Little's law: bytes on the way = bandwidth x latency. Then the same by measurement.

# %% little
# One load of a warp is 32 x 4 bytes.
full = gpu.max_threads_per_sm // 32
# GB/s from one warp per SM with one load in flight.
per_warp = 128 * gpu.sm_count / dram_ns
ct.facts(
    "bandwidth that the bytes in flight allow",
    {
        "in flight for full bandwidth": (bandwidth * dram_ns / 1e3, "kB"),
        "the same, per SM": (bandwidth * dram_ns / 1e3 / gpu.sm_count, "kB"),
        **{
            f"warps={w}": (min(w * per_warp, bandwidth), "GB/s")
            for w in (1, 2, 4, 8, 16, 32)
        },
        "warps per SM, full": full,
        "full": (min(full * per_warp, bandwidth), "GB/s"),
        "full, 4 loads": (min(4 * full * per_warp, bandwidth), "GB/s"),
    },
)

# %% warps-check
read_one, read_four = ct.Kernel(FILE, "read_one"), ct.Kernel(FILE, "read_four")
length = 33_333_333
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
for kernel, warps in (
    (read_one, 1),
    (read_one, 32),
    (read_one, full),
    (read_four, full),
):
    for m in (*lengths, length) if warps == full else lengths:
        ct.poison(sums)
        reader(kernel, warps, m)()
        threads = gpu.sm_count * 32 * warps
        label = f"{kernel.name}, warps={warps}, n={m}"
        ct.check(
            sums[:threads], expected_sums(m, threads), name=label, rtol=1e-4
        )

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

# %% [markdown]
# FMAs per element once more, with four elements per thread and unrolled loops: closer to the roof.

# %% roofline-check
fma_k = ct.Kernel(FILE, "fma_k")
result = ct.empty(length, "float32")


def fmas(k, n=length):
    fma_k(data, result, n, k, grid=ct.cdiv(n, 4 * 256), block=256)


for k in (0, 1, 77, 512):
    for m in (*lengths, length) if k == 77 else lengths[-1:]:
        ct.poison(result)
        fmas(k, m)
        ct.check(
            result[:m],
            fma_steps(data_host[:m], k),
            name=f"k={k}, n={m}",
            rtol=1e-4,
        )

# %% bound
KS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def bound_us(k, n=length):
    """The two-case formula: the slower of moving 8 bytes per element and computing 2k operations."""
    return max(8 * n / bandwidth / 1e3, 2 * k * n / fma / 1e6)


ct.facts("least time", {f"k={k}": (bound_us(k), "us") for k in KS})

# %% roofline
timed = ct.bench(
    {f"k={k}": lambda k=k: fmas(k) for k in KS},
    bytes=8 * length,
    name="k FMAs per element",
)
ct.facts(
    "k FMAs per element",
    {
        f"k={k}": (2 * k * length / timed[f"k={k}"].median_us / 1e6, "TFLOP/s")
        for k in KS[1:]
    },
)

# %% [markdown]
# The vector add of the worked example, on this GPU.

# %% add
add = ct.Kernel(FILE, "add")
elements = 128 * 1024 * 128
y_host = rng.standard_normal(elements, dtype="float32")
x, y = data[:elements], ct.to_device(y_host)
out = ct.empty(elements, "float32")


def add_vectors(n=elements):
    add(x, y, out, n, grid=ct.cdiv(n, 256), block=256)


for m in (*(m for m in ct.RAGGED if m < elements), elements):
    ct.poison(out)
    add_vectors(m)
    ct.check(out[:m], data_host[:m] + y_host[:m], name=f"add, n={m}")

# %% add-bound
ct.facts(
    "out = x + y here", {"memory time": (12 * elements / bandwidth / 1e3, "us")}
)

# %% add-bench
ct.bench({"add": add_vectors}, bytes=12 * elements, name="out = x + y")
