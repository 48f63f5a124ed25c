# ---
# jupyter:
#   cudatut:
#     title: {en: "Transpose: any size, any pitch, in place", zh: "转置：任意大小、任意行距与原地转置"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       most: [268_697_600, 400_000]
#       large: [16_384, 192]
#       long: [16_777_216, 4_096]
#       rounds: [11, 1]
#       edges: [[1, 7, 31, 33, 64, 121, 257, 1000], [1, 33, 130]]
# ---

# %% [markdown]
# One function for all matrices: it chooses the kernel. Is it right for all
# sizes, and how near does it come to the copy?

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.primitives.transpose import launch
from cudatut.book.rivals.torch_rival import rival

most = 268_697_600  # floats of a buffer
large = 16_384
long = 16_777_216
rounds = 11
T = "primitives/transpose"
TYPES = {"float": 4, "unsigned short": 2, "double": 8, "unsigned char": 1}
ct.compile_ahead(
    [
        (f"{T}/vectors.cu", f"transpose_vectors<{c},{h},{w},{t},0>")
        for c, size in TYPES.items()
        for (h, w), t in (launch.TILES[size],)
    ]
    + [
        (
            f"{T}/aligned.cu",
            f"transpose_aligned<{c},128,{32 if size == 8 else 64},512,{32 // size}>",
        )
        for c, size in TYPES.items()
    ]
    + [
        (f"{T}/several.cu", f"transpose_several<{c},{h},{w},256>")
        for c in TYPES
        for h, w in ((256, 8), (8, 256))
    ]
    + [
        (f"{T}/aligned.cu", f"transpose_aligned<float,128,64,512,{span}>")
        for span in (16, 32)
    ]
    + [
        (f"{T}/several.cu", "transpose_several<float,128,32,512>"),
        (f"{T}/in_place.cu", "transpose_in_place<float,64,128>"),
        (f"{T}/in_place.cu", "transpose_in_place_vectors<float,64,128,true>"),
        (f"{T}/in_place.cu", "transpose_in_place_vectors<float,64,256,true>"),
        (f"{T}/in_place.cu", "transpose_in_place_vectors<float,64,256,false>"),
    ]
)

# %% [markdown]
# All sizes and types, with dense rows and with rows that lie apart.

# %% check
edges = (1, 7, 31, 33, 64, 121, 257, 1000)
for dtype in ("float32", "uint16", "float64", "uint8"):
    wrong = matrices = 0
    for rows in edges:
        for columns in edges:
            for more_in, more_out in (
                (0, 0),
                (3, 1),
                (-columns % 16, -rows % 16),
            ):
                small = (
                    ct.rng(rows)
                    .integers(0, 200, (rows, columns + more_in))
                    .astype(dtype)
                )
                marks = np.full((columns, rows + more_out), 201).astype(dtype)
                a, b = ct.to_device(small), ct.to_device(marks)
                launch.transpose(a[:, :columns], b[:, :rows])()
                marks[:, :rows] = small[:, :columns].T
                wrong += int((b.get() != marks).sum())
                matrices += 1
    ct.check([wrong], [0], name=f"{matrices} matrices of {dtype}", rtol=0)

# %% check-in-place
for side in (1, 31, 64, 65, 257, 700):
    for more in (-side % 4, 3):
        small = ct.rng(side).random((side, side + more), dtype="float32")
        x = ct.to_device(small)
        launch.in_place(x[:, :side])()
        small[:, :side] = small[:, :side].T.copy()
        ct.check(x, small, name=f"in place, {side} x {side}", rtol=0)

# %% [markdown]
# Then the times, each beside a copy of as many bytes in the same run.

# %% contests
host = ct.rng(0).random(most, dtype="float32")
source, target = ct.to_device(host), ct.empty(most, "float32")


def numbers(array, dtype, rows, columns, pitch):
    """The beginning of an array as a matrix in rows of `pitch` elements."""
    nbytes = rows * pitch * np.dtype(dtype).itemsize
    as_bytes = array.view("uint8")[:nbytes]
    return as_bytes.view(dtype).reshape(rows, pitch)[:, :columns]


CASES = {  # type, rows, columns, floats more in a row of each
    "float32, square": ("float32", large, large, 0, 0),
    "float32, 4096": ("float32", large // 4, large // 4, 0, 0),
    "float32, 1024": ("float32", large // 16, large // 16, 0, 0),
    "bf16, square": ("uint16", large, large, 0, 0),
    "float64, square": ("float64", large // 2, large // 2, 0, 0),
    "uint8, square": ("uint8", large, large, 0, 0),
    "rows at multiples of 16 bytes": ("float32", large - 3, large - 7, 7, 3),
    "rows anywhere": ("float32", large - 3, large - 7, 0, 0),
    "bf16, rows anywhere": ("uint16", large - 3, large - 7, 0, 0),
    "8 columns": ("float32", long, 8, 0, 0),
    "8 rows": ("float32", 8, long, 0, 0),
    "64 columns": ("float32", long // 16, 64, 0, 0),
}
measured = {}
for name, (dtype, rows, columns, more_out, more_in) in CASES.items():
    a = numbers(source, dtype, rows, columns, columns + more_in)
    b = numbers(target, dtype, columns, rows, rows + more_out)
    run = launch.transpose(a, b)
    ct.poison(target)
    run()
    there = numbers(host, dtype, rows, columns, columns + more_in)
    some = ct.rng(1).integers(0, columns, 4)
    got = np.stack([b[int(k)].get() for k in some]).view("uint8")
    wanted = np.ascontiguousarray(there[:, some].T).view("uint8")
    ct.check(got, wanted, name=name, rtol=0)
    nbytes = rows * columns * a.dtype.itemsize
    flat = [one.view("uint8")[:nbytes] for one in (target, source)]
    turned = None
    if not (more_in or more_out):
        turned = rival(lambda torch, x, y: lambda: y.copy_(x.t()), a, b)
    measured[name] = ct.bench(
        {"ours": run, "PyTorch": turned, "copy": ct.vendor.copy(*flat)},
        bytes=2 * nbytes,
        name=name,
        rounds=rounds,
    )

# %% in-place
square = source[: large * large].reshape(large, large)
run = launch.in_place(square)
run()
some = ct.rng(1).integers(0, large, 4)
got = np.stack([square[int(k)].get() for k in some])
wanted = host[: large * large].reshape(large, large)[:, some].T
ct.check(got, wanted, name="in place, large", rtol=0)
flat = [one[: large * large] for one in (target, source)]
measured["in place, square"] = ct.bench(
    {"ours": run, "copy": ct.vendor.copy(*flat)},
    bytes=2 * 4 * large * large,
    name="in place, square",
    rounds=rounds,
)

# %% table
if not ct.tool.running():
    ct.table(
        "any size, beside the copy",
        {
            name: {
                "rate": one["ours"].value,
                "of the copy": one.ratio("ours", "copy").median,
                "PyTorch, of the copy": one.ratio("PyTorch", "copy").median
                if any(row.name == "PyTorch" for row in one.rows)
                else None,
            }
            for name, one in measured.items()
        },
        corner="matrix",
        units={"rate": "GB/s"},
    )

# %% goals
if not ct.tool.running():
    ct.goals(
        "transpose / copy",
        {
            name: one.goal("ours", "copy", 0.95)
            for name, one in measured.items()
        },
    )

# %% [markdown]
# Where the goal is missed: attempts. Rows that begin anywhere, first. If the
# rows that a block of `aligned` reads more than it writes came from memory, this
# would be the most:

# %% anywhere
dtype, rows, columns, *_ = CASES["rows anywhere"]
source.set(host)
a = numbers(source, dtype, rows, columns, columns)
b = numbers(target, dtype, columns, rows, rows)
SPANS = {
    "aligned, 32 bytes": 8,
    "aligned, 64 bytes": 16,
    "aligned, 128 bytes": 32,
}
runs = {"several": launch.several(a, b, (128, 32), 512)}
for name, span in SPANS.items():
    runs[name] = launch.aligned(a, b, span=span)
runs["aligned, 32 bytes, along in"] = launch.aligned(a, b, group=1)
there = numbers(host, dtype, rows, columns, columns)
some = ct.rng(1).integers(0, columns, 4)
for name, run in runs.items():
    ct.poison(target)
    run()
    got = np.stack([b[int(k)].get() for k in some])
    ct.check(got, there[:, some].T, name=name, rtol=0)
flat = [one[: rows * columns] for one in (target, source)]
tried = ct.bench(
    runs | {"copy": ct.vendor.copy(*flat)},
    bytes=2 * 4 * rows * columns,
    name="attempts, rows anywhere",
    rounds=rounds,
)
if not ct.tool.running():
    most_of = {
        name: 2 / (1 + 128 / (128 - span)) for name, span in SPANS.items()
    }
    ct.table(
        "attempts, rows anywhere",
        {
            name: {
                "predicted at most": most_of.get(name),
                "of the copy": tried.ratio(name, "copy").median,
            }
            for name in runs
        },
        corner="kernel",
    )

# %% [markdown]
# In place. A block that requests both tiles before it stores the first has
# twice as much on its way; we predict 2 % from it. From bands, and from half of
# the threads with the same bytes on their way, we predict nothing.

# %% attempts-in-place
square = source[: large * large].reshape(large, large)
WAYS = {  # threads, rows of pairs in a band, both at once
    "one tile, then the other": (256, 1, False),
    "both at once": (256, 1, True),
    "both, bands of 8": (256, 8, True),
    "both, 128 threads": (128, 1, True),
}
PREDICTED = dict(zip(WAYS, (None, 1.02, 1.0, 1.0)))
runs = {}
for name, (threads, group, both) in WAYS.items():
    square.set(host[: large * large].reshape(large, large))
    runs[name] = launch.in_place(square, 64, threads, None, group, both)
    runs[name]()
    got = np.stack([square[int(k)].get() for k in range(0, large, large // 4)])
    wanted = host[: large * large].reshape(large, large)
    ct.check(got, wanted[:, :: large // 4].T, name=name, rtol=0)
flat = [one[: large * large] for one in (target, source)]
tried = ct.bench(
    runs | {"copy": ct.vendor.copy(*flat)},
    bytes=2 * 4 * large * large,
    name="attempts, in place",
    rounds=rounds,
)
if not ct.tool.running():
    names = list(WAYS)
    before = dict(zip(names[1:], (names[0], names[1], names[1])))
    ct.table(
        "attempts, in place",
        {
            name: {
                "gain predicted": PREDICTED[name],
                "gain": tried.ratio(name, before[name]).median
                if name in before
                else None,
                "of the copy": tried.ratio(name, "copy").median,
            }
            for name in WAYS
        },
        corner="kernel",
    )
