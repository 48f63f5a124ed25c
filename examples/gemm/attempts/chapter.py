# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel", zh: "通向最终 kernel 的路"}
#     requires: sm_80
#     timeout_s: 120
#     long: true
#     sizes: {N: [4096, 136]}
# ---

# %% [markdown]
# Shapes of the final kernel that were tried. `attempts.cu` is that kernel as it
# was, with a switch for each thing that we tried. First one shape as a whole
# program: four blocks on an SM.

# %% program
import numpy as np
import cudatut as ct

from cudatut.book.gemm.attempts import variants

N = 4096
product = variants.Product(N, N, N)  # random matrices, and a check
a, b, c = product.a, product.b, product.c

# Tiles of 64 x 128 x 16, 8 x 8 results per thread, 2 stages, 4 blocks on an SM;
# copies of 4 words; the switches 1 + 2 + 4; a barrier after each step.
kernel = ct.Kernel(
    "gemm/attempts/attempts.cu", "attempt<64,128,16,8,8,2,4,4,7,1>"
)
tiles = ct.cdiv(N, 64) * ct.cdiv(N, 128)
depth = ct.cdiv(N, 16) * 16
unused = ct.empty(1, "float32"), ct.to_device(np.zeros(1, "uint32"))


def four_blocks():
    kernel(
        N, N, N, 1.0, a, N, b, N, 0.0, c, N, tiles, 1, depth, *unused,
        grid=tiles, block=128, shared=4 * 2 * 16 * (68 + 128),
    )  # fmt: skip


four_blocks()
product.check("four blocks")
ct.bench(
    {"four blocks": four_blocks, **product.vendors()},
    flops=product.flops,
    name=f"n = {N}",
    rounds=10,
)

# %% [markdown]
# Then all shapes of the page.

# %% setup
from cudatut.book.gemm.attempts.variants import (
    Product,
    Variant,
    compile_all,
    read,
)

TRIED = {
    "64 x 128": Variant(64, 128, 16, 8, 8, 3, 3),
    "128 x 256, 8 x 16": Variant(128, 256, 16, 8, 16, 4, 1),
    "64 x 128, depth 32": Variant(64, 128, 32, 8, 8, 2, 3),
    "64 x 128, four blocks": Variant(64, 128, 16, 8, 8, 2, 4),
    "128 x 128, 8 x 16": Variant(128, 128, 16, 8, 16, 3, 2),
    "256 x 128, 16 x 8": Variant(256, 128, 16, 16, 8, 4, 1),
    "128 x 192, 8 x 12": Variant(128, 192, 16, 8, 12, 4, 1),
    "64 x 192, 8 x 12": Variant(64, 192, 16, 8, 12, 3, 3),
}
compile_all(TRIED)

# %% [markdown]
# All of them are right. Then what their machine code promises, and what they
# reach.

# %% check
product = Product(N, N, N)
runs = {name: variant.prepare(product) for name, variant in TRIED.items()}
for name, run in runs.items():
    run()
    product.check(name)

# %% predict
# TFLOP/s, if each issue slot were an FMA
peak = ct.device().sm_count * 256 * ct.attributes()["CLOCK_RATE"] / 1e9
found = {} if ct.tool.running() else read(TRIED, runs)
for row in found.values():
    row["bound"] = row["FFMA"] / 100 * peak

# %% bench
times = ct.bench(
    {**runs, **product.vendors()},
    flops=product.flops,
    name=f"whole tiles, n = {N}",
    rounds=12,
)

# %% tried
if found:
    ct.table(
        "shapes that were tried",
        {
            row.name: {**found.get(row.name, {}), "measured": row.value}
            for row in times.rows
        },
        corner="tile, results of a thread",
        units={
            "FFMA": "%",
            "two words of one bank": "%",
            "bound": "TFLOP/s",
            "measured": "TFLOP/s",
        },
    )

# %% orders
if found:
    by_bound = sorted(TRIED, key=lambda name: -found[name]["bound"])
    by_rate = sorted(TRIED, key=lambda name: -times[name].value)
    ct.facts(
        "the fastest one",
        {
            "by the bound": by_bound[0],
            "measured": by_rate[0],
            "place of the first by the bound": by_rate.index(by_bound[0]) + 1,
        },
    )
