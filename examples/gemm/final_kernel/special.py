# ---
# jupyter:
#   cudatut:
#     title: {en: "The final kernel: NaN and infinity", zh: "最终的 kernel：NaN 与无穷"}
#     requires: sm_80
# ---

# %% [markdown]
# What becomes of NaN and infinity in the factors and in C: as IEEE 754 says it,
# and as cuBLAS does it.

# %% setup
import numpy as np

from cudatut.book.gemm.kernels import sgemm

import cudatut as ct

# %% special
m, n, k = 130, 135, 70
left, right = (
    ct.rng(i).random(s, dtype="float32") + np.float32(0.5)
    for i, s in ((6, (m, k)), (7, (k, n)))
)
left[3, 5], left[40, 6], left[77, 69] = np.nan, np.inf, -np.inf
right[6, 10], right[7, 99], right[0, 134] = -np.inf, np.nan, np.inf
old = np.full((m, n), np.nan, "float32")
old[50] = 1.0
a, b = ct.to_device(left), ct.to_device(right)


def kinds(values):
    """0 where finite, 1 NaN, 2 infinite, 3 infinite and negative."""
    return np.select(
        [np.isnan(values), values == np.inf, values == -np.inf],
        [1.0, 2.0, 3.0],
        0.0,
    )


rows = {}
for alpha, beta in ((1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)):
    found = {}
    for name, call in (
        ("final", sgemm.prepare(a, b, (c := ct.to_device(old)), alpha, beta)),
        ("cuBLAS", ct.vendor.gemm(a, b, (d := ct.to_device(old)), alpha, beta)),
    ):
        if call:
            call()
            found[name] = kinds((c if name == "final" else d).get())
    with np.errstate(invalid="ignore"):
        product = left.astype("float64") @ right if alpha else np.zeros((m, n))
        ieee = alpha * product + (beta * old if beta else 0.0)
        ieee = kinds(ieee.astype("float32"))
    key = f"alpha {alpha:g}, beta {beta:g}"
    for name, got in found.items():
        ct.check(got, ieee, name=f"{key}: {name}", rtol=0)
    rows[key] = {
        "NaN": int((ieee == 1).sum()),
        "infinite": int((ieee >= 2).sum()),
    }
    if "cuBLAS" in found:
        differs = int((found["cuBLAS"] != ieee).sum())
        rows[key]["cuBLAS differs"] = differs
ct.table("special values among the results", rows, corner="scalars")

# %% no-depth
# Without a product alpha does not count either, whatever it is.
nothing = [
    ct.to_device(np.zeros(shape, "float32")) for shape in ((4, 0), (0, 5))
]
for alpha in (np.nan, np.inf):
    c = ct.to_device(np.ones((4, 5), "float32"))
    sgemm.sgemm(*nothing, c, alpha, beta=2.0)
    name = f"k = 0, alpha {alpha:g}, beta 2"
    ct.check(c, np.full((4, 5), 2.0), name=name, rtol=0)
