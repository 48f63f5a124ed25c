# ---
# jupyter:
#   cudatut:
#     title: {en: "Dynamic parallelism", zh: "动态并行"}
#     requires: sm_75
#     timeout_s: 300
#     sizes:
#       n: [4096, 128]
#       most: [16384, 64]
#       rounds: [15, 1]
#       small: [512, 128]
#       wide: [1024, 128]
#       mosts: [[256, 1024, 4096, 16384, 64000], [64]]
# ---

# %% [markdown]
# The Mandelbrot set, once by a thread for each pixel, once by tiles: a tile whose
# border is all of one value is filled, another one launches kernels for its parts.

# %% program
import random

import numpy as np

import cudatut as ct
from cudatut.book.memory.dynamic.linked import linked

n = 4096  # pixels along each side
most = 16384  # steps for a pixel
rounds = 15
first, split, least = 128, 2, 16  # the sides of tiles, and their parts
flat = ct.Kernel("memory/dynamic/plain.cu", "flat", options=("--fmad=false",))
out = ct.empty(n * n, "uint16")
failed = ct.to_device(np.zeros(1, "int32"))
left, top, step = np.float32((-2.25, -1.5, 3 / n))


def every_pixel():
    flat(out, left, top, step, n, most, grid=(n // 32, n // 8), block=(32, 8))


def by_tiles():
    subdivide(
        out, left, top, step, np.int32(n), np.int32(most),
        *np.int32((0, 0, first, split, least)), failed,
        grid=(n // first, n // first), block=(256, 1, 1),
    )  # fmt: skip


measured = {}
if not ct.tool.running():  # which would have to follow the launches
    subdivide = linked(
        "memory/dynamic/dynamic.cu",
        options=("-rdc=true", "--fmad=false"), pending=16384,
    ).get_function("subdivide")  # fmt: skip
    by_tiles()
    tiles = out.get()
    every_pixel()
    print(f"{(out.get() != tiles).sum()} of {n * n} pixels differ")
    print(f"{failed.get()[0]} launches failed")
    runs = {"every pixel": every_pixel, "by tiles": by_tiles}
    times = ct.take_turns(runs, rounds, random.Random(0))
    whole, tiled = (float(np.median(us)) / 1e3 for us in times.values())
    measured = {"every pixel": (whole, "ms"), "by tiles": (tiled, "ms")}
    measured["every pixel / by tiles"] = whole / tiled, "x"
ct.yours("memory/dynamic#program", measured)

# %% [markdown]
# Each way to draw it, against NumPy: every pixel has to be the same, and of a
# subdivision what it fills has to be what it would fill on the CPU.

# %% check
from cudatut.book.memory.dynamic.plan import (
    by_numpy,
    divided,
    drawn,
    letters,
    plan,
    work,
)
from cudatut.book.memory.dynamic.ways import LEFT, TOP, WIDTH, Scene

small = 512
for steps, side in ((200, 16), (31, 8), (200, 64)):
    scene = Scene(small, steps, least=side)
    dwells = by_numpy(LEFT, TOP, WIDTH / small, small, steps)
    filled = drawn(dwells, plan(dwells, 128, 2, side))
    for name, draw in scene.ways().items():
        draw()
        right = dwells if name == "every pixel" else filled
        title = f"{name}, {steps} steps, {side} pixels"
        ct.check(scene.out, right.ravel(), name=title)
    ct.check(scene.failed, np.zeros(1, "int32"), name="launches that failed")

# %% [markdown]
# A small picture, for the drawing on the page: which tiles were filled and which
# were computed.

# %% picture
wide = 1024
scene = Scene(wide, 200, least=8)
name = "every pixel" if ct.tool.running() else "launches by the GPU"
scene.ways()[name]()
tiles = plan(scene.out.get().reshape(wide, wide), 128, 2, 8)
rows = letters(tiles, wide, 8, 200)
ct.facts(
    "tiles of the picture",
    {f"row {k}": row for k, row in enumerate(rows)},
)

# %% picture-facts
ct.facts(
    "the picture",
    {
        "pixels along a side": wide,
        "tiles": len(tiles),
        "launches": divided(tiles),
        "filled": sum(tile.kind == "filled" for tile in tiles),
    },
)

# %% [markdown]
# Four ways, by how much work a pixel is. From the dwells follows how many steps
# and how many launches a subdivision needs.

# %% sweep
import statistics

mosts = (256, 1024, 4096, 16384, 64000)
clock = ct.time_once_bare if ct.tool.running() else ct.time_hidden
ways, lines, counted, ahead = {}, {}, {}, {}
for most in mosts:
    scene = Scene(n, most)
    runs = scene.ways()
    runs["every pixel"]()
    dwells = scene.out.get().reshape(n, n)
    tiles = plan(dwells, first, split, least)
    right = drawn(dwells, tiles)
    for name, draw in runs.items():
        if name != "every pixel":
            draw()
            ct.check(scene.out, right.ravel(), name=f"{name}, {most} steps")
    times = ct.take_turns(runs, rounds, random.Random(0), time=clock)
    took = {name: statistics.median(us) / 1e3 for name, us in times.items()}
    ways[f"{most}"] = took
    for name, ms_ in took.items():
        lines.setdefault(name, []).append((most, took["every pixel"] / ms_))
    share = work(dwells, tiles) / int(dwells.sum(dtype="int64"))
    launches = divided(tiles)
    counted[f"{most}"] = {
        "steps, of every pixel's": share,
        "launches": launches,
        "tiles": len(tiles),
        "pixels that differ": int((right != dwells).sum()),
    }
    tiles_ms = took.get("launches by the GPU", took["every pixel"])
    by_work = took["every pixel"] * share
    ahead[f"{most}"] = {
        "by the steps alone": by_work,
        "a launch for each level": took["a launch for each level"],
        "launches by the GPU": tiles_ms,
        "more for each launch": 1e3
        * (tiles_ms - took["a launch for each level"])
        / launches,
    }
    state = scene.state.get()
    assert not state[3], "a block of the queue waited for a second"

# %% ways-table
ct.table(
    "the picture, by the most steps of a pixel",
    ways,
    corner="most steps",
    units=dict.fromkeys(ways[f"{mosts[0]}"], "ms"),
)

# %% ways-chart
ct.series(
    "how many times as fast as every pixel",
    x=("most steps", "steps"),
    y=("speed", "x"),
    lines=lines,
)

# %% counted
ct.table(
    "what a subdivision has to do",
    counted,
    corner="most steps",
)

# %% predicted
ct.table(
    "times, predicted and measured",
    ahead,
    corner="most steps",
    units={
        "by the steps alone": "ms",
        "a launch for each level": "ms",
        "launches by the GPU": "ms",
        "more for each launch": "us",
    },
)
