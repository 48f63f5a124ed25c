# ---
# jupyter:
#   cudatut:
#     title: {en: "One thread, one block, many blocks, grid-stride", zh: "一个线程、一个线程块、多个线程块、网格跨步"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# The same addition with one thread, one block, many blocks and a grid-stride loop, held against the bound of the memory.

# %% setup
from time import perf_counter

import numpy as np

import cudatut as ct
from cudatut.profiler import profile_kernels

n = ct.size(10_000_000, 1_000_000, profiled=10_000_000)  # a sanitizer gets less
slow_n = ct.size(n, 100_000)  # a sanitizer would need minutes for a serial loop over all n
rng = ct.rng(0)
x_host = rng.standard_normal(n, dtype="float32")
y_host = rng.standard_normal(n, dtype="float32")
x, y = ct.to_device(x_host), ct.to_device(y_host)

# %% grids
block = 256
ct.facts(
    "grids",
    {
        "n // block": n // block,
        "ceil(n / block)": ct.cdiv(n, block),
        "n=2560: (n + block) // block": (2560 + block) // block,
        "n=2560: ceil(n / block)": ct.cdiv(2560, block),
    },
)

# %% compile
FILE = "start/first_optimization.cu"
add_one_thread = ct.Kernel(FILE, "add_one_thread")
# The same loop without the promise: the macro leaves nothing of the word.
add_may_alias = ct.Kernel(FILE, "add_one_thread", defines={"__restrict__": ""})
add_one_block = ct.Kernel(FILE, "add_one_block")
add_many_blocks = ct.Kernel(FILE, "add_many_blocks")
add_grid_stride = ct.Kernel(FILE, "add_grid_stride")
sms = ct.device().sm_count


def one_thread(x, y, out, n):
    add_one_thread(x, y, out, n, grid=1, block=1)


def may_alias(x, y, out, n):
    add_may_alias(x, y, out, n, grid=1, block=1)


def one_block(x, y, out, n):
    add_one_block(x, y, out, n, grid=1, block=block)


def many_blocks(x, y, out, n):
    add_many_blocks(x, y, out, n, grid=ct.cdiv(n, block), block=block)


def grid_stride(x, y, out, n, blocks_per_sm=8):
    grid = min(ct.cdiv(n, block), blocks_per_sm * sms)
    add_grid_stride(x, y, out, n, grid=grid, block=block)


# %% latency
chase = ct.Kernel(FILE, "chase")
steps = ct.size(15_000, 1_000)


def walk(words):
    """A launch that makes `steps` loads, `words` words apart, each waiting for the one before."""
    following = ct.to_device(np.arange(steps * words, dtype="uint32") + np.uint32(words))
    last = ct.empty(1, "uint32")
    chase(following, last, steps, grid=1, block=1)
    ct.check(last, np.array([steps * words], "uint32"), name=f"{4 * words} bytes apart")
    return lambda: chase(following, last, steps, grid=1, block=1)


far = walk(1056)  # so far apart that no load finds what another one has brought
walks = ct.bench({"far apart": far}, rounds=15, name=f"{steps} loads, one after another")
latency_ns = 1e3 * walks["far apart"].median_us / steps

# %% predict
bytes_moved = 3 * 4 * n  # read x and y, write out
bandwidth = ct.limits.bandwidth()
ct.facts(
    "prediction",
    {
        "bytes": (bytes_moved / 1e6, "MB"),
        "bandwidth": (bandwidth, "GB/s"),
        "bound": (bytes_moved / bandwidth / 1e3, "us"),
        "latency": (latency_ns, "ns"),
        "one-thread": (n / 8 * latency_ns / 1e6, "ms"),  # a 32-byte sector brings 8 floats
        "one-block": (ct.cdiv(n, block) * latency_ns / 1e6, "ms"),  # one wait per turn of the loop
    },
)

# %% check
candidates = {
    "one-thread": (one_thread, slow_n),
    "one-thread, no restrict": (may_alias, slow_n),
    "one-block": (one_block, slow_n),
    "many-blocks": (many_blocks, n),
    "grid-stride": (grid_stride, n),
}
for name, (add, whole) in candidates.items():
    for m in (whole, *(size for size in ct.RAGGED if size < whole)):
        out = ct.empty(m, "float32")
        add(x[:m], y[:m], out, m)
        ct.check(out, x_host[:m] + y_host[:m], name=f"{name}, n={m}")

# %% too-few-blocks
out = ct.to_device(np.full(n, np.nan, "float32"))
add_many_blocks(x, y, out, n, grid=n // block, block=block)
ct.facts("grid = n // block", {"elements never written": int(np.isnan(out.get()).sum())})

# %% resources
ct.show(add_may_alias.resources(block=1))
ct.show(add_one_thread.resources(block=1))
ct.show(add_many_blocks.resources(block=block))
ct.show(add_grid_stride.resources(block=block))

# %% bench
out = ct.empty(n, "float32")
ct.bench(
    {
        "one-thread, no restrict": lambda: may_alias(x, y, out, slow_n),
        "one-thread": lambda: one_thread(x, y, out, slow_n),
        "one-block": lambda: one_block(x, y, out, slow_n),
        "many-blocks": lambda: many_blocks(x, y, out, n),
        "grid-stride": lambda: grid_stride(x, y, out, n),
        "CuPy": ct.vendor.add(x, y, out),
    },
    bytes=bytes_moved,
    name="add",
    rounds=3,  # the slow ones vary little; the fast ones run many times in each round
)

# %% walks
walks = ct.bench(
    {"far apart": far, "next sector": walk(8), "next word": walk(1)},
    rounds=15,
    name=f"{steps} loads, one after another",
)
ns = {
    name: 1e3 * walks[name].median_us / steps for name in ("far apart", "next sector", "next word")
}
ct.facts(
    "one load",
    {name: (each, "ns") for name, each in ns.items()}
    | {
        "n loads, word by word": (n * ns["next word"] / 1e6, "ms"),
        "n / 16 loads, far apart": (n / 16 * ns["far apart"] / 1e6, "ms"),
    },
)

# %% counters
COUNTERS = [
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__inst_executed.sum",
]
profile_kernels("start/first_optimization", ["add_many_blocks", "add_grid_stride"], COUNTERS)


# %% blocks
def with_blocks(per_sm):
    return lambda: grid_stride(x, y, out, n, per_sm)


ct.bench(
    {
        "1 per SM": with_blocks(1),
        "2 per SM": with_blocks(2),
        "4 per SM": with_blocks(4),
        "8 per SM": with_blocks(8),
        "16 per SM": with_blocks(16),
        "64 per SM": with_blocks(64),
        "1 per 256 elements": lambda: add_grid_stride(
            x, y, out, n, grid=ct.cdiv(n, block), block=block
        ),
    },
    bytes=bytes_moved,
    name="grid-stride, blocks of 256 threads",
)


# %% end-to-end
def milliseconds(call, *args, rounds=3):
    """Least time of call(*args) on the host's clock; it must end by waiting for the GPU."""
    times = []
    for _ in range(rounds):
        start = perf_counter()
        call(*args)
        times.append(1e3 * (perf_counter() - start))
    return min(times)


def program(add, n):
    x, y, out = ct.to_device(x_host[:n]), ct.to_device(y_host[:n]), ct.empty(n, "float32")
    add(x, y, out, n)
    out.get()


def copies():
    ct.to_device(x_host)
    ct.to_device(y_host).get()


ct.facts(
    "whole program",
    {
        "one-thread": (milliseconds(program, one_thread, slow_n), "ms"),
        "one-block": (milliseconds(program, one_block, slow_n), "ms"),
        "many-blocks": (milliseconds(program, many_blocks, n), "ms"),
        "copies alone": (milliseconds(copies), "ms"),
        "NumPy, no GPU": (milliseconds(lambda: x_host + y_host), "ms"),
    },
)
