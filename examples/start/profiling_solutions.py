# ---
# jupyter:
#   cudatut:
#     title: {en: "Profiling: solutions", zh: "性能分析：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# A timer that is checked against a kernel of known duration, and three destinations for one copy.

# %% setup
from time import perf_counter

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

ct.activate()
wait_ns = ct.Kernel(
    """
extern "C" __global__ void wait_ns(long long ns) {
  long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < ns);
}
""",
    "wait_ns",
)


# %% solution-1
def event_us(call, rounds=11):
    start, stop = cuda.Event(), cuda.Event()
    times = []
    for _ in range(rounds + 1):
        wait_ns(2_000_000, grid=1, block=1)  # runs until all of the next three are in the queue
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(1e3 * start.time_till(stop))
    return np.median(times[1:])  # the first call is the warm-up


atol = ct.size(10, 1_000_000)  # us; under a sanitizer every launch waits for the host
for us in (200, 1_000, 5_000):
    measured = event_us(lambda ns=1_000 * us: wait_ns(ns, grid=1, block=1))
    ct.check(np.array([measured]), np.array([us]), rtol=0.01, atol=atol, name=f"{us} us")

# %% solution-2
n = 10_000_000
x_host = ct.rng(0).standard_normal(n, dtype="float32")
x = ct.to_device(x_host)


def copy_ms(destination, rounds=5):
    times = []
    for _ in range(rounds + 1):
        host = destination()
        start = perf_counter()
        cuda.memcpy_dtoh(host, x.gpudata)
        times.append(1e3 * (perf_counter() - start))
    ct.check(host, x_host, name="copy")
    return float(np.median(times[1:]))


touched = np.ones(n, "float32")
locked = cuda.pagelocked_empty(n, "float32")
times = {
    "fresh pages": copy_ms(lambda: np.empty(n, "float32")),  # addresses; pages come when written
    "touched pages": copy_ms(lambda: touched),
    "page-locked": copy_ms(lambda: locked),
}
rows = {name: (ms, "ms") for name, ms in times.items()}
rows |= {f"{name}, rate": (4 * n / ms / 1e6, "GB/s") for name, ms in times.items()}
ct.facts("device to host, 40 MB", rows)
