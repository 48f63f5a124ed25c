# ---
# jupyter:
#   cudatut:
#     title: {en: "The final kernel: transposed matrices", zh: "最终的 kernel：转置的矩阵"}
#     requires: sm_80
#     timeout_s: 120
#     sizes: {side: [4096, 100]}
# ---

# %% [markdown]
# The four transpositions, beside cuBLAS and the best that cublasLt offers.

# %% setup
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.rivals import cublaslt

import cudatut as ct

# Is A transposed, is B?
FLAGS = {
    "NN": (False, False),
    "NT": (False, True),
    "TN": (True, False),
    "TT": (True, True),
}

# %% transposed
side = 4096
square = [
    ct.to_device(ct.rng(i).random((side, side), dtype="float32"))
    for i in (1, 2)
]
out, contestants = ct.empty((side, side), "float32"), {}
for which, flags in FLAGS.items():
    how = 1.0, 0.0, *flags
    options = dict(zip(("transpose_a", "transpose_b"), flags))
    contestants |= {
        f"{which}, final": sgemm.prepare(*square, out, *how),
        f"{which}, cuBLAS": ct.vendor.gemm(*square, out, *how),
        f"{which}, cublasLt": cublaslt.fastest(*square, out, **options),
    }
turned = ct.bench(
    contestants, flops=2 * side**3, name=f"op(A) op(B), n = {side}", rounds=12
)

# %% beside-cublas
rows = {}
rates = {row.name: row.value for row in turned.rows}
for which in FLAGS:
    ours, theirs = rates[f"{which}, final"], rates.get(f"{which}, cuBLAS")
    searched = rates.get(f"{which}, cublasLt")
    rows[which] = {
        "final": ours,
        "cuBLAS": theirs,
        "cublasLt": searched,
        "final / cuBLAS": ours / theirs if theirs else None,
        "final / cublasLt": ours / searched if searched else None,
    }
ct.table(
    f"op(A) op(B), n = {side}",
    rows,
    corner="transposed",
    units=dict.fromkeys(("final", "cuBLAS", "cublasLt"), "TFLOP/s"),
)

# %% least
beside = [row for row in rows.values() if row["final / cublasLt"]]
if beside:
    ct.facts(
        f"the least of the four, n = {side}",
        {
            "times cuBLAS": min(row["final / cuBLAS"] for row in beside),
            "times cublasLt": min(row["final / cublasLt"] for row in beside),
        },
    )
