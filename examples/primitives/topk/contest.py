# ---
# jupyter:
#   cudatut:
#     title: {en: "Top-k: by size", zh: "Top-k：按大小"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       rounds: [25, 1]
#       shrink: [1, 64]
# ---

# %% [markdown]
# Rows, lengths and k of many kinds, beside PyTorch; and what other shapes of
# the same kernel take.

# %% setup
import numpy as np
from cudatut.book.primitives.topk.topk import TopK, compile_ahead
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

rounds = 25
shrink = 1
host = ct.rng(0).standard_normal(1 << 26, dtype="float32")[:: shrink * shrink]


# %% gpu
ct.facts("this GPU", {"SMs": ct.device().sm_count})

# %% problem


def problem(rows, n, k):
    """A matrix, and where its best numbers go."""
    n = min(max(n // shrink, k), host.size)
    rows = min(rows, host.size // n)
    x = ct.to_device(host[: rows * n].reshape(rows, n))
    values = ct.empty((rows, k), "float32")
    return x, values, ct.empty((rows, k), "int32")


def check(k, x, values, indices, run, name):
    """The first and the last row against NumPy."""
    run()
    for r in (0, x.shape[0] - 1):
        row = x[r].get()
        best = np.argpartition(-row, k - 1)[:k]
        best = best[np.lexsort((best, -row[best]))]
        ct.check(values[r], row[best], name=name, rtol=0, atol=0)
        ct.check(indices[r], best, name=f"{name}: where they lie", rtol=0)


# %% by-size
SIZES = (
    (1, 128_256, 50),
    (8, 128_256, 50),
    (64, 128_256, 1),
    (64, 128_256, 50),
    (64, 128_256, 256),
    (64, 128_256, 1024),
    (256, 128_256, 50),
    (1024, 32_000, 50),
    (4096, 4096, 8),
    (1, 1 << 26, 100),
)

compile_ahead([("stream", {"BLOCKS": 2**e}) for e in range(6)])  # side by side


def contest(rows, n, k):
    arrays = problem(rows, n, k)
    best = TopK(*arrays[0].shape, k)
    name = f"{rows} x {n}, k = {k}"
    check(k, *arrays, lambda: best(*arrays), name)
    return ct.bench(
        {
            "stream": lambda: best(*arrays),
            "torch.topk": rival(
                lambda torch, s: lambda: torch.topk(s, k), arrays[0]
            ),
        },
        bytes=4 * arrays[0].size,
        name=name,
        rounds=rounds,
    )


contests = {f"{r} x {n}, k = {k}": contest(r, n, k) for r, n, k in SIZES}

# %% table
if not ct.tool.running():
    ct.table(
        "by size",
        {
            name: {
                "stream": one["stream"].median_us,
                "torch.topk": one["torch.topk"].median_us,
                "torch.topk / stream": one.ratio("stream", "torch.topk").median,
            }
            for name, one in contests.items()
        },
        corner="rows x numbers, k",
        units={
            "stream": "us",
            "torch.topk": "us",
            "torch.topk / stream": "×",
        },
    )

# %% [markdown]
# 64 rows of 128,256 and k = 50 again, each time with one thing changed.

# %% shapes
SHAPES = {
    "two blocks of 1024": {"BLOCKS": 2},
    "a block for a row": {"BLOCKS": 1},
    "four blocks for a row": {"BLOCKS": 4},
    "blocks of 512": {"BLOCKS": 2, "THREADS": 512},
    "a step ahead": {"BLOCKS": 2, "AHEAD": 1},
    "two steps ahead": {"BLOCKS": 2, "AHEAD": 2},
    "at most 16 more": {"BLOCKS": 2, "SLACK": 16},
    "prune in line": {"BLOCKS": 2, "INLINED": 1},
}
compile_ahead([("stream", plan) for plan in SHAPES.values()])  # side by side
arrays = problem(64, 128_256, 50)
runs = {}
for name, plan in SHAPES.items():
    best = TopK(*arrays[0].shape, 50, **plan)
    runs[name] = lambda best=best: best(*arrays)
    check(50, *arrays, runs[name], name)
shapes = ct.bench(
    runs, bytes=4 * arrays[0].size, name="shapes of stream", rounds=2 * rounds
)
