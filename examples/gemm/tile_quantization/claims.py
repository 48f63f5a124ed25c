# ---
# jupyter:
#   cudatut:
#     title: {en: "Tile quantization: claims", zh: "分块量化：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     alone: false
# ---

# %% [markdown]
# Which kernels cuBLAS runs for a small product. Each program multiplies a
# hundred times while CUPTI notes every kernel.

# %% setup
import cudatut as ct

PROGRAM = """
import numpy as np
import cudatut as ct

n = SIDE
a, b = (ct.to_device(ct.rng(i).random((n, n), dtype="float32")) for i in (0, 1))
c = ct.empty((n, n), "float32")
multiply = ct.vendor.gemm(a, b, c)
for _ in range(100):
    multiply()
exact = a.get()[:8].astype("float64") @ b.get()
ct.check(c.get()[:8], exact, name=f"n = {n}", rtol=1e-4)
"""


# %% trace
def kernels(side):
    """Kernels that one product takes: those that ran a hundred times."""
    found = ct.trace(source=PROGRAM.replace("SIDE", str(side)), rows=4)
    rows = found.gpu if found else []
    return sum(row.calls // 100 for row in rows if row.bytes is None)


small, large = kernels(256), kernels(4096)

# %% claim
if large:
    ct.claim(
        id="cublas-splits-k-at-256",
        source="SGEMM worklog, kernel 10",
        place={
            "en": "the table of cuBLAS's kernels by size",
            "zh": "cuBLAS 在各尺寸所用 kernel 的表格",
        },
        form="printed",
        statement={
            "en": "For a product of 256 x 256 x 256 cuBLAS runs two kernels, "
            "one that multiplies with k split among blocks, and one that adds "
            "the parts; for 4096 it runs one.",
            "zh": "256 x 256 x 256 的乘积，cuBLAS 运行两个 kernel：一个把 k 分给几个线程块来乘，"
            "一个把各部分加起来；4096 时只运行一个。",
        },
        expected=2,
        measured=small,
        unit="kernels per product",
        rule="equal",
        found="counted",
        elsewhere=True,
        control=(
            {"en": "4096 x 4096 x 4096", "zh": "4096 x 4096 x 4096"},
            large,
            1,
        ),
    )
