# ---
# jupyter:
#   cudatut:
#     title: {en: "Matrix multiplication by hand: claims", zh: "手写矩阵乘法：说法的检验"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 96, 1024]
# ---

# %% [markdown]
# How many operations a product takes, by the hardware's counters.

# %% setup
import numpy as np
from ladder import LADDER, Matmul

import cudatut as ct

side = 1024
problem = Matmul(side, side, side)
problem.check(LADDER["naive_columns"])

# %% counters
counted = ct.profile(
    "basics/naive_matmul_claims",
    kernel="matmul_naive_columns",
    metrics=[
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "dram__bytes_read.sum",
        "gpu__time_duration.sum",
    ],
)

# %% counted
if counted:
    value = {name: counted[name] for name in counted.metrics}
    ffma = value["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]
    requests = value["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
    read = value["dram__bytes_read.sum"]
    ct.table(
        "naive_columns, 1024 x 1024 x 1024",
        {
            "multiply-adds": {"predicted": 1024**3, "measured": ffma},
            "loads per result": {
                "predicted": 2 * 1024,
                "measured": 32 * requests / 1024**2,
            },
            "MB from memory, each element once": {
                "predicted": 2 * 4 * 1024**2 / 1e6,
                "measured": read / 1e6,
            },
        },
        corner="counter",
    )

# %% rate
if counted:
    rate = read / value["gpu__time_duration.sum"]  # bytes per ns
    ct.facts("rate", {"bytes from memory / time": (rate, "GB/s")})

# %% gemm-operations
if counted:
    ct.claim(
        id="gemm-operations",
        source="SGEMM worklog; CUDATutorial 00",
        statement={
            "en": "A product of m x k and k x n matrices takes 2 m n k operations "
            "(4096: 137 GFLOP)",
            "zh": "m×k 与 k×n 矩阵相乘需要 2mnk 次运算（4096：137 GFLOP）",
        },
        predicted=2 * 1024**3 / 1e9,
        measured=2 * ffma / 1e9,
        unit="GFLOP, at 1024",
        verdict="confirmed" if ffma == 1024**3 else "refuted",
    )

# %% [markdown]
# A comparison by ==, as CUDATutorial 06 makes it with a loop on the CPU: on its own
# data, and on fractions.


# %% equality
def by_loop(a, b):
    """As a loop makes it: each product rounded to fp32, then added."""
    c = np.zeros((len(a), b.shape[1]), "float32")
    for i in range(a.shape[1]):
        c += a[:, i, None] * b[i]
    return c


def refused(a, b):
    """Elements of a right product that are not == those of the loop."""
    product = Matmul(data=(a, b))
    product.check(LADDER["naive_columns"])
    return int((product.c.get() != by_loop(a, b)).sum())


rng, shape = ct.rng(3), (256, 256)
whole = [rng.integers(0, 100, shape).astype("float32") for _ in range(2)]
fractions = [rng.random(shape, "float32") for _ in range(2)]
on_whole, on_fractions = refused(*whole), refused(*fractions)

# %% equality-facts
ct.facts(
    "elements that are not ==, 256 x 256 x 256",
    {
        "whole numbers below 100": on_whole,
        "fractions": on_fractions,
        "largest possible sum of whole numbers": 256 * 99 * 99,
    },
)

# %% exact-compare
ct.claim(
    id="exact-compare",
    source="CUDATutorial 06",
    statement={
        "en": "== tells a right product from a wrong one "
        "(its data: whole numbers below 100, k = 256)",
        "zh": "用 == 能区分乘积算得对不对（其数据：小于 100 的整数，k = 256）",
    },
    predicted=0,
    measured=on_fractions,
    unit="right elements refused, on fractions",
    verdict="confirmed" if not on_fractions else "depends",
)

# %% [markdown]
# Square blocks of 2, 4, 8, 16 and 32 threads a side.

# %% blocks
runs = {}
for edge in (2, 4, 8, 16, 32):
    shape = f"{edge}x{edge}"
    problem.check(LADDER["naive_columns"], block=shape, tile=shape)
    runs[shape] = problem.launcher(
        LADDER["naive_columns"], block=shape, tile=shape
    )

# %% blocks-bench
times = ct.bench(runs, flops=problem.flops, name="1024, by block")

# %% blocks-compared
ratio = times["2x2"].median_us / times["16x16"].median_us
ct.facts(
    "2 x 2 against 16 x 16",
    {
        "predicted from the lanes in use": 32 / 4,
        "RTX 3080, as printed": 11.07 / 1.41,
        "measured here": ratio,
        "8 x 8 against 16 x 16": times["8x8"].median_us
        / times["16x16"].median_us,
    },
)

# %% block-2x2
ct.claim(
    id="block-2x2",
    source="CUDA slides 2.4 (RTX 3080)",
    statement={
        "en": "Blocks of 2 x 2 make the naive product 7.9 times slower "
        "than blocks of 16 x 16",
        "zh": "线程块取 2×2 时，朴素矩阵乘法比取 16×16 慢 7.9 倍",
    },
    predicted=11.07 / 1.41,
    measured=ratio,
    unit="x",
    verdict="confirmed" if 0.8 < ratio / (11.07 / 1.41) < 1.25 else "depends",
)
