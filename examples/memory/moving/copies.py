# ---
# jupyter:
#   cudatut:
#     title: {en: "Every way to move bytes: copies inside the GPU", zh: "传输数据的各种方法：GPU 内部的复制"}
#     requires: sm_90
#     timeout_s: 180
#     sizes:
#       exponents: [[20, 22, 24, 26, 28, 30], [20]]
#       most: [1_073_741_824, 1_048_576]
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
    contests[e] = ct.bench(runs, bytes=2 * 2**e, name=f"{2**e >> 20} MiB")

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
