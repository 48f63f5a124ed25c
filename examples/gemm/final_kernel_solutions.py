# ---
# jupyter:
#   cudatut:
#     title: {en: "The final kernel: solutions", zh: "最终的 kernel：参考答案"}
#     requires: sm_80
#     timeout_s: 120
# ---

# %% [markdown]
# The order of the FMAs within a depth; and the two numbers that the cost model knows about a configuration, measured.

# %% setup
from dataclasses import replace
from statistics import median

import loops
import numpy as np
import sgemm

import cudatut as ct
from cudatut import paths, tool
from cudatut.timing import time_hidden
from cudatut.tuning import compile_ahead

SMS = ct.device().sm_count
CONFIG = sgemm.CONFIGS[0]

# %% solution-1
SOURCE = (paths.examples_dir() / "gemm/final.cu").read_text(encoding="utf-8")
ALWAYS_DOWN = SOURCE.replace(
    "const int i = j % 2 ? TM - 1 - step : step;", "const int i = step;"
)
name = CONFIG.name(4, False, False)
kernels = {
    "down and up": sgemm.kernel(name),
    "always down": ct.Kernel(ALWAYS_DOWN, name),
}
side = ct.size(2048, 128)
left, right = (
    ct.to_device(
        ct.rng(i).random((side, side), dtype="float32") - np.float32(0.5)
    )
    for i in (0, 1)
)
tiles = (side // CONFIG.bm) * (side // CONFIG.bn)
unused = ct.empty(4, "float32"), ct.to_device(np.zeros(4, "uint32"))
out = {label: ct.empty((side, side), "float32") for label in kernels}


def runner(label):
    """A callable: C by whole tiles."""
    return lambda: kernels[label](
        side, side, side, 1.0, left, side, right, side, 0.0, out[label], side,
        tiles, 1, ct.cdiv(side, CONFIG.bk) * CONFIG.bk, *unused,
        grid=tiles, block=CONFIG.threads, shared=CONFIG.shared(False, False),
    )  # fmt: skip


runs = {label: runner(label) for label in kernels}
for run in runs.values():
    run()
# Each result adds the same products in the same order: the same bits.
ct.check(
    out["always down"],
    out["down and up"].get(),
    name="always down",
    rtol=0,
    atol=0,
)
rows = {}
for label, kernel in {} if tool.running() else kernels.items():
    turn = loops.main_turn(
        loops.disassemble(kernel), CONFIG.bk * CONFIG.tm * CONFIG.tn
    )
    fmas = [i for i, _ in turn if i.op == "FFMA"]
    rows |= {
        f"{label}: FFMA with .reuse": (
            100 * sum(".reuse" in i.text for i in fmas) / len(fmas),
            "%",
        ),
        f"{label}: FFMA": (100 * loops.share(turn), "%"),
    }
ct.facts("machine code", rows)
bench = ct.bench(runs, flops=2 * side**3, name=f"n = {side}", rounds=15)

# %% solution-2
DEPTH = ct.size(2048, 64)
compile_ahead(
    [
        ("gemm/final.cu", config.name(4, False, False))
        for config in sgemm.CONFIGS
    ]
)
once = (lambda run: 1.0) if tool.running() else time_hidden
clock = ct.attributes()["CLOCK_RATE"] / 1e3  # cycles per microsecond
measured, rows = {}, {}
for config in sgemm.CONFIGS if ct.size(1, 0) else sgemm.CONFIGS[-1:]:
    took = {}
    for blocks in (1, config.blocks):  # on each SM
        n = config.bn * blocks * ct.size(SMS, 1)
        a, b = (
            ct.to_device(ct.rng(2).random(shape, dtype="float32"))
            for shape in ((config.bm, DEPTH), (DEPTH, n))
        )
        c = ct.empty((config.bm, n), "float32")
        run = sgemm.prepare(a, b, c, config=config, splits=1)
        run()
        expected = a.get().astype("float64") @ b.get()[:, :64].astype("float64")
        ct.check(
            c.get()[:, :64],
            expected,
            name=f"{config.bm} x {config.bn}, {blocks}",
            rtol=1e-4,
        )
        took[blocks] = median(once(run) for _ in range(11))
    work = (
        config.bm * config.bn * DEPTH / 128
    )  # cycles of an SM whose lanes are all busy
    overhead = 1500 + config.bm * config.bn * 4 / 32  # as in `span`
    alone, rate = (
        blocks * work / max(took[blocks] * clock - overhead, 1.0)
        for blocks in (1, config.blocks)
    )
    measured[config] = replace(config, rate=rate, alone=alone)
    label = f"{config.bm} x {config.bn}"
    rows |= {
        f"{label}: rate, in sgemm.py": config.rate,
        f"{label}: rate, measured": rate,
        f"{label}: alone, in sgemm.py": config.alone,
        f"{label}: alone, measured": alone,
    }
ct.facts("share of the FMA units' cycles", rows)

# %% choices
SIZES = (300, 500, 700, 1000, 1500, 2000, 3000, 4000)


def choice(n, configs):
    """The plan of least cost for a square product, if these are the configurations."""
    kept, sgemm.CONFIGS = sgemm.CONFIGS, configs
    try:
        plans = sgemm.plans(n, n, n, SMS)
        return min(plans, key=lambda plan: sgemm.cost(plan, n, n, n, SMS))
    finally:
        sgemm.CONFIGS = kept


def told(plan):
    return f"{plan.config.bm} x {plan.config.bn}, {plan.splits}"


own = tuple(measured.get(config, config) for config in sgemm.CONFIGS)
ct.facts(
    "tile, and blocks on each of the last tiles: as it is / as measured",
    {
        f"n = {n}": f"{told(choice(n, sgemm.CONFIGS))} / {told(choice(n, own))}"
        for n in SIZES
    },
)
