# ---
# jupyter:
#   cudatut:
#     title: {en: "Every way to move bytes: solutions", zh: "传输数据的各种方法：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       most: [16_777_216, 65_536]
#       rounds: [15, 1]
#       total: [16_777_216, 65_536]
# ---

# %% [markdown]
# A way for each size and use, by a formula and by a measurement; and a kernel
# that copies rows which lie apart.

# %% given-1
LARGEST_ARGUMENT = 4_000  # bytes


# %% solution-1
def choose(nbytes, reads, costs):
    """The way with the shortest predicted time, by its name."""

    def us(rate):  # GB/s: a thousand bytes in a microsecond
        return nbytes / rate / 1e3

    each = costs["launch"]
    times = {
        "zero-copy": reads * (each + us(costs["mapped"])),
        "copy": costs["copy"]
        + us(costs["link"])
        + reads * (each + us(costs["memory"])),
    }
    if nbytes <= LARGEST_ARGUMENT:
        times["argument"] = reads * each
    return min(times, key=times.get)


# %% check-1
import random
import time
from functools import partial

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

NAMES = "argument", "copy", "zero-copy"
costs = {"launch": 5, "copy": 8, "link": 55, "mapped": 50, "memory": 2000}
cases = [(4, 1), (4_000, 3), (4_004, 1), (10_000, 1), (300_000, 1)]
cases += [(300_000, 4), (10_000_000, 1), (10_000_000, 2), (268_000_000, 9)]
right = [0, 0, 2, 2, 2, 1, 1, 1, 1]
chosen = [NAMES.index(choose(*case, costs)) for case in cases]
ct.check(np.array(chosen), np.array(right), name="choices")
slow_link = costs | {"mapped": 5, "copy": 1}
chosen = NAMES.index(choose(100_000, 1, slow_link))
ct.check(np.array([chosen]), np.array([1]), name="zero-copy that is slow")

most = 16_777_216  # floats: 67 MB
rounds = 15
copy = ct.Kernel("memory/pinned/pinned.cu", "copy")
mapped_flag = cuda.host_alloc_flags.DEVICEMAP
host = cuda.pagelocked_empty(most, "float32", mem_flags=mapped_flag)
host[:] = ct.rng(0).random(most, dtype="float32")
address = np.uint64(host.base.get_device_pointer())
on_gpu, out = ct.to_device(host), ct.empty(most, "float32")


def launches(source, count, reads):
    for _ in range(reads):
        copy(source, out, count, grid=ct.cdiv(count, 4096), block=256)


def by_copy(count, reads):
    cuda.memcpy_htod_async(on_gpu.gpudata, host[:count])
    launches(on_gpu, count, reads)


def by_zero_copy(count, reads):
    launches(address, count, reads)


def until_done(call):
    begin = time.perf_counter()
    call()
    cuda.Context.synchronize()
    return 1e6 * (time.perf_counter() - begin)


def medians(runs):
    for run in runs.values():
        run()
    times = ct.take_turns(runs, rounds, random.Random(0), until_done)
    return {name: float(np.median(us)) for name, us in times.items()}


ends = medians(
    {
        ("memory", 4): lambda: launches(on_gpu, 4, 1),
        ("memory", most): lambda: launches(on_gpu, most, 1),
        ("mapped", most): lambda: launches(address, most, 1),
        ("link", 4): lambda: by_copy(4, 1),
        ("link", most): lambda: by_copy(most, 1),
    }
)
launch, kilobytes = ends["memory", 4], 4e-3 * most
whole = ends["memory", most] - launch
costs = {
    "launch": launch,
    "copy": max(0.1, ends["link", 4] - launch),
    "memory": kilobytes / max(whole, 0.1),
    "mapped": kilobytes / max(ends["mapped", most] - launch, 0.1),
    "link": kilobytes / max(ends["link", most] - ends["link", 4] - whole, 0.1),
}
slack = 1.5
for count, reads in ((4_096, 1), (most // 16, 8), (most, 1), (most, 4)):
    case = {"count": count, "reads": reads}
    took = medians(
        {
            "copy": partial(by_copy, **case),
            "zero-copy": partial(by_zero_copy, **case),
        }
    )
    way = choose(4 * count, reads, costs)
    near = took[way] <= slack * min(took.values()) or ct.tool.running()
    name = f"{4 * count} bytes, {reads} x: near the fastest"
    ct.check(np.array([bool(near)]), np.array([True]), name=name)

# %% given-2
import numpy as np
import pycuda.driver as cuda

import cudatut as ct


def in_two_dimensions(source, target, rows, width, pitch):
    """The driver's copy of such rows; call it with a stream."""
    copy = cuda.Memcpy2D()
    copy.set_src_device(int(source.gpudata))
    copy.set_dst_device(int(target.gpudata))
    copy.width_in_bytes, copy.height = 4 * width, rows
    copy.src_pitch, copy.dst_pitch = 4 * pitch, 4 * width
    return copy


# %% solution-2
source = """
__global__ void pack(const float* __restrict__ in, float* __restrict__ out,
                     int rows, int width, int pitch) {
  const float4* from = (const float4*)in;
  float4* to = (float4*)out;
  const int wide = width / 4, apart = pitch / 4;
  const size_t all = (size_t)rows * wide, step = (size_t)gridDim.x * blockDim.x;
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < all; i += step) to[i] = from[i / wide * apart + i % wide];
}
"""
pack = ct.Kernel(source, "pack")

# %% check-2
for rows, width, pitch in (
    (1, 4, 4),
    (3, 8, 12),
    (1000, 16, 32),
    (7, 400, 404),
):
    size = (rows - 1) * pitch + width
    numbers = ct.rng(rows).random(rows * pitch, dtype="float32")
    wanted = numbers.reshape(rows, pitch)[:, :width].ravel()
    d_in, d_out = ct.to_device(numbers[:size]), ct.empty(wanted.size, "float32")
    pack(d_in, d_out, rows, width, pitch, grid=1024, block=256)
    ct.check(d_out, wanted, name=f"{rows} rows of {width}, {pitch} apart")

total = 16_777_216  # floats: 67 MB
narrow = 16  # floats: 64 bytes
rows = total // narrow
wide = ct.to_device(ct.rng(1).random(2 * total, dtype="float32"))
dense = ct.empty(total, "float32")
driver = in_two_dimensions(wide, dense, rows, narrow, 2 * narrow)
queue = cuda.Stream()
ct.bench(
    {
        "pack": lambda: pack(
            wide, dense, rows, narrow, 2 * narrow, grid=1024, block=256
        ),
        "cuMemcpy2D": lambda: driver(queue),
    },
    bytes=2 * 4 * total,
    name="rows of 64 bytes",
)
