# ---
# jupyter:
#   cudatut:
#     title: {en: "Bytes in flight without registers", zh: "不占寄存器的在途字节"}
#     requires: sm_90
#     timeout_s: 60
#     sizes:
#       count: [10000019, 100003]
#       n: [268435456, 262144]
# ---

# %% [markdown]
# A sum whose data a copy engine brings into shared memory: first the launch in
# the open.

# %% program
import numpy as np
import cudatut as ct

count = 10_000_019
x = ct.to_device(ct.rng(0).standard_normal(count, dtype="float32"))
kernel = ct.Kernel(
    "reduction/ladder/bulk.cu",
    "reduce_bulk",
    defines={"BLOCK": 256, "VECTORS": 8},
)
ring = 2 * 256 * 8 * 16  # bytes: two pieces of 8 vectors per thread
blocks = kernel.resources(256, ring).blocks_per_sm * ct.device().sm_count

total, partials = ct.empty(1, "float32"), ct.empty(blocks, "float32")
ticket = ct.to_device(np.zeros(1, "uint32"))  # 0 before the first launch
kernel(
    x,
    total,
    count,
    partials,
    ticket,
    grid=blocks,
    block=256,
    shared=ring,
)
ct.check(total, [x.get().sum(dtype="float64")], rtol=0, atol=0.1)

# %% [markdown]
# What should be in flight on this GPU, and on one with more bandwidth.

# %% wanted
from cudatut.book.reduction.ladder.ladder import (
    LADDER,
    ON_ITS_WAY_US,
    Sum,
    long_rung,
    wanted_in_flight,
)
from cudatut.book.reduction.ladder.large import Repeated

gpu = ct.device()
limit = LADDER["limit"]
asked = 16 * limit.number("vectors") * gpu.max_threads_per_sm
H200 = 4800  # GB/s, from its data sheet
ct.facts(
    "bytes in flight on each SM",
    {
        "wanted on this GPU": (wanted_in_flight() / 1e3, "kB"),
        "wanted on an H200": (H200 / 132 * ON_ITS_WAY_US, "kB"),
        "limit asks for at most": (asked / 1e3, "kB"),
        "time on the way": (ON_ITS_WAY_US, "us"),
        "for long arrays this GPU takes": long_rung().name,
    },
)

# %% [markdown]
# A block on each SM, with rings of several sizes: how fast it reads, and how
# long a byte is then on its way.

# %% engine
n = 268_435_456
sums, small = Repeated(n), Sum(1_000_003, "int32")
# Vectors per thread in a piece, and pieces that are asked for at a time.
RINGS = ((1, 1), (1, 2), (1, 4), (2, 4), (4, 4), (8, 4), (8, 6))


def with_ring(sums, vectors, stages):
    kernel = sums.compile(LADDER["bulk"], 256, VECTORS=vectors, STAGES=stages)
    out, partials = (ct.empty(k, sums.dtype) for k in (1, gpu.sm_count))
    ticket = ct.to_device(np.zeros(1, "uint32"))

    def run():
        kernel(
            sums.x,
            out,
            sums.n,
            partials,
            ticket,
            grid=gpu.sm_count,
            block=256,
            shared=4096 * vectors * stages,
        )

    run()
    atol = sums.tolerance_of(sums.n // (gpu.sm_count * 256) + 64)
    name = f"{4 * vectors * stages} KiB, {sums.dtype}"
    ct.check(out, sums.expected, name=name, rtol=0, atol=atol)
    return run


for ring in RINGS:
    with_ring(small, *ring)
bench = ct.bench(
    {f"{4 * v * s} KiB": with_ring(sums, v, s) for v, s in RINGS},
    bytes=sums.bytes,
    name=f"sum of {n} float32, by the ring of each SM",
)

# %% way
# Little's law, the other way round: time = bytes in flight / bandwidth.
rows = {}
for v, s in RINGS:
    rate = bench[f"{4 * v * s} KiB"].value
    rows[f"{4 * v * s} KiB"] = {
        "bandwidth": rate,
        "on its way": 4096 * v * s * gpu.sm_count / rate,
    }
ct.table(
    "in flight, reached, and how long a byte is on its way",
    rows,
    corner="in flight on each SM",
    units={"bandwidth": "GB/s", "on its way": "ns"},
)
