# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel: solutions", zh: "通向最终 kernel 的路：参考答案"}
#     requires: sm_80
#     timeout_s: 120
#     sizes: {N: [4096, 136]}
# ---

# %% [markdown]
# The registers that a thread can have, and an instance that was not tried.

# %% given-1
from cudatut.book.gemm.kernels import sgemm

NUMBERS = {
    "64 x 128": (64, 128, 16, 8, 8, 3, 3),
    "64 x 128, two stages": (64, 128, 16, 8, 8, 2, 4),
    "128 x 256": (128, 256, 16, 8, 16, 4, 1),
    "32 x 64": (32, 64, 16, 4, 4, 4, 5),
}
CONFIGS = {name: sgemm.Config(*n, rate=0.8) for name, n in NUMBERS.items()}


# %% solution-1
def most_registers(config):
    """Registers that a thread can have, if the blocks shall share an SM."""
    each = 65_536 // (config.threads * config.blocks)
    return min(255, each // 8 * 8)


# %% check-1
import cudatut as ct

for (name, config), most in zip(CONFIGS.items(), (168, 128, 255, 96)):
    name += f", blocks = {config.blocks}"
    ct.check([most_registers(config)], [most], name=name)

# %% given-2
from dataclasses import astuple

from cudatut.book.gemm.kernels import sgemm
from cudatut.book.gemm.ladder.ladder import Gemm

TRIED = {  # BM, BN, BK, TM, TN, stages, blocks
    (64, 128, 16, 8, 8, 3, 3),
    (128, 256, 16, 8, 16, 4, 1),
    (64, 128, 32, 8, 8, 2, 3),
    (64, 128, 16, 8, 8, 2, 4),
    (128, 128, 16, 8, 16, 3, 2),
    (256, 128, 16, 16, 8, 4, 1),
    (128, 192, 16, 8, 12, 4, 1),
    (64, 192, 16, 8, 12, 3, 3),
}

# %% solution-2
# Twice as high: rows of B are read half as often, and two blocks of 8 warps
# bring 16 warps to an SM. We expect at most 128 registers.
MINE = sgemm.Config(128, 128, 16, 8, 8, 3, 2, rate=0.8)

# %% check-2
import cudatut as ct

ct.check([int(astuple(MINE)[:7] in TRIED)], [0], name="tried before")
for m, n, k in ((300, 200, 100), (257, 131, 33)):
    problem = Gemm(m, n, k)
    arrays = problem.a, problem.b, problem.c
    sgemm.prepare(*arrays, config=MINE, splits=1)()
    problem.compare(f"{m} x {n} x {k}")

# %% [markdown]
# Both beside the instance that `sgemm` takes, with whole tiles.

# %% contest
N = 4096
problem = Gemm(N, N, N)
arrays = problem.a, problem.b, problem.c
entries = {
    "64 x 128, blocks = 3": sgemm.CONFIGS[0],
    "64 x 128, blocks = 4": CONFIGS["64 x 128, two stages"],
    "128 x 128, blocks = 2": MINE,
}
runs = {
    name: sgemm.prepare(*arrays, config=config, splits=1)
    for name, config in entries.items()
}
for name, run in runs.items():
    ct.poison(problem.c)
    run()
    problem.compare(name)
rates = ct.bench(runs, flops=problem.flops, name=f"n = {N}", rounds=12)

# %% needs
rows = {}
for name, config in entries.items():
    kernel, shared = runs[name].kernel, runs[name].shared
    needs = kernel.resources(config.threads, shared)
    rows[name] = {
        "registers at most": most_registers(config),
        "registers": needs.registers,
        "spilled bytes": needs.spill_bytes,
        "warps per SM": needs.blocks_per_sm * config.threads // 32,
        "rate": rates[name].value,
    }
ct.table("needs", rows, corner="instance", units={"rate": "TFLOP/s"})
