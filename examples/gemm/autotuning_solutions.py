# ---
# jupyter:
#   cudatut:
#     title: {en: "Autotuning: solutions", zh: "自动调优：参考答案"}
#     requires: sm_80
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# How often a race finds the fastest, simulated; and a rule against tiles that leave the GPU idle, held against a simulation.

# %% setup
import heapq

import autotuning_space as space
import numpy as np

import cudatut as ct

# %% solution-1
rng = ct.rng(0)
true = 100 * (
    1 + 0.01 * np.arange(32)
)  # microseconds: each candidate 1 % slower than the one before


def picked(rounds, scatter, trials=2000):
    """How often the fastest wins, and how much too slow the winner is on average (%), by medians of so many rounds."""
    noise = 1 + scatter * rng.standard_normal((trials, len(true), rounds))
    winners = np.median(true[:, None] * noise, axis=2).argmin(axis=1)
    return (winners == 0).mean(), 100 * (true[winners] / true[0] - 1).mean()


rows, regret = {}, {}
for scatter in (0.01, 0.05):
    for rounds in (1, 5, 40):
        right, regret[scatter, rounds] = picked(rounds, scatter)
        rows |= {
            f"scatter {scatter:.0%}, rounds: {rounds}, right": (
                100 * right,
                "%",
            ),
            f"scatter {scatter:.0%}, rounds: {rounds}, lost": (
                regret[scatter, rounds],
                "%",
            ),
        }
ct.facts("32 candidates, 1 % apart", rows)
# Five times the scatter needs 25 times the rounds, and a median pi / 2 times as many as a mean: 39.
ct.check(
    np.array([regret[0.05, 40]]),
    np.array([regret[0.01, 1]]),
    name="lost: 5 %, 40 rounds, and 1 %, one",
    atol=0.1,
    rtol=0,
)

# %% solution-2
gpu = space.Limits.of(ct.device())


def busy(config, m, n, sms=gpu.sms):
    """Share of the block slots that work, if every tile takes one unit of time."""
    tiles, slots = (
        ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn),
        sms * config.blocks,
    )
    return tiles / (ct.cdiv(tiles, slots) * slots)


def simulated(config, m, n, sms=gpu.sms):
    """The same by handing tiles to whichever slot is free first."""
    tiles, slots = (
        ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn),
        sms * config.blocks,
    )
    free = [0] * slots
    for _ in range(tiles):
        heapq.heapreplace(free, free[0] + 1)
    return tiles / (max(free) * slots)


steps, left = space.prune(gpu)
few = left[:: max(1, len(left) // 40)]
for size in (1000, 2048):
    ct.check(
        np.array([busy(config, size, size) for config in few]),
        np.array([simulated(config, size, size) for config in few]),
        name=f"slots that work, {size} x {size}",
    )
rows = {"before the rule": len(left)}
for size in (512, 1024, 2048, 4096, 8192):
    rows[f"left at {size}"] = sum(
        busy(config, size, size) >= 0.8 for config in left
    )
ct.facts("at least 80 % of the slots work", rows)
