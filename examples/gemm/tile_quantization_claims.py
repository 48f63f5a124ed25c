# ---
# jupyter:
#   cudatut:
#     title: {en: "Tile quantization: claims", zh: "分块量化：有关说法"}
#     requires: sm_80
#     timeout_s: 60
#     sizes:
#       side: [256, 64]
#       depth: [16384, 256]
# ---

# %% [markdown]
# What the SGEMM worklog says of splitting the depth, tried.

# %% setup
import numpy as np
import sgemm

import cudatut as ct

side = 256
depth = 16384
rng = ct.rng(0)
a, b = (
    ct.to_device(rng.random(s, dtype="float32") - np.float32(0.5))
    for s in ((side, depth), (depth, side))
)
c = ct.empty((side, side), "float32")

# %% bench
config = sgemm.plan(side, side, depth, ct.device().sm_count).config
arguments = side, side, depth, 1.0, a, depth, b, side, 0.0, c, side
runs = {
    f"{s} per tile": sgemm.launcher(*arguments, config=config, splits=s)
    for s in (1, 2, 4, 8, 16, 32)
}
expected = a.get().astype("float64") @ b.get()
for name, run in runs.items():
    ct.poison(c)
    run()
    ct.check(c, expected, name=name, rtol=1e-4)
found = ct.bench(
    runs,
    flops=2 * side * side * depth,
    name=f"{side} x {side} x {depth}",
    rounds=20,
)

# %% gain
one = found["1 per tile"].median_us
gain = one / min(found[name].median_us for name in runs)
ct.claim(
    id="split-k-small-c",
    source="SGEMM worklog, notes on cuBLAS",
    statement={
        "en": "For a small C and a long k it pays to cut k among several blocks. Times as fast as one block per tile.",
        "zh": "C 很小而 k 很长时，把 k 分给几个线程块更快。下面是相对每个分块只用一个线程块的加速倍数。",
    },
    predicted="> 1",
    measured=round(gain, 2),
    unit="times",
    verdict="confirmed" if gain > 1.1 else "refuted",
)
