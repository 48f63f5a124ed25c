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
# Five means against divergence that the notes on Learn CUDA Programming list, and
# a mask that their code takes from __activemask().

# %% setup
import numpy as np

import cudatut as ct

FILE = "basics/divergence.cu"
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
TILES = "basics/divergence_tiles.cu"
runs = (thread // 8 % 8).astype("int32")  # eight neighbors agree, four sides
runs_there = ct.to_device(runs)
tiled = {name: ct.Kernel(TILES, name) for name in ("ways_plain", "ways_tiled")}


def run_tiled(name, m=n):
    shape = {"grid": ct.cdiv(m, block), "block": block}
    tiled[name](x, runs_there, out, m, steps, **shape)


for name in tiled:
    for m in (1, 31, 33, n):
        ct.poison(out)
        run_tiled(name, m)
        expected = after(runs)[:m]
        ct.check(out[:m], expected, name=f"{name}, n = {m}", rtol=1e-4)
tile_times = ct.bench(
    {name: lambda name=name: run_tiled(name) for name in tiled},
    flops=2 * steps * n,
    name="runs of eight, with and without tiles",
)

# %% claim-tiles
gain = tile_times["ways_plain"].median_us / tile_times["ways_tiled"].median_us
ct.claim(
    id="partition-removes-divergence",
    source="Learn CUDA Programming, notes",
    statement={
        "en": "tiled_partition of cooperative groups is one of five means against divergence. Here each tile of eight "
        "lanes agrees and a warp has four sides: if tiles ran side by side, the kernel would be four times as fast",
        "zh": "协作组的 tiled_partition 是减轻分支发散的五种办法之一。这里每组 8 个 lane 走向一致，一个线程束有四个分支：假如各组能同时执行，速度应为四倍",
    },
    predicted=4,
    measured=gain,
    unit="time, without / with tiled_partition",
    verdict="confirmed" if gain > 3 else "refuted" if gain < 1.1 else "depends",
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
ct.facts(
    "32 lanes, one lock",
    {
        "lanes that got the lock": got,
        "lanes seen behind the loop, most": max(lanes_of(happens)),
        "lanes seen after __syncwarp(), fewest": min(lanes_of(joined)),
    },
)

# %% lock-code
import re

from machine_code import sass

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
straight = ct.Kernel(source, "straight")
straight(seen, grid=1, block=32)
ct.check(seen, np.full(32, 0xFFFFFFFF, "uint32"), name="straight")

# %% claim-activemask
of_straight, of_lock = min(lanes_of(seen)), min(lanes_of(happens))
ct.claim(
    id="activemask-is-the-warp",
    source="Learn CUDA Programming, notes (code)",
    statement={
        "en": "The code takes the mask of a warp shuffle from __activemask(), so it relies on seeing all lanes that "
        "reach the line. Here: in straight code, and behind a loop that the lanes leave one by one",
        "zh": "代码用 __activemask() 取得线程束洗牌的掩码，也就是依赖它给出所有会到达这一行的 lane。这里试两处：没有分支的代码，以及各 lane 逐个离开的循环之后",
    },
    predicted="32, 32",
    measured=f"{of_straight}, {of_lock}",
    unit="lanes",
    verdict="confirmed"
    if of_lock == 32
    else "depends"
    if of_straight == 32
    else "refuted",
)
