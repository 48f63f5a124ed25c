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
        (f"{T}/aligned.cu", f"transpose_aligned<{c},128,32,512,{32 // size}>")
        for c, size in TYPES.items()
    ]
    + [
        (f"{T}/several.cu", f"transpose_several<{c},{h},{w},256>")
        for c in TYPES
        for h, w in ((256, 8), (8, 256))
    ]
    + [
        (f"{T}/in_place.cu", "transpose_in_place<float,32,256>"),
        (f"{T}/in_place.cu", "transpose_in_place_vectors<float,64,256,true>"),
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
    "rows at multiples of 16 bytes": ("float32", large - 3, large - 7, 3, 7),
    "rows anywhere": ("float32", large - 3, large - 7, 0, 0),
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
