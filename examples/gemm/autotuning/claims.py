# ---
# jupyter:
#   cudatut:
#     title: {en: "Autotuning: claims", zh: "自动调优：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {large: [4096, 80]}
# ---

# %% [markdown]
# The shapes that the SGEMM worklog found best on two GPUs, both in one kernel
# and on this GPU: `vectorized`, which is built as its kernel 6 is.

# %% setup
from dataclasses import replace

import cudatut as ct
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm

large = 4096
SHAPES = {  # template arguments and tile
    "A6000": ("128,128,16,8,8", "128x128"),
    "A100": ("64,64,16,4,4", "64x64"),
}
problem = Gemm(large, large, large)


def launcher(name):
    """A product with the shape that is best on that GPU, checked once."""
    numbers, tile = SHAPES[name]
    rung = replace(
        LADDER["vectorized"],
        name=f"best of the {name}",
        kernel=f"sgemm_vectorized<{numbers}>",
    )
    problem.check(rung, tile=tile)
    return problem.launcher(rung, tile=tile)


# %% claim
# Both have 256 threads. Under the last name the first shape runs once more.
times = ct.bench(
    {
        **{f"best of the {name}": launcher(name) for name in SHAPES},
        "again": launcher("A6000"),
    },
    flops=problem.flops,
    name=f"{large} x {large} x {large}",
    rounds=20,
)
first = times["best of the A6000"].median_us
second = times["best of the A100"].median_us
again = times["again"].median_us
ct.claim(
    id="tuned-for-another-gpu",
    source="SGEMM worklog, kernel 9",
    place={
        "en": "the paragraph on the results of the search",
        "zh": "讲搜索结果的一段",
    },
    form="printed",
    statement={
        "en": "On an A100, 64x64x16 with 4x4 is faster than 128x128x16 with "
        "8x8, which is the best on an A6000: 12.6 against 12 TFLOP/s. Its "
        "speed here, of that one's:",
        "zh": "在 A100 上，64x64x16、4x4 比 A6000 上最好的 128x128x16、8x8 快："
        "12.6 对 12 TFLOP/s。这里是它的速度与后者之比：",
    },
    expected=12.6 / 12,
    measured=first / second,
    unit="×",
    rule="gain",
    control=(
        {
            "en": "the first shape against itself",
            "zh": "第一个配置与它自己相比",
        },
        first / again,
        (0.97, 1.03),
    ),
)
