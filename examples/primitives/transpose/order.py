# ---
# jupyter:
#   cudatut:
#     title: {en: "Transpose: elements per thread, tiles and their order", zh: "转置：每线程元素数、分块及其次序"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [16_384, 256]
#       rounds: [15, 1]
# ---

# %% [markdown]
# What makes the difference between one element per thread and the copy's speed?
# One thing is changed at a time, on a matrix of a gigabyte.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.primitives.transpose import launch

n = 16_384
rounds = 15
T = "primitives/transpose"
THREADS = (1024, 512, 256, 128, 64)
TILES = {
    (h, w): min(512, h * w // 16) for h in (32, 64, 128) for w in (32, 64, 128)
}
HINTS = {"none": 0, "of both": 1, "of what is read": 2, "of what is written": 3}
ct.compile_ahead(
    [
        (f"{T}/several.cu", f"transpose_several<float,32,32,{t}>")
        for t in THREADS
    ]
    + [
        (f"{T}/vectors.cu", f"transpose_vectors<float,{h},{w},{t},0>")
        for (h, w), t in TILES.items()
    ]
    + [
        (f"{T}/vectors.cu", f"transpose_vectors<float,64,64,256,{hint}>")
        for hint in HINTS.values()
    ]
)
MORE = 256  # floats that a row may be longer
host = ct.rng(0).random((n, n), dtype="float32")
roomy, wide = (ct.empty(n * (n + MORE), "float32") for _ in range(2))
x, out = (one[: n * n].reshape(n, n) for one in (roomy, wide))
x.set(host)


def checked(name, run, target, source):
    ct.poison(wide)
    run()
    some = ct.rng(1).integers(0, len(target), 4)
    got = np.stack([target[int(k)].get() for k in some])
    ct.check(got, source[:, some].T, name=name, rtol=0)
    return run


def contest(name, runs, target=out, source=host):
    """Ratios to the copy, by name; empty under a tool."""
    for one, run in runs.items():
        checked(one, run, target, source)
    flat = roomy[: n * n], wide[: n * n]
    found = ct.bench(
        runs | {"copy": ct.vendor.copy(*reversed(flat))},
        bytes=2 * 4 * n * n,
        name=name,
        rounds=rounds,
    )
    if ct.tool.running():
        return {}
    return {one: found.ratio(one, "copy").median for one in runs}


# %% [markdown]
# Elements per thread, with tiles of 32 x 32. Each thread requests all of its
# elements before it waits.

# %% each
found = contest(
    "elements per thread",
    {
        f"{1024 // t} per thread": launch.several(x, out, (32, 32), t, group=1)
        for t in THREADS
    },
)
if found:
    rows = {}
    for t in THREADS:
        kernel = ct.Kernel(
            f"{T}/several.cu", f"transpose_several<float,32,32,{t}>"
        )
        resident = kernel.resources(t).blocks_per_sm
        rows[1024 // t] = {
            "blocks per SM": resident,
            "requested": resident * 32 * 32 * 4 / 1e3,
            "of the copy": found[f"{1024 // t} per thread"],
        }
    ct.table(
        "tiles of 32 x 32",
        rows,
        corner="elements per thread",
        units={"requested": "kB"},
    )

# %% [markdown]
# The shape of a tile, with accesses of 16 bytes. Its rows are the segments of
# memory that are read, and its columns those that are written.

# %% tiles
found = contest(
    "tiles",
    {
        f"{h} x {w}": launch.vectors(x, out, (h, w), t, group=1)
        for (h, w), t in TILES.items()
    },
)
if found:
    ct.table(
        "of the copy, by the tile",
        {
            f"writes {4 * h} bytes": {
                f"reads {4 * w} bytes": found[f"{h} x {w}"]
                for w in (32, 64, 128)
            }
            for h in (32, 64, 128)
        },
        corner="in a row",
    )

# %% [markdown]
# The order of the tiles, from along the rows of the input to along the rows of
# the output, in bands of so many rows of tiles; for three matrices of the same
# size.

# %% orders
BANDS = (1, 4, 16, 64, 256, 512)
ratios = {}
for rows in (n, n // 2, 2 * n):
    columns = n * n // rows
    a, b = (
        one.reshape(shape)
        for one, shape in ((x, (rows, columns)), (out, (columns, rows)))
    )
    named = {f"{rows} x {columns}, bands of {band}": band for band in BANDS}
    found = contest(
        f"orders, {rows} x {columns}",
        {
            name: launch.vectors(a, b, group=band)
            for name, band in named.items()
        },
        b,
        host.reshape(rows, columns),
    )
    for name, ratio in found.items():
        of = ratios.setdefault(f"{named[name]}", {})
        of[f"{rows} x {columns}"] = ratio
if ratios:
    ct.table(
        "of the copy, by the order", ratios, corner="rows of tiles in a band"
    )

# %% [markdown]
# Longer rows: 65,536 bytes, and a few more, from the beginning of one row to
# that of the next.

# %% pitches
rows = {}
for more in (0, 4, 16, 32, 64, 256):
    a, b = (
        one[: n * (n + more)].reshape(n, n + more)[:, :n]
        for one in (roomy, wide)
    )
    roomy[: n * (n + more)].reshape(n, n + more).set(
        np.pad(host, ((0, 0), (0, more)))
    )
    found = contest(
        f"rows of {n} + {more}",
        {
            f"{more} more, along in": launch.vectors(a, b, group=1),
            f"{more} more, along out": launch.vectors(a, b),
        },
        b,
    )
    if found:
        rows[4 * more] = {
            way: found[f"{more} more, {way}"]
            for way in ("along in", "along out")
        }
if rows:
    ct.table("of the copy, by the pitch", rows, corner="bytes more in a row")

# %% [markdown]
# Hints: what is read, or written, will not be used again.

# %% hints
x.set(host)
found = contest(
    "hints",
    {
        f"hint {name}": launch.vectors(x, out, group=1, hint=hint)
        for name, hint in HINTS.items()
    },
)
if found:
    ct.table(
        "of the copy, by the hint",
        {name: {"of the copy": found[f"hint {name}"]} for name in HINTS},
        corner="hint",
    )
