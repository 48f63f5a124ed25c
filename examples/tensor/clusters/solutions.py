# ---
# jupyter:
#   cudatut:
#     title: {en: "Clusters: solutions", zh: "线程块集群：参考答案"}
#     requires: sm_90a
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# What a cluster saves, and an order that turns at the end of each band.

# %% given-1
import numpy as np


# %% solution-1
def from_l2(rows, columns, high, wide, m, n, k):
    """Bytes that all blocks read from L2."""
    clusters = m // (rows * high) * (n // (columns * wide))
    # Blocks side by side share rows of A, blocks below each other columns of B.
    return clusters * (rows * high + columns * wide) * k * 2


# %% check-1
import numpy as np
import cudatut as ct

# Counted block by block: a part of A or B is fetched by the first of a cluster.
cases = ((128, 256, 1, 1), (128, 256, 2, 1), (128, 256, 1, 2), (128, 128, 2, 2))
m, n, k = 1024, 2048, 64
found, wanted = [], []
for rows, columns, high, wide in cases:
    parts = set()
    for top in range(0, m, rows):
        for left in range(0, n, columns):
            one = top // (rows * high), left // (columns * wide)
            parts |= {(one, "A", top, rows), (one, "B", left, columns)}
    wanted.append(sum(part[3] for part in parts) * k * 2)
    found.append(from_l2(rows, columns, high, wide, m, n, k))
ct.check(np.array(found), np.array(wanted), name="bytes from L2")

# %% given-2
import numpy as np
import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float

# After an order, and as a kernel.
PLACES = """
void all_places(int *out, int group, int tile_rows, int tile_columns) {
  const int tile = blockIdx.x * blockDim.x + threadIdx.x;
  if (tile >= tile_rows * tile_columns) return;
  const int2 place = place_of(tile, group, tile_rows, tile_columns);
  out[2 * tile] = place.x, out[2 * tile + 1] = place.y;
}
"""


def all_places(order, group, rows, columns):
    """Column and row of every tile, one after the other."""
    text = order + '\nextern "C" __global__ ' + PLACES
    kernel = ct.Kernel(text, "all_places")
    out = ct.to_device(np.zeros((rows * columns, 2), "int32"))
    kernel(out, group, rows, columns, grid=ct.cdiv(out.shape[0], 64), block=64)
    return out.get()


def product(a, b, order):
    (m, k), n = a.shape, b.shape[1]
    path = ct.paths.resolve_source("tensor/ladder/persistent.cu")
    text = path.read_text().replace('#include "hopper/order.cuh"', order)
    text = text.replace('"products.cuh"', '"tensor/ladder/products.cuh"')
    kernel = ct.Kernel(text, "gemm_persistent<4,2>", arch="sm_90a")
    c = ct.to_device(np.zeros((m, n), "uint16"))
    on_gpu = [ct.to_device(to_bf16(x)) for x in (a, b)]
    maps = [
        ct.tensor_map(x, box, swizzle=128)
        for x, box in zip(on_gpu, ((128, 64), (64, 64)))
    ]
    shared = 4 * (49152 + 16)
    kernel(*maps, c, m, n, k, grid=3, block=384, shared=shared)
    return to_float(c.get())


# %% solution-2
ORDER = """
__device__ __forceinline__ int2 place_of(int tile, int group, int tile_rows,
                                         int tile_columns) {
  const int band = tile / (group * tile_columns), first = band * group;
  const int rows = min(group, tile_rows - first);
  const int i = tile - first * tile_columns, column = i / rows;
  return make_int2(band % 2 ? tile_columns - 1 - column : column,
                   first + i % rows);
}
"""

# %% check-2
import cudatut as ct

for group, rows, columns in ((1, 3, 4), (2, 5, 3), (8, 20, 7)):
    wanted = [
        (columns - 1 - x if first // group % 2 else x, y)
        for first in range(0, rows, group)
        for x in range(columns)
        for y in range(first, min(first + group, rows))
    ]
    ct.check(
        all_places(ORDER, group, rows, columns),
        np.array(wanted, "int32"),
        name=f"places, {rows} x {columns} tiles, groups of {group}",
    )
for m, n, k in ((128, 256, 64), (700, 1304, 136), (1100, 520, 200)):
    rng = ct.rng(m)
    a, b = rng.integers(1, 4, (m, k)), rng.integers(1, 4, (k, n))
    exact = (a @ b).astype("float32")
    # bf16 keeps 8 significant bits.
    got = product(a, b, ORDER)
    ct.check(got, exact, rtol=2**-8, name=f"{m} x {n} x {k}")
