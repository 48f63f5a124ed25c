# ---
# jupyter:
#   cudatut:
#     title: {en: "Divergence: claims of other sources", zh: "分支发散：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [500000, 40000]
# ---

# %% [markdown] about
# Five means against divergence that the notes on Learn CUDA Programming list; and
# lanes that wait for each other.

# %% setup
import numpy as np

import cudatut as ct

FILE = "basics/divergence/divergence.cu"
n = 500_000
steps, block = 2048, 256
grid = ct.cdiv(n, block)
thread = np.arange(n)
x_host = ct.rng(1).random(n, dtype="float32")
x, out = ct.to_device(x_host), ct.empty(n, "float32")
factor = np.float32(0.991 + 0.001 * np.arange(8)).astype("float64")


def after(way):
    """What `steps` times v = a * v + 0.001 makes of x, in closed form."""
    power = (factor**steps)[way]
    return power * x_host + 0.001 * (1 - power) / (1 - factor[way])


def sides_of(way):
    """How many different sides a warp takes, on average."""
    rows = np.sort(way.reshape(-1, 32), axis=1)
    return float((1 + (np.diff(rows, axis=1) != 0).sum(axis=1)).mean())


# %% remedies
ways, hoisted = ct.Kernel(FILE, "ways"), ct.Kernel(FILE, "hoisted")
random = ct.rng(0).integers(0, 8, n, dtype="int32")
as_it_is = thread.astype("int32")
by_side = np.argsort(random, kind="stable").astype("int32")
CASES = {  # name: side of each element, the element that each thread takes
    "one side": (0 * as_it_is, as_it_is),
    "nothing: random": (random, as_it_is),
    "sides by warp": ((thread // 32 % 8).astype("int32"), as_it_is),
    "through an index": (random, by_side),
    "data rearranged": (np.sort(random), as_it_is),
}
arrays = {name: tuple(map(ct.to_device, case)) for name, case in CASES.items()}


def run(name):
    ways(x, *arrays[name], out, n, steps, grid=grid, block=block)


def run_hoisted():
    way, _ = arrays["nothing: random"]
    hoisted(x, way, out, n, steps, grid=grid, block=block)


for name, (way, _) in CASES.items():
    ct.poison(out)
    run(name)
    ct.check(out, after(way), name=name, rtol=1e-4)
ct.poison(out)
run_hoisted()
ct.check(out, after(random), name="branch shortened", rtol=1e-4)
times = ct.bench(
    {name: lambda name=name: run(name) for name in CASES}
    | {"branch shortened": run_hoisted},
    flops=2 * steps * n,
    name="means against divergence",
)

# %% remedies-table
alone = times["one side"].median_us
ct.table(
    "Means against divergence, time with one side as 1",
    {
        name: {
            "sides per warp": sides_of(CASES[name][0][CASES[name][1]])
            if name in CASES
            else 1.0,
            "measured": times[name].median_us / alone,
        }
        for name in (*list(CASES)[1:], "branch shortened")
    },
    corner="means",
)

# %% tiles
TILES = "basics/divergence/divergence_tiles.cu"
runs = (thread // 8 % 8).astype("int32")  # eight neighbors agree, four sides
by_warp = CASES["sides by warp"][0]
RUNS = {  # name: kernel, sides
    "ways_plain": ("ways_plain", runs),
    "ways_tiled": ("ways_tiled", runs),
    "ways_plain, sides by warp": ("ways_plain", by_warp),
}
tiled = {name: ct.Kernel(TILES, name) for name in ("ways_plain", "ways_tiled")}
sides_there = {name: ct.to_device(sides) for name, (_, sides) in RUNS.items()}


def run_tiled(name, m=n):
    kernel = tiled[RUNS[name][0]]
    shape = {"grid": ct.cdiv(m, block), "block": block}
    kernel(x, sides_there[name], out, m, steps, **shape)


for m in (n, 1, 31, 33):  # the profiler counts the launches with n elements
    for name, (_, sides) in RUNS.items():
        ct.poison(out)
        run_tiled(name, m)
        expected = after(sides)[:m]
        ct.check(out[:m], expected, name=f"{name}, n = {m}", rtol=1e-4)
ISSUED = "smsp__inst_executed.sum"
issued = [
    counters[ISSUED]
    for counters in ct.profile_launches(
        "basics/divergence_claims",
        kernel="regex:^ways_(plain|tiled)$",
        metrics=[ISSUED],
        launches=len(RUNS),
    )
]
tile_times = ct.bench(
    {name: lambda name=name: run_tiled(name) for name in tiled},
    flops=2 * steps * n,
    name="runs of eight, with and without tiles",
)

# %% tiles-time
plain_us, tiled_us = (tile_times[name].median_us for name in tiled)
ct.facts("runs of eight", {"time, with tiles / without": tiled_us / plain_us})


# %% tiles-counted
if issued:
    plain, in_tiles, agreeing = issued
    ct.facts(
        "warp instructions / those of the kernel without tiles",
        {
            "tiles of eight lanes, each with its own side": in_tiles / plain,
            "a side for each warp": agreeing / plain,
        },
    )

# %% lock
locked = ct.Kernel(FILE, "locked")
zeros = np.zeros(1, "int32")
lock, total = ct.to_device(zeros), ct.to_device(zeros)
happens, joined = (ct.to_device(np.zeros(32, "uint32")) for _ in range(2))
patience = 200_000_000  # cycles: a tenth of a second, then a lane gives up
locked(lock, total, happens, joined, patience, grid=1, block=32)


def lanes_of(masks):
    """How many lanes each lane of the warp saw, by its mask."""
    return [int(mask).bit_count() for mask in masks.get()]


got = int((joined.get() != 0).sum())
ct.check(total, np.array([got], "int32"), name="one at a time")
if not ct.tool.running():  # a sanitizer needs more patience
    ct.check(np.array([got]), np.array([32]), name="lanes with the lock")
ct.facts(
    "32 lanes, one lock",
    {
        "lanes that got the lock": got,
        "lanes seen behind the loop, most": max(lanes_of(happens)),
        "lanes seen after __syncwarp(), fewest": min(lanes_of(joined)),
    },
)

# %% [markdown] about-fences
# The fences of the lock taken out. Nothing promises that the sum is right then.

# %% lock-without-fences
unfenced = ct.Kernel(
    locked.source.replace("  __threadfence();\n", ""), "locked"
)
runs, right = 20, 0
for _ in range(runs):
    free, sums = ct.to_device(zeros), ct.to_device(zeros)
    seen, here = (ct.to_device(np.zeros(32, "uint32")) for _ in range(2))
    unfenced(free, sums, seen, here, patience, grid=1, block=32)
    right += int(sums.get()[0] == (here.get() != 0).sum())
ct.facts("a lock without fences", {"runs": runs, "right sums": right})

# %% lock-code
import re

from cudatut.book.measure.machine_code import sass

for i in sass(FILE, "locked"):
    if re.match(r"ATOM|YIELD|BSSY|BSYNC|VOTE|WARPSYNC|BRA", i.text):
        print(f"{i.address:04x}  {i.predicate:4} {i.text}")

# %% straight
source = """
__global__ void straight(unsigned* __restrict__ seen) {
  seen[threadIdx.x] = __activemask();
}
"""
seen = ct.empty(32, "uint32")
ct.poison(seen, 0x5A)  # the usual poison, 0xff, would be a right answer
straight = ct.Kernel(source, "straight")
straight(seen, grid=1, block=32)
ct.check(seen, np.full(32, 0xFFFFFFFF, "uint32"), name="straight")

# %% activemask
ct.facts(
    "lanes that __activemask() showed",
    {
        "code without a branch, fewest": min(lanes_of(seen)),
        "behind the loop with the lock, most": max(lanes_of(happens)),
        "after __syncwarp(), fewest": min(lanes_of(joined)),
    },
)
