# ---
# jupyter:
#   cudatut:
#     title: {en: "Timing honestly: solutions", zh: "诚实地计时：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# Two kernels that differ by one percent, told apart; and the L2 cache, found with nothing but a clock.

# %% setup
import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut import timing, tool

FILE = "basics/timing.cu"
chain, copy, busy = (ct.Kernel(FILE, name) for name in ("chain", "copy", "busy"))
time_once = timing.time_once_bare if tool.running() else timing.time_once

# %% solution-1
out = ct.empty(32, "float32")


def steps(count):
    return lambda: chain(out, 0.5, 1.0, count, grid=1, block=32)


def share_slower(a, b, rounds):
    """In which share of the rounds was b slower than a? A tie counts half."""
    a(), b()
    points = 0.0
    for turn in range(rounds):
        if turn % 2:  # the first of a round must not always be the same
            a_us, b_us = time_once(a), time_once(b)
        else:
            b_us, a_us = time_once(b), time_once(a)
        points += (b_us > a_us) + (b_us == a_us) / 2
    return points / rounds


rounds = ct.size(50, 2)
same = share_slower(steps(100_000), steps(100_000), rounds)
longer = share_slower(steps(100_000), steps(101_000), rounds)
ct.check(out, np.full(32, 2.0, "float32"), name="chain")  # v / 2 + 1 goes to 2
ct.facts("rounds in which b was slower", {"b is the same": same, "b is 1 % longer": longer})
if not tool.running():
    ct.check(np.array([same]), np.array([0.5]), name="the same", rtol=0, atol=0.4)
    ct.check(np.array([longer]), np.array([1.0]), name="1 % longer", rtol=0, atol=0.1)


# %% solution-2
def hot_rate(mb):
    """Rate in GB/s of a copy that reads and writes `mb` MB in all, launched over and over."""
    n = mb * 1_000_000 // 32  # float4
    source, target = (
        ct.to_device(ct.rng(0).random(4 * n, dtype="float32")),
        ct.empty(4 * n, "float32"),
    )
    times = []
    for _ in range(5):
        start, stop = cuda.Event(), cuda.Event()
        busy(2_000_000, grid=1, block=1)
        copy(source, target, n, grid=ct.cdiv(n, 256), block=256)
        start.record()
        for _ in range(20):
            copy(source, target, n, grid=ct.cdiv(n, 256), block=256)
        stop.record()
        stop.synchronize()
        times.append(1e3 * start.time_till(stop) / 20)
    return 32 * n / np.median(times) / 1e3


l2 = ct.device().l2_bytes / 1e6
sizes = [int(l2 * part) for part in (1 / 8, 1 / 4, 1 / 2, 3 / 4, 1, 3 / 2, 2, 5)]
rates = [(mb, float(hot_rate(mb))) for mb in sizes[: ct.size(8, 1)]]
ct.series(
    "copy, back to back",
    x=("bytes", "MB"),
    y=("rate", "GB/s"),
    lines={"rate": rates},
    limit=ct.limits.bandwidth(),
)
memory = rates[-1][1]  # so much larger than the cache that the memory decides
knee = max((mb for mb, rate in rates if rate > 1.25 * memory), default=0)
ct.facts("L2", {"found": (knee, "MB"), "as the driver says": (l2, "MB")})
if not tool.running():
    ct.check(np.array([knee / l2]), np.array([1.0]), name="found / driver", rtol=0, atol=0.9)
