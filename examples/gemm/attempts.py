# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel", zh: "通向最终 kernel 的路"}
#     requires: sm_80
#     timeout_s: 120
# ---

# %% [markdown]
# Instances of the final kernel that were tried: what their machine code promises, and what they reach.

# %% setup
import loops
import sgemm
from ladder import Gemm

import cudatut as ct
from cudatut import tool
from cudatut.tuning import compile_ahead

N = ct.size(4096, 136)
# Rows, columns and depth of a tile, rows and columns of a thread's results, stages, blocks on an SM.
TRIED = {
    "64 x 128": (64, 128, 16, 8, 8, 3, 3),
    "128 x 256, 8 x 16": (128, 256, 16, 8, 16, 4, 1),
    "64 x 128, depth 32": (64, 128, 32, 8, 8, 2, 3),
    "64 x 128, four blocks": (64, 128, 16, 8, 8, 2, 4),
    "128 x 128, 8 x 16": (128, 128, 16, 8, 16, 3, 2),
    "256 x 128, 16 x 8": (256, 128, 16, 16, 8, 4, 1),
    "128 x 192, 8 x 12": (128, 192, 16, 8, 12, 4, 1),
    "64 x 192, 8 x 12": (64, 192, 16, 8, 12, 3, 3),
}
configs = {
    name: sgemm.Config(*numbers, rate=0.8) for name, numbers in TRIED.items()
}
compile_ahead(
    [("gemm/final.cu", one.name(4, False, False)) for one in configs.values()]
)

# %% check
problem = Gemm(N, N, N)
arrays, runs = (problem.a, problem.b, problem.c), {}
for name, config in configs.items():
    runs[name] = sgemm.prepare(*arrays, config=config, splits=1)
    ct.poison(problem.c)
    runs[name]()
    problem.compare(f"{name}, n = {N}")

# %% predict
peak = (
    ct.device().sm_count * 256 * ct.attributes()["CLOCK_RATE"] / 1e9
)  # TFLOP/s, all slots FMAs
rows = {}
names = [] if tool.running() else list(configs)
codes = loops.disassemble_all(runs[name].kernel for name in names)
for name, code in zip(names, codes):
    config, kernel, run = configs[name], runs[name].kernel, runs[name]
    needs = kernel.resources(config.threads, run.shared)
    turn = loops.main_turn(code, config.bk * config.tm * config.tn)
    rows |= {
        f"{name}: registers": needs.registers,
        f"{name}: spilled bytes": needs.spill_bytes,
        f"{name}: warps per SM": needs.blocks_per_sm * config.threads // 32,
        f"{name}: FFMA": (100 * loops.share(turn), "%"),
        f"{name}: two words of one bank": (
            100 * loops.bank_conflicts(turn) / loops.count(turn)["FFMA"],
            "%",
        ),
        f"{name}: bound": (loops.share(turn) * peak, "TFLOP/s"),
    }
ct.facts("read from the machine code", rows)

# %% bench
times = ct.bench(
    {**runs, **problem.vendors()},
    flops=problem.flops,
    name=f"whole tiles, n = {N}",
    rounds=12,
)

# %% orders
if rows:
    by_bound = sorted(configs, key=lambda name: -rows[f"{name}: bound"][0])
    by_rate = sorted(configs, key=lambda name: -times[name].value)
    ct.facts(
        "fastest",
        {
            "by the bound": by_bound[0],
            "measured": by_rate[0],
            "place of the first by the bound": by_rate.index(by_bound[0]) + 1,
        },
    )
