# ---
# jupyter:
#   cudatut:
#     title: {en: "Every way to move bytes: copies inside the GPU", zh: "传输数据的各种方法：GPU 内部的复制"}
#     requires: sm_90
#     timeout_s: 180
#     sizes:
#       exponents: [[20, 22, 24, 26, 28, 30], [20]]
#       most: [1_073_741_824, 1_048_576]
#       rounds: [400, 1]
#       changed: [28, 20]
# ---

# %% [markdown]
# One array of the GPU into another: by four kernels of our own, by the driver,
# and by PyTorch. All take turns in the same run, at several sizes.

# %% kernels
import pycuda.driver as cuda
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

exponents = (20, 22, 24, 26, 28, 30)
most = 1_073_741_824
rounds = 400  # of the copies of 64 MiB and less
PINNED, OURS = "memory/pinned/pinned.cu", "memory/moving/moving.cu"
AHEAD, PIECE = 4, 16_384  # as in the defines below
sms = ct.device().sm_count
loads = ct.Kernel(PINNED, "copy")
streaming = ct.Kernel(PINNED, "copy", defines={"VECTORS": 8, "STREAMING": 1})
asynchronous = ct.Kernel(OURS, "copy_async", defines={"AHEAD": 4})
bulk = ct.Kernel(
    "memory/moving/bulk.cu",
    "copy_bulk",
    defines={"AHEAD": 4, "PIECE": 16_384},
)


def resident(kernel, block, shared):
    """As many blocks as the GPU holds at a time."""
    return sms * kernel.resources(block=block, shared=shared).blocks_per_sm


async_grid = resident(asynchronous, 512, AHEAD * 512 * 16)
bulk_grid = resident(bulk, 32, AHEAD * PIECE)


def by_loads(x, out, n):
    loads(x, out, n, grid=ct.cdiv(n, 4 * 4 * 256), block=256)


def by_streaming_loads(x, out, n):
    streaming(x, out, n, grid=ct.cdiv(n, 4 * 8 * 512), block=512)


def by_cp_async(x, out, n):
    shared = AHEAD * 512 * 16
    grid = min(async_grid, ct.cdiv(n, 4 * 512))
    asynchronous(x, out, n, grid=grid, block=512, shared=shared)


def by_bulk_copies(x, out, n):
    grid = min(bulk_grid, ct.cdiv(4 * n, PIECE))
    bulk(x, out, n, grid=grid, block=32, shared=AHEAD * PIECE)


def by_driver(x, out):
    """The driver's copy, to be compared with; none under a tool."""
    if ct.tool.running():
        return None
    there, here, nbytes = out.gpudata, x.gpudata, x.nbytes
    return ct.vendor.Vendor(lambda: cuda.memcpy_dtod_async(there, here, nbytes))


ours = {
    "loads": by_loads,
    "streaming loads": by_streaming_loads,
    "cp.async": by_cp_async,
    "bulk copies": by_bulk_copies,
}

# %% check
host = ct.rng(0).random(most // 4, dtype="float32")
x, out = ct.to_device(host), ct.empty(most // 4, "float32")
for m in (*ct.RAGGED, 3, 4, 4097, most // 16 + 3):
    for name, launch in ours.items():
        ct.poison(out)
        launch(x, out, m)
        ct.check(out[:m], host[:m], name=f"{name}, n={m}", rtol=0, atol=0)

# %% contests
contests = {}
for e in exponents:
    n = 2**e // 4
    a, b = x[:n], out[:n]
    runs = {
        name: lambda launch=launch, a=a, b=b, n=n: launch(a, b, n)
        for name, launch in ours.items()
    }
    runs["driver"] = by_driver(a, b)
    runs["PyTorch"] = rival(lambda torch, s, t: lambda: t.copy_(s), a, b)
    contests[e] = ct.bench(
        runs,
        bytes=2 * 2**e,
        name=f"{2**e >> 20} MiB",
        rounds=rounds if e <= 26 else None,
    )

# Under a tool there are none.
theirs = [
    row.name for row in contests[exponents[0]].rows if row.name not in ours
]

# %% by-size
if not ct.tool.running():
    ct.series(
        "copies inside the GPU, by size",
        x=("copied", "MiB"),
        y=("read and written", "GB/s"),
        lines={
            name: [(2**e / 2**20, contests[e][name].value) for e in exponents]
            for name in (*ours, *theirs)
        },
        limit=ct.limits.bandwidth(),
    )

# %% memset
ct.bench(
    {"memset": lambda: cuda.memset_d32_async(out.gpudata, 7, most // 16)},
    bytes=most // 4,
    name="memset, 256 MiB",
)

# %% goals
better, best = {}, {}
if theirs:
    goals = {}
    for e, contest in contests.items():
        better[e] = min(theirs, key=lambda one: contest[one].median_us)
        best[e] = min(ours, key=lambda one: contest[one].median_us)
        goals[contest.name] = contest.goal(best[e], better[e], 0.98)
    ct.goals("our fastest copy beside the better of the two", goals)

# %% [markdown]
# Which of our kernels is it, and does one of them do for all sizes? Ratios of
# times, the better of driver and PyTorch over the kernel.

# %% ratios
if theirs:
    ct.table(
        "our copies beside the better of the two",
        {
            name: {
                contest.name: contest.ratio(name, better[e]).median
                for e, contest in contests.items()
            }
            for name in ours
        },
        corner="kernel",
    )

# %% [markdown]
# The prediction: a fixed time, read off the smallest size, and two bytes moved
# for each byte copied, at the measured limit of the memory.

# %% predicted
limit = ct.limits.bandwidth()
if theirs:
    e0, *_ = exponents
    fixed = contests[e0][best[e0]].median_us - 2 * 2**e0 / limit / 1e3
    rows = {}
    for e, contest in contests.items():
        predicted, us = (
            fixed + 2 * 2**e / limit / 1e3,
            contest[best[e]].median_us,
        )
        rows[contest.name] = {
            "kernel": best[e],
            "predicted": predicted,
            "measured": us,
            "moved": contest[best[e]].value,
            "copied": 2**e / us / 1e3,
            "the better of the two": 2**e / contest[better[e]].median_us / 1e3,
        }
    units = {"predicted": "us", "measured": "us"}
    units |= dict.fromkeys(("moved", "copied", "the better of the two"), "GB/s")
    ct.table("our fastest copy", rows, corner="size", units=units)

# %% [markdown]
# The goal at the smallest size. Four loads of 256 threads are a tile of 16 KiB,
# so 1 MiB has fewer tiles than the GPU has SMs. Three attempts with smaller
# tiles. Predicted: the SM with most tiles reads and writes 64 bytes per cycle.


# %% attempts
def by_tiles(vectors, block, **more):
    """Loads, so many of a thread before its stores."""
    kernel = ct.Kernel(PINNED, "copy", defines={"VECTORS": vectors, **more})

    def launch(x, out, n):
        kernel(x, out, n, grid=ct.cdiv(n, 4 * vectors * block), block=block)

    return launch


SMALL = 4_096  # bytes of a piece
small_bulk = ct.Kernel(
    "memory/moving/bulk.cu",
    "copy_bulk",
    defines={"AHEAD": 2, "PIECE": 4_096},
)


def by_small_pieces(x, out, n):
    grid = ct.cdiv(4 * n, SMALL)
    small_bulk(x, out, n, grid=grid, block=32, shared=2 * SMALL)


tiles = {  # bytes of each, and the kernel
    "loads": (16_384, by_loads),
    "two loads": (8_192, by_tiles(2, 256)),
    "one load": (4_096, by_tiles(1, 256)),
    "bulk copies of 4 KiB": (SMALL, by_small_pieces),
}
n = 2 ** exponents[0] // 4
a, b = x[:n], out[:n]
for name, (_, launch) in tiles.items():
    ct.poison(out)
    launch(a, b, n)
    ct.check(b, host[:n], name=f"{name}, n={n}", rtol=0, atol=0)
runs = {
    name: lambda launch=launch: launch(a, b, n)
    for name, (_, launch) in tiles.items()
}
runs["4 bytes"] = lambda: by_loads(a, b, 1)  # what no copy can do without
runs["driver"] = by_driver(a, b)
runs["PyTorch"] = rival(lambda torch, s, t: lambda: t.copy_(s), a, b)
smallest = ct.bench(runs, name="attempts at the smallest size", rounds=rounds)


# %% attempts-table
def busiest_us(tile):
    """Of the SM with most tiles: to read them, then to write them."""
    nbytes = ct.cdiv(ct.cdiv(4 * n, tile), sms) * tile
    return 2 * nbytes / 64 / (ct.device().clock_khz / 1e3)


if theirs:
    before = smallest["loads"].median_us
    best_of_theirs = min(theirs, key=lambda one: smallest[one].median_us)
    rows = {}
    for name, (tile, _) in tiles.items():
        saved = busiest_us(tiles["loads"][0]) - busiest_us(tile)
        rows[name] = {
            "gain, predicted": before / (before - saved),
            "gain": smallest.ratio(name, "loads").median,
            "beside the better of the two": smallest.ratio(
                name, best_of_theirs
            ).median,
            "time": smallest[name].median_us,
        }
    rows["4 bytes"] = dict.fromkeys(rows["loads"])
    rows["4 bytes"]["time"] = smallest["4 bytes"].median_us
    ct.table(
        "attempts with smaller tiles",
        rows,
        corner="kernel",
        units={"time": "us"},
    )

# %% [markdown]
# Why do three of the four stay behind at 256 MiB? One thing is changed at a
# time: no hint, a smaller tile, or a block for each piece, so that none walks.

# %% changed
changed = 28  # the size, as an exponent
n = 2**changed // 4
a, b = x[:n], out[:n]


def a_block_each_async(x, out, n):
    grid, shared = ct.cdiv(n, 4 * 512), AHEAD * 512 * 16
    asynchronous(x, out, n, grid=grid, block=512, shared=shared)


def a_block_each_bulk(x, out, n):
    grid, shared = ct.cdiv(4 * n, PIECE), AHEAD * PIECE
    bulk(x, out, n, grid=grid, block=32, shared=shared)


variants = {
    **ours,
    "streaming loads, without the hint": by_tiles(8, 512),
    "streaming loads, a tile of 16 KiB": by_tiles(4, 256, STREAMING=1),
    "cp.async, a block for each piece": a_block_each_async,
    "bulk copies, a block for each piece": a_block_each_bulk,
}
for name in list(variants)[len(ours) :]:
    ct.poison(out)
    variants[name](a, b, n)
    ct.check(b, host[:n], name=f"{name}, n={n}", rtol=0, atol=0)
runs = {
    name: lambda launch=launch: launch(a, b, n)
    for name, launch in variants.items()
}
runs["driver"] = by_driver(a, b)
one_change = ct.bench(runs, bytes=2 * 4 * n, name="one thing changed")

# %% changed-table
if theirs:
    ct.table(
        "one thing changed, beside the driver",
        {
            name: {
                "beside the driver": one_change.ratio(name, "driver").median,
                "rate": one_change[name].value,
            }
            for name in variants
        },
        corner="kernel",
        units={"rate": "GB/s"},
    )
