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
import cudatut as ct
from ladder import LADDER, Gemm, earlier_rungs


side = 1024
large = 4096
BLOCK_TILE = LADDER["block_tile_2d"]

# %% claim-loads
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
Gemm(side, side, side).check(BLOCK_TILE)
counted = ct.profile_launches(
    "gemm/block_tiles_claims",
    kernel="sgemm_block_tile",
    metrics=[REQUESTS],
    launches=1,
)
if counted:
    found = 32 * counted[0][REQUESTS] / side**2
    ct.claim(
        id="loads-per-result-block-tile",
        source="SGEMM worklog, kernel 5",
        statement={
            "en": "With 8 x 8 results per thread and tiles of 128 x 128 x 8 a result costs K/64 loads from global memory",
            "zh": "分块为 128×128×8、每线程 8×8 个结果时，每个结果只需 K/64 次全局内存读取",
        },
        predicted=side / 64,
        measured=found,
        unit="words per result, K = 1024",
        verdict="confirmed" if found == side / 64 else "refuted",
    )

# %% claim-gain
times = LADDER.bench(
    [earlier_rungs()[-1], BLOCK_TILE],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
gain = times["thread_tile"].median_us / times["block_tile_2d"].median_us
ct.claim(
    id="block-tile-gain",
    source="SGEMM worklog, kernels 4 and 5 (RTX A6000)",
    statement={
        "en": "Going from 8 to 8 x 8 results per thread makes the product 1.88 times as fast (8,475 to 15,972 GFLOP/s)",
        "zh": "每线程从 8 个结果增加到 8×8 个，速度变为 1.88 倍（8475 到 15972 GFLOP/s）",
    },
    predicted=1.88,
    measured=gain,
    unit="×",
    verdict="confirmed" if abs(gain / 1.88 - 1) < 0.1 else "depends",
)

# %% claim-larger
problem = Gemm(large, large, large)


def multiply(name, results):
    """A callable that multiplies once with so many results per thread."""
    kernel = ct.Kernel("gemm/block_tile_2d.cu", name)
    grid = ct.cdiv(large, 128), ct.cdiv(large, 128)
    operands = (problem.a, problem.b, problem.c, large, large, large, 1.0, 0.0)
    block = 128 * 128 // results
    return lambda: kernel(*operands, grid=grid, block=block)


by_shape = ct.bench(
    {
        "8 x 8": multiply("sgemm_block_tile<128,128,8,8,8>", 64),
        "16 x 8": multiply("sgemm_block_tile<128,128,8,16,8>", 128),
    },
    flops=problem.flops,
    rounds=7,
    name="results per thread",
)
# A quarter of the words less.
gain = by_shape["8 x 8"].median_us / by_shape["16 x 8"].median_us
ct.claim(
    id="larger-thread-tile-faster",
    source="SGEMM worklog, kernel 5",
    statement={
        "en": "As long as memory limits the kernel: the more results a thread computes, the faster the product",
        "zh": "只要 kernel 仍受内存所限，每个线程算的结果越多，乘法就越快",
    },
    predicted="> 1",
    measured=gain,
    unit="time of 8 x 8 / time of 16 x 8",
    verdict="confirmed" if gain > 1.03 else "depends",  # on that condition
)
