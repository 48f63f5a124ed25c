# ---
# jupyter:
#   cudatut:
#     title: {en: "Reliable timing: claims", zh: "可靠的计时：说法的检验"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       repeats: [100, 2]
#       lengths: [[262144, 4194304, 33554432], [4096, 8192, 16384]]
#       sides: [[256, 1024], [32, 64]]
#       side: [1024, 64]
# ---

# %% [markdown]
# Two ways in which tutorials time a kernel: the mean of a hundred launches, and a
# timer around allocation, copies and kernel.

# %% setup
import numpy as np
import pycuda.driver as cuda
from ladder import LADDER, Matmul

import cudatut as ct

copy = ct.Kernel("basics/timing.cu", "copy")
busy = ct.Kernel("basics/timing.cu", "busy")
repeats = 100


def mean_us(launch, hide_ms=0):
    """Two events around `repeats` launches, after one that is not timed.

    hide_ms: the GPU is busy for so long first, until the host has sent them all.
    """
    launch()
    cuda.Context.synchronize()
    start, stop = cuda.Event(), cuda.Event()
    if hide_ms:
        busy(int(hide_ms * 1e6), grid=1, block=1)
    start.record()
    for _ in range(repeats):
        launch()
    stop.record()
    stop.synchronize()
    return 1e3 * start.time_till(stop) / repeats


# %% candidates
lengths = (1 << 18, 1 << 22, 1 << 25)
sides = (256, 1024)


def copying(n):
    x = ct.to_device(ct.rng(n).random(n, dtype="float32"))
    out = ct.empty(n, "float32")
    return lambda: copy(x, out, n, grid=ct.cdiv(n, 1024), block=256)


def product(n):
    return Matmul(n, n, n).launcher(LADDER["naive_rows"])


candidates = {f"copy, {8e-6 * n:.1f} MB": copying(n) for n in lengths}
candidates |= {f"product, {n}": product(n) for n in sides}

# %% [markdown]
# As Python sends the launches, then with the host's time hidden, as behind a host
# that sends them fast enough; beside the median of single runs after a flush.

# %% hundred
as_sent = {name: mean_us(launch) for name, launch in candidates.items()}
hidden = {name: mean_us(launch, 20) for name, launch in candidates.items()}
medians = ct.bench(candidates, name="single runs after a flush", rounds=15)

# %% mean-of-100-table
rows = {
    name: {
        "mean, as Python sends them": as_sent[name],
        "mean, host hidden": hidden[name],
        "median after a flush": medians[name].median_us,
        "host hidden / median": hidden[name] / medians[name].median_us,
    }
    for name in candidates
}
times = (
    "mean, as Python sends them",
    "mean, host hidden",
    "median after a flush",
)
ct.table(
    "the mean of 100 launches and the median of single ones",
    rows,
    corner="kernel",
    units=dict.fromkeys(times, "us"),
)

# %% mean-of-100
ratios = [row["host hidden / median"] for row in rows.values()]
agree = [0.95 < ratio < 1.05 for ratio in ratios]
verdict = "depends" if any(agree) else "refuted"
if all(agree):
    verdict = "confirmed"
ct.claim(
    id="mean-of-100",
    source="CUDATutorial 11",
    statement={
        "en": "The mean of 100 launches between two events, after one launch, "
        "is the time of the kernel",
        "zh": "先启动一次，再用两个事件夹住连续 100 次启动，取平均，就是 kernel 的时间",
    },
    predicted=1,
    measured=max((max(r, 1 / r) for r in ratios if r), default=1),
    unit="x, largest disagreement of five",
    verdict=verdict,
)

# %% [markdown]
# A timer around allocation, copies and kernel, by the host's clock and by events.

# %% around
from time import perf_counter

side = 1024
problem = Matmul(side, side, side)
matmul = LADDER["naive_columns"].compile()
grid = ct.cdiv(side, 32), ct.cdiv(side, 32)


def multiply(a, b, c):
    matmul(a, b, c, side, side, side, grid=grid, block=(32, 32))


def everything():
    arrays = [cuda.mem_alloc(4 * side * side) for _ in range(3)]
    cuda.memcpy_htod(arrays[0], problem.host_a)
    cuda.memcpy_htod(arrays[1], problem.host_b)
    multiply(*arrays)
    cuda.memcpy_dtoh(np.empty((side, side), "float32"), arrays[2])


def by_host():
    begin = perf_counter()
    everything()
    return 1e3 * (perf_counter() - begin)


def by_events():
    start, stop = cuda.Event(), cuda.Event()
    start.record()
    everything()
    stop.record()
    stop.synchronize()
    return start.time_till(stop)


everything()
host_ms = float(np.median([by_host() for _ in range(5)]))
events_ms = float(np.median([by_events() for _ in range(5)]))
alone = ct.bench(
    {"kernel": lambda: multiply(problem.a, problem.b, problem.c)},
    flops=problem.flops,
    name="product of 1024, the kernel alone",
    rounds=20,
)
problem.compare("product of 1024")
kernel_ms = alone["kernel"].median_us / 1e3

# %% around-result
ct.facts(
    "product of 1024: what the timer wraps",
    {
        "kernel": (kernel_ms, "ms"),
        "everything, by the host's clock": (host_ms, "ms"),
        "everything, by events": (events_ms, "ms"),
        "everything by events / kernel": events_ms / kernel_ms,
    },
)

# %% timer-around-copies
ct.claim(
    id="timer-around-copies",
    source="CUDA slides 2.3, 2.7",
    statement={
        "en": "Events measure a kernel more precisely than the host's clock "
        "(its program puts them around allocation, copies and kernel)",
        "zh": "用事件测 kernel 比主机时钟更精准（其程序把事件放在分配、复制和 kernel 之外）",
    },
    predicted=1,
    measured=events_ms / kernel_ms,
    unit="x the kernel",
    verdict="confirmed" if events_ms < 1.1 * kernel_ms else "depends",
)
