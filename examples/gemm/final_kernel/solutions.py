# ---
# jupyter:
#   cudatut:
#     title: {en: "The final kernel: solutions", zh: "最终的 kernel：参考答案"}
#     requires: sm_80
#     timeout_s: 120
#     sizes: {side: [2048, 128], DEPTH: [2048, 64]}
# ---

# %% [markdown]
# The order of the FMAs within a depth.

# %% given-1
import cudatut as ct
from cudatut.book.measure import loops
import numpy as np
from cudatut.book.gemm.kernels import sgemm

CONFIG = sgemm.CONFIGS[0]  # 64 x 128, 8 x 8 results per thread
SOURCE = ct.paths.resolve_source("gemm/ladder/final.cu").read_text(
    encoding="utf-8"
)


def keeping(kernel):
    """Share of the main loop's FMAs that keep a word for the next one."""
    fmas = CONFIG.bk * CONFIG.tm * CONFIG.tn
    turn = loops.main_turn(loops.disassemble(kernel), fmas)
    texts = [i.text for i, _ in turn if i.op == "FFMA"]
    return sum(".reuse" in text for text in texts) / len(texts)


# %% solution-1
def always_down(source):
    """final.cu with one line of `multiply` changed."""
    return source.replace(
        "const int i = j % 2 ? TM - 1 - step : step;", "const int i = step;"
    )


# %% check-1
import cudatut as ct

matrices = ct.rng(0).random((2, 128, 128), dtype="float32") - np.float32(0.5)
a, b = (ct.to_device(matrix) for matrix in matrices)
out, share = {}, {}
for name, source in (("final", SOURCE), ("mine", always_down(SOURCE))):
    out[name] = ct.empty((128, 128), "float32")
    run = sgemm.prepare(a, b, out[name], config=CONFIG, splits=1, source=source)
    run()
    share[name] = keeping(run.kernel)
ct.check(out["mine"], out["final"].get(), name="the same bits", rtol=0, atol=0)
fewer = int(share["mine"] < share["final"] - 0.05)
ct.check([fewer], [1], name="fewer FMAs keep a word")

# %% [markdown]
# What it costs.

# %% bench-1
side = 2048
left, right = (
    ct.to_device(
        ct.rng(i).random((side, side), dtype="float32") - np.float32(0.5)
    )
    for i in (0, 1)
)
c = ct.empty((side, side), "float32")
variants = {"down and up": SOURCE, "always down": always_down(SOURCE)}
runs = {
    name: sgemm.prepare(left, right, c, config=CONFIG, splits=1, source=source)
    for name, source in variants.items()
}
rates = ct.bench(runs, flops=2 * side**3, name=f"n = {side}", rounds=15)
ct.table(
    "order of the FMAs",
    {
        name: {"keep a word": 100 * kept, "rate": rates[name].value}
        for name, kept in zip(runs, (share["final"], share["mine"]))
    },
    corner="order",
    units={"keep a word": "%", "rate": "TFLOP/s"},
)

# %% [markdown]
# The two numbers that the cost model knows about a configuration.

# %% given-2
from cudatut.book.gemm.kernels import sgemm
import cudatut as ct

SMS = ct.device().sm_count


# %% solution-2
def share_of_limit(cycles, blocks, depth, config):
    """Share of its FMA limit that an SM with so many blocks reaches."""
    work = config.bm * config.bn * depth / 128  # cycles, all lanes busy
    return blocks * work / (cycles - config.start - blocks * config.end)


# %% check-2
import cudatut as ct

for config in sgemm.CONFIGS:
    for blocks in (1, config.blocks):
        cycles = sgemm.span(config, blocks * SMS, 2048, SMS)
        got = share_of_limit(cycles, blocks, 2048, config)
        name = f"{config.label}, blocks = {blocks}"
        ct.check([got], [sgemm.share(config, blocks)], name=name, rtol=1e-9)

# %% [markdown]
# Measured on this GPU: one row of tiles, with one block or with all blocks on
# each SM. Then what the model chooses with these numbers.

# %% measure-2
from dataclasses import replace
from statistics import fmean, median

import numpy as np


DEPTH = 2048
watched = ct.tool.running()
ct.compile_ahead(
    [
        ("gemm/ladder/final.cu", one.name(4, False, False))
        for one in sgemm.CONFIGS
    ]
)
clock = ct.attributes()["CLOCK_RATE"] / 1e3  # cycles per microsecond
measured, rows = {}, {}
# The tile with 16 rows would measure memory: its strip of B is long.
tall = [config for config in sgemm.CONFIGS if config.bm >= 32]
for config in tall[-1:] if watched else tall:
    model, clocked = [], []
    for blocks in (1, config.blocks):  # on each SM
        m, n = config.bm * blocks, config.bn * (1 if watched else SMS)
        a, b = (
            ct.to_device(ct.rng(2).random(shape, dtype="float32"))
            for shape in ((m, DEPTH), (DEPTH, n))
        )
        c = ct.empty((m, n), "float32")
        run = sgemm.prepare(a, b, c, config=config, splits=1)
        run()
        expected = a.get().astype("float64") @ b.get()[:, :32]
        name = f"{config.label}, blocks = {blocks}"
        ct.check(c.get()[:, :32], expected, name=name, rtol=1e-4)
        if watched:
            continue
        took = median(ct.time_hidden(run) for _ in range(11))
        cycles = took * clock - sgemm.COSTS.launch
        model.append(sgemm.share(config, blocks))
        clocked.append(share_of_limit(cycles, blocks, DEPTH, config))
    if not watched:
        measured[config] = replace(
            config,
            alone=config.alone * clocked[0] / model[0],
            rate=config.rate * clocked[1] / model[1],
        )
        rows[config.label] = {
            "one block, by the model": model[0],
            "one block, measured": clocked[0],
            "full SM, by the model": model[1],
            "full SM, measured": clocked[1],
        }

# %% shares-2
if rows:
    ct.table("share of the FMA limit", rows, corner="tile")

# %% choices
SIZES = (300, 500, 700, 1000, 1500, 2000, 3000, 4000)


def choice(n, configs):
    """The plan of least cost for a square product with these configurations:
    its tile, and the blocks on each of the last tiles."""
    kept, sgemm.CONFIGS = sgemm.CONFIGS, configs
    try:
        plans = sgemm.plans(n, n, n, SMS)
        plan = min(plans, key=lambda plan: sgemm.cost(plan, n, n, n, SMS))
    finally:
        sgemm.CONFIGS = kept
    return f"{plan.config.label}; {plan.splits}"


# The shares in sgemm.py come from another kind of run. What was not measured is
# scaled as the others are on average, or it would be chosen too often.
scale = {
    share: fmean(
        getattr(now, share) / getattr(config, share)
        for config, now in (measured or {tall[0]: tall[0]}).items()
    )
    for share in ("alone", "rate")
}
own = tuple(
    measured.get(config)
    or replace(
        config,
        **{name: getattr(config, name) * by for name, by in scale.items()},
    )
    for config in sgemm.CONFIGS
)
ct.table(
    "tile, and blocks on each of the last tiles",
    {
        n: {
            "in sgemm.py": choice(n, sgemm.CONFIGS),
            "as measured": choice(n, own),
        }
        for n in SIZES
    },
    corner="n",
)
