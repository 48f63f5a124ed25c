# ---
# jupyter:
#   cudatut:
#     title: {en: "Unified memory", zh: "统一内存"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [67_108_864, 65_536]
#       rounds: [9, 1]
#       blocks: [8, 1]
#       repeats: [5, 1]
# ---

# %% [markdown] about
# One array that host and GPU both read and write, without a copy in the program.
# What does it cost, beside the copies that it replaces?

# %% program
import random
from time import perf_counter

import numpy as np
import pycuda.driver as cuda
from cudatut.book.memory.unified.managed import (
    GPU,
    HOST,
    managed_empty,
    prefetch,
)

import cudatut as ct

negate = ct.Kernel("memory/unified/unified.cu", "negate")

n = 67_108_864  # floats, 268 MB
rounds = 9
x = managed_empty(n, "float32")  # for host and GPU
x[:] = ct.rng(0).random(n, dtype="float32")
pageable, on_gpu = x.copy(), cuda.mem_alloc(x.nbytes)
pinned = cuda.pagelocked_empty(n, "float32")
pinned[:] = x


def launch(array):
    negate(array, n, grid=1024, block=256)


def look(array):
    return array[::1024].sum()  # one element of each page of 4 KB


def no_copy():
    pass


def home():  # so that x lies in the host's memory when the clock starts
    prefetch(x, HOST)


def away():
    prefetch(x, GPU)


# What the clock covers, and before it what it does not.
to_gpu = {
    "copy, pageable": (
        no_copy,
        lambda: (cuda.memcpy_htod(on_gpu, pageable), launch(on_gpu)),
    ),
    "copy, pinned": (
        no_copy,
        lambda: (cuda.memcpy_htod(on_gpu, pinned), launch(on_gpu)),
    ),
    "managed, page by page": (home, lambda: launch(x.base)),
    "managed, prefetch": (home, lambda: (prefetch(x, GPU), launch(x.base))),
    "already there": (away, lambda: launch(x.base)),
}
to_host = {
    "copy, pageable": (
        no_copy,
        lambda: (cuda.memcpy_dtoh(pageable, on_gpu), look(pageable)),
    ),
    "copy, pinned": (
        no_copy,
        lambda: (cuda.memcpy_dtoh(pinned, on_gpu), look(pinned)),
    ),
    "managed, page by page": (away, lambda: look(x)),
    "managed, prefetch": (
        away,
        lambda: (prefetch(x, HOST), ct.synchronize(), look(x)),
    ),
    "already there": (home, lambda: look(x)),
}


def microseconds(way):
    before, work = way
    before()
    ct.synchronize()
    begin = perf_counter()
    work()
    ct.synchronize()
    return 1e6 * (perf_counter() - begin)


def measure(ways):
    runs = {
        name: lambda way=way: microseconds(way) for name, way in ways.items()
    }
    for run in runs.values():
        run()  # the first of each is not counted
    return ct.take_turns(runs, rounds, random.Random(0), time=lambda run: run())


in_times, out_times = measure(to_gpu), measure(to_host)
medians = {}
for label, times in ("to the GPU", in_times), ("to the host", out_times):
    for name, values in times.items():
        p20, median, p80 = np.percentile(values, (20, 50, 80))
        medians[label, name] = median
        print(f"{label:>11}, {name:<21} {median / 1e3:7.2f} ms", end=" ")
        print(f"({p20 / 1e3:.2f} to {p80 / 1e3:.2f})")
slow, fast = "managed, page by page", "managed, prefetch"
ct.yours(
    "memory/unified#program",
    {
        f"{label}, page by page / prefetch": (
            float(medians[label, slow] / medians[label, fast]),
            "x",
        )
        for label in ("to the GPU", "to the host")
    },
)

# %% [markdown] about-system
# What this GPU and this operating system can do with managed memory.

# %% system
has = ct.attributes()
names = (
    "MANAGED_MEMORY",
    "CONCURRENT_MANAGED_ACCESS",
    "PAGEABLE_MEMORY_ACCESS",
    "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST",
)
ct.facts("this system", {name: bool(has.get(name, 0)) for name in names})

# %% [markdown] about-check
# Is the array right on both sides, for every length, page by page and with
# prefetches? The GPU negates it, the host adds 1, the GPU negates it again.

# %% check
for m in ct.RAGGED:
    for moved in False, True:
        y = managed_empty(m, "float32")
        y[:] = want = ct.rng(m).random(m, dtype="float32")
        for where in GPU, HOST, GPU, HOST:
            if moved:
                prefetch(y, where)
            if where == GPU:
                negate(y.base, m, grid=ct.cdiv(m, 256), block=256)
                ct.synchronize()
            else:
                y += 1
        how = "prefetched" if moved else "page by page"
        ct.check(y, -(-want + 1) + 1, name=f"{how}, n={m}", rtol=0, atol=0)

# %% [markdown] about-times
# The program's times as a table, with the rate of the bytes that each way moves.

# %% times
ct.table(
    "268 MB: until the kernel has ended, and until the host has looked at it",
    {
        name: {
            "to the GPU": float(medians["to the GPU", name]),
            "to the host": float(medians["to the host", name]),
            **{
                f"GB/s {label}": None
                if name == "already there"  # nothing moves
                else x.nbytes / 1e3 / medians[label, name]
                for label in ("to the GPU", "to the host")
            },
        }
        for name in to_gpu
    },
    corner="transfer",
    units={"to the GPU": "us", "to the host": "us"},
)

# %% [markdown] about-touch
# Which touches are slow? Walks over pages that lie on the other side, by one
# thread of the GPU and by the host, each over an array of its own.

# %% patterns
from cudatut.book.memory.unified import touches
from cudatut.book.memory.unified.prefetcher import faults, patterns

blocks = 8  # of 2 MB
repeats = 5
ways = patterns(blocks, ct.rng(1))


def walks(pages, side):
    """Times of the touches on the other side's pages, and of the same again."""
    y = touches.blocks_of_2mb(blocks)
    prefetch(y, HOST if side == GPU else GPU)
    ct.synchronize()
    walk = touches.by_gpu if side == GPU else touches.by_host
    return walk(y, pages), walk(y, pages)


counted, all_walks = {}, {}
for name, pages in ways.items():
    for side in GPU, HOST:
        all_walks[name, side] = [walks(pages, side) for _ in range(repeats)]
    (on_gpu_first, on_gpu_again), (on_host_first, _) = (
        map(touches.slow_each_time, zip(*all_walks[name, side]))
        for side in (GPU, HOST)
    )
    counted[name] = {
        "touches": len(pages),
        "predicted": sum(faults(pages)),
        "slow, GPU": on_gpu_first,
        "slow, host": on_host_first,
        "slow again, GPU": on_gpu_again,
    }

# %% faults
ct.table("touches of 16 MB on the other side", counted, corner="order")

# %% [markdown] about-walk
# One walk in detail: the touches of the first block, one for each 64 KB, and what
# a slow and a fast touch cost.

# %% walk
upwards = "every page, upwards"


def of_walks(side, which):
    """Of all walks upwards: the touches that are slow, and the others."""
    times = np.array([one[which] for one in all_walks[upwards, side]])
    return times[times > touches.SLOW_US], times[times <= touches.SLOW_US]


middle = np.median([first for first, _ in all_walks[upwards, GPU]], axis=0)
ct.series(
    "touches of the first 2 MB by the GPU",
    x=("page", ""),
    y=("time", "us"),
    lines={"touch": [(i, float(middle[i])) for i in range(0, 512, 16)]},
)

# %% costs
costs = {}
for side in GPU, HOST:
    slow_ones, fast_ones = of_walks(side, 0)
    total = [sum(first) for first, _ in all_walks[upwards, side]]
    waits = sum(slow_ones) / (repeats * blocks)
    costs[side] = {
        "a slow touch": float(np.median(slow_ones)) if slow_ones.size else 0.0,
        "the fastest slow one": float(slow_ones.min())
        if slow_ones.size
        else 0.0,
        "a fast touch": float(np.median(fast_ones)) if fast_ones.size else 0.0,
        "2 MB": float(np.median(total)) / blocks,
        "slow ones of 2 MB": float(waits),
    }
ct.table(
    "what touches cost",
    costs,
    corner="who touches",
    units=dict.fromkeys(costs[GPU], "us"),
)

# %% [markdown] about-predicted
# From the walks: 128 times as much memory takes 128 times as long, if one fault
# comes after the other. Only the slow touches count: the program does not read the
# clock at each page.

# %% predicted
many = x.nbytes / 2**21
ct.table(
    "268 MB page by page, predicted from 2 MB",
    {
        side: {
            "predicted": many * costs[side]["slow ones of 2 MB"],
            "measured": float(medians[label, slow]),
            "measured / predicted": float(
                medians[label, slow]
                / max(many * costs[side]["slow ones of 2 MB"], 1e-3)
            ),
        }
        for side, label in ((GPU, "to the GPU"), (HOST, "to the host"))
    },
    corner="who touches",
    units={"predicted": "us", "measured": "us"},
)

# %% [markdown] about-prefetches
# How much of a prefetch passes in the call itself, on the host?


# %% prefetches
def call_and_whole(where):
    """Microseconds in the call, and until the pages have moved."""
    prefetch(x, HOST if where == GPU else GPU)
    ct.synchronize()
    begin = perf_counter()
    prefetch(x, where)
    called = perf_counter()
    ct.synchronize()
    return 1e6 * (called - begin), 1e6 * (perf_counter() - begin)


both = {
    f"to the {where}": np.median(
        [call_and_whole(where) for _ in range(repeats)], axis=0
    )
    for where in (GPU, HOST)
}
ct.table(
    "a prefetch of 268 MB",
    {
        name: {"in the call": float(call), "until it is done": float(done)}
        for name, (call, done) in both.items()
    },
    corner="prefetch",
    units={"in the call": "us", "until it is done": "us"},
)

# %% [markdown] about-advice
# Advice changes which touches are slow. Each row: an array that the host has
# written, advice, then walks over all pages: by the GPU, the host, the GPU.

# %% advice
from cudatut.book.memory.unified.managed import advise

PIECES = {
    "none": (),
    "READ_MOSTLY": (("READ_MOSTLY", GPU),),
    "PREFERRED_LOCATION host": (("PREFERRED_LOCATION", HOST),),
    "ACCESSED_BY GPU": (("ACCESSED_BY", GPU),),
    "PREFERRED_LOCATION host, ACCESSED_BY GPU": (
        ("PREFERRED_LOCATION", HOST),
        ("ACCESSED_BY", GPU),
    ),
}
every = ways[upwards]


def three_walks(advice):
    """The times of three walks over an array of its own."""
    y = touches.blocks_of_2mb(blocks)
    for what, where in advice:
        advise(y, what, where)
    one, two = touches.by_gpu(y, every), touches.by_host(y, every)
    return one, two, touches.by_gpu(y, every)


advised = {}
for name, advice in PIECES.items():
    tried = [*zip(*(three_walks(advice) for _ in range(repeats)))]
    advised[name] = {
        **dict(
            zip(
                ("GPU", "then host", "then GPU"),
                map(touches.slow_each_time, tried),
            )
        ),
        "a touch of the last walk": float(np.median(tried[-1])),
    }

# %% advised
ct.table(
    "slow touches of 4096 pages, by advice",
    advised,
    corner="advice",
    units={"a touch of the last walk": "us"},
)

# %% [markdown] about-limit
# More managed memory than the GPU has free is refused before it is allocated.

# %% limit
free, _ = cuda.mem_get_info()
try:
    managed_empty(free + 1, "uint8")
    refused = False
except ct.OutOfDeviceMemory:
    refused = True
ct.facts(
    "one byte more than the GPU has free",
    {"refused before it was allocated": refused},
)
