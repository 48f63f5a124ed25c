# ---
# jupyter:
#   cudatut:
#     title: {en: "Timing and profiling: solutions", zh: "计时与性能分析：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       tolerance: [0.15, 1000.0]
#       agreement: [0.3, 1000.0]
#       most_steps: [4000000, 4000]
# ---
# %% [markdown]
# A clock made of events, tested with a kernel whose time is proportional to its argument.

# %% given-1
import time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

spin = SourceModule("""
__global__ void spin(float *out, int steps) {
  float sum = 0.0f;
  for (int k = 0; k < steps; ++k) sum += 1.0f;
  *out = sum;
}
""").get_function("spin")
one = {"grid": (1, 1), "block": (1, 1, 1)}
d_out = cuda.mem_alloc(4)


# %% solution-1
def event_us(call, rounds=11):
    """Median time of call() on the GPU, in microseconds."""
    times = []
    for _ in range(rounds + 1):
        start, stop = cuda.Event(), cuda.Event()
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(1e3 * start.time_till(stop))
    return np.median(times[1:])  # the first call is the warm-up


# %% check-1
import cudatut as ct

most_steps = 4_000_000
tolerance = 0.15
us = []
for part in (4, 2, 1):
    steps = np.int32(most_steps // part)
    us.append(event_us(lambda s=steps: spin(d_out, s, **one)))
print(f"{us[0]:.1f}, {us[1]:.1f} and {us[2]:.1f} us")
ct.check(
    np.array([us[1] / us[0], us[2] / us[0]]),
    np.array([2.0, 4.0]),
    rtol=tolerance,
    name="twice and four times the work",
)
cuda.Context.synchronize()
begin = time.perf_counter()
spin(d_out, np.int32(most_steps), **one)
cuda.Context.synchronize()
ct.check(
    np.array([us[2]]),
    np.array([1e6 * (time.perf_counter() - begin)]),
    rtol=tolerance,
    name="beside the host's clock, which waits",
)

# %% [markdown]
# Wait between the kernel and the copy, and wait before the first clock reading too: there may be older work.

# %% given-2
import time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

spin = SourceModule("""
__global__ void spin(float *out, int steps) {
  float sum = 0.0f;
  for (int k = 0; k < steps; ++k) sum += 1.0f;
  *out = sum;
}
""").get_function("spin")
host = np.ones(16_000_000, np.float32)
d_out = cuda.to_device(host)


# %% solution-2
def split_ms(launch, copy):
    """Milliseconds of the kernel, and of the copy by itself."""
    cuda.Context.synchronize()
    start = time.perf_counter()
    launch()
    cuda.Context.synchronize()
    finished = time.perf_counter()
    copy()
    copied = time.perf_counter()
    return 1e3 * (finished - start), 1e3 * (copied - finished)


# %% check-2
import cudatut as ct

most_steps = 4_000_000
agreement = 0.3


def launch():
    spin(d_out, np.int32(most_steps), grid=(1, 1), block=(1, 1, 1))


def copy():
    cuda.memcpy_dtoh(host, d_out)


def alone_ms(call):
    """Median time of a call that is waited for, with nothing else going on."""
    times = []
    for _ in range(5):
        cuda.Context.synchronize()
        begin = time.perf_counter()
        call()
        cuda.Context.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return np.median(times)


expected = np.array([alone_ms(launch), alone_ms(copy)])
times = np.median([split_ms(launch, copy) for _ in range(5)], axis=0)
print(f"kernel {times[0]:.2f} ms, copy {times[1]:.2f} ms")
ct.check(times, expected, rtol=agreement, atol=0.1, name="kernel and copy")
