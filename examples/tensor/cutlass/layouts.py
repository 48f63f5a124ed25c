# ---
# jupyter:
#   cudatut:
#     title: {en: "CuTe: layouts", zh: "CuTe：布局"}
#     requires: sm_75
#     extra: cutlass
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# The layouts of CuTe beside the index arithmetic of this part. CuTe works them
# out while it compiles, so this needs its package and no particular GPU.

# %% program
import os

os.environ.setdefault("CUTE_DSL_ARCH", "sm_90a")  # not what is in this machine

from cudatut.book.tensor.cutlass.gemm import (
    SHAPE,
    cute,
    stages,
)  # says what is missing, if it is


def traced(build, *arguments):
    """What `build` returns. Layouts exist only while CuTe compiles."""
    found = []

    @cute.jit
    def compiled():
        found.append(build(*arguments))

    compiled()
    return found[0]


def three():
    rows = cute.make_layout((4, 6), stride=(6, 1))
    columns = cute.make_layout((4, 6), stride=(1, 4))
    nested = cute.make_layout(((2, 2), (3, 2)), stride=((3, 12), (1, 6)))
    for layout in rows, columns, nested:
        print(layout, "has (2, 4) at", layout((2, 4)))


traced(three)

# %% setup
from cudatut.book.tensor.wgmma import layouts
import numpy as np
from cudatut.book.tensor.cutlass.gemm import (
    BF16,
    Float32,
    OperandMajorMode,
    hopper,
)

import cudatut as ct

# %% [markdown]
# What a layout does, in NumPy, and the same from the library.


# %% offset
def flat(shape):
    """The numbers of nested tuples in one row."""
    if not isinstance(shape, tuple):
        return (shape,)
    return sum(map(flat, shape), ())


def offset(shape, stride, place):
    """Where `place` lies: a number, or a tuple as shape is one."""
    if not isinstance(shape, tuple):
        return place * stride
    if not isinstance(place, tuple):  # count: the first extent changes fastest
        parts = []
        for extent in map(flat, shape):
            place, part = place // np.prod(extent), place % np.prod(extent)
            parts.append(part)
        place = tuple(parts)
    return sum(map(offset, shape, stride, place))


# %% offset-check
def offsets(shape, stride):
    """All offsets of a layout, as the library has them."""
    layout = cute.make_layout(shape, stride=stride)
    return np.array([layout(i) for i in range(cute.size(layout))])


for shape, stride in (
    ((4, 6), (6, 1)),
    ((4, 6), (1, 4)),
    (((2, 2), (3, 2)), ((3, 12), (1, 6))),
    (((4, 8, 4), (2, 2, 32)), ((128, 1, 16), (64, 8, 512))),
):
    found = traced(offsets, shape, stride)
    own = offset(shape, stride, np.arange(found.size))
    ct.check(own, found, name=f"{shape}:{stride}".replace(" ", ""))

# %% [markdown]
# Three layouts of the same 24 elements: a row, a column, and where element
# (2, 4) lies.


# %% three
def described(shape, stride):
    layout = cute.make_layout(shape, stride=stride)
    return {
        "as CuTe writes it": str(layout),
        "row 2": " ".join(str(layout((2, j))) for j in range(6)),
        "column 4": " ".join(str(layout((i, 4))) for i in range(4)),
    }


ct.table(
    "offsets of the elements of a 4 x 6 matrix",
    {
        name: traced(described, shape, stride)
        for name, shape, stride in (
            ("row by row", (4, 6), (6, 1)),
            ("column by column", (4, 6), (1, 4)),
            ("boxes of 2 x 3", ((2, 2), (3, 2)), ((3, 12), (1, 6))),
        )
    },
    corner="order",
)


# %% [markdown]
# A matrix in tiles is a layout again: inside of a tile, then from tile to tile.


# %% divide
def divided():
    matrix = cute.make_layout((1024, 512), stride=(512, 1))
    tiles = cute.zipped_divide(matrix, (128, 64))
    print("matrix  ", matrix)
    print("in tiles", tiles)
    place = tiles(((5, 7), (2, 3)))
    print("element (5, 7) of tile (2, 3):", place)
    assert place == matrix((2 * 128 + 5, 3 * 64 + 7))


traced(divided)

# %% [markdown]
# The stages of the kernel in shared memory, as the library lays them out for
# the tile 128 x 256 x 64 with four stages.


# %% stages
def staged():
    for name, layout in zip("AB", stages(SHAPE), strict=False):
        print(f"{name}: {layout}")


traced(staged)

# %% [markdown]
# Its parts beside ours: all offsets in bytes, and the swizzle of all bytes of
# 32 KiB.


# %% same
def outer(which):
    """Shape and stride of the stages of A (0) or B (1), without swizzle."""
    layout = stages(SHAPE)[which].outer
    return layout.shape, layout.stride


def swizzled(count):
    """Where CuTe's S<3,4,3> puts each of `count` bytes."""
    swizzle = stages(SHAPE)[0].inner
    put = cute.make_composed_layout(swizzle, 0, cute.make_layout(count))
    return np.array([put(i) for i in range(count)])


for which, name, lines, along, leading in (
    (0, "A", 128, True, 16),
    (1, "B", 256, False, 64 * 128),
):
    shape, stride = traced(outer, which)
    line, depth, stage = np.indices((lines, 64, 4))
    ours = layouts.address(along, leading, 1024, line, depth)
    ours += stage * lines * 64 * 2
    theirs = 2 * offset(shape, stride, (line, depth, stage))
    ct.check(theirs, ours, name=f"stages of {name}")
count = 1 << 15
ct.check(
    traced(swizzled, count),
    layouts.swizzled(np.arange(count)),
    name="the swizzle",
)

# %% [markdown]
# Who holds which sum of wgmma: a layout from (thread, value) to the place in 64
# rows x 256 columns, counted column by column.


# %% fragment
def tiled_mma(warpgroups):
    """64 x 256 sums of wgmma for each warpgroup, below each other."""
    return hopper.make_trivial_tiled_mma(
        BF16, BF16, OperandMajorMode.K, OperandMajorMode.MN, Float32,
        (warpgroups, 1, 1), (64, 256),
    )  # fmt: skip


def sums():
    layout = tiled_mma(1).tv_layout_C
    print(layout)
    return layout.shape, layout.stride


shape, stride = traced(sums)

# %% modes
names = ("lane % 4", "lane / 4", "warp", "value % 2", "value / 2 % 2",
         "value / 4")  # fmt: skip
ct.table(
    "the modes of the sums",
    {
        name: {
            "extent": extent,
            "stride": step,
            "rows further": step % 64,
            "columns further": step // 64,
        }
        for name, extent, step in zip(names, flat(shape), flat(stride))
    },
    corner="mode of the layout",
)

# %% sums
thread, value = np.indices((128, 128))
place = offset(shape, stride, (thread, value))
# As for_pairs in results.cuh has them.
half, pair = value % 4 // 2, value % 2
row = thread // 32 * 16 + thread % 32 // 4 + 8 * half
column = value // 4 * 8 + thread % 4 * 2 + pair
ct.check(place % 64, row, name="rows")
ct.check(place // 64, column, name="columns")

# %% predict
table = {}
for t, v in ((0, 1), (1, 0), (37, 6), (127, 127)):
    place = offset(shape, stride, (t, v))
    row, column = place % 64, place // 64
    table[f"thread {t}, value {v}"] = {
        "offset": place,
        "row": row,
        "column": column,
    }
ct.table("which sum", table, corner="of")

# %% [markdown]
# Two atoms below each other, one for each consumer: a tiled MMA.


# %% tiled
def described_mma():
    print(tiled_mma(2))


traced(described_mma)
