# ---
# jupyter:
#   cudatut:
#     title: {en: "Tile quantization: solutions", zh: "分块量化：参考答案"}
#     requires: sm_80
#     timeout_s: 120
#     sizes:
#       side: [2176, 200]
#       depth: [2048, 64]
# ---

# %% [markdown]
# A tile chosen for its waves alone, and the schedule of stream-K on paper.

# %% given-1
from cudatut.book.gemm.kernels import sgemm

SMS = 132  # of an H100 or H200
BIG = sgemm.Config(128, 256, 16, 8, 16, 4, 1, rate=0.9)
TILES = (*sgemm.CONFIGS, BIG)


# %% solution-1
def busy(tile, m, n):
    """Work of the busiest SM: results of C / the rate of a full wave."""
    tiles = -(-m // tile.bm) * -(-n // tile.bn)
    return -(-tiles // SMS) * tile.bm * tile.bn / tile.rate


# %% check-1
import cudatut as ct

for m, n in ((2176, 2176), (1, 1), (1408, 3328)):
    for tile in TILES:
        tiles = ct.cdiv(m, tile.bm) * ct.cdiv(n, tile.bn)
        most = ct.cdiv(tiles, SMS) * tile.bm * tile.bn
        name = f"{m} x {n}, {tile.bm} x {tile.bn}, work of the busiest SM"
        ct.check(busy(tile, m, n), most / tile.rate, name=name, rtol=1e-6)

# %% [markdown]
# The list of the first exercise, measured.

# %% bench-1
import numpy as np

side = 2176
depth = 2048
SMS = ct.device().sm_count


def label(tile):
    return f"{tile.bm} x {tile.bn}, {tile.tm} x {tile.tn}"


ranked = sorted(TILES, key=lambda tile: busy(tile, side, side))
ct.facts(
    "work of the busiest SM",
    {label(tile): busy(tile, side, side) for tile in ranked},
)
rng = ct.rng(0)
host_a, host_b = (
    rng.random(s, dtype="float32") - np.float32(0.5)
    for s in ((side, depth), (depth, side))
)
a, b = ct.to_device(host_a), ct.to_device(host_b)
c = ct.empty((side, side), "float32")
rows, runs = np.array([0, side // 2, side - 1]), {}
expected = host_a[rows].astype("float64") @ host_b
arguments = side, side, depth, 1.0, a, depth, b, side, 0.0, c, side
for tile in ranked:
    run = sgemm.launcher(*arguments, config=tile, splits=1)
    ct.poison(c)
    run()
    ct.check(c.get()[rows], expected, name=label(tile), rtol=1e-4)
    runs[label(tile)] = run
found = ct.bench(
    {**runs, "cuBLAS": ct.vendor.gemm(a, b, c)},
    flops=2 * side * side * depth,
    name=f"{side} x {side} x {depth}, in the order of the prediction",
    rounds=12,
)
us = {name: found[name].median_us for name in runs}
order = sorted(us, key=us.get)
first, last = label(ranked[0]), label(ranked[-1])
ct.facts(
    "chosen and fastest",
    {
        "chosen for its waves": first,
        "fastest": order[0],
        "place of the chosen": order.index(first) + 1,
        "time, chosen / fastest": us[first] / us[order[0]],
        "time, last of the list / fastest": us[last] / us[order[0]],
    },
)

# %% given-2
import numpy as np


# %% solution-2
def schedule(tiles, steps, blocks):
    """For each block its pieces: (tile, first step, end), in order."""
    total, pieces = tiles * steps, []
    for block in range(blocks):
        at, end = total * block // blocks, total * (block + 1) // blocks
        pieces.append([])
        while at < end:
            tile, first = divmod(at, steps)
            last = min(steps, first + end - at)
            pieces[-1].append((tile, first, last))
            at += last - first
    return pieces


# %% check-2
import cudatut as ct

for tiles, steps, blocks in (
    (9, 4, 4),
    (143, 256, 132),
    (1, 1000, 7),
    (5, 1, 5),
):
    plan = schedule(tiles, steps, blocks)
    name = f"{tiles} tiles x {steps} steps, {blocks} blocks"
    covered = np.zeros((tiles, steps))
    for pieces in plan:
        for tile, first, last in pieces:
            covered[tile, first:last] += 1
    once = np.ones_like(covered)
    ct.check(covered, once, name=f"{name}, every step once", rtol=0)
    work = [sum(last - first for _, first, last in mine) for mine in plan]
    mean = np.full(blocks, tiles * steps / blocks)
    ct.check(np.array(work), mean, name=f"{name}, equal", rtol=0, atol=1)
    # A piece that does not begin at step 0 is a partial result.
    partial = [sum(first > 0 for _, first, _ in mine) for mine in plan]
    more = sum(count > 1 for count in partial)
    ct.check(more, 0, name=f"{name}, one partial result")
