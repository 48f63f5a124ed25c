# ---
# jupyter:
#   cudatut:
#     title: {en: "Forty shapes against cuBLAS", zh: "四十种形状，对阵 cuBLAS"}
#     requires: sm_80
#     timeout_s: 120
#     sizes: {shortened: [1, 40], how_many: [40, 4]}
# ---

# %% [markdown]
# The final kernel, cuBLAS and the fastest algorithm that cublasLt offers, on
# forty shapes that nobody chose: the ratio for each, and the geometric mean.

# %% setup
import math
import random
from statistics import geometric_mean, median

from cudatut.book.rivals import cublaslt
import numpy as np
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.gemm.shapes.shapes import SHAPES, drawn

import cudatut as ct

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
# One array for all of A, and one for all of B, as long as the largest: random
# words, repeated after a prime number.
PERIOD = 1_000_003
rng = ct.rng(0)
host = [
    np.resize(rng.random(PERIOD, dtype="float32") - np.float32(0.5), words)
    for words in (
        max(m * k for m, _, k in chosen),
        max(k * n for _, n, k in chosen),
    )
]
a_words, b_words = (ct.to_device(words) for words in host)
c_words = ct.empty(max(m * n for m, n, _ in chosen), "float32")
ct.compile_ahead(
    [
        ("gemm/ladder/final.cu", config.name(vec, False, False))
        for config, vec in {
            (plans[m, n, k].config, math.gcd(n, 4)) for m, n, k in chosen
        }
    ]
)
contests = {}
for m, n, k in chosen:
    a, b, c = (
        words[: rows * columns].reshape(rows, columns)
        for words, rows, columns in (
            (a_words, m, k),
            (b_words, k, n),
            (c_words, m, n),
        )
    )
    ct.poison(c_words)
    run = sgemm.prepare(a, b, c)
    run()
    # A few rows, the first and the last among them, at up to 200 columns: as
    # exact as float64, and quick.
    rows = np.unique([0, m // 3, m - 1])
    columns = np.unique(np.linspace(0, n - 1, 200).astype(int))
    left = host[0][: m * k].reshape(m, k)[rows].astype("float64")
    right = host[1][: k * n].reshape(k, n)[:, columns].astype("float64")
    bound = (k + 32) * 2.0**-24 * float((np.abs(left) @ np.abs(right)).max())
    ct.check(
        np.stack(
            [c_words[row * n : (row + 1) * n].get() for row in map(int, rows)]
        )[:, columns],
        left @ right,
        name=f"{m} x {n} x {k}",
        rtol=0,
        atol=bound,
    )
    contests[m, n, k] = {"final": run, "cuBLAS": ct.vendor.gemm(a, b, c)}
    if fastest := cublaslt.fastest(a, b, c):
        contests[m, n, k]["cublasLt"] = fastest

# %% contest
# All take turns, with a clean L2 cache before each run, and no run counts in
# which the host was late with the launch; a chart for each of forty contests
# would fill the page.
times = {}
if not ct.tool.running():
    for shape, runs in contests.items():
        for run in runs.values():
            run()  # once: cuBLAS loads a kernel when it first needs it
        found = ct.take_turns(runs, 25, random.Random(0))
        times[shape] = {name: median(values) for name, values in found.items()}
ratios = {shape: t["cuBLAS"] / t["final"] for shape, t in times.items()}
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
            f"tile {name}": geometric_mean(found)
            for name, found in by_tile.items()
            if found
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
