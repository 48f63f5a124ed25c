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
# How many operations a product takes, by the hardware's counters. A product of no
# terms has none.

# %% setup
import numpy as np
from cudatut.book.basics.ladder.ladder import LADDER, Matmul

import cudatut as ct

side = 1024
problem = Matmul(side, side, side)
problem.check(LADDER["naive_columns"])
Matmul(side, side, 0).check(LADDER["naive_columns"])

# %% counters
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
READ, TIME = "dram__bytes_read.sum", "gpu__time_duration.sum"
counted = ct.profile_launches(
    "basics/naive_matmul_claims",
    kernel="matmul_naive_columns",
    metrics=[FFMA, REQUESTS, READ, TIME],
    launches=2,
)

# %% counted
if counted:
    value, of_no_terms = counted
    ct.table(
        "naive_columns, 1024 x 1024 x 1024",
        {
            "multiply-adds": {"predicted": 1024**3, "measured": value[FFMA]},
            "loads per result": {
                "predicted": 2 * 1024,
                "measured": 32 * value[REQUESTS] / 1024**2,
            },
            "MB from memory, each element once": {
                "predicted": 2 * 4 * 1024**2 / 1e6,
                "measured": value[READ] / 1e6,
            },
        },
        corner="counter",
    )

# %% rate
if counted:
    rate = value[READ] / value[TIME]  # bytes per ns
    ct.facts("rate", {"bytes from memory / time": (rate, "GB/s")})

# %% gemm-operations
if counted:
    ct.claim(
        id="gemm-operations",
        source="SGEMM worklog; CUDATutorial 00",
        place={
            "en": "kernel 1, lower bounds; section 5, optimization",
            "zh": "kernel 1，最快运行时间的下限；第五节，编程优化",
        },
        form="printed",
        statement={
            "en": "A product of matrices of side n = 4092 (worklog) or 4096 "
            "(CUDATutorial) takes 2 n³ operations, 137 GFLOP, besides "
            "adding a third matrix. Multiply-adds, two operations each, "
            "for n = 1024:",
            "zh": "边长 n 为 4092（worklog）或 4096（CUDATutorial）的矩阵乘法有 "
            "2n³ 次运算，即 137 GFLOP，另外还要加上第三个矩阵。n = 1024 时"
            "的乘加次数（一次乘加算两次运算）：",
        },
        expected=1024**3,
        measured=int(value[FFMA]),
        rule="equal",
        found="counted",
        control=(
            {"en": "the same kernel with k = 0", "zh": "同一个 kernel，k = 0"},
            int(of_no_terms[FFMA]),
            0,
        ),
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
    place={
        "en": "matmul_raw.cu, the loop that verifies the result",
        "zh": "matmul_raw.cu，核对结果的循环",
    },
    form="code",
    statement={
        "en": "The program compares each element with a loop on the CPU by !=, "
        "on whole numbers below 100 and with k = 256. Right elements that this "
        "comparison refuses:",
        "zh": "程序用 != 把每个元素与 CPU 上的循环比较，数据是小于 100 的整数，"
        "k = 256。这样比较会错判多少个算对的元素：",
    },
    expected=0,
    measured=on_whole,
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the same on fractions, which this program does not use",
            "zh": "换成小数（原程序没有用）",
        },
        on_fractions,
        (1, 256 * 256),
    ),
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
runs["16x16 again"] = runs["16x16"]

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
printed = 11.07 / 1.41
ct.claim(
    id="block-2x2",
    source="CUDA slides 2.4-2.6",
    place={
        "en": "the list of launches in Nsight Compute, RTX 3080",
        "zh": "Nsight Compute 里的启动列表，RTX 3080",
    },
    form="printed",
    statement={
        "en": "The product of 1024 x 1024 matrices takes 11.07 ms in blocks of "
        "2 x 2 and 1.41 ms in blocks of 16 x 16. Times as long:",
        "zh": "1024 × 1024 的矩阵乘法，线程块取 2 × 2 要 11.07 ms，取 16 × 16 "
        "要 1.41 ms。时间是后者的：",
    },
    expected=printed,
    measured=ratio,
    unit="×",
    rule="gain",
    control=(
        {"en": "16 x 16 against itself", "zh": "16 × 16 与自己比"},
        times["16x16 again"].median_us / times["16x16"].median_us,
        (0.97, 1.03),
    ),
)
