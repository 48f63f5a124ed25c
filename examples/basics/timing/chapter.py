# ---
# jupyter:
#   cudatut:
#     title: {en: "Reliable timing", zh: "可靠的计时"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       others: [134217728, 65536]
#       lengths: [[1048576, 33554432], [4096, 8192], [1048576, 8192]]
#       rounds: [100, 1]
#       exponents: [[18, 19, 20, 21, 22, 23, 24, 25], [12, 13]]
#       in_a_row: [20, 2]
#       repeats: [7, 1]
#       experiments: [10, 1]
#       runs: [21, 1]
#       side: [4096, 64]
#       large: [33554432, 4096]
# ---

# %% [markdown]
# How long does a copy take? It depends on where its data are. This program times
# the same launch with its data in the L2 cache, and with other data there.

# %% program
import numpy as np
import pycuda.driver as cuda

import cudatut as ct

source = """
__global__ void copy(const float *__restrict__ in,
                     float *__restrict__ out, int n) {
  size_t threads = (size_t)gridDim.x * blockDim.x;
  size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 4; ++k) {  // four elements for each thread
    size_t i = t + k * threads;
    if (i < n) out[i] = in[i];
  }
}

__global__ void read_all(const float *in, float *out, int n) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (size_t i = first; i < n; i += stride) sum += in[i];
  if (sum == -1) out[0] = sum;  // never true, but the loads must stay
}
"""
copy, read_all = ct.Kernel(source, "copy"), ct.Kernel(source, "read_all")
others = 1 << 27  # floats, 537 MB: much more than any L2 cache holds
other, unused = ct.to_device(np.ones(others, "float32")), ct.empty(1, "float32")


def flush():
    read_all(other, unused, others, grid=2048, block=256)


def time_us(launch):
    start, stop = cuda.Event(), cuda.Event()
    start.record()
    launch()
    stop.record()
    stop.synchronize()
    return 1e3 * start.time_till(stop)


lengths = (1 << 20, 1 << 25)
rounds = 100


def measure(n):
    x = ct.to_device(ct.rng(0).random(n, dtype="float32"))
    out = ct.empty(n, "float32")

    def launch():
        copy(x, out, n, grid=ct.cdiv(n, 1024), block=256)

    launch()  # the first launch is not timed
    cold, hot = [], []
    for _ in range(rounds):
        flush()
        cold.append(time_us(launch))
        flush()
        launch()  # brings the data back into the cache, if they fit
        hot.append(time_us(launch))
    return {"cold": cold, "hot": hot}


ratios, medians = {}, {}
for n in lengths:
    for name, times in measure(n).items():
        p20, median, p80 = np.percentile(times, (20, 50, 80))
        print(f"{8e-6 * n:5.1f} MB, {name:>4}: {median:6.2f} us", end=" ")
        print(f"({p20:.2f} to {p80:.2f}), {8e-3 * n / median:.1f} GB/s")
        medians[name] = median
    ratio = medians["cold"] / medians["hot"]
    ratios[f"{8e-6 * n:.1f} MB, time cold / hot"] = (ratio, "x")
ct.yours("basics/timing#program", ratios)

# %% [markdown]
# Is the copy right? And what do its bytes need at this GPU's measured limit?

# %% check
for n in ct.RAGGED:
    x = ct.rng(n).random(n, dtype="float32")
    d_x, out = ct.to_device(x), ct.empty(n, "float32")
    copy(d_x, out, n, grid=ct.cdiv(n, 1024), block=256)
    ct.check(out, x, name=f"copy, n={n}", rtol=0, atol=0)

# %% [markdown]
# Does the flush read every element, and each only once? It writes -1 if the sum
# of a thread is -1. Here just one thread should find that: it has four times
# -0.25, and all other elements are ones, those past the end too.

# %% check-flush
threads = 4 * 256
for thread in (0, 257, 600, threads - 1):
    values = np.ones(5 * threads, "float32")
    values[thread : 4 * threads : threads] = -0.25
    d_x, found = ct.to_device(values), ct.to_device(np.zeros(1, "float32"))
    read_all(d_x, found, 4 * threads, grid=4, block=256)
    name = f"flush, elements of thread {thread}"
    ct.check(found, np.array([-1.0], "float32"), name=name)

# %% [markdown]
# The same two times over many sizes. The hot one is the mean of launches in a
# row, behind a kernel that keeps the GPU busy until the host has sent them all.

# %% sweep

# One run between two events after a flush; under a sanitizer without the flush.
time_once = ct.time_once_bare if ct.tool.running() else ct.time_once
busy = ct.Kernel("basics/timing/timing.cu", "busy")
busy_us = time_us(lambda: busy(2_000_000, grid=1, block=1))
assert busy_us > 1990, busy_us  # its clock may be a microsecond late
exponents = (18, 19, 20, 21, 22, 23, 24, 25)
in_a_row = 20
repeats = 7
runs = 21


def copying(n):
    """A launch that copies n random floats."""
    x = ct.to_device(ct.rng(n).random(n, dtype="float32"))
    out = ct.empty(n, "float32")
    return lambda: copy(x, out, n, grid=ct.cdiv(n, 1024), block=256)


def hot_us(launch):
    times = []
    for _ in range(repeats):
        start, stop = cuda.Event(), cuda.Event()
        busy(2_000_000, grid=1, block=1)
        launch()
        start.record()
        for _ in range(in_a_row):
            launch()
        stop.record()
        stop.synchronize()
        times.append(1e3 * start.time_till(stop) / in_a_row)
    return float(np.median(times))


def cold_us(launch):
    launch()
    return float(np.median([time_once(launch) for _ in range(runs)]))


hot, cold = [], []
for n in (2**exponent for exponent in exponents):
    launch = copying(n)
    hot.append((8 * n / 1e6, 8 * n / hot_us(launch) / 1e3))
    cold.append((8 * n / 1e6, 8 * n / cold_us(launch) / 1e3))

# %% hot-and-cold
bandwidth = ct.limits.bandwidth()
ct.series(
    "copy, by the bytes that it reads and writes",
    x=("bytes", "MB"),
    y=("rate", "GB/s"),
    lines={"back to back": hot, "after a flush": cold},
    limit=bandwidth,
)

# %% rates
best = max(range(len(hot)), key=lambda i: hot[i][1])
coldest = max(range(len(cold)), key=lambda i: cold[i][1])
ct.facts(
    "rates",
    {
        "L2 cache": (ct.device().l2_bytes / 1e6, "MB"),
        "highest rate back to back": (hot[best][1], "GB/s"),
        "at": (hot[best][0], "MB"),
        "share of the limit": hot[best][1] / bandwidth,
        "after a flush, same size": (cold[best][1], "GB/s"),
        "highest rate after a flush at": (cold[coldest][0], "MB"),
        "its share of the limit": cold[coldest][1] / bandwidth,
        "largest size, back to back / flushed": hot[-1][1] / cold[-1][1],
    },
)

# %% [markdown]
# Where did the bytes go? The profiler's counters for the copy of 2^20 floats,
# after a flush of its own.

# %% counters
ct.profile(
    "basics/timing",
    kernel="copy",
    metrics=[
        "gpu__time_duration.sum",
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
    ],
)

# %% [markdown]
# The same experiment ten times: how much do single runs differ, and how much
# means and medians?

# %% repeated
experiments = 10
launch = copying(1 << 20)
launch()
batches = np.array(
    [[time_once(launch) for _ in range(runs)] for _ in range(experiments)]
)


def spread(values):
    """Largest over smallest, minus 1, in percent."""
    return float(100 * (values.max() / values.min() - 1)), "%"


# As if something else had held the GPU during one run, the median one.
disturbed = batches[0].copy()
disturbed[np.argsort(disturbed)[runs // 2]] *= 10

# %% spread
ct.facts(
    "ten experiments of 21 runs",
    {
        "fastest run": (float(batches.min()), "us"),
        "p20": (float(np.percentile(batches, 20)), "us"),
        "median": (float(np.percentile(batches, 50)), "us"),
        "p80": (float(np.percentile(batches, 80)), "us"),
        "slowest run": (float(batches.max()), "us"),
        "the ten means differ by": spread(batches.mean(axis=1)),
        "the ten medians differ by": spread(np.median(batches, axis=1)),
    },
)

# %% disturbed
ct.table(
    "one run of 21 takes ten times as long",
    {
        "mean": {
            "before": float(batches[0].mean()),
            "after": float(disturbed.mean()),
        },
        "median": {
            "before": float(np.median(batches[0])),
            "after": float(np.median(disturbed)),
        },
    },
    corner="summary",
    units={"before": "us", "after": "us"},
)

# %% [markdown]
# The first launches of a kernel that nobody has launched yet, each between two
# events on an idle GPU.

# %% first-launches
fresh = ct.Kernel("basics/timing/timing.cu", "copy")
n = 1 << 20
x = ct.to_device(ct.rng(n).random(n, dtype="float32"))
out = ct.empty(n, "float32")
first = [
    time_us(lambda: fresh(x, out, n, grid=ct.cdiv(n, 1024), block=256))
    for _ in range(10)
]
ct.facts(
    "a kernel launched ten times",
    {
        "first launch": (first[0], "us"),
        "median of the others": (float(np.median(first[1:])), "us"),
    },
)

# %% [markdown]
# Do the values matter? A copy and two products of cuBLAS, each for a while on
# random numbers and on zeros, and the clock of the SMs right afterwards.

# %% sustained
sm_clock = ct.Kernel("basics/timing/timing.cu", "sm_clock")
cycles = ct.empty(2, "int64")
side = 4096
large = 1 << 25


def sustained(launch, ms=150):
    """Time of a launch after `ms` of nothing else, and the clock in MHz."""
    launch()
    if ct.tool.running():
        return 1.0, 1.0
    count = max(20, int(ms * 1e3 / ct.time_once_bare(launch)))
    start, stop = cuda.Event(), cuda.Event()
    for i in range(count):
        if i == count // 2:
            start.record()
        launch()
    stop.record()
    sm_clock(cycles, 20_000, grid=1, block=1)
    ticks, ns = cycles.get()
    fastest = ct.device().clock_khz / 1e6  # cycles in a nanosecond
    assert ns >= 20_000 and 0 < ticks < 1.1 * fastest * ns, (ticks, ns)
    us = 1e3 * start.time_till(stop) / (count - count // 2)
    return us, 1e3 * float(ticks / ns)


def matrices(values, dtype):
    a, b = (ct.to_device(values((side, side)).astype(dtype)) for _ in range(2))
    return ct.vendor.matmul(a, b, ct.empty((side, side), dtype))


def vector(values):
    x, out = ct.to_device(values(large)), ct.empty(large, "float32")
    return lambda: copy(x, out, large, grid=ct.cdiv(large, 1024), block=256)


rng = ct.rng(7)


def random(shape):
    return rng.random(shape, "float32") * np.float32(2) - np.float32(1)


def zeros(shape):
    return np.zeros(shape, "float32")


makers = {
    "copy": vector,
    "product, fp32": lambda values: matrices(values, "float32"),
    "product, fp16": lambda values: matrices(values, "float16"),
}
rows = {}
for name, make in makers.items():
    on_random, on_zeros = make(random), make(zeros)
    if on_random is None:  # no CuPy
        continue
    # Each alone for a while: the clock reacts within milliseconds, and runs in
    # turn would share whatever clock results.
    turns = [(sustained(on_random), sustained(on_zeros)) for _ in range(2)]
    (random_us, random_mhz), (zeros_us, zeros_mhz) = np.median(turns, axis=0)
    rows[name] = {
        "time, random / zeros": float(random_us / zeros_us),
        "clock on random": float(random_mhz),
        "clock on zeros": float(zeros_mhz),
    }

# %% zeros
ct.table(
    "random numbers and zeros",
    rows,
    corner="kernel",
    units={"clock on random": "MHz", "clock on zeros": "MHz"},
)

# %% [markdown]
# What the timer should not wrap: the time of the kernel beside the time of
# everything around it.

# %% everything
x = ct.rng(0).random(large, dtype="float32")


def everything():
    d_x, out = cuda.mem_alloc(x.nbytes), cuda.mem_alloc(x.nbytes)
    cuda.memcpy_htod(d_x, x)
    copy(d_x, out, large, grid=ct.cdiv(large, 1024), block=256)
    cuda.memcpy_dtoh(np.empty_like(x), out)


# %% wrapped
kernel_ms = cold_us(copying(large)) / 1e3
everything_ms = float(np.median([time_us(everything) for _ in range(5)])) / 1e3
share = kernel_ms / everything_ms
ct.facts(
    "what stands between the two events",
    {
        "the kernel": (kernel_ms, "ms"),
        "allocation, copies and kernel": (everything_ms, "ms"),
        "share of the kernel": (100 * share, "%"),
        "what a kernel of half the time would save": (50 * share, "%"),
    },
)

# %% [markdown]
# How `ct.bench` times one run, and in which order it runs the contestants.

# %% time-once
import inspect

print(inspect.getsource(ct.time_once))

# %% rotation
code = inspect.getsource(ct.bench)
print(code[code.index("    order = list(runs)") : code.index("    result =")])
