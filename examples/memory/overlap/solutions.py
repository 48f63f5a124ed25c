# ---
# jupyter:
#   cudatut:
#     title: {en: "Overlap: solutions", zh: "重叠：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       size: [1_048_576, 4_096]
#       work_steps: [1000, 4]
#       repeats: [20, 2]
#       least_gain: [1.5, 0.0]
#       WORDS: [8_192, 64]
#       operations: [200, 20]
#       most_ms: [10.0, 10_000.0]
# ---

# %% [markdown]
# The best number of chunks; a pipeline with a few buffers; and blocks of a KV
# cache that are swapped out to pinned memory.

# %% given-1
import numpy as np


# %% solution-1
def best(stages, most):
    """(chunks, ms): when the pipeline ends first."""

    def time(count):
        chunk = [ms / count + cost for ms, cost in stages]
        return sum(chunk) + (count - 1) * max(chunk)

    times = [time(count) for count in range(1, most + 1)]
    return 1 + times.index(min(times)), min(times)


# %% check-1
import cudatut as ct


def simulated(stages, count):
    ended = [0.0] * len(stages)  # when each engine is free again
    for _ in range(count):
        at = 0.0
        for k, (ms, cost) in enumerate(stages):
            at = ended[k] = max(at, ended[k]) + ms / count + cost
    return ended[-1]


rng = ct.rng(1)
got, times, least = [], [], []
for stage_count in (1, 2, 3, 3, 3, 5, 5):
    stages = [
        (float(rng.uniform(1, 30)), float(rng.uniform(0.01, 0.3)))
        for _ in range(stage_count)
    ]
    count, ms = best(stages, 60)
    got.append(simulated(stages, count))
    times.append(ms)
    least.append(min(simulated(stages, k) for k in range(1, 61)))
ct.check(got, least, rtol=1e-9, name="time with these numbers of chunks")
ct.check(times, least, rtol=1e-9, name="times that were returned")

# %% given-2
import numpy as np
import pycuda.driver as cuda

import cudatut as ct

# forward(x, n, steps, a, c) makes `steps` times v * a + c of each v; hold(ns)
# keeps its stream busy.
forward = ct.Kernel("memory/overlap/overlap.cu", "forward")
hold = ct.Kernel("memory/overlap/overlap.cu", "hold")
size = 1_048_576  # numbers in a chunk
work_steps = 1000
x, y = (cuda.pagelocked_empty((24, size), "uint32") for _ in range(2))
x[:] = ct.rng(0).integers(0, 1 << 32, x.shape, dtype="uint32")
buffers = [ct.empty(size, "uint32") for _ in range(4)]
streams = [cuda.Stream() for _ in range(3)]


# %% solution-2
def pipeline(chunks, buffers, work, streams):
    """chunks: (source, result), arrays on the host. work(buffer, k, stream)
    launches the kernel of chunk k.
    """
    coming, computing, leaving = streams
    free = [None] * len(buffers)  # events: the buffer's last copy out
    for k, (source, result) in enumerate(chunks):
        own = k % len(buffers)
        buffer = buffers[own]
        if free[own]:
            coming.wait_for_event(free[own])
        cuda.memcpy_htod_async(buffer.gpudata, source, coming)
        computing.wait_for_event(cuda.Event().record(coming))
        work(buffer, k, computing)
        leaving.wait_for_event(cuda.Event().record(computing))
        cuda.memcpy_dtoh_async(result, buffer.gpudata, leaving)
        free[own] = cuda.Event().record(leaving)


# %% check-2
a, c = 1664525, 1013904223
step_a, step_c = 1, 0  # all steps at once: v * step_a + step_c
for _ in range(work_steps):
    step_a, step_c = a * step_a % 2**32, (a * step_c + c) % 2**32
expected = x * np.uint32(step_a) + np.uint32(step_c)
grid = ct.cdiv(size, 256)


def work(buffer, k, stream):
    if delays[k]:
        hold(delays[k], grid=1, block=1, stream=stream)
    forward(buffer, size, work_steps, a, c, grid=grid, block=256, stream=stream)


def whole(streams):
    pipeline(list(zip(x, y)), buffers, work, streams)


delays = [0] * len(x)
time_us = ct.time_once_bare if ct.tool.running() else ct.time_hidden
together, alone = [], []
for _ in range(5):
    together.append(time_us(lambda: whole(streams)))
    alone.append(time_us(lambda: whole(streams[:1] * 3)))
gain = float(np.median(alone) / np.median(together))
least_gain = 1.5
enough = gain > least_gain
ct.check([enough], [True], name="clearly below the sum of the stages")
ct.facts("four buffers, a stream for each stage", {"sum / pipeline": gain})

repeats = 20
rng, wrong = ct.rng(3), []
for _ in range(repeats):
    delays = [int(ns) for ns in rng.integers(0, 200_000, len(x))]
    y[:] = ~expected  # wrong everywhere
    ct.synchronize()
    whole(streams)
    ct.synchronize()
    wrong.append(int(np.count_nonzero(y != expected)))
ct.check(wrong, [0] * repeats, name="wrong numbers, with random delays")

# %% given-3
import numpy as np
import pycuda.driver as cuda

import cudatut as ct

# A model of 32 layers with 8 heads of 128 numbers for keys and as many for
# values, in blocks of 16 tokens: 2 x 32 pieces of 32 KiB for each block.
BLOCKS, SLOTS, PIECES = 16, 8, 64
WORDS = 8192  # of 4 bytes, in a piece
fill = ct.Kernel("memory/overlap/overlap.cu", "fill")
hold = ct.Kernel("memory/overlap/overlap.cu", "hold")


def copy_block(cache, block, row, stream, back=False):
    """Enqueue the copy of a block to a row of the host's memory, or back.

    The pieces of a block lie apart, at equal distances: a 2D copy.
    """
    copy, at = cuda.Memcpy2D(), int(cache.gpudata) + 4 * WORDS * block
    copy.width_in_bytes, copy.height = 4 * WORDS, PIECES
    (copy.set_dst_device if back else copy.set_src_device)(at)
    (copy.set_src_host if back else copy.set_dst_host)(row)
    pitches = 4 * WORDS, 4 * WORDS * BLOCKS
    copy.src_pitch, copy.dst_pitch = pitches if back else pitches[::-1]
    copy(stream)


# %% solution-3
class Swap:
    """Blocks of a KV cache, kept on the host while others need the room."""

    def __init__(self, cache, slots, compute):
        self.cache, self.compute = cache, compute
        self.host = cuda.pagelocked_empty((slots, PIECES * WORDS), "uint32")
        self.copies, self.last = cuda.Stream(), {}

    def save(self, block, slot):
        """Copy a block of the cache to a slot on the host."""
        self._copy(block, slot, back=False)

    def fetch(self, slot, block):
        """Copy a slot back into a block."""
        self._copy(block, slot, back=True)

    def _copy(self, block, slot, back):
        given = cuda.Event().record(self.compute)
        self.copies.wait_for_event(given)
        copy_block(self.cache, block, self.host[slot], self.copies, back)
        self.last[block] = cuda.Event().record(self.copies)

    def before_use(self, block):
        """`compute` is about to be given work on this block."""
        if block in self.last:
            self.compute.wait_for_event(self.last.pop(block))


# %% check-3
from ctypes import byref, c_uint, c_void_p
from time import perf_counter

from cudatut.gpu.device import installed_driver


def is_pinned(array):
    """Whether the driver knows this memory of the host, as pinned memory."""
    kind, memory_type = c_uint(0), 2  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    address = c_void_p(array.ctypes.data)
    ask = installed_driver().cuPointerGetAttribute
    return ask(byref(kind), memory_type, address) == 0 and kind.value == 1


def write(block, value):
    swap.before_use(block)
    fill(
        cache, block, BLOCKS, WORDS, value,
        grid=(1, PIECES), block=256, stream=compute,
    )  # fmt: skip


cache = ct.to_device(np.zeros((PIECES, BLOCKS, WORDS), "uint32"))
compute = cuda.Stream()
swap = Swap(cache, SLOTS, compute)
ct.check([is_pinned(swap.host)], [True], name="the slots are pinned")

write(0, 1)
swap.save(0, 0)  # the first of everything takes longer
ct.synchronize()
hold(50_000_000, grid=1, block=1, stream=compute)
begin = perf_counter()
swap.save(0, 0)
swap.before_use(0)
spent_ms = 1e3 * (perf_counter() - begin)
ct.synchronize()
most_ms = 10.0
ct.check([spent_ms < most_ms], [True], name="a call that waits for nothing")

operations = 200
rng, holds = ct.rng(5), [0] * BLOCKS
holds[0], kept = 1, [1] + [None] * (SLOTS - 1)
for value in range(2, 2 + operations):
    block, slot = int(rng.integers(BLOCKS)), int(rng.integers(SLOTS))
    if rng.random() < 0.2:
        hold(100_000, grid=1, block=1, stream=compute)
    kind = int(rng.integers(3))
    if kind == 0:
        write(block, value)
        holds[block] = value
    elif kind == 1:
        swap.save(block, slot)
        kept[slot] = holds[block]
        write(block, value)  # at once, as for the next request
        holds[block] = value
    elif kept[slot] is not None:
        swap.fetch(slot, block)
        holds[block] = kept[slot]
ct.synchronize()
found = cache.get()
right = np.broadcast_to(np.uint32(holds)[None, :, None], found.shape)
ct.check(found, right, name="contents after random operations")


def save_ms(swap):
    """Median ms until all slots are saved, by the host's clock."""
    times = []
    for _ in range(6):
        ct.synchronize()
        begin = perf_counter()
        for slot in range(SLOTS):
            swap.save(slot, slot)
        ct.synchronize()
        times.append(1e3 * (perf_counter() - begin))
    return float(np.median(times[1:]))


megabytes = 4e-6 * SLOTS * PIECES * WORDS
pinned_ms = save_ms(swap)
swap.host = np.ones_like(swap.host)  # the same class, with pageable memory
pageable_ms = save_ms(swap)
ct.facts(
    "eight blocks saved",
    {
        "size": (megabytes, "MB"),
        "pinned": (pinned_ms, "ms"),
        "pageable": (pageable_ms, "ms"),
        "pinned, rate": (megabytes / pinned_ms, "GB/s"),
        "pageable / pinned": pageable_ms / pinned_ms,
    },
)
