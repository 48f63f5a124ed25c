# ---
# jupyter:
#   cudatut:
#     title: {en: "The way to the final kernel", zh: "通向最终 kernel 的路"}
#     requires: sm_80
#     timeout_s: 120
#     sizes: {N: [4096, 136]}
# ---

# %% [markdown]
# Instances of the final kernel that were tried. First one of them as a whole
# program: four blocks on an SM.

# %% program
import numpy as np
import cudatut as ct

Gemm, sgemm = ct.shared("gemm/ladder").Gemm, ct.shared("gemm/sgemm")
N = 4096
problem = Gemm(N, N, N)
a, b, c = problem.a, problem.b, problem.c
# Rows, columns and depth of a tile, rows and columns of a thread's results,
# stages, blocks on an SM.
config = sgemm.Config(64, 128, 16, 8, 8, 2, 4, rate=0.8)
kernel = ct.Kernel("gemm/final.cu", config.name(4, False, False))
tiles = ct.cdiv(N, config.bm) * ct.cdiv(N, config.bn)
unused = ct.empty(4, "float32"), ct.to_device(np.zeros(1, "uint32"))


def four_blocks():
    kernel(
        N, N, N, 1.0, a, N, b, N, 0.0, c, N, tiles, 1, ct.cdiv(N, 16) * 16,
        *unused, grid=tiles, block=config.threads,
        shared=config.shared(False, False),
    )  # fmt: skip


four_blocks()
problem.compare(f"four blocks, n = {N}")
ct.bench(
    {"four blocks": four_blocks, **problem.vendors()},
    flops=problem.flops,
    name=f"n = {N}",
    rounds=10,
)

# %% setup
import loops


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
ct.compile_ahead(
    [("gemm/final.cu", one.name(4, False, False)) for one in configs.values()]
)

# %% [markdown]
# All of them are right. Then what their machine code promises, and what they
# reach.

# %% check
runs = {}
for name, config in configs.items():
    runs[name] = sgemm.prepare(a, b, c, config=config, splits=1)
    ct.poison(c)
    runs[name]()
    problem.compare(f"{name}, n = {N}")

# %% predict
# TFLOP/s, if each issue slot were an FMA
peak = ct.device().sm_count * 256 * ct.attributes()["CLOCK_RATE"] / 1e9
read = {}
names = [] if ct.tool.running() else list(configs)
codes = loops.disassemble_all(runs[name].kernel for name in names)
for name, code in zip(names, codes):
    config, run = configs[name], runs[name]
    needs = run.kernel.resources(config.threads, run.shared)
    turn = loops.main_turn(code, config.bk * config.tm * config.tn)
    fmas = loops.count(turn)["FFMA"]
    read[name] = {
        "registers": needs.registers,
        "spilled bytes": needs.spill_bytes,
        "warps per SM": needs.blocks_per_sm * config.threads // 32,
        "FFMA": 100 * loops.share(turn),
        "two words of one bank": 100 * loops.bank_conflicts(turn) / fmas,
        "bound": loops.share(turn) * peak,
    }

# %% bench
times = ct.bench(
    {**runs, **problem.vendors()},
    flops=problem.flops,
    name=f"whole tiles, n = {N}",
    rounds=12,
)

# %% tried
if read:
    ct.table(
        "instances that were tried",
        {
            row.name: {**read.get(row.name, {}), "measured": row.value}
            for row in times.rows_
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
if read:
    by_bound = sorted(configs, key=lambda name: -read[name]["bound"])
    by_rate = sorted(configs, key=lambda name: -times[name].value)
    ct.facts(
        "the fastest one",
        {
            "by the bound": by_bound[0],
            "measured": by_rate[0],
            "place of the first by the bound": by_rate.index(by_bound[0]) + 1,
        },
    )
