# ---
# jupyter:
#   cudatut:
#     title: {en: "One thread, one block, many blocks, grid-stride", zh: "一个线程、一个线程块、多个线程块、网格跨步"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [20000000, 100003, 20000000]}
# ---
# %% [markdown]
# The same addition in four ways, each timed between two events: one thread, one block, many blocks, and a grid-stride loop.
# A copy from device memory to device memory is timed in the same way.

# %% program
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void one_thread(const float *x, const float *y, float *out, int n) {
  for (int i = 0; i < n; ++i) out[i] = x[i] + y[i];
}

__global__ void one_block(const float *x, const float *y, float *out, int n) {
  for (size_t i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[i] + y[i];
}

__global__ void many_blocks(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

__global__ void grid_stride(const float *x, const float *y, float *out, int n) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (size_t i = first; i < n; i += stride) out[i] = x[i] + y[i];
}
""")

n = 20_000_000
rng = np.random.default_rng(0)
x, y = rng.random((2, n), dtype=np.float32)
out = np.zeros_like(x)
d_x, d_y, d_out = cuda.to_device(x), cuda.to_device(y), cuda.to_device(out)
sms = cuda.Context.get_device().multiprocessor_count
start, end = cuda.Event(), cuda.Event()


def best_ms(launch, launches):
    """Milliseconds for one launch, the best of three measurements."""
    times = []
    for _ in range(3):
        start.record()
        for _ in range(launches):
            launch()
        end.record()
        end.synchronize()
        times.append(start.time_till(end) / launches)
    return min(times)


def measure(name, blocks, threads, launches):
    add = module.get_function(name)
    arguments = d_x, d_y, d_out, np.int32(n)
    shape = {"grid": (blocks, 1), "block": (threads, 1, 1)}
    cuda.memset_d32(d_out, 0, n)
    ms = best_ms(lambda: add(*arguments, **shape), launches)
    cuda.memcpy_dtoh(out, d_out)
    right = np.array_equal(out, x + y)
    rate = 12 * n / ms / 1e6  # GB/s
    print(f"{name:12} {ms:9.3f} ms {rate:9.2f} GB/s  {right}")
    return rate


one = measure("one_thread", 1, 1, launches=1)
block = measure("one_block", 1, 256, launches=1)
many = measure("many_blocks", (n + 255) // 256, 256, launches=50)
add_rate = measure("grid_stride", 64 * sms, 256, launches=50)
print(f"one block / one thread:     {block / one:8.2f}")
print(f"many blocks / one block:    {many / block:8.2f}")
print(f"grid-stride / many blocks:  {add_rate / many:8.2f}")

ms = best_ms(lambda: cuda.memcpy_dtod(d_out, d_x, x.nbytes), launches=50)
copy_rate = 8 * n / ms / 1e6
print(f"{'copy':12} {ms:9.3f} ms {copy_rate:9.2f} GB/s")
print(f"share of the copy: {add_rate / copy_rate:.2f}")

# %% [markdown]
# Answers to 'Try it': other numbers of threads and blocks, and a short array.

# %% try-1
for threads in (1, 8, 32, 256, 1024):
    print(f"{threads} threads in each block:")
    measure("many_blocks", (n + threads - 1) // threads, threads, launches=5)

# %% try-2
for per_sm in (1, 2, 4, 8, 64):
    print(f"{per_sm} blocks for each SM:")
    measure("grid_stride", per_sm * sms, 256, launches=5)

# %% try-3
whole, n, x, y, out = n, 1000, x[:1000], y[:1000], out[:1000]
d_x, d_y = cuda.to_device(x), cuda.to_device(y)
measure("many_blocks", (n + 255) // 256, 256, launches=1)
n = whole

# %% [markdown]
# The share is checked: a recording with less than 0.90 is refused. While a sanitizer or profiler watches, times say nothing.

# %% check-share
import cudatut as ct

ct.facts(
    "the add beside a copy in device memory",
    {
        "add": (add_rate, "GB/s"),
        "copy": (copy_rate, "GB/s"),
        "share of the copy": add_rate / copy_rate,
    },
)
if not ct.tool.running():
    least = np.array([0.90])
    share = np.minimum(add_rate / copy_rate, least)
    ct.check(share, least, name="share of the copy >= 0.90")

# %% [markdown]
# From here on the book's own checks and timings, of the same kernels in a .cu file. There they promise with `__restrict__` that
# the arrays do not overlap. The macro takes the promise out, and one kernel is compiled with it as well.

# %% setup
from time import perf_counter


x_host, y_host = ct.rng(0).standard_normal((2, n), dtype="float32")
x, y = ct.to_device(x_host), ct.to_device(y_host)

FILE = "start/first_optimization/first_optimization.cu"
AS_ABOVE = {"__restrict__": ""}
add_one_thread = ct.Kernel(FILE, "add_one_thread", defines=AS_ABOVE)
add_restrict = ct.Kernel(FILE, "add_one_thread")
add_one_block = ct.Kernel(FILE, "add_one_block", defines=AS_ABOVE)
add_many_blocks = ct.Kernel(FILE, "add_many_blocks", defines=AS_ABOVE)
add_grid_stride = ct.Kernel(FILE, "add_grid_stride", defines=AS_ABOVE)
block, sms = 256, ct.device().sm_count


def one_thread(x, y, out, n):
    add_one_thread(x, y, out, n, grid=1, block=1)


def one_thread_restrict(x, y, out, n):
    add_restrict(x, y, out, n, grid=1, block=1)


def one_block(x, y, out, n):
    add_one_block(x, y, out, n, grid=1, block=block)


def many_blocks(x, y, out, n):
    add_many_blocks(x, y, out, n, grid=ct.cdiv(n, block), block=block)


def grid_stride(x, y, out, n, blocks_per_sm=64):
    grid = min(ct.cdiv(n, block), blocks_per_sm * sms)
    add_grid_stride(x, y, out, n, grid=grid, block=block)


# %% [markdown]
# Every kernel at the full length and at lengths that fit no block.

# %% check
candidates = {
    "one thread": one_thread,
    "one thread, __restrict__": one_thread_restrict,
    "one block": one_block,
    "many blocks": many_blocks,
    "grid-stride": grid_stride,
}
for name, way in candidates.items():
    for m in (n, *(size for size in ct.RAGGED if size < n)):
        out = ct.empty(m, "float32")
        way(x[:m], y[:m], out, m)
        ct.check(out, x_host[:m] + y_host[:m], name=f"{name}, n={m}")

# %% [markdown]
# How long does one load take? A walk through memory in which every load needs the answer of the load before.

# %% latency
chase = ct.Kernel(FILE, "chase")
steps = 15_000


def walk(words):
    """A launch of `steps` loads, `words` words apart, each after the other."""
    indices = np.arange(steps * words, dtype="uint32") + np.uint32(words)
    following, last = ct.to_device(indices), ct.empty(1, "uint32")
    chase(following, last, steps, grid=1, block=1)
    expected = np.array([steps * words], "uint32")
    ct.check(last, expected, name=f"{4 * words} bytes apart")
    return lambda: chase(following, last, steps, grid=1, block=1)


walks = ct.bench(
    {"far apart": walk(1056), "next sector": walk(8), "next word": walk(1)},
    rounds=15,
    name=f"{steps} loads, one after another",
)
ns = {
    row: 1e3 * walks[row].median_us / steps
    for row in ("far apart", "next word")
}
ct.facts("time of one load", {name: (each, "ns") for name, each in ns.items()})

# %% [markdown]
# What follows from bytes and latency, before anything is timed.

# %% predict
bytes_moved = 3 * 4 * n  # read x and y, write out
bandwidth = ct.limits.bandwidth()
ct.facts(
    "prediction",
    {
        "bytes": (bytes_moved / 1e6, "MB"),
        "out": (4 * n / 1e6, "MB"),
        "bandwidth": (bandwidth, "GB/s"),
        "at that bandwidth": (bytes_moved / bandwidth / 1e3, "us"),
        # A sector of 32 bytes brings 8 floats, so there are n / 8 waits.
        "one thread": (n / 8 * ns["far apart"] / 1e6, "ms"),
        # One wait for each turn of the loop.
        "one block": (ct.cdiv(n, block) * ns["far apart"] / 1e6, "ms"),
        "one thread, word by word": (n * ns["next word"] / 1e6, "ms"),
        "one thread, two sectors at a time": (
            n / 16 * ns["far apart"] / 1e6,
            "ms",
        ),
    },
)

# %% [markdown]
# All kernels in one process, beside CuPy's addition, with an empty L2 cache before each run.

# %% bench
out = ct.empty(n, "float32")
bench = ct.bench(
    {
        "one thread": lambda: one_thread(x, y, out, n),
        "one block": lambda: one_block(x, y, out, n),
        "many blocks": lambda: many_blocks(x, y, out, n),
        "grid-stride": lambda: grid_stride(x, y, out, n),
        "CuPy": ct.vendor.add(x, y, out),
    },
    bytes=bytes_moved,
    name="add",
    rounds=3,  # the slow ones vary little; the fast ones run many times a round
)

# %% [markdown]
# The one thread again, without and with the promise, and what the kernels occupy.

# %% restrict
ct.bench(
    {
        "one thread": lambda: one_thread(x, y, out, n),
        "one thread, __restrict__": lambda: one_thread_restrict(x, y, out, n),
    },
    bytes=bytes_moved,
    name="one thread, without and with __restrict__",
    rounds=3,
)
ct.show(add_one_thread.resources(block=1))
ct.show(add_restrict.resources(block=1))

# %% [markdown]
# The counters of the last two kernels.

# %% counters
COUNTERS = [
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__inst_executed.sum",
]
profiles = ct.profile_kernels(
    "start/first_optimization", ["add_many_blocks", "add_grid_stride"], COUNTERS
)

# %% [markdown]
# The grid-stride kernel with any number of blocks.


# %% blocks
def with_blocks(per_sm):
    return lambda: grid_stride(x, y, out, n, per_sm)


ct.bench(
    {
        f"{per_sm} per SM": with_blocks(per_sm)
        for per_sm in (1, 2, 4, 8, 16, 64)
    },
    bytes=bytes_moved,
    name="grid-stride, blocks of 256 threads",
)

# %% [markdown]
# How long must an array be before its bytes decide the time?


# %% lengths
def add_first(m):
    return lambda: many_blocks(x, y, out, m)


sizes = [m for m in (1_000, 10_000, 100_000, 1_000_000, 10_000_000) if m <= n]
ct.bench(
    {f"n = {m}": add_first(m) for m in sizes},
    bytes={f"n = {m}": 12 * m for m in sizes},
    name="many blocks, by the length of the array",
)

# %% [markdown]
# Whole programs by the host's clock, copies included.


# %% end-to-end
def milliseconds(call, *args, rounds=3):
    """Least time of call(*args), which ends by waiting for the GPU."""
    times = []
    for _ in range(rounds):
        begin = perf_counter()
        call(*args)
        times.append(1e3 * (perf_counter() - begin))
    return min(times)


def program(way):
    x, y = ct.to_device(x_host), ct.to_device(y_host)
    out = ct.empty(n, "float32")
    way(x, y, out, n)
    out.get()


def copies():
    ct.to_device(x_host)
    ct.to_device(y_host).get()


times = {
    "one thread": milliseconds(program, one_thread),
    "one block": milliseconds(program, one_block),
    "many blocks": milliseconds(program, many_blocks),
    "copies alone": milliseconds(copies),
    "NumPy, no GPU": milliseconds(lambda: x_host + y_host),
}
ct.facts("whole program", {name: (time, "ms") for name, time in times.items()})
kernels = bench["one thread"].median_us / bench["many blocks"].median_us
ct.facts(
    "how many times as fast with many blocks as with one thread",
    {
        "the kernel": kernels,
        "the whole program": times["one thread"] / times["many blocks"],
    },
)
