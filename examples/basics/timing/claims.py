# ---
# jupyter:
#   cudatut:
#     title: {en: "Reliable timing: claims", zh: "可靠的计时：说法的检验"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       repeats: [100, 2]
#       lengths: [[262144, 4194304, 33554432], [4096, 8192, 16384]]
#       sides: [[256, 512, 1024, 2048], [32, 64]]
#       side: [4096, 64]
# ---

# %% [markdown]
# Two ways in which tutorials time a kernel: the mean of a hundred launches, and a
# timer around allocation, copies and kernel.

# %% setup
import numpy as np
import pycuda.driver as cuda
from cudatut.book.basics.ladder.ladder import LADDER, Matmul

import cudatut as ct

copy = ct.Kernel("basics/timing/timing.cu", "copy")
busy = ct.Kernel("basics/timing/timing.cu", "busy")
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
# Products of the sizes that the tutorial times, by a kernel like its own with
# one-dimensional thread tiles; beside them three copies.
lengths = (1 << 18, 1 << 22, 1 << 25)
sides = (256, 512, 1024, 2048)


def copying(n):
    x = ct.to_device(ct.rng(n).random(n, dtype="float32"))
    out = ct.empty(n, "float32")
    return lambda: copy(x, out, n, grid=ct.cdiv(n, 1024), block=256)


def product(n):
    return Matmul(n, n, n).launcher(LADDER["thread_tile"])


LADDER.check("thread_tile", [{"m": 100, "n": 70, "k": 50}])

copies = {f"copy, {8e-6 * n:.1f} MB": copying(n) for n in lengths}
products = {f"product, {n}": product(n) for n in sides}
candidates = copies | products

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


# %% [markdown]
# A timer around allocation, copies and kernel, by the host's clock and by events.

# %% around
from time import perf_counter

side = 4096
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


def kernel_alone():
    multiply(problem.a, problem.b, problem.c)


alone = ct.bench(
    {"kernel": kernel_alone},
    flops=problem.flops,
    name="product of 4096, the kernel alone",
    rounds=10,
)
problem.compare("product of 4096")
kernel_ms = alone["kernel"].median_us / 1e3

# %% around-result
ct.facts(
    "product of 4096: what the timer wraps",
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
    source="CUDA slides 2.7",
    place={
        "en": "main.cpp, and the line below timer.cpp",
        "zh": "main.cpp，以及 timer.cpp 之后的一句",
    },
    form="said",
    statement={
        "en": "For a more precise time of the kernel, events are recorded. (The "
        "program records them around allocation, copies and kernel.) Their time, "
        "for a product of 4096, as a multiple of the kernel's:",
        "zh": "为了更精准地测出 kernel 的时间，采用了事件。（程序用两个事件把"
        "分配、复制和 kernel 都夹在中间。）边长 4096 时，事件测得的时间"
        "是 kernel 时间的：",
    },
    expected=1.0,
    measured=events_ms / kernel_ms,
    unit="×",
    rule="gain",
    control=(
        {
            "en": "the events around the kernel alone: events that add time of "
            "their own would show here",
            "zh": "事件只夹住 kernel；若是事件本身费时，这里看得出来",
        },
        mean_us(kernel_alone) / 1e3 / kernel_ms,
        (0.95, 1.05),
    ),
)
