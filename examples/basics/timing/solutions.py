# ---
# jupyter:
#   cudatut:
#     title: {en: "Reliable timing: solutions", zh: "可靠的计时：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       few: [100000, 1000]
#       most_us: [5000, 1000000]
#       steps: [1000000, 1000]
#       rounds: [50, 2]
#       same_within: [0.4, 1.0]
#       longer_within: [0.1, 1.0]
#       parts: [[0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0], [0.001]]
#       knee_within: [0.9, 9.0]
# ---

# %% [markdown]
# A timer; two kernels that differ by one percent, told apart; and the L2 cache,
# found with nothing but a clock.

# %% given-1
import numpy as np
import pycuda.driver as cuda

import cudatut as ct

chain = ct.Kernel("basics/timing/timing.cu", "chain")
busy = ct.Kernel("basics/timing/timing.cu", "busy")
few = 100_000
out, calls = ct.empty(32, "float32"), []


def launch():
    calls.append("launch")
    chain(out, 0.5, 1.0, few, grid=1, block=32)  # well below 5 ms


def flush():
    calls.append("flush")
    busy(5_000_000, grid=1, block=1)  # stands for a flush: 5 ms


# %% solution-1
def times_us(launch, flush, rounds):
    """Microseconds of each of `rounds` launches, each after a flush."""
    launch()
    times = []
    for _ in range(rounds):
        start, stop = cuda.Event(), cuda.Event()
        flush()
        start.record()
        launch()
        stop.record()
        stop.synchronize()
        times.append(1e3 * start.time_till(stop))
    return times


# %% check-1
times = times_us(launch, flush, 3)
right = calls == ["launch", *["flush", "launch"] * 3]
ct.check(np.array([len(times)]), np.array([3]), name="number of times")
ct.check(np.array([right]), np.array([True]), name="order of the calls")
most_us = 5000  # as long as the flush
short = min(times) > 0 and max(times) < most_us
ct.check(np.array([short]), np.array([True]), name="times without the flush")

# %% given-2
import numpy as np

import cudatut as ct

chain = ct.Kernel("basics/timing/timing.cu", "chain")
out = ct.empty(32, "float32")


def of_steps(count):
    return lambda: chain(out, 0.5, 1.0, count, grid=1, block=32)


# %% solution-2
def share_slower(a, b, rounds):
    """In which share of the rounds was b slower than a? A tie is one half."""
    a(), b()
    points = 0.0
    for turn in range(rounds):
        if turn % 2:  # the first of a round must not always be the same
            a_us, b_us = ct.time_once(a), ct.time_once(b)
        else:
            b_us, a_us = ct.time_once(b), ct.time_once(a)
        points += (b_us > a_us) + (b_us == a_us) / 2
    return points / rounds


# %% check-2
some = ct.empty(3 * 64, "float32")
for few in (0, 1, 7):  # after many steps every chain has come to 2
    chain(some, 0.5, 1.0, few, grid=3, block=64)
    there = np.tile(2 + (np.arange(64) - 2) * 0.5**few, 3)
    ct.check(some, there, name=f"chain of {few}", rtol=0, atol=0)
steps = 1_000_000
rounds = 50
same_within = 0.4
longer_within = 0.1
longer_steps = steps + steps // 100
same = share_slower(of_steps(steps), of_steps(steps), rounds)
longer = share_slower(of_steps(steps), of_steps(longer_steps), rounds)
ct.facts(
    "share of the rounds in which b was slower",
    {"b is the same": float(same), "b is 1 % longer": float(longer)},
)
share = np.array([same, longer])
ct.check(share[:1], np.array([0.5]), name="the same", rtol=0, atol=same_within)
ct.check(
    share[1:], np.array([1.0]), name="1 % longer", rtol=0, atol=longer_within
)
ct.check(out, np.full(32, 2.0, "float32"), name="chain")  # v / 2 + 1 goes to 2

# %% given-3
import numpy as np
import pycuda.driver as cuda

import cudatut as ct

copy = ct.Kernel(
    "basics/timing/timing.cu", "copy"
)  # (in, out, n), 4 per thread
busy = ct.Kernel("basics/timing/timing.cu", "busy")  # (ns), with one thread
l2 = ct.device().l2_bytes / 1e6
parts = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0)


# %% solution-3
def hot_rate(mb):
    """GB/s of a copy that reads and writes `mb` MB in all, over and over."""
    n = int(mb * 1e6 / 8)
    x = ct.to_device(ct.rng(0).random(n, dtype="float32"))
    out = ct.empty(n, "float32")

    def launch():
        copy(x, out, n, grid=ct.cdiv(n, 1024), block=256)

    times = []
    for _ in range(5):
        start, stop = cuda.Event(), cuda.Event()
        busy(2_000_000, grid=1, block=1)  # until the host has sent all launches
        launch()
        start.record()
        for _ in range(20):
            launch()
        stop.record()
        stop.synchronize()
        times.append(1e3 * start.time_till(stop) / 20)
    return 8 * n / np.median(times) / 1e3


# %% check-3
rates = [(l2 * part, float(hot_rate(l2 * part))) for part in parts]
ct.series(
    "copy, back to back",
    x=("bytes", "MB"),
    y=("rate", "GB/s"),
    lines={"rate": rates},
    limit=ct.limits.bandwidth(),
)
memory = rates[-1][1]  # so much larger than the cache that the memory decides
knee = max((mb for mb, rate in rates if rate > 1.1 * memory), default=0)
knee_within = 0.9
ct.facts("L2 cache", {"found": (knee, "MB"), "as the driver says": (l2, "MB")})
ct.check(
    np.array([knee / l2]),
    np.array([1.0]),
    name="found / driver",
    rtol=0,
    atol=knee_within,
)
