# ---
# jupyter:
#   cudatut:
#     title: {en: "What the clock was measuring", zh: "计时器到底量了什么"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# A first call pays for the context, and a copy that waits for a kernel is charged with the kernel's time.

# %% setup
import json
from time import perf_counter

import numpy as np
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

import cudatut as ct

n = ct.size(10_000_000, 1_000_000, profiled=10_000_000)  # a sanitizer gets less
slow_n = ct.size(n, 100_000)  # a sanitizer would need minutes for a serial loop over all n
rng = ct.rng(0)
x_host = rng.standard_normal(n, dtype="float32")
y_host = rng.standard_normal(n, dtype="float32")
x, y = ct.to_device(x_host), ct.to_device(y_host)


def elapsed_ms(call):
    """Host time from entering `call` to leaving it, whatever the GPU is still doing by then."""
    start = perf_counter()
    call()
    return 1e3 * (perf_counter() - start)


# %% kernels
SOURCE = """
extern "C" __global__ void add_one_thread(const float *x, const float *y, float *out, int n) {
  for (int i = 0; i < n; ++i) out[i] = x[i] + y[i];
}

extern "C" __global__ void add(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

extern "C" __global__ void wait_ns(long long ns) {
  long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < ns);
}
"""
add_one_thread = ct.Kernel(SOURCE, "add_one_thread")
add = ct.Kernel(SOURCE, "add")
wait_ns = ct.Kernel(SOURCE, "wait_ns")

# %% check
for m in (n, *ct.RAGGED):  # the long one first: `ct.profile` below looks at the first launch
    out = ct.empty(m, "float32")
    add(x[:m], y[:m], out, m, grid=ct.cdiv(m, 256), block=256)
    ct.check(out, x_host[:m] + y_host[:m], name=f"add, n={m}")
out = ct.empty(slow_n, "float32")
add_one_thread(x, y, out, slow_n, grid=1, block=1)
ct.check(out, x_host[:slow_n] + y_host[:slow_n], name=f"add_one_thread, n={slow_n}")

# %% first-calls
# In a fresh process: this one has had its context since the first cell.
child = ct.isolated("""
import json
from time import perf_counter
import pycuda.driver as cuda

times = {}

def timed(name, call):
    start = perf_counter()
    result = call()
    times[name] = 1e3 * (perf_counter() - start)
    return result

timed("cuInit", cuda.init)
context = timed("context", lambda: cuda.Device(0).retain_primary_context())
context.push()
names = ("1st mem_alloc", "2nd mem_alloc", "3rd mem_alloc")
buffers = [timed(name, lambda: cuda.mem_alloc(40_000_000)) for name in names]
for buffer in buffers:
    buffer.free()
context.pop()
print(json.dumps(times))
""")
assert child.returncode == 0, child.stderr
first_calls = json.loads(child.stdout.splitlines()[-1])
ct.facts("first calls of a process", {name: (ms, "ms") for name, ms in first_calls.items()})

# %% wait
host = np.ones(slow_n, "float32")  # written once: its pages exist before the clock starts


def launch():
    add_one_thread(x, y, out, slow_n, grid=1, block=1)


def copy():
    cuda.memcpy_dtoh(host, out.gpudata)


def in_turn(*calls):
    """Run the calls one after another; the time of each, in ms."""
    cuda.Context.synchronize()
    return [elapsed_ms(call) for call in calls]


launch_ms, copy_ms = in_turn(launch, copy)
ct.facts("launch, copy", {"launch": (1e3 * launch_ms, "us"), "copy": (copy_ms, "ms")})
launch_ms, wait_ms, copy_ms = in_turn(launch, cuda.Context.synchronize, copy)
ct.facts(
    "launch, synchronize, copy",
    {
        "launch": (1e3 * launch_ms, "us"),
        "synchronize": (wait_ms, "ms"),
        "copy": (copy_ms, "ms"),
    },
)
ct.check(host, x_host[:slow_n] + y_host[:slow_n], name="copy")

# %% launch-cost
empty = SourceModule("__global__ void empty() {}").get_function("empty")
empty.prepare("")  # PyCUDA's shortest way to a launch


def launch_empty():
    empty.prepared_call((1, 1), (1, 1, 1))


def launch_and_wait():
    launch_empty()
    cuda.Context.synchronize()


first_ms = elapsed_ms(launch_and_wait)
pair_ms = np.median([elapsed_ms(launch_and_wait) for _ in range(ct.size(200, 2))])
train = ct.size(500, 5)  # short enough for the queue: a full one would make the launch itself wait
enqueue_ms = elapsed_ms(lambda: [launch_empty() for _ in range(train)])
cuda.Context.synchronize()
ct.facts(
    "an empty kernel",
    {
        "first launch, waited for": (1e3 * first_ms, "us"),
        "launch, waited for": (1e3 * pair_ms, "us"),
        "launch alone": (1e3 * enqueue_ms / train, "us"),
    },
)


# %% clocks
ROUNDS = ct.size(20, 1)


def clocks(launch, rounds=ROUNDS):
    """One launch by four clocks, in us: the least of `rounds` times, for a disturbance only adds."""
    start, stop = cuda.Event(), cuda.Event()

    def launch_and_wait():
        launch()
        cuda.Context.synchronize()

    def by_events(busy=False):
        if busy:  # the GPU has something to do while the host enqueues event, kernel, event
            wait_ns(2_000_000, grid=1, block=1)
        start.record()
        launch()
        stop.record()
        stop.synchronize()
        return start.time_till(stop)

    def least(clock):
        times = []
        for _ in range(rounds):
            cuda.Context.synchronize()
            times.append(clock())
        return (1e3 * min(times), "us")

    return {
        "host, no wait": least(lambda: elapsed_ms(launch)),
        "host, waits": least(lambda: elapsed_ms(launch_and_wait)),
        "events, idle GPU": least(by_events),
        "events, busy GPU": least(lambda: by_events(busy=True)),
    }


def adding(m):
    result = ct.empty(m, "float32")
    return lambda: add(x, y, result, m, grid=ct.cdiv(m, 256), block=256)


ct.facts("wait_ns, 5000 us", clocks(lambda: wait_ns(5_000_000, grid=1, block=1)))
ct.facts("add, n = 10_000_000", clocks(adding(n)))
ct.facts("add, n = 10_000", clocks(adding(10_000)))

# %% bench
out = ct.empty(n, "float32")
ct.bench(
    {"add": lambda: add(x, y, out, n, grid=ct.cdiv(n, 256), block=256)},
    bytes=3 * 4 * n,
    name="add, n = 10_000_000",
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
        "sm__warps_active.avg.pct_of_peak_sustained_active",
    ],
)
