# ---
# jupyter:
#   cudatut:
#     title: {en: "Timing honestly", zh: "诚实地计时"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# One kernel, many times: first and later launches, hot and cold cache, means and medians, zeros and random numbers.

# %% setup
import inspect
from time import perf_counter

import numpy as np
import pycuda.driver as cuda
from ladder import LADDER, Matmul

import cudatut as ct
from cudatut import timing, tool

FILE = "basics/timing.cu"
copy, busy = ct.Kernel(FILE, "copy"), ct.Kernel(FILE, "busy")
# One run between two events after a flush of the L2 cache; under a sanitizer without the flush, which takes long there.
time_once = timing.time_once_bare if tool.running() else timing.time_once
rounds = ct.size(21, 1)


def copying(n, kernel=copy):
    """A launch that copies n floats, what it copies, and where to."""
    host = ct.rng(n).random(n, dtype="float32")
    source, target = ct.to_device(host), ct.empty(n, "float32")
    grid = ct.cdiv(n // 4, 256)
    return lambda: kernel(source, target, n // 4, grid=grid, block=256), host, target


# %% check
for n in (1 << 20, 4, 1 << 12, 1_111_112):  # the first one is what `ct.profile` below looks at
    launch, host, target = copying(n)
    launch()
    ct.check(target, host, name=f"copy, n={n}", rtol=0, atol=0)

# %% predict
bandwidth, l2 = ct.limits.bandwidth(), ct.device().l2_bytes
SIZES = [2**exponent for exponent in range(*ct.size((18, 26), (12, 14)))]
ct.facts(
    "a copy reads 4 n bytes and writes 4 n bytes",
    {
        "L2": (l2 / 1e6, "MB"),
        "bandwidth": (bandwidth, "GB/s"),
        "n = 2^20, bytes": (8 * 2**20 / 1e6, "MB"),
        "n = 2^20, at that bandwidth": (8 * 2**20 / bandwidth / 1e3, "us"),
        "n = 2^25, bytes": (8 * 2**25 / 1e6, "MB"),
        "n = 2^25, at that bandwidth": (8 * 2**25 / bandwidth / 1e3, "us"),
        "largest n that fits in L2": l2 // 8,
    },
)


# %% first-launches
def one_by_one(launch, count=10):
    """Times of the first `count` launches between two events on an idle GPU, in us: nothing is warmed up."""
    times = []
    for _ in range(count):
        start, stop = cuda.Event(), cuda.Event()
        start.record()
        launch()
        stop.record()
        stop.synchronize()
        times.append(1e3 * start.time_till(stop))
    return times


launch, _, _ = copying(1 << 20, ct.Kernel(FILE, "copy"))  # loaded anew: nobody has launched it yet
first = one_by_one(launch)
ct.series(
    "the first ten launches",
    x=("launch", ""),
    y=("time", "us"),
    lines={"copy of 2^20 floats": list(enumerate(first, start=1))},
)
ct.facts(
    "the first ten launches",
    {"first": (first[0], "us"), "median of the others": (float(np.median(first[1:])), "us")},
)


# %% hot-and-cold
def hot_us(launch, count=20):
    """Median time of a launch that follows others of its kind, in us: its data are where they left them."""
    times = []
    for _ in range(ct.size(7, 1)):
        start, stop = cuda.Event(), cuda.Event()
        busy(2_000_000, grid=1, block=1)  # until the host has enqueued all that follows
        launch()
        start.record()
        for _ in range(count):
            launch()
        stop.record()
        stop.synchronize()
        times.append(1e3 * start.time_till(stop) / count)
    return float(np.median(times))


def cold_us(launch):
    """Median time of a launch that finds none of its data in the L2 cache, in us."""
    launch()
    return float(np.median([time_once(launch) for _ in range(rounds)]))


hot, cold = [], []
for n in SIZES:
    launch, _, _ = copying(n)
    hot.append((8 * n / 1e6, 8 * n / hot_us(launch) / 1e3))
    cold.append((8 * n / 1e6, 8 * n / cold_us(launch) / 1e3))
ct.series(
    "copy, by bytes read and written",
    x=("bytes", "MB"),
    y=("rate", "GB/s"),
    lines={"back to back": hot, "after a flush": cold},
    limit=bandwidth,
)
best = max(range(len(SIZES)), key=lambda i: hot[i][1])
best_cold = max(range(len(SIZES)), key=lambda i: cold[i][1])
ct.facts(
    "rates",
    {
        "highest rate": (hot[best][1], "GB/s"),
        "at": (hot[best][0], "MB"),
        "of the memory's bandwidth": hot[best][1] / bandwidth,
        "flushed, same size": (cold[best][1], "GB/s"),
        "highest rate after a flush": (cold[best_cold][1], "GB/s"),
        "that one at": (cold[best_cold][0], "MB"),
        "that one, of the memory's bandwidth": cold[best_cold][1] / bandwidth,
        "largest size, back to back / flushed": hot[-1][1] / cold[-1][1],
    },
)


# %% hundred
def mean_of_hundred(launch, count=100):
    """As tutorials do: two events around 100 launches, divided by 100. No warm-up, no flush."""
    cuda.Context.synchronize()
    start, stop = cuda.Event(), cuda.Event()
    start.record()
    for _ in range(ct.size(count, 2)):
        launch()
    stop.record()
    stop.synchronize()
    return 1e3 * start.time_till(stop) / count


def product(n):
    return Matmul(n, n, n).launcher(LADDER["naive_rows"])


candidates = {
    "copy, n = 2^18": copying(1 << 18)[0],
    "copy, n = 2^22": copying(1 << 22)[0],
    "copy, n = 2^25": copying(ct.size(1 << 25, 1 << 12))[0],
    "naive_rows, 256": product(ct.size(256, 32)),
    "naive_rows, 1024": product(ct.size(1024, 32)),
}
means = {name: mean_of_hundred(launch) for name, launch in candidates.items()}
medians = ct.bench(candidates, name="flushed, interleaved, median", rounds=15)
ratios = {name: mean / medians[name].median_us for name, mean in means.items()}
for name, mean in means.items():
    row = medians[name]
    ct.facts(
        name,
        {
            "mean of 100": (mean, "us"),
            "median": (row.median_us, "us"),
            "p20": (row.p20_us, "us"),
            "p80": (row.p80_us, "us"),
            "mean / median": ratios[name],
        },
    )
agree = [0.95 < ratio < 1.05 for ratio in ratios.values()]
ct.claim(
    id="mean-of-100",
    source="CUDATutorial 11",
    statement={
        "en": "The mean of 100 launches between two events is the time of the kernel",
        "zh": "两个事件之间连续启动 100 次，取平均，就是 kernel 的时间",
    },
    predicted=1,
    measured=max((max(r, 1 / r) for r in ratios.values() if r), default=1),
    unit="x, largest disagreement of five",
    verdict="confirmed" if all(agree) else "depends" if any(agree) else "refuted",
)

# %% spread
launch, _, _ = copying(1 << 20)
launch()
batches = np.array([[time_once(launch) for _ in range(rounds)] for _ in range(ct.size(10, 1))])


def spread(summary):
    """Largest over smallest of ten repetitions, minus 1: what the same experiment, done again, may differ by."""
    values = summary(batches, axis=1)
    return (100 * (values.max() / values.min() - 1), "%")


disturbed = batches[0].copy()
disturbed[0] *= 10  # by hand: as if something else had held the GPU during one run


def moved(summary):
    return (100 * (summary(disturbed) / summary(batches[0]) - 1), "%")


ct.facts(
    f"ten experiments of {rounds} runs each",
    {
        "fastest run": (batches.min(), "us"),
        "p20": (np.percentile(batches, 20), "us"),
        "median": (np.median(batches), "us"),
        "p80": (np.percentile(batches, 80), "us"),
        "slowest run": (batches.max(), "us"),
        "means differ by": spread(np.mean),
        "medians differ by": spread(np.median),
        "minima differ by": spread(np.min),
        "single runs differ by": (100 * (batches.max() / batches.min() - 1), "%"),
        "one run ten times as long moves a mean by": moved(np.mean),
        "and a median by": moved(np.median),
    },
)


# %% zeros
sm_clock = ct.Kernel(FILE, "sm_clock")
cycles = ct.empty(2, "int64")


def sustained(launch, ms=150):
    """Time of a launch in us after `ms` of nothing else, and the SMs' clock in MHz right after that."""
    launch()
    if tool.running():
        return 1.0, 1.0
    count = max(20, int(ms * 1e3 / timing.time_once_bare(launch)))
    start, stop = cuda.Event(), cuda.Event()
    for i in range(count):
        if i == count // 2:
            start.record()
        launch()
    stop.record()
    sm_clock(cycles, 20_000, grid=1, block=1)
    ticks, ns = cycles.get()
    return 1e3 * start.time_till(stop) / (count - count // 2), 1e3 * float(ticks / ns)


def matrices(n, dtype, fill):
    a, b = (ct.to_device(fill((n, n)).astype(dtype)) for _ in range(2))
    return ct.vendor.matmul(a, b, ct.empty((n, n), dtype))


def vector(n, fill):
    source, target = ct.to_device(fill(n)), ct.empty(n, "float32")
    return lambda: copy(source, target, n // 4, grid=ct.cdiv(n // 4, 256), block=256)


def zeros(shape):
    return np.zeros(shape, "float32")


rng = ct.rng(7)


def random(shape):
    return rng.random(shape, "float32") * np.float32(2) - np.float32(1)


side, length = ct.size(4096, 64), ct.size(1 << 25, 1 << 12)
for name, make in {
    "copy, n = 2^25": lambda fill: vector(length, fill),
    "cuBLAS, 4096, fp32": lambda fill: matrices(side, "float32", fill),
    "cuBLAS, 4096, fp16": lambda fill: matrices(side, "float16", fill),
}.items():
    on_random, on_zeros = make(random), make(zeros)
    if on_random is None:  # no CuPy
        continue
    # Each alone for a while, in turns: what the power supply does is slow, and interleaving run by run would hide it.
    turns = [(sustained(on_random), sustained(on_zeros)) for _ in range(2)]
    (random_us, random_mhz), (zeros_us, zeros_mhz) = np.median(turns, axis=0)
    ct.facts(
        name,
        {
            "random": (random_us, "us"),
            "zeros": (zeros_us, "us"),
            "random / zeros": random_us / zeros_us,
            "clock on random": (random_mhz, "MHz"),
            "clock on zeros": (zeros_mhz, "MHz"),
        },
    )

# %% counters
ct.profile(
    "basics/timing",
    kernel="copy",
    metrics=[
        "gpu__time_duration.sum",
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "lts__t_bytes.sum",
    ],
)

# %% time-once
print(inspect.getsource(timing.time_once))

# %% rotation
code = inspect.getsource(timing.bench)
print(code[code.index("    order = list(runs)") : code.index("    result =")])

# %% wrapped
n = ct.size(1024, 64)
problem = Matmul(n, n, n)
matmul = LADDER["naive_columns"].compile()


def multiply(a, b, c):
    matmul(a, b, c, n, n, n, grid=(ct.cdiv(n, 32), ct.cdiv(n, 32)), block=(32, 32))


def everything():
    a, b = ct.to_device(problem.host_a), ct.to_device(problem.host_b)
    c = ct.empty((n, n), "float32")
    multiply(a, b, c)
    c.get()


def host_ms(call):
    start = perf_counter()
    call()
    return 1e3 * (perf_counter() - start)


times = ct.bench(
    {"kernel": lambda: multiply(problem.a, problem.b, problem.c)},
    flops=problem.flops,
    name="naive_columns, 1024",
    rounds=20,
)
problem.compare("naive_columns, 1024")
kernel_ms = times["kernel"].median_us / 1e3
by_host = [host_ms(everything) for _ in range(5)]
by_events = [us / 1e3 for us in one_by_one(everything, 5)]
ct.facts(
    "what the timer wraps",
    {
        "kernel": (kernel_ms, "ms"),
        "everything, by the host's clock": (float(np.median(by_host)), "ms"),
        "everything, by events": (float(np.median(by_events)), "ms"),
        "everything / kernel": float(np.median(by_events)) / kernel_ms,
    },
)
ct.claim(
    id="timer-around-copies",
    source="CUDA slides 2.3, 2.7",
    statement={
        "en": "A timer around allocation, copies and kernel tells the time of the kernel, more precisely with events",
        "zh": "计时器把分配、拷贝和 kernel 一起包进去，量到的就是 kernel 的时间，用事件更精确",
    },
    predicted=1,
    measured=float(np.median(by_events)) / kernel_ms,
    unit="x the kernel",
    verdict="confirmed" if np.median(by_events) < 1.1 * kernel_ms else "refuted",
)
