# ---
# jupyter:
#   cudatut:
#     title: {en: "Autotuning: solutions", zh: "自动调优：参考答案"}
#     requires: sm_80
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# How often a race finds the fastest, simulated; and a rule against tiles that
# leave the GPU idle.

# %% given-1
import numpy as np

rng = np.random.default_rng(0)
# Microseconds: each candidate 1 % slower than the one before.
true = 100 * (1 + 0.01 * np.arange(32))


# %% solution-1
def picked(rounds, scatter, trials=2000):
    """How often (%) the fastest wins by the median of so many rounds, and how
    much (%) too slow the winner is on average."""
    noise = 1 + scatter * rng.standard_normal((trials, len(true), rounds))
    winners = np.median(true[:, None] * noise, axis=2).argmin(axis=1)
    right = 100 * (winners == 0).mean()
    return right, 100 * (true[winners] / true[0] - 1).mean()


# %% check-1
from statistics import NormalDist

import cudatut as ct


def chance(scatter):
    """How often (%) the fastest wins by one run of each, integrated."""
    z = np.linspace(-5, 5, 801)
    slower = true[0] * (1 + scatter * z)[:, None] / true[1:] - 1
    behind = np.vectorize(NormalDist().cdf)(-slower / scatter).prod(axis=1)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return 100 * (behind * density).sum() * (z[1] - z[0])


for scatter in (0.01, 0.05):
    right, _ = picked(1, scatter)
    name = f"right, one round, scatter {scatter:.0%}"
    ct.check([right], [chance(scatter)], name=name, atol=5)
# Five times the scatter needs 25 times the rounds, and a median needs pi / 2
# times as many as a mean: 39.
lost = [picked(40, 0.05)[1], picked(1, 0.01)[1]]
ct.check(lost[:1], lost[1:], name="lost, scatter 5% and 1%", atol=0.1, rtol=0)

# %% [markdown]
# The answers to the task.

# %% answers-1
rows = {}
for scatter in (0.01, 0.05):
    for rounds in (1, 5, 40):
        right, lost = picked(rounds, scatter)
        rows[f"{scatter:.0%}, {rounds}"] = {
            "the fastest wins": right,
            "lost on average": lost,
        }
ct.table(
    "32 candidates, 1 % apart",
    rows,
    corner="scatter, rounds",
    units={"the fastest wins": "%", "lost on average": "%"},
)

# %% given-2
from cudatut.book.gemm.ladder import autotuning_space as space
import cudatut as ct

gpu = space.Limits.of(ct.device())


# %% solution-2
def busy(config, m, n, sms=gpu.sms):
    """Share of the block slots that work on an m x n product."""
    tiles = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn)
    slots = sms * config.blocks
    return tiles / (ct.cdiv(tiles, slots) * slots)


# %% check-2
import heapq


def simulated(config, m, n):
    """The same, by handing each tile to the slot that is free first."""
    free = [0] * (gpu.sms * config.blocks)
    tiles = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn)
    for _ in range(tiles):
        heapq.heapreplace(free, free[0] + 1)
    return tiles / (max(free) * len(free))


steps, left = space.prune(gpu)
few = left[:: max(1, len(left) // 40)]
for size in (1000, 2048):
    ct.check(
        [busy(config, size, size) for config in few],
        [simulated(config, size, size) for config in few],
        name=f"slots that work, {size} x {size}",
    )

# %% [markdown]
# What the rule leaves at each size.

# %% left-2
rows = {"before the rule": len(left)}
for size in (512, 1024, 2048, 4096, 8192):
    rows[f"left at {size}"] = sum(
        busy(config, size, size) >= 0.8 for config in left
    )
ct.facts("at least 80 % of the slots work", rows)
