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
        "en": "cuBLAS cuts k among several blocks at 256 x 256 x 256. Tried with a small C and a longer k: times as fast as one block per tile.",
        "zh": "cuBLAS 在 256 x 256 x 256 上把 k 分给几个线程块。这里用小的 C 和更长的 k 来试，看比每个分块只用一个线程块快几倍。",
    },
    predicted="> 1",
    measured=round(gain, 2),
    unit="times",
    verdict="confirmed" if gain > 1.1 else "refuted",
)
