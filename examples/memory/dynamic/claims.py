# ---
# jupyter:
#   cudatut:
#     title: {en: "Dynamic parallelism: claims", zh: "动态并行：说法的检验"}
#     requires: sm_75
#     timeout_s: 300
#     sizes:
#       rows: [20000, 200]
#       long_rows: [100, 2]
#       length: [100000, 500]
#       n: [16384, 512]
#       most: [512, 40]
#       rounds: [15, 1]
# ---

# %% [markdown]
# Notes on Learn CUDA Programming say that dynamic parallelism is for work that is
# badly balanced. Sums of rows, some of them far longer than the others: a thread
# for each row, or a thread that launches a block where its row is long.

# %% rows
import random
import statistics

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.dynamic.limited import in_a_process
from cudatut.book.memory.dynamic.linked import linked
from cudatut.book.memory.dynamic.ways import Scene

rows = 20000
long_rows = 100
length = 100000
rounds = 15
clock = ct.time_once_bare if ct.tool.running() else ct.time_hidden
rng = ct.rng(0)


def plain(name):
    """A kernel that launches nothing, as PyCUDA launches it."""
    kernel = ct.Kernel(
        "memory/dynamic/launches.cu", name, defines={"NO_LAUNCHES": 1}
    )
    return cuda.module_from_buffer(kernel.cubin).get_function(name)


by_thread, by_block = plain("by_thread"), plain("by_block")
if not ct.tool.running():  # which would have to follow the launches
    module = linked(
        "memory/dynamic/launches.cu", options=("-rdc=true",), pending=16384
    )
    by_need = module.get_function("by_need")


def rows_of(lengths):
    """Two or three ways to sum such rows, checked: microseconds of each."""
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
    x = rng.integers(0, 1000, int(starts[-1]), dtype="uint32")
    expected = np.add.reduceat(x, starts[:-1], dtype="uint32")
    d_x, d_starts = ct.to_device(x), ct.to_device(starts)
    sums = ct.to_device(np.zeros(rows, "uint32"))
    failed = ct.to_device(np.zeros(1, "int32"))
    given = d_x, d_starts
    whole = {"grid": (ct.cdiv(rows, 256), 1), "block": (256, 1, 1)}

    def thread():
        by_thread(*given, np.int32(rows), sums, **whole)

    def block():
        cuda.memset_d32_async(sums.gpudata, 0, rows)
        by_block(*given, np.int32(0), sums, grid=(rows, 1), block=(256, 1, 1))

    def need():
        cuda.memset_d32_async(sums.gpudata, 0, rows)
        by_need(*given, np.int32(rows), np.int32(256), sums, failed, **whole)

    runs = {"a thread for each": thread, "a block for each": block}
    if not ct.tool.running():
        runs["a launch for long ones"] = need
    for name, run in runs.items():
        run()
        ct.check(sums, expected, name=name)
    ct.check(failed, np.zeros(1, "int32"), name="launches that failed")
    times = ct.take_turns(runs, rounds, random.Random(0), time=clock)
    took = {name: statistics.median(us) for name, us in times.items()}
    return {"a launch for long ones": took["a thread for each"]} | took


even = np.full(rows, 32)
uneven = rng.integers(1, 33, rows)
uneven[rng.choice(rows, long_rows, replace=False)] = length
took = {"all of 32": rows_of(even), "a few very long": rows_of(uneven)}
ct.table(
    "sums of rows",
    took,
    corner="rows",
    units=dict.fromkeys(took["all of 32"], "us"),
)

# %% balance


def gain(one):
    return one["a thread for each"] / one["a launch for long ones"]


ct.claim(
    id="notes-dynamic-balance",
    source="Learn CUDA Programming, notes",
    place={
        "en": "CUDA Dynamic Parallelism, first sentence",
        "zh": "CUDA Dynamic Parallelism 一节，第一句",
    },
    form="said",
    statement={
        "en": "Dynamic parallelism serves against badly balanced work (the text "
        "says 'avoid load balancing'). A thread for each row over a launch for "
        "each long row:",
        "zh": "动态并行可以用来应对负载不均（原文写的是“avoid load balancing”）。"
        "每行一个线程的用时，除以较长的行另行启动的用时：",
    },
    expected=1.0,
    measured=gain(took["a few very long"]),
    rule="above",
    control=(
        {"en": "rows of equal length", "zh": "各行一样长"},
        gain(took["all of 32"]),
        (0.0, 1.1),
    ),
    unit="×",
)

# %% [markdown]
# How much device memory does it take? A module without launches for comparison.
# The notes' number is from the time before CUDA 12, which changed dynamic
# parallelism.

# %% gone
gone = {}
for limit in () if ct.tool.running() else (0, 2048, 32768):
    name = f"{limit} may wait" if limit else "no launches"
    gone[name] = in_a_process("memory", limit)
if gone:
    ct.table(
        "memory that is gone",
        gone,
        corner="module",
        units={"loaded": "MB", "run": "MB"},
    )

# %% memory
taken, most_taken, little = (
    gone[name]["run"] if gone else 0.0
    for name in ("2048 may wait", "32768 may wait", "no launches")
)
ct.claim(
    id="notes-dynamic-memory",
    source="Learn CUDA Programming, notes",
    place={
        "en": "CUDA Dynamic Parallelism",
        "zh": "CUDA Dynamic Parallelism 一节",
    },
    form="said",
    statement={
        "en": "Up to 150 MB of device memory may be reserved to keep track of "
        "launches. Memory that is gone once a kernel has launched another:",
        "zh": "为记录启动，最多可能预留 150 MB 显存。一个 kernel 启动了另一个"
        "之后，少掉的显存：",
    },
    expected=150,
    depends={
        "en": "how many launches may wait",
        "zh": "最多允许多少次启动排队",
    },
    sides=(
        ({"en": "2,048, the default", "zh": "2,048 次（默认值）"}, taken),
        ({"en": "32,768", "zh": "32,768 次"}, most_taken),
    ),
    rule="below",
    control=(
        {"en": "a kernel that launches nothing", "zh": "什么也不启动的 kernel"},
        little,
        0.0,
    ),
    unit="MB",
)

# %% [markdown]
# NVIDIA's introduction draws the Mandelbrot set as this chapter does, on a K20X:
# at most 512 steps, 32 by 32 tiles to begin with, 4 by 4 parts, and pixel by
# pixel below. Our kernels, with its numbers.

# %% introduction
n = 16384
most = 512
scene = Scene(n, most, n // 32, 4, n // 128, corner=(-1.5, -1.0, 2.0))
runs = {"every pixel": scene.flat(), "again": scene.flat()}
if not ct.tool.running():
    runs["launches by the GPU"] = scene.by_gpu()
runs["a launch for each level"] = scene.by_level()
times = ct.take_turns(runs, rounds, random.Random(0), time=clock)
us = {name: statistics.median(found) for name, found in times.items()}
us.setdefault("launches by the GPU", us["every pixel"])
ct.check(scene.failed, np.zeros(1, "int32"), name="launches that failed")
ct.table(
    "the picture of NVIDIA's introduction",
    {name: {"time": one / 1e3} for name, one in us.items()},
    corner="drawn by",
    units={"time": "ms"},
)

# %% introduction-claim
ct.claim(
    id="introduction-dynamic-gain",
    source="A. Adinets, samples to Adaptive Parallel Computation with CUDA "
    "Dynamic Parallelism",
    place={
        "en": "README of mandelbrot-dyn",
        "zh": "mandelbrot-dyn 的 README",
    },
    form="said",
    statement={
        "en": "By subdivision with launches from the GPU, the picture is drawn "
        "1.3 to 6 times as fast as pixel by pixel, depending on size and steps. "
        "At 16384 x 16384 pixels and 512 steps:",
        "zh": "用动态并行分块来画，速度是逐个像素的 1.3 到 6 倍，视图片大小和步数"
        "而定。16384 x 16384 像素、512 步时：",
    },
    expected=1.3,
    measured=us["every pixel"] / us["launches by the GPU"],
    rule="above",
    control=(
        {"en": "every pixel beside itself", "zh": "逐个像素与自己相比"},
        us["again"] / us["every pixel"],
        (0.97, 1.03),
    ),
    unit="×",
)
