# ---
# jupyter:
#   cudatut:
#     title: {en: "Overlap: what others say", zh: "重叠：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [67_108_864, 65_536]
#       rounds: [5, 1]
# ---

# %% [markdown]
# What do copies and kernels need to overlap? One measurement for all claims:
# the time of the loop, as a share of what its stages take by themselves.

# %% setup
from functools import partial

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.overlap.model import STAGES
from cudatut.book.memory.overlap.pipeline import (
    A,
    C,
    Meter,
    enqueue,
    kernel,
    pieces,
    wall_ms,
)

n = 1 << 26  # numbers: 256 MiB each way
rounds = 5
d = ct.empty(n, "uint32")
x, y = (cuda.pagelocked_empty(n, "uint32") for _ in range(2))
x[:] = ct.rng(0).integers(0, 1 << 32, n, dtype="uint32")
streams = [cuda.Stream() for _ in range(4)]
meter = Meter((x, d, y), streams, 16, 1)
steps = meter.steps_for(max(ms for ms, _ in meter.copies.values()))
loose = x.copy(), np.ones_like(y)
pinned, pageable = pieces(16, x, d, y), pieces(16, loose[0], d, loose[1])


# %% default
def kernels_in_default(chunks, own, steps, stages=STAGES):
    """As `enqueue`, but all kernels are launched in the default stream. It
    waits for all ordinary streams, and they for it: no event is needed.
    """
    for k, (source, work, result) in enumerate(chunks):
        stream = own[k % len(own)]
        if "in" in stages:
            cuda.memcpy_htod_async(work.gpudata, source, stream)
        if "kernel" in stages:
            grid = ct.cdiv(work.size, 256)
            kernel()(work, work.size, steps, A, C, grid=grid, block=256)
        if "out" in stages:
            cuda.memcpy_dtoh_async(result, work.gpudata, stream)


# %% [markdown]
# Two stages at a time, and all three. A loop without any overlap takes 1.

# %% pairs
TOGETHER = {
    "copy in, kernel": ("in", "kernel"),
    "kernel, copy out": ("kernel", "out"),
    "both copies": ("in", "out"),
    "all three stages": STAGES,
}


def shares(call, chunks):
    """Together / the sum of the stages, by the host's clock: medians."""

    def ms(stages):
        run = partial(call, chunks, streams, steps, stages)
        return wall_ms(run, rounds)[0]

    alone = {stage: ms([stage]) for stage in STAGES}
    return {
        name: ms(stages) / sum(alone[stage] for stage in stages)
        for name, stages in TOGETHER.items()
    }


found = {
    "pinned": shares(enqueue, pinned),
    "pageable": shares(enqueue, pageable),
    "kernels in the default stream": shares(kernels_in_default, pinned),
}
# Only its time counts: nothing orders a kernel before or behind its copies.
streams = [cuda.Stream(1) for _ in range(4)]
found["the same, non-blocking streams"] = shares(kernels_in_default, pinned)
ct.table("the loop / the sum of its stages", found, corner="16 chunks")


def with_kernel(way):
    """Of the two pairs of a kernel and a copy, the one that overlaps more."""
    return min(found[way][name] for name in [*TOGETHER][:2])


# %% default-stream
ct.claim(
    id="overlap-needs-other-streams",
    source="Learn CUDA Programming, notes",
    place={
        "en": "CUDA Streams, requirements for overlapping, first point",
        "zh": "CUDA Streams 一节，重叠的要求第一条",
    },
    form="said",
    statement={
        "en": "A kernel and a transfer overlap only if both are in streams that "
        "differ and are not the default stream. Here: copies in four streams "
        "and all kernels in the default stream; kernels with copies in, or "
        "with copies out, beside the sum of both; the smaller of the two "
        "shares. Without overlap it is about 1.",
        "zh": "kernel 与传输要重叠，两者必须在不同的流里，而且都不能在默认流里。这里测的是：传输放在四个流里，kernel 全部放在"
        "默认流里；kernel 与传入、kernel 与传出，各求循环的用时与两者单独用时之和的比，取较小的一个。没有重叠时约为 1。",
    },
    expected=0.85,
    depends={
        "en": "whether the streams of the copies were made as non-blocking ones, "
        "which do not wait for the default stream",
        "zh": "传输所在的流是不是以非阻塞方式创建的：这样的流不等默认流",
    },
    sides=(
        (
            {"en": "ordinary streams", "zh": "普通的流"},
            with_kernel("kernels in the default stream"),
        ),
        (
            {"en": "non-blocking streams", "zh": "非阻塞流"},
            with_kernel("the same, non-blocking streams"),
        ),
    ),
    rule="above",
    control=(
        {
            "en": "kernels in the four streams, too",
            "zh": "kernel 也放在这四个流里",
        },
        with_kernel("pinned"),
        (0.0, 0.8),
    ),
    unit="x the sum",
)


# %% calls
def in_calls(chunks):
    """The share of the time that the host spends in the calls."""
    done, calls = wall_ms(
        lambda: enqueue(chunks, streams[:1], steps, STAGES), rounds
    )
    return calls / done


few = 50_000  # numbers, as there
one, other = [(x, d, y)], [(loose[0], d, loose[1])]
short = [(loose[0][:few], d[:few], loose[1][:few])]
ct.claim(
    id="async-copy-from-malloc",
    source="CS179 notes",
    place={
        "en": "the listing on asynchronous copies",
        "zh": "“异步数据复制”的代码",
    },
    form="code",
    statement={
        "en": "Copies by cudaMemcpyAsync to and from memory of malloc, with a "
        "kernel between them in one stream, are called asynchronous. Here: the "
        "host's time in these calls, of the copy in and of the copy out, as a "
        "share of all the time; if the calls only enqueue, it is small.",
        "zh": "用 cudaMemcpyAsync 复制 malloc 分配的内存，中间在同一个流里运行 kernel，称为异步复制。这里测的是：主机花在"
        "传入和传出这些调用里的时间占总时间的比例；如果调用只是提交，这个比例很小。",
    },
    expected=0.5,
    depends={"en": "how large the arrays are", "zh": "数组有多大"},
    sides=(
        (
            {"en": "200 kB, as there", "zh": "200 kB，与原文相同"},
            in_calls(short),
        ),
        ({"en": "256 MiB", "zh": "256 MiB"}, in_calls(other)),
    ),
    rule="below",
    control=(
        {
            "en": "the same calls with pinned memory, 256 MiB",
            "zh": "同样的调用，锁页内存，256 MiB",
        },
        in_calls(one),
        (0.0, 0.3),
    ),
    unit="of the time",
)
