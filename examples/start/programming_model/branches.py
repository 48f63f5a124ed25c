# ---
# jupyter:
#   cudatut:
#     title: {en: "Branches that agree and branches that do not", zh: "一致的分支与不一致的分支"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [4000037, 4099]
# ---

# %% [markdown]
# Half of the threads take one side of a branch, half the other, and both sides are equally long. What changes is how
# many neighbors take the same side.

# %% setup
import numpy as np

import cudatut as ct

FILE = "start/programming_model/programming_model.cu"
n = 4_000_037
steps = 512
x_host = ct.rng(0).standard_normal(n, dtype="float32")
x, out = ct.to_device(x_host), ct.empty(n, "float32")
thread = np.arange(n) % 256


def side(a, b=0.001):
    """`steps` times v = a * v + b in closed form, with the constants as float32 holds them."""
    a, b = np.float64(np.float32(a)), np.float64(np.float32(b))
    return a**steps * x_host + b * (1 - a**steps) / (1 - a)


odd_side, even_side = side(-0.999), side(0.999)

# %% check
branch = ct.Kernel(FILE, "branch")
branch_by_lane = ct.Kernel(FILE, "branch_by_lane")
branch_by_warp = ct.Kernel(FILE, "branch_by_warp")


def run(kernel, *extra, m=n, out=out):
    kernel(x, out, m, steps, *extra, grid=ct.cdiv(m, 256), block=256)


for m in (n, *(m for m in ct.RAGGED if m < n)):
    for shift in (0, 3, 5):
        small = ct.empty(m, "float32")
        run(branch, shift, m=m, out=small)
        expected = np.where(
            thread[:m] >> shift & 1, odd_side[:m], even_side[:m]
        )
        ct.check(small, expected, name=f"runs of {2**shift}, n={m}", rtol=1e-4)
for kernel, shift in ((branch_by_lane, 0), (branch_by_warp, 5)):
    ct.poison(out)
    run(kernel)
    expected = np.where(thread >> shift & 1, odd_side, even_side)
    ct.check(out, expected, name=kernel.name, rtol=1e-4)

# %% [markdown]
# Bit `shift` of threadIdx.x decides: with 0 neighbors disagree, with 5 runs of 32 threads agree, and bit 31 is 0 for all.

# %% bench
ct.bench(
    {
        "no branch": lambda: run(
            branch, 31
        ),  # bit 31 of threadIdx.x is 0 for all
        "runs of 1": lambda: run(branch, 0),
        "runs of 2": lambda: run(branch, 1),
        "runs of 4": lambda: run(branch, 2),
        "runs of 8": lambda: run(branch, 3),
        "runs of 16": lambda: run(branch, 4),
        "runs of 32": lambda: run(branch, 5),
    },
    flops=2 * steps * n,
    name="two sides of equal work",
)

# %% [markdown]
# How many lanes took part in an instruction on average, and how many instructions were issued.

# %% counters
COUNTERS = [
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__inst_executed.sum",
]
ct.profile_kernels(
    "start/programming_model_branches",
    ["branch_by_lane", "branch_by_warp"],
    COUNTERS,
)
