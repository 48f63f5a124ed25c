# ---
# jupyter:
#   cudatut:
#     title: {en: "Grouped products: a list of any sizes", zh: "分组乘法：一组任意尺寸的矩阵乘法"}
#     requires: sm_90a
#     timeout_s: 120
#     sizes:
#       LARGEST: [2048, 128]
#       COUNT: [60, 4]
# ---

# %% [markdown]
# Products whose n and k differ, too: each has matrices of its own, and tensor
# maps of its own. First they are checked, by whole numbers.

# %% setup
import numpy as np

from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.tensor.gemm import grouped_product as grouped
from cudatut.book.tensor.grouped import routing

import cudatut as ct

Options = grouped.Options

# %% list
COUNT = 60
LARGEST = 2048


def different(count, largest, make):
    """m, n and k between largest / 16 and largest, n and k multiples of 8."""
    rng, some = ct.rng(5), []
    for seed in range(count):
        m, n, k = (int(largest * 2.0 ** -rng.uniform(0, 4)) for _ in range(3))
        n, k = 8 * (n // 8), 8 * (k // 8)
        a, b = make((m, k), 2 * seed), make((n, k), 2 * seed + 1)
        some.append((a, b, ct.empty((m, n), "uint16")))
    return some


def whole_numbers(shape, seed):
    return ct.to_device(to_bf16(ct.rng(seed).integers(-4, 5, shape)))


some = different(12, 256, whole_numbers)
for tile in grouped.TILES:
    for by_demand in (True, False):
        for _, _, c in some:
            ct.poison(c)
        grouped.prepare_list(some, Options(tile, by_demand=by_demand))()
        off = 0
        for a, b, c in some:
            a, b = (to_float(y.get()).astype("float64") for y in (a, b))
            off += int((c.get() != to_bf16(a @ b.T)).sum())
        name = (
            f"tiles of {tile.columns}, {'by demand' if by_demand else 'dealt'}"
        )
        ct.check(np.array([off]), np.array([0]), name=name)

# %% [markdown]
# Products of different n and k.

# %% bench-list
some = different(COUNT, LARGEST, routing.random_matrix)
flops = sum(2 * a.shape[0] * a.shape[1] * b.shape[0] for a, b, _ in some)

ct.bench(
    {
        "one launch": grouped.prepare_list(some),
        "one launch, dealt": grouped.prepare_list(
            some, Options(by_demand=False)
        ),
        "loop": grouped.loop_list(some),
        "loop, as a graph": grouped.loop_list(some, graph=True),
    },
    flops=flops,
    rounds=25,
    name=f"{COUNT} products",
)
