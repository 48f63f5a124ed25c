# ---
# jupyter:
#   cudatut:
#     title: {en: "What the clock was measuring", zh: "计时器到底量了什么"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [20000000, 200000, 20000000]
#       destination_n: [10000000, 10000]
#       rounds: [200, 2]
#       train: [500, 5]
#       tries: [20, 1]
# ---
# %% [markdown]
# One kernel, timed by the host without and with waiting, and by events. The first launch stands apart.

# %% program
import time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

add = SourceModule("""
__global__ void add(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
""").get_function("add")
n = 20_000_000
shape = {"grid": ((n + 255) // 256, 1), "block": (256, 1, 1)}
x, y = np.random.default_rng(1).random((2, n), dtype=np.float32)
d_x, d_y, d_out = cuda.to_device(x), cuda.to_device(y), cuda.mem_alloc(4 * n)
start, stop = cuda.Event(), cuda.Event()


def one_launch():
    """One launch by three clocks, in microseconds."""
    cuda.Context.synchronize()
    begin = time.perf_counter()
    start.record()
    add(d_x, d_y, d_out, np.int32(n), **shape)
    stop.record()
    requested = time.perf_counter()
    cuda.Context.synchronize()
    finished = time.perf_counter()
    events = 1e3 * start.time_till(stop)
    return 1e6 * (requested - begin), 1e6 * (finished - begin), events


times = [one_launch() for _ in range(22)]
rows = {"first launch": times[0], "median": np.median(times[1:], axis=0)}
print("in us         no wait     waits    events")
for name, row in rows.items():
    print(f"{name:12}", *(f"{us:9.1f}" for us in row))
out = cuda.from_device(d_out, n, np.float32)
print("correct:", np.array_equal(out, x + y))

# %% [markdown]
# CUPTI, the library beneath NVIDIA's profilers, notes every kernel, copy and call of `start/profiling_waits`.

# %% trace
import cudatut as ct

found = ct.trace("start/profiling_waits", rows=5)

# %% check-trace
if found is not None and found.api:  # None where cupti-python is missing
    kernel, copied = found["slow_add"], found["copy DtoH"]
    call, context = found["cuMemcpyDtoH"], found["cuDevicePrimaryCtxRetain"]
    ct.facts(
        "waits.py",
        {
            "kernel": (kernel.total_ms, "ms"),
            "copy back, call": (call.total_ms, "ms"),
            "copy back, copy": (copied.total_ms, "ms"),
            "three allocations": (found["cuMemAlloc"].total_ms, "ms"),
            "context": (context.total_ms, "ms"),
        },
    )
    ct.check(
        np.array([call.total_ms]),
        np.array([kernel.total_ms + copied.total_ms]),
        rtol=0.1,
        atol=1.0,
        name="call = kernel + copy",
    )

# %% [markdown]
# Answers to 'Try it': the same program with a synchronization before the copy back, and the clocks for a short kernel.

# %% try-1

text = ct.catalog.get("start/profiling_waits").path.read_text(encoding="utf-8")
copy_back = "cuda.memcpy_dtoh("
waiting = ct.trace(
    source=text.replace(copy_back, f"cuda.Context.synchronize()\n{copy_back}"),
    rows=5,
)

# %% try-2
n, shape = 10_000, {"grid": ((10_000 + 255) // 256, 1), "block": (256, 1, 1)}
times = [one_launch() for _ in range(22)]
print("in us         no wait     waits    events")
print(f"{'median':12}", *(f"{us:9.1f}" for us in np.median(times[1:], axis=0)))

# %% [markdown]
# Checks and timings by the book's own tools: the kernel at other lengths, then its time behind an emptied cache.

# %% check-add
for m in ct.RAGGED:
    a, b = (ct.rng(seed).standard_normal(m, dtype="float32") for seed in (1, 2))
    d_a, d_b, result = ct.to_device(a), ct.to_device(b), ct.empty(m, "float32")
    add(
        d_a,
        d_b,
        result,
        np.int32(m),
        grid=(ct.cdiv(m, 256), 1),
        block=(256, 1, 1),
    )
    ct.check(result, a + b, name=f"add, n = {m}")

# %% bench-add
n = 20_000_000
shape = {"grid": (ct.cdiv(n, 256), 1), "block": (256, 1, 1)}
ct.bench(
    {"add": lambda: add(d_x, d_y, d_out, np.int32(n), **shape)},
    bytes=3 * 4 * n,
    name="add, 20 million elements",
)

# %% counters
ct.profile(
    "start/profiling",
    kernel="add",
    metrics=[
        "gpu__time_duration.sum",
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    ],
)

# %% [markdown]
# A kernel of known duration tests the clocks: `wait_ns` reads a clock of the GPU until the time has passed. It also
# keeps the GPU busy while event, launch and event go into the queue.

# %% wait
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
tries = 20
CLOCKS = (
    "host, no wait",
    "host, waits",
    "events, idle GPU",
    "events, busy GPU",
)


def clocks(launch):
    """One launch by four clocks, in us: the least of `tries` times."""
    start, stop = cuda.Event(), cuda.Event()

    def host(wait):
        begin = time.perf_counter()
        launch()
        if wait:
            cuda.Context.synchronize()
        return 1e6 * (time.perf_counter() - begin)

    def events(busy):
        if busy:
            wait_ns(2_000_000, grid=1, block=1)
        start.record()
        launch()
        stop.record()
        stop.synchronize()
        return 1e3 * start.time_till(stop)

    def least(measure, *args):
        times = []
        for _ in range(tries):
            cuda.Context.synchronize()
            times.append(measure(*args))
        return min(times)

    least_of_each = (
        least(host, False),
        least(host, True),
        least(events, False),
        least(events, True),
    )
    return dict(zip(CLOCKS, least_of_each))


def adding(m):
    grid = (ct.cdiv(m, 256), 1)
    return lambda: add(
        d_x, d_y, d_out, np.int32(m), grid=grid, block=(256, 1, 1)
    )


# %% clocks
by_clock = {
    "wait_ns, 5000 us": clocks(lambda: wait_ns(5_000_000, grid=1, block=1)),
    "add, n = 20,000,000": clocks(adding(n)),
    "add, n = 10,000": clocks(adding(10_000)),
}
assert by_clock["wait_ns, 5000 us"]["events, busy GPU"] > 4990
ct.table(
    "one launch, by four clocks",
    by_clock,
    corner="kernel",
    units=dict.fromkeys(CLOCKS, "us"),
)

# %% [markdown]
# What it costs to request a launch, for an empty kernel and by PyCUDA's shortest way.

# %% launch-cost
empty = SourceModule("__global__ void empty() {}").get_function("empty")
empty.prepare("")
rounds = 200
train = 500  # short enough for the queue: a full one would make the launch itself wait


def microseconds(call):
    begin = time.perf_counter()
    call()
    return 1e6 * (time.perf_counter() - begin)


def launch_and_wait():
    empty.prepared_call((1, 1), (1, 1, 1))
    cuda.Context.synchronize()


cuda.Context.synchronize()
first = microseconds(launch_and_wait)
pair = np.median([microseconds(launch_and_wait) for _ in range(rounds)])
many = microseconds(
    lambda: [empty.prepared_call((1, 1), (1, 1, 1)) for _ in range(train)]
)
cuda.Context.synchronize()
ct.facts(
    "an empty kernel",
    {
        "first launch, waited for": (first, "us"),
        "launch, waited for": (pair, "us"),
        "launch alone": (many / train, "us"),
    },
)

# %% [markdown]
# A copy back of 40 MB into three kinds of host memory: an array whose pages the operating system has not made yet, one
# that was written before, and page-locked memory.

# %% destinations
destination_n = 10_000_000
values = ct.rng(0).standard_normal(destination_n, dtype="float32")
on_gpu = ct.to_device(values)
written = np.ones(destination_n, "float32")
locked = cuda.pagelocked_empty(destination_n, "float32")


def copy_ms(destination):
    times = []
    for _ in range(6):
        host = destination()
        begin = time.perf_counter()
        cuda.memcpy_dtoh(host, on_gpu.gpudata)
        times.append(1e3 * (time.perf_counter() - begin))
    ct.check(host, values, name="copy")
    return float(np.median(times[1:]))


milliseconds = {
    "np.empty, not written yet": copy_ms(
        lambda: np.empty(destination_n, "float32")
    ),
    "written before": copy_ms(lambda: written),
    "page-locked": copy_ms(lambda: locked),
}
ct.table(
    "device to host, 40 MB",
    {
        name: {"time": ms, "rate": 4 * destination_n / ms / 1e6}
        for name, ms in milliseconds.items()
    },
    corner="host memory",
    units={"time": "ms", "rate": "GB/s"},
)
