# ---
# jupyter:
#   cudatut:
#     title: {en: "Every way to move bytes: pieces", zh: "传输数据的各种方法：零散的数据"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       nbytes: [16_777_216, 65_536]
#       widths: [[64, 256, 1_024, 4_096, 16_384, 65_536], [64, 1_024]]
#       sizes: [[512, 4_096, 65_536], [512]]
#       pieces: [1_024, 16]
#       rounds: [11, 1]
# ---

# %% [markdown]
# Rows that do not lie side by side: each second row of a matrix, by one copy of
# the driver in two dimensions. How wide does a row have to be?

# %% rows
import random
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

nbytes = 16_777_216  # copied, at every width
widths = (64, 256, 1_024, 4_096, 16_384, 65_536)  # bytes of a row
rounds = 11
dense = ct.empty(nbytes // 4, "float32")
host = cuda.pagelocked_empty(2 * nbytes // 4, "float32")
host[:] = ct.rng(0).random(host.size, dtype="float32")
wide = ct.to_device(host)
back = cuda.pagelocked_empty(nbytes // 4, "float32")
queue = cuda.Stream()


def every_other(width, way):
    """A copy of each second row, to where they lie side by side."""
    copy = cuda.Memcpy2D()
    if way == "to the GPU":
        copy.set_src_host(host)
    else:
        copy.set_src_device(int(wide.gpudata))
    if way == "to the host":
        copy.set_dst_host(back)
    else:
        copy.set_dst_device(int(dense.gpudata))
    copy.width_in_bytes, copy.height = width, nbytes // width
    copy.src_pitch, copy.dst_pitch = 2 * width, width
    return lambda: copy(queue)


places = ("to the GPU", "to the host", "within the GPU")
turns = {(way, w): every_other(w, way) for way in places for w in widths}

# %% check
for (way, w), call in turns.items():
    ct.poison(dense)
    back[:] = -1
    call()
    cuda.Context.synchronize()
    wanted = host.reshape(-1, 2, w // 4)[:, 0].reshape(-1)
    found = back if way == "to the host" else dense
    ct.check(found, wanted, name=f"rows of {w} bytes {way}", rtol=0, atol=0)

# %% by-width
how = ct.time_once_bare if ct.tool.running() else ct.time_hidden
times = ct.take_turns(turns, rounds, random.Random(0), how)
rate = {one: nbytes / float(np.median(us)) / 1e3 for one, us in times.items()}
ct.series(
    "each second row, by its width",
    x=("bytes of a row", ""),
    y=("rate", "GB/s"),
    lines={way: [(w, rate[way, w]) for w in widths] for way in places},
)

# %% rows-facts
narrow, broad = widths[0], widths[-1]
ct.facts(
    "rows that lie apart",
    {f"{way}, rows of 64 bytes": (rate[way, narrow], "GB/s") for way in places}
    | {
        f"{way}, widest / 64 bytes": rate[way, broad] / rate[way, narrow]
        for way in places
    },
)

# %% [markdown]
# Pieces that lie anywhere: 1,024 of them from the host to the GPU, in random
# order. A call for each; one call for all; the host joins them first; a kernel
# fetches them; and, to compare, one copy of as many bytes in a row.

# %% pieces
from cudatut.book.memory.moving.batch import copy_batch
from cudatut.book.memory.moving.direct import prepared

sizes = (512, 4_096, 65_536)  # bytes of a piece
pieces = 1_024
fetch = prepared(ct.Kernel("memory/pinned/pinned.cu", "fetch_rows"), "PPPi")
FLOATS = 128  # of a row that `fetch` copies: 512 bytes
room = pieces * sizes[-1]
spread = cuda.pagelocked_empty(
    2 * room // 4, "float32", mem_flags=cuda.host_alloc_flags.DEVICEMAP
)
spread[:] = ct.rng(1).random(spread.size, dtype="float32")
joined = cuda.pagelocked_empty(room // 4, "float32")
target = ct.empty(room // 4, "float32")
at = spread.base.get_device_pointer()


def ways_of(size):
    """name -> call, for pieces of so many bytes; and what has to arrive."""
    table = spread[: 2 * pieces * size // 4].reshape(2 * pieces, -1)
    order = ct.rng(size).permutation(2 * pieces)[:pieces]
    part, a = table.shape[1], spread.ctypes.data
    out, b = target[: pieces * part], int(target.gpudata)
    room_for_all = joined[: out.size].reshape(pieces, part)
    singles = [(b + size * k, table[row]) for k, row in enumerate(order)]
    targets = b + size * np.arange(pieces, dtype="uint64")
    sources = np.uint64(a) + size * order.astype("uint64")
    lengths = np.full(pieces, size, "uint64")
    each = size // 512
    rows = (order[:, None] * each + np.arange(each)).astype("int32").ravel()
    d_rows = ct.to_device(rows)

    def a_call_each():
        for to, piece in singles:
            cuda.memcpy_htod_async(to, piece, queue)

    def the_host_joins():
        np.take(table, order, axis=0, out=room_for_all, mode="clip")
        cuda.memcpy_htod_async(b, room_for_all, queue)

    def a_kernel_fetches():
        grid = ct.cdiv(rows.size, 8)
        how = {"grid": grid, "block": 256, "stream": queue}
        fetch(at, int(d_rows.gpudata), b, rows.size, **how)

    calls = {
        "a call for each": a_call_each,
        "a batch": lambda: copy_batch(targets, sources, lengths, queue),
        "the host joins": the_host_joins,
        "a kernel fetches": a_kernel_fetches,
        "control: in a row": lambda: cuda.memcpy_htod_async(
            b, spread[: out.size], queue
        ),
    }
    return calls, out, table[order].reshape(-1)


plans = {size: ways_of(size) for size in sizes}
names = list(plans[sizes[0]][0])

# %% check-pieces
for size, (calls, out, wanted) in plans.items():
    for name in names[:-1]:
        ct.poison(target)
        calls[name]()
        cuda.Context.synchronize()
        ct.check(out, wanted, name=f"{size} bytes, {name}", rtol=0, atol=0)


# %% pieces-table
def until_done(call):
    """Microseconds until a call has returned and the GPU is done."""
    begin = time.perf_counter()
    call()
    cuda.Context.synchronize()
    return 1e6 * (time.perf_counter() - begin)


turns = {(n, size): plans[size][0][n] for size in sizes for n in names}
times = ct.take_turns(turns, rounds, random.Random(0), until_done)
us = {one: float(np.median(some)) for one, some in times.items()}
heads = {size: f"{size} bytes" for size in sizes}
ct.table(
    "1,024 pieces from the host to the GPU",
    {n: {heads[size]: us[n, size] for size in sizes} for n in names},
    corner="way",
    units=dict.fromkeys(heads.values(), "us"),
)

# %% pieces-facts
ct.facts(
    "a batch",
    {
        f"{size} bytes, a call for each / a batch": us["a call for each", size]
        / us["a batch", size]
        for size in sizes
    },
)
