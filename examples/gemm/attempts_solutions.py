# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel: solutions", zh: "通向最终 kernel 的路：参考答案"}
#     requires: sm_80
#     timeout_s: 120
# ---

# %% [markdown]
# Two instances of the final kernel that did not make it, predicted and measured.

# %% setup
import sgemm
from ladder import Gemm

import cudatut as ct
from cudatut import tool

N = ct.size(4096, 136)
problem = Gemm(N, N, N)
TAKEN = sgemm.CONFIGS[0]


def contest(name, config):
    """Check an instance, say what it needs, and time it beside the one that `sgemm` takes; whole tiles in both."""
    arrays = problem.a, problem.b, problem.c
    runs = {
        "64 x 128, 3 blocks": sgemm.prepare(*arrays, config=TAKEN, splits=1),
        name: sgemm.prepare(*arrays, config=config, splits=1),
    }
    ct.poison(problem.c)
    runs[name]()
    problem.compare(name)  # ends in ct.check
    rows = {}
    for label, one in zip(runs, (TAKEN, config)):
        needs = runs[label].kernel.resources(one.threads, runs[label].shared)
        rows |= {
            f"{label}: registers": needs.registers,
            f"{label}: spilled": (needs.spill_bytes, "B"),
            f"{label}: warps per SM": needs.blocks_per_sm * one.threads // 32,
        }
    ct.facts("needs", rows)
    if not tool.running():
        ct.bench(runs, flops=problem.flops, name=f"n = {N}", rounds=12)


# %% solution-1
contest("four blocks", sgemm.Config(64, 128, 16, 8, 8, 2, 4, rate=0.8))

# %% solution-2
# Twice as high: rows of B are read half as often, and two blocks of 8 warps have 16 warps to an SM.
# Expected: as many warps as above, hence at most 128 registers, and the same conflicts of banks.
contest("128 x 128, 2 blocks", sgemm.Config(128, 128, 16, 8, 8, 3, 2, rate=0.8))
