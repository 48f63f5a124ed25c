# ---
# jupyter:
#   cudatut:
#     title: {en: "Forty shapes against cuBLAS", zh: "四十种形状，与 cuBLAS 比较"}
#     requires: sm_80
#     timeout_s: 120
#     sizes: {shortened: [1, 40], how_many: [40, 4]}
# ---

# %% [markdown]
# The final kernel, cuBLAS and the fastest algorithm that cublasLt offers, on
# forty shapes that nobody chose: the ratio for each, and the geometric mean.

# %% setup
import math
from statistics import geometric_mean

import numpy as np

import cudatut as ct
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.gemm.shapes.contests import contests
from cudatut.book.gemm.shapes.shapes import SHAPES, drawn
from cudatut.book.measure import spread

SMS = ct.device().sm_count
shortened = 1  # a tool sees few of them, with each extent divided by more
how_many = 40
chosen = [
    tuple(ct.cdiv(extent, shortened) for extent in shape)
    for shape in SHAPES[:how_many]
]
ct.check(
    np.array(SHAPES, float),
    np.array(drawn(), float),
    name="shapes as drawn",
    rtol=0,
)

# %% predict
plans = {shape: sgemm.plan(*shape, SMS) for shape in chosen}
tiles = {
    shape: ct.cdiv(shape[0], plan.config.bm) * ct.cdiv(shape[1], plan.config.bn)
    for shape, plan in plans.items()
}


def tile(shape):
    """The tile that the cost model chooses."""
    return plans[shape].config.label


names = [config.label for config in sgemm.CONFIGS]
ct.facts(
    "what the cost model chooses",
    {"shapes": len(chosen)}
    | {
        f"tile {name}": sum(tile(shape) == name for shape in chosen)
        for name in names
    }
    | {
        "with shared tiles": sum(plan.splits > 1 for plan in plans.values()),
        "fewer tiles than SMs": sum(count < SMS for count in tiles.values()),
        "operations, least": (
            min(2 * math.prod(s) for s in chosen) / 1e6,
            "MFLOP",
        ),
        "operations, most": (
            max(2 * math.prod(s) for s in chosen) / 1e6,
            "MFLOP",
        ),
    },
)

# %% check
ct.compile_ahead(
    [
        ("gemm/ladder/final.cu", config.name(vec, False, False))
        for config, vec in {
            (plans[m, n, k].config, math.gcd(n, 4)) for m, n, k in chosen
        }
    ]
)
found = contests(chosen)

# %% contest
# All take turns, with a clean L2 cache before each run, and no run counts in
# which the host was late with the launch; a chart for each of forty contests
# would fill the page.
times = {}
if not ct.tool.running():
    times = {shape: spread.medians(runs) for shape, runs in found.items()}
ratios = {
    shape: t["cuBLAS"] / t["final"]
    for shape, t in times.items()
    if "cuBLAS" in t
}
ct.facts(
    "time of cuBLAS / time of final",
    {"{} x {} x {}".format(*shape): ratio for shape, ratio in ratios.items()},
)

# %% lt
searched = {
    shape: t["cublasLt"] / t["final"]
    for shape, t in times.items()
    if "cublasLt" in t
}
ct.facts(
    "time of cublasLt's fastest / time of final",
    {"{} x {} x {}".format(*shape): ratio for shape, ratio in searched.items()},
)

# %% rates
ct.facts(
    "final",
    {
        "{} x {} x {}".format(*shape): (
            2 * math.prod(shape) / t["final"] / 1e6,
            "TFLOP/s",
        )
        for shape, t in times.items()
    },
)

# %% mean
if ratios:
    by_tile = {
        name: [r for s, r in ratios.items() if tile(s) == name]
        for name in names
    }
    ct.facts(
        "forty shapes, times as fast as cuBLAS",
        {
            "geometric mean": geometric_mean(ratios.values()),
            "least": min(ratios.values()),
            "most": max(ratios.values()),
            "shapes where final is ahead": sum(
                ratio > 1 for ratio in ratios.values()
            ),
        }
        | (
            {
                "geometric mean, cublasLt": geometric_mean(searched.values()),
                "shapes where final is ahead of cublasLt": sum(
                    ratio > 1 for ratio in searched.values()
                ),
            }
            if searched
            else {}
        )
        | {
            f"tile {name}": geometric_mean(some)
            for name, some in by_tile.items()
            if some
        },
    )

# %% worst
if ratios:
    lines = {}
    for shape in sorted(ratios, key=ratios.get)[:5]:
        plan = plans[shape]
        lines["{} x {} x {}".format(*shape)] = (
            f"{ratios[shape]:.2f}: {tiles[shape]} x ({tile(shape)}), "
            f"{plan.splits}"
        )
    ct.facts(
        "the five least: ratio, tiles x (tile), blocks that share one", lines
    )
