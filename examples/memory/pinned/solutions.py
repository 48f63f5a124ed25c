# ---
# jupyter:
#   cudatut:
#     title: {en: "Pinned memory and transfers: solutions", zh: "锁页内存与传输：参考答案"}
#     requires: sm_75
#     sizes:
#       length: [1_048_576, 4_096]
#       BLOCKS: [2_048, 64]
#       rounds: [15, 1]
# ---

# %% [markdown]
# When pinning pays, a buffer that is used again too early, and blocks of a
# cache that are kept in pinned memory.

# %% given-1
import numpy as np

# %% solution-1
import math


def fewest_copies(pin, pageable, pinned):
    """From how many copies on the pinned buffer takes less time; or 0."""
    if pinned >= pageable:
        return 0
    # pin + k * pinned < k * pageable: k lies above this.
    return math.floor(pin / (pageable - pinned)) + 1


# %% check-1
import cudatut as ct

cases = [(70, 16, 5), (0, 16, 5), (11, 16, 5), (33, 16, 5), (5, 3, 3)]
cases += [(5, 3, 4), (1000, 6, 5), (1, 200, 5)]


def by_trying(pin, pageable, pinned):
    for k in range(1, 2000):
        if pin + k * pinned < k * pageable:
            return k
    return 0


ct.check(
    np.array([fewest_copies(*case) for case in cases]),
    np.array([by_trying(*case) for case in cases]),
    name="fewest copies",
)

# %% given-2
import numpy as np
import pycuda.driver as cuda

import cudatut as ct

length = 1_048_576
batches = [ct.rng(k).random(length, dtype="float32") for k in range(6)]
targets = [ct.empty(length, "float32") for _ in batches]
buffers = [cuda.pagelocked_empty(length, "float32") for _ in range(2)]
stream = cuda.Stream()


# %% solution-2
def send(batches, targets, buffers, stream):
    """Copy each batch to its target; buffer k % 2 is for batch k."""
    read = [cuda.Event() for _ in buffers]
    for k, (batch, target) in enumerate(zip(batches, targets)):
        buffer, done = buffers[k % 2], read[k % 2]
        if k >= 2:
            done.synchronize()  # the copy before last has read this buffer
        buffer[:] = batch
        cuda.memcpy_htod_async(target.gpudata, buffer, stream)
        done.record(stream)


# %% check-2
wait_for = ct.Kernel("memory/pinned/pinned.cu", "wait_for")
mapped = cuda.host_alloc_flags.DEVICEMAP
flag = cuda.pagelocked_zeros(1, "uint32", mem_flags=mapped)
address = np.uint64(flag.base.get_device_pointer())
# Nobody writes the word, so the GPU is busy for 50 ms before the first copy.
wait_for(address, 1, 50_000_000, grid=1, block=1, stream=stream)
try:
    send(batches, targets, buffers, stream)
finally:
    cuda.Context.synchronize()
for k, (batch, target) in enumerate(zip(batches, targets)):
    ct.check(target, batch, name=f"batch {k}")

# %% given-3
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

# 16 tokens, 8 heads of 128 numbers of 2 bytes, keys and values: 65,536 bytes.
WORDS = 16 * 8 * 128 * 2 * 2 // 4
BLOCKS = 2_048
start = ct.rng(3).integers(0, 2**32, (BLOCKS, WORDS), dtype="uint32")
cache = ct.to_device(start)
stream = cuda.Stream()


# %% solution-3
def room(slots):
    """Host memory for so many blocks, a row for each."""
    return cuda.pagelocked_empty((slots, WORDS), "uint32")


def runs(blocks, slots):
    """(first block, first slot, count) of pairs that follow each other."""
    found = []
    for block, slot in zip(blocks, slots):
        if found:
            b, s, count = found[-1]
            if (block, slot) == (b + count, s + count):
                found[-1] = b, s, count + 1
                continue
        found.append((block, slot, 1))
    return found


def swap_out(cache, blocks, host, slots, stream):
    """Begin to copy blocks of the cache to these slots of the host."""
    for block, slot, count in runs(blocks, slots):
        part = cache[block : block + count]
        cuda.memcpy_dtoh_async(host[slot : slot + count], part.gpudata, stream)


def swap_in(cache, blocks, host, slots, stream):
    """Begin to copy slots of the host to these blocks of the cache."""
    for block, slot, count in runs(blocks, slots):
        part = cache[block : block + count]
        cuda.memcpy_htod_async(part.gpudata, host[slot : slot + count], stream)


# %% check-3
some = BLOCKS // 4
host = room(some)
is_pinned = hasattr(host.base, "get_flags")
ct.check(np.array([is_pinned]), np.array([True]), name="the room is pinned")
joined = runs([4, 5, 9, 10, 3], [0, 1, 2, 4, 5])
wanted = [(4, 0, 2), (9, 2, 1), (10, 4, 1), (3, 5, 1)]
same = [tuple(run) for run in joined] == wanted
ct.check(np.array([same]), np.array([True]), name="joined runs")
host[:] = 0
out = [int(b) for b in ct.rng(4).permutation(BLOCKS)[:some]]
out[: some // 2] = sorted(out[: some // 2])
slots = list(range(some))
swap_out(cache, out, host, slots, stream)
stream.synchronize()
ct.check(host, start[out], name="swapped out")
back = out[::-1]  # each block comes back where another one was
for block in out:
    cuda.memset_d32(cache[block : block + 1].gpudata, 0xDEAD, WORDS)
swap_in(cache, back, host, slots, stream)
stream.synchronize()
after = start.copy()
after[back] = start[out]
ct.check(cache, after, name="swapped in, all of the cache")


def swap_ms(blocks, slots, each):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        if each:
            for pair in zip(blocks, slots):
                swap_out(cache, [pair[0]], host, [pair[1]], stream)
        else:
            swap_out(cache, blocks, host, slots, stream)
        stream.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(times))


rounds = 15
row = list(range(some))  # blocks that lie side by side
each_ms, joined_ms = swap_ms(row, row, True), swap_ms(row, row, False)
nbytes = some * 4 * WORDS
ct.facts(
    "blocks of 64 KiB to the host",
    {
        "a copy for each block": (1e-6 * nbytes / each_ms, "GB/s"),
        "joined": (1e-6 * nbytes / joined_ms, "GB/s"),
        "time, each / joined": each_ms / joined_ms,
    },
)
