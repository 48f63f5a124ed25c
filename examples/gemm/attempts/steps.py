# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel: its steps", zh: "通向最终 kernel 的路：各步"}
#     requires: sm_80
#     timeout_s: 240
#     long: true
#     sizes:
#       side: [1024, 136, 4096]
#       depth: [999, 99]
#       SIZES: [[2048, 4096, 8192], [136]]
# ---

# %% [markdown]
# The steps that led to the final kernel, and some that were taken back: each a
# variant of `attempts.cu`, all of them beside cuBLAS in one contest.

# %% setup
from cudatut.book.gemm.attempts.variants import (
    LAST,
    Product,
    Tried,
    Variant,
    compile_all,
    rates_of,
    read,
)

import cudatut as ct

LARGE = 128, 256, 16, 8, 16, 4, 1  # tile, results, stages, blocks on an SM
SMALL = 64, 128, 16, 8, 8, 3, 3
EXCHANGED, LATE = Tried.EXCHANGED, Tried.LATE
STEPS = {
    "128 x 256": Variant(*LARGE, Tried.NOTHING),
    "128 x 256, exchanged": Variant(*LARGE, EXCHANGED),
    "64 x 128": Variant(*SMALL, Tried.NOTHING),
    "64 x 128, exchanged": Variant(*SMALL, EXCHANGED),
    "rest shared": Variant(*SMALL, EXCHANGED, shares=True),
    "addresses late": Variant(*SMALL, EXCHANGED | LATE, shares=True),
    "copies apart": Variant(*SMALL, LAST, shares=True),
}
BACK = {
    "one copy per depth": Variant(*SMALL, LAST | Tried.SPREAD, shares=True),
    "shared tiles first": Variant(
        *SMALL, LAST | Tried.PARTS_FIRST, shares=True
    ),
}
VARIANTS = STEPS | BACK
compile_all(VARIANTS, 1, 4)

# %% [markdown]
# The first launches are those that the profiler counts. Then no step, one, some
# of them with a depth that is left over, and shared tiles.

# %% check
side = 1024
depth = 999
product = Product(side, side, side)
runs = {name: variant.prepare(product) for name, variant in VARIANTS.items()}
if cublas := ct.vendor.gemm(product.a, product.b, product.c, profiled=True):
    runs["cuBLAS"] = cublas
for name, run in runs.items():
    run()
    if ct.tool.running() != "ncu":
        product.check(name)
for m, n, k in [(1, 1, 1), (65, 130, 15), (200, 132, 68), (130, 260, depth)]:
    product = Product(m, n, k)
    for name, variant in VARIANTS.items():
        variant.prepare(product)()
        product.check(name)

# %% [markdown]
# What the machine code says. If an FMA that fetches two words of one bank took
# one cycle more, this would be the gain of an exchange.

# %% predict
found = {}
if not ct.tool.running():
    product = Product(4096, 4096, 4096)
    runs = {name: one.prepare(product) for name, one in VARIANTS.items()}
    found = read(VARIANTS, runs)
    ct.table(
        "read from the machine code",
        found,
        corner="variant",
        units={"FFMA": "%", "two words of one bank": "%"},
    )
    gains = {}
    for tile in ("128 x 256", "64 x 128"):
        before, after = (
            1 + found[name]["two words of one bank"] / 100
            for name in (tile, f"{tile}, exchanged")
        )
        gains[f"{tile}, exchanged"] = 100 * (before / after - 1), "%"
    ct.facts("predicted gain, if a conflict took a cycle", gains)

# %% [markdown]
# What sharing the tiles of the last round would gain if the adding were free: at
# most, if a block took the same time whoever else is on its SM; at least, if a
# block alone on its SM were as fast as all that fit there together.

# %% rounds
SIZES = (2048, 4096, 8192)
sms, small = ct.device().sm_count, STEPS["rest shared"]
slots = sms * small.blocks
rows = {}
for size in SIZES:
    tiles = ct.cdiv(size, small.bm) * ct.cdiv(size, small.bn)
    whole, parts, _ = small.parts(size, size, size, sms)
    full, rest = divmod(tiles, slots)
    shared = full + (1 / parts if rest else 0)
    alone = full + ct.cdiv(rest, sms) / small.blocks
    rows[size] = {
        "tiles": tiles,
        "shared tiles": tiles - whole,
        "blocks on each": parts,
        "rounds": ct.cdiv(tiles, slots),
        "gain at least": 100 * (alone / shared - 1),
        "gain at most": 100 * (ct.cdiv(tiles, slots) / shared - 1),
    }
ct.table(
    "who computes the tiles",
    rows,
    corner="n",
    units={"gain at least": "%", "gain at most": "%"},
)

# %% bench
rates = rates_of(VARIANTS, SIZES)

# %% steps
units = {f"n = {size}": "TFLOP/s" for size in SIZES}
rivals = [name for name in rates if name not in VARIANTS]
ct.table(
    "rates, step by step",
    {name: rates[name] for name in [*STEPS, *rivals]},
    corner="variant",
    units=units,
)

# %% gains
# Each step beside the one that it changes.
BEFORE = {
    "128 x 256, exchanged": "128 x 256",
    "64 x 128, exchanged": "64 x 128",
    "rest shared": "64 x 128, exchanged",
    "addresses late": "rest shared",
    "copies apart": "addresses late",
}
if not ct.tool.running():
    ct.table(
        "gain of a step",
        {
            name: {
                size: 100 * (rates[name][size] / rates[before][size] - 1)
                for size in units
            }
            for name, before in BEFORE.items()
        },
        corner="variant",
        units=dict.fromkeys(units, "%"),
    )

# %% back
ct.table(
    "taken back",
    {name: rates[name] for name in ["copies apart", *BACK]},
    corner="variant",
    units=units,
)

# %% reached
# The last version beside what was wanted: the rate of cuBLAS at 2048, and nine
# tenths of the FMA limit at 8192.
if "cuBLAS" in rates:
    last = rates["copies apart"]
    ct.facts(
        "reached",
        {
            "rate at 2048, of cuBLAS": (
                100 * last["n = 2048"] / rates["cuBLAS"]["n = 2048"],
                "%",
            ),
            "rate at 8192, of the FMA limit": (
                100 * last["n = 8192"] / ct.limits.fma(),
                "%",
            ),
        },
    )

# %% [markdown]
# What the warps wait for, in cycles per issued instruction, and the slots used.

# %% counters
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {
    "dispatch": STALL.format("dispatch_stall"),
    "barrier": STALL.format("barrier"),
    "shared memory": STALL.format("short_scoreboard"),
    "slots used": "smsp__issue_active.avg.pct_of_peak_sustained_active",
}
counted = ct.profile_launches(
    "gemm/attempts_steps",
    "regex:attempt|gemm|Kernel",
    list(METRICS.values()),
    launches=len(VARIANTS) + ct.vendor.installed(),
)
if counted:
    ct.table(
        "warps that wait, per issued instruction",
        {
            name: {what: one[metric] for what, metric in METRICS.items()}
            for name, one in zip([*VARIANTS, "cuBLAS"], counted)
        },
        corner="variant",
        units={"slots used": "%"},
    )
