# ---
# jupyter:
#   cudatut:
#     title: {en: "The tensor memory accelerator: solutions", zh: "张量内存加速器：参考答案"}
#     requires: sm_90
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# A stencil without a test for its edges, and where a swizzled copy puts its words.

# %% setup
import numpy as np

import cudatut as ct

# %% solution-1
WIDE, HIGH = 32, 32
smooth = ct.Kernel("gemm/tma_box.cu", "smooth<32, 32>")
for rows, columns in ((1, 4), (31, 36), (33, 32), (100, 200), (257, 132)):
    x_host = ct.rng(0).standard_normal((rows, columns), dtype="float32")
    x = ct.to_device(x_host)
    out = ct.empty((rows, columns), "float32")
    grid = ct.cdiv(columns, WIDE), ct.cdiv(rows, HIGH)
    smooth(
        ct.tensor_map(x, (HIGH + 2, WIDE + 8)),
        out,
        rows,
        columns,
        grid=grid,
        block=(WIDE, 8),
    )
    sea = np.pad(x_host.astype("float64"), 1)
    around = sea[:-2, 1:-1] + sea[2:, 1:-1] + sea[1:-1, :-2] + sea[1:-1, 2:]
    ct.check(out, (sea[1:-1, 1:-1] + around) / 5, name=f"{rows} x {columns}")


# %% solution-2
def place(row, column):
    """Word of shared memory that holds element (row, column) of a box with rows of 128 bytes, swizzle=128."""
    piece = column // 4  # of 16 bytes
    return 32 * row + 4 * (piece ^ row % 8) + column % 4


x_host = np.arange(8 * 32, dtype="float32").reshape(8, 32)
x = ct.to_device(x_host)
expected = np.zeros(8 * 32)
for row in range(8):
    for column in range(32):
        expected[place(row, column)] = x_host[row, column]
show_box = ct.Kernel("gemm/tma_box.cu", "show_box<8, 32>")
out = ct.empty(8 * 32, "float32")
show_box(ct.tensor_map(x, (8, 32), swizzle=128), out, 0, 0, grid=1, block=32)
ct.check(out, expected, name="swizzle=128", rtol=0)


def passes(words):
    """Passes of an access of 16 bytes per lane, for one group of 8 lanes: the most different words in a bank."""
    return int(np.bincount([word % 32 for word in set(words)]).max())


# Eight lanes read four words each of one column of pieces, one row per lane.
ct.facts(
    "passes for eight rows, four words each",
    {
        "as in global memory": passes(
            [32 * r + w for r in range(8) for w in range(4)]
        ),
        "swizzle=128": passes(
            [place(r, w) for r in range(8) for w in range(4)]
        ),
    },
)
