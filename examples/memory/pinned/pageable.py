# ---
# jupyter:
#   cudatut:
#     title: {en: "Pinned memory: large pageable copies", zh: "锁页内存：较大的可分页复制"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [67_108_864, 65_536]
#       rounds: [32, 2]
# ---

# %% [markdown]
# From pageable memory, a copy of 268 MB is slower for its size than one of 17 MB.
# Do the processor's caches help the smaller one, because it was copied before?
# Pieces of 17 MB: always the same one, or another one each time.

# %% by-place
import random
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

n = 67_108_864  # floats: 268 MB
rounds = 32
PIECES = 16
piece = n // PIECES
host = np.ones(n, "float32")
on_gpu = ct.empty(n, "float32")
turn = {"to the GPU": 0, "to the host": 0}


def copy(way, start, count):
    some, there = host[start : start + count], on_gpu[:count]
    if way == "to the GPU":
        cuda.memcpy_htod(there.gpudata, some)
    else:
        cuda.memcpy_dtoh(some, there.gpudata)


def next_piece(way):
    turn[way] = (turn[way] + 1) % PIECES
    copy(way, turn[way] * piece, piece)


def same_piece(way):
    copy(way, 0, piece)  # before the one that is timed
    return lambda: copy(way, 0, piece)


def until_done(call):
    """Microseconds until a call has returned and the GPU is done."""
    cuda.Context.synchronize()
    begin = time.perf_counter()
    call()
    cuda.Context.synchronize()
    return 1e6 * (time.perf_counter() - begin)


def again(way):
    return until_done(same_piece(way))


places = {
    "the same 17 MB again": (again, piece),
    "another 17 MB each time": (
        lambda way: until_done(lambda: next_piece(way)),
        piece,
    ),
    "all 268 MB": (lambda way: until_done(lambda: copy(way, 0, n)), n),
}
turns = {
    (name, way): lambda timed=timed, way=way: timed(way)
    for name, (timed, _) in places.items()
    for way in turn
}
times = ct.take_turns(turns, rounds, random.Random(0), lambda timed: timed())
rows = {name: {} for name in places}
for (name, way), us in times.items():
    rows[name][way] = 4 * places[name][1] / float(np.median(us)) / 1e3

# %% by-place-table
ct.table(
    "pageable copies, by place",
    rows,
    corner="what is copied",
    units=dict.fromkeys(turn, "GB/s"),
)
