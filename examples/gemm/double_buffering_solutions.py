# ---
# jupyter:
#   cudatut:
#     title: {en: "Double buffering: solutions", zh: "双缓冲：参考答案"}
#     requires: sm_80
#     timeout_s: 60
# ---

# %% [markdown]
# A schedule simulated before it is run, and a row sum whose chunks arrive early.

# %% setup
import numpy as np

import cudatut as ct


# %% solution-1
def finish(load, multiply, tiles, buffers):
    """Time at which the last of `tiles` tiles is multiplied.

    A load begins once a buffer is free, loads do not hinder each other, and the tiles are multiplied in order.
    """
    done = []
    for tile in range(tiles):
        free = done[tile - buffers] if tile >= buffers else 0
        ready = max(free + load, done[-1] if done else 0)
        done.append(ready + multiply)
    return done[-1]


ct.check(
    np.array([finish(700, 1000, 100, 1)]),
    np.array([170_000]),
    name="one buffer",
)
ct.check(
    np.array([finish(700, 1000, 100, 2)]),
    np.array([100_700]),
    name="two buffers",
)
ct.check(
    np.array([finish(2500, 1000, 100, 2)]),
    np.array([176_000]),
    name="a slow load",
)
ct.check(
    np.array([finish(2500, 1000, 100, 4)]),
    np.array([102_500]),
    name="four buffers",
)
ct.facts(
    "time per tile, multiplication 1000",
    {
        f"load {load}: {buffers} buffers": finish(load, 1000, 100, buffers)
        / 100
        for load in (700, 2500)
        for buffers in (1, 2, 3, 4)
    },
)

# %% solution-2
FILE = "gemm/double_buffering_solutions.cu"
row_sums = {
    1: ct.Kernel(FILE, "row_sums<1>"),
    2: ct.Kernel(FILE, "row_sums<2>"),
    4: ct.Kernel(FILE, "row_sums<4>"),
    8: ct.Kernel(FILE, "row_sums<8>"),
}
for columns in (1, 31, 129, 1000, 4096):
    x_host = ct.rng(0).standard_normal((33, columns), dtype="float32")
    x, expected = ct.to_device(x_host), x_host.sum(axis=1, dtype="float64")
    bound = (
        columns
        * np.finfo("float32").eps
        * float(np.abs(x_host).sum(axis=1).max())
    )
    for ahead, kernel in row_sums.items():
        out = ct.empty(33, "float32")
        kernel(x, out, columns, grid=33, block=128)
        ct.check(
            out,
            expected,
            name=f"{ahead} ahead, {columns} columns",
            rtol=0,
            atol=bound,
        )

# %% bench-2
# One block per SM, so that nobody else hides what this block waits for.
rows, columns = ct.device().sm_count, ct.size(1 << 17, 1 << 10)
x = ct.to_device(ct.rng(1).standard_normal((rows, columns), dtype="float32"))
out = ct.empty(rows, "float32")
ct.bench(
    {
        f"{ahead} ahead": lambda kernel=kernel: kernel(
            x, out, columns, grid=rows, block=128
        )
        for ahead, kernel in row_sums.items()
    },
    bytes=x.nbytes,
    rounds=15,
    name="row sums, one block per SM",
)
