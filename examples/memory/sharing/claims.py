# ---
# jupyter:
#   cudatut:
#     title: {en: "Sharing one GPU: claims", zh: "共享一块 GPU：说法的检验"}
#     requires: sm_75
#     timeout_s: 240
#     sizes:
#       ms: [50, 1]
#       rounds: [3, 1]
#       stay: [20, 0.1]
# ---

# %% [markdown]
# The notes on Hyper-Q: kernels from several threads of a process use the GPU at
# the same time, as long as there is room. Two threads, a stream for each or one
# for both, and kernels that count themselves in and out.

# %% threads
import threading
import time
from dataclasses import replace

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.sharing.clients import (
    BLOCK, Job, WorkerError, calibrated, took_ms,
)  # fmt: skip
from cudatut.book.memory.sharing.daemon import Refused, serving

FILE = "memory/sharing/sharing.cu"
present = ct.Kernel(FILE, "present")
sms = ct.device().sm_count
stay = 20  # ms of a kernel
context = cuda.Context.get_current()


def wait(streams, limit_s=20):
    give_up = time.monotonic() + limit_s
    while not all(stream.is_done() for stream in streams):
        if time.monotonic() > give_up:
            raise TimeoutError("the GPU has not finished")


def at_once(streams):
    """How many kernels ran at a time, each from a thread of the host."""
    now, most = (ct.to_device(np.zeros(1, "int32")) for _ in range(2))
    ct.synchronize()

    def hand_over(stream):
        context.push()
        try:
            present(now, most, int(1e6 * stay), grid=1, block=1, stream=stream)
        finally:
            context.pop()

    threads = [threading.Thread(target=hand_over, args=[s]) for s in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    wait(streams)
    return int(most.get()[0])


one, other = cuda.Stream(1), cuda.Stream(1)
two_streams, one_stream = at_once([one, other]), at_once([one, one])

# %% hyper-q-threads
PLACE = {"en": "Multi-Process Service", "zh": "Multi-Process Service 一节"}
ct.claim(
    id="hyper-q-threads",
    source="Learn CUDA Programming, notes",
    place=PLACE,
    form="said",
    statement={
        "en": "With Hyper-Q, several threads of a process can hand work to the "
        "GPU, and their kernels run on it at the same time. Kernels at once, "
        "from two threads:",
        "zh": "有了 Hyper-Q，一个进程的多个 CPU 线程都能向 GPU 提交工作，它们的 kernel "
        "可以同时使用 GPU。两个线程提交，同时执行的 kernel 数：",
    },
    expected=2,
    depends={
        "en": "whether the threads use different streams",
        "zh": "各个线程是否使用不同的流",
    },
    sides=(
        ({"en": "a stream for each", "zh": "各用一个流"}, two_streams),
        ({"en": "one stream for both", "zh": "共用一个流"}, one_stream),
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "one thread: were a kernel counted twice, it would show",
            "zh": "只有一个线程；若是一个 kernel 被数了两次，这里看得出来",
        },
        at_once([one]),
        1,
    ),
)

# %% [markdown]
# The condition that the notes give: there is room for a block of the other
# kernel. Two kernels that fill a quarter of the SMs each; and two that leave no
# thread of any SM.

# %% room
ms = 50  # of a kernel
rounds = 3
steps, _ = calibrated(ms)
plans = {}
full = sms * max(ct.device().max_threads_per_sm // BLOCK, 1)
for share, blocks in {"a quarter": sms // 4, "all": full}.items():
    job = Job("count", blocks, steps)
    plans[f"{share}, one stream"] = [replace(job, launches=2)]
    plans[f"{share}, two streams"] = [replace(job, streams=2)]
small = Job("count", sms // 4, steps)
plans |= {"processes": [small, small], "processes again": [small, small]}
took = {
    name: float(np.median(times))
    for name, times in took_ms(plans, rounds).items()
}


def gain(share):
    """Time of two kernels in one stream over that in two streams."""
    return took[f"{share}, one stream"] / took[f"{share}, two streams"]


# %% room-for-both
ct.claim(
    id="room-for-both",
    source="Learn CUDA Programming, notes",
    place=PLACE,
    form="said",
    statement={
        "en": "A kernel starts beside another one if the GPU still has SMs and "
        "resources for one of its blocks. Two kernels on a quarter of the SMs: "
        "time one after the other over time in two streams.",
        "zh": "一个 kernel 执行时，如果 GPU 还有 SM 和资源容纳另一个 kernel 的线程块，"
        "那个 kernel 就会启动。两个 kernel 各占四分之一的 SM：依次执行的用时除以放在"
        "两个流里的用时。",
    },
    expected=2,
    measured=gain("a quarter"),
    unit="×",
    rule="gain",
    control=(
        {
            "en": "two that take all threads of all SMs",
            "zh": "两个都占满所有 SM 的线程",
        },
        gain("all"),
        (0.9, 1.3),
    ),
)

# %% [markdown]
# And on MPS: work of several processes is given to the GPU as if it came from
# one. The same two kernels from two processes, beside two streams of one.

# %% one-process
turns, streams_ms = took["processes"], took["a quarter, two streams"]
served, refused = turns, ""
try:
    with serving() as daemon:
        times = took_ms({"MPS": [small, small]}, rounds, daemon.env)
    served = float(np.median(times["MPS"]))
except (Refused, WorkerError) as error:
    refused = str(error)

# %% mps-as-one-process
if refused:
    print("MPS does not run here:", refused)
else:
    ct.claim(
        id="mps-as-one-process",
        source="Learn CUDA Programming, notes",
        place=PLACE,
        form="said",
        statement={
            "en": "MPS collects the work of several processes and gives it to the "
            "GPU as if it came from a single one. Two kernels on a quarter of the "
            "SMs: time of two processes without MPS over time with it; expected is "
            "what two streams of one process gain.",
            "zh": "MPS 把多个进程的工作收集起来，像来自同一个进程那样提交给 GPU。两个 "
            "kernel 各占四分之一的 SM：两个进程不用 MPS 的用时除以用 MPS 的用时；预期是同一"
            "进程里两个流的收益。",
        },
        expected=turns / streams_ms,
        measured=turns / served,
        unit="×",
        rule="gain",
        control=(
            {"en": "without MPS, measured twice", "zh": "都不用 MPS，测两次"},
            turns / took["processes again"],
            (0.97, 1.03),
        ),
    )
