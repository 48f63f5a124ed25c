# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel: half of the barriers", zh: "通向最终 kernel 的路：屏障减半"}
#     requires: sm_80
#     timeout_s: 120
#     long: true
#     sizes:
#       side: [1024, 136, 4096]
#       depth: [999, 99]
#       SIZES: [[2048, 4096], [136]]
# ---

# %% [markdown]
# The final kernel waits after each step of 16 depths: for its copies, and for
# all threads of the block. Here it waits after each second, third or fourth
# step. The loop keeps its length, unlike that of an instance 32 deep.

# %% setup
from cudatut.book.gemm.attempts.variants import (
    Product,
    Variant,
    compile_all,
    rates_of,
    read,
)

import cudatut as ct

SMALL = {"shares": True}  # the tiles of the last round have several blocks
VARIANTS = {
    "64 x 128, every step": Variant(64, 128, 16, 8, 8, 3, 3, **SMALL),
    "64 x 128, every 2": Variant(64, 128, 16, 8, 8, 4, 3, every=2, **SMALL),
    "64 x 128, every 3": Variant(64, 128, 16, 8, 8, 6, 3, every=3, **SMALL),
    "128 x 256, every step": Variant(128, 256, 16, 8, 16, 4, 1),
    "128 x 256, every 4": Variant(128, 256, 16, 8, 16, 8, 1, every=4),
}
compile_all(VARIANTS, 1, 4)  # nvcc takes a second or two for each

# %% [markdown]
# The first launches are those that the profiler counts. Then no step, one, an
# even and an odd number of them, a depth that is left over, and parts of it.

# %% check
side = 1024
depth = 999
product = Product(side, side, side)
for name, variant in VARIANTS.items():
    variant.prepare(product)()
    if ct.tool.running() != "ncu":
        product.check(name)
for m, n, k in [
    (1, 1, 1),
    (65, 130, 15),
    (64, 128, 33),
    (200, 132, 68),
    (130, 260, depth),
    (5, 4, 0),
]:
    product = Product(m, n, k)
    for name, variant in VARIANTS.items():
        variant.prepare(product)()
        product.check(name)

# %% predict
if not ct.tool.running():
    product = Product(4096, 4096, 4096)
    runs = {name: one.prepare(product) for name, one in VARIANTS.items()}
    ct.table(
        "read from the machine code",
        read(VARIANTS, runs),
        corner="tile, barrier after",
        units={"FFMA": "%", "two words of one bank": "%"},
    )

# %% bench
SIZES = (2048, 4096)
rates = rates_of(VARIANTS, SIZES)

# %% rates
ct.table(
    "rates",
    rates,
    corner="tile, barrier after",
    units={f"n = {size}": "TFLOP/s" for size in SIZES},
)

# %% [markdown]
# What the warps wait for, in cycles per issued instruction.

# %% counters
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {
    "barrier": STALL.format("barrier"),
    "dispatch": STALL.format("dispatch_stall"),
    "shared memory": STALL.format("short_scoreboard"),
    "slots used": "smsp__issue_active.avg.pct_of_peak_sustained_active",
}
counted = ct.profile_launches(
    "gemm/attempts_barriers",
    "regex:attempt",
    list(METRICS.values()),
    launches=len(VARIANTS),
)
if counted:
    ct.table(
        "warps that wait, per issued instruction",
        {
            name: {what: found[metric] for what, metric in METRICS.items()}
            for name, found in zip(VARIANTS, counted)
        },
        corner="tile, barrier after",
        units={"slots used": "%"},
    )
