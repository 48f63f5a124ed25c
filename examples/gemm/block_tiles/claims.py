# ---
# jupyter:
#   cudatut:
#     title: {en: "Two-dimensional thread tiles: claims", zh: "二维线程分块：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 48, 1024]
#       large: [4096, 48]
# ---

# %% [markdown]
# What the SGEMM worklog says of this step, tried.

# %% setup
from dataclasses import replace

import cudatut as ct
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm, earlier_rungs

side = 1024
large = 4096
COLUMN, SQUARE = earlier_rungs()[-1], LADDER["block_tile_2d"]

# %% claim-loads
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
for rung in (COLUMN, SQUARE):
    Gemm(side, side, side).check(rung)
counted = ct.profile_launches(
    "gemm/block_tiles_claims",
    kernel="regex:^(matmul_thread_tile|sgemm_block_tile)$",
    metrics=[REQUESTS],
    launches=2,
)
if counted:
    of_column, of_square = (32 * one[REQUESTS] / side**2 for one in counted)
    ct.claim(
        id="loads-per-result-block-tile",
        source="SGEMM worklog, kernel 5",
        place={
            "en": "the count of memory accesses at its end",
            "zh": "末尾的访存次数统计",
        },
        form="said",
        statement={
            "en": "With 8 x 8 results per thread and tiles of 128 x 128 x 8 a "
            "result costs K/64 loads from global memory.",
            "zh": "分块为 128×128×8、每线程 8×8 个结果时，每个结果只需 K/64 次全局内存读取。",
        },
        expected=side / 64,
        measured=of_square,
        unit="words per result, K = 1024",
        rule="equal",
        found="counted",
        control=(
            {
                "en": "the column of 8 results, which costs K/32 = 32",
                "zh": "一列 8 个结果，应为 K/32 = 32",
            },
            of_column,
            32.0,
        ),
    )

# %% claim-gain
times = LADDER.bench(
    [COLUMN, replace(COLUMN, name="again"), SQUARE],
    m=large,
    n=large,
    k=large,
    rounds=15,
    name="4096 x 4096 x 4096",
)
before = times["thread_tile"].median_us
ct.claim(
    id="block-tile-gain",
    source="SGEMM worklog, kernels 4 and 5",
    place={
        "en": "the table at the beginning of the worklog",
        "zh": "worklog 开头的表格",
    },
    form="printed",
    statement={
        "en": "Going from 8 to 8 x 8 results per thread makes the product 1.88 "
        "times as fast (8,474.7 to 15,971.7 GFLOP/s, on an RTX A6000).",
        "zh": "每线程从 8 个结果增加到 8×8 个，速度变为 1.88 倍"
        "（8474.7 到 15971.7 GFLOP/s，RTX A6000）。",
    },
    expected=15971.7 / 8474.7,
    measured=before / times["block_tile_2d"].median_us,
    unit="×",
    rule="gain",
    control=(
        {"en": "the column of 8 against itself", "zh": "一列 8 个与它自己相比"},
        before / times["again"].median_us,
        (0.97, 1.03),
    ),
)

# %% claim-larger
problem = Gemm(large, large, large)


def multiply(rows, columns):
    """A callable that multiplies once with so many results per thread."""
    name = f"sgemm_block_tile<128,128,8,{rows},{columns}>"
    kernel = ct.Kernel("gemm/ladder/block_tile_2d.cu", name)
    grid = ct.cdiv(large, 128), ct.cdiv(large, 128)
    operands = (problem.a, problem.b, problem.c, large, large, large, 1.0, 0.0)
    block = 128 * 128 // (rows * columns)
    return lambda: kernel(*operands, grid=grid, block=block)


runs = {f"{r} x {c}": multiply(r, c) for r, c in ((4, 4), (8, 8), (16, 8))}
for name, run in runs.items():
    ct.poison(problem.c)
    run()
    problem.compare(name)
runs["8 x 8 again"] = runs["8 x 8"]
by_shape = ct.bench(
    runs, flops=problem.flops, rounds=7, name="results per thread"
)
ct.claim(
    id="larger-thread-tile-faster",
    source="SGEMM worklog, kernel 4",
    place={
        "en": "the section on arithmetic intensity",
        "zh": "讲算术强度的一节",
    },
    form="said",
    statement={
        "en": "What makes the kernels faster is above all their arithmetic "
        "intensity, and more results per thread raise it; this is worth "
        "going on with as long as memory limits the kernel. From 4 x 4 "
        "results to 8 x 8, half as many words per FMA:",
        "zh": "kernel 变快主要靠算术强度的提高，每个线程多算些结果就能提高它；"
        "只要 kernel 仍受内存所限，就值得继续。这里从 4×4 个结果增加到 8×8 个，"
        "每次 FMA 的字数减少一半：",
    },
    expected=1.0,
    measured=by_shape["4 x 4"].median_us / by_shape["8 x 8"].median_us,
    unit="×",
    rule="above",
    control=(
        {
            "en": "8 x 8 against itself: noise would show as a gain",
            "zh": "8×8 与自己相比；若有噪声，这里会显出增幅",
        },
        by_shape["8 x 8"].median_us / by_shape["8 x 8 again"].median_us,
        (0.97, 1.03),
    ),
)
