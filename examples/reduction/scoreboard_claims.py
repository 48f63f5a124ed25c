# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of sums: claims", zh: "求和排行榜：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
#     sizes: {n: [1048576, 4096]}
# ---

# %% [markdown]
# A tolerance from slides, held against the best float there is.

# %% tolerance-claim
import math

import numpy as np
import cudatut as ct

n = 1_048_576
positive = ct.rng(2).random(n, dtype="float32")
exact = math.fsum(positive.tolist())
best = abs(float(np.float32(exact)) - exact)
ct.device()
ct.claim(
    id="sum-absolute-tolerance",
    source="CUDA slides 2.3",
    statement={
        "en": "A float32 result is right when it differs from the reference by less than 1e-4. Held against the float32 "
        "number nearest to the exact sum, the best that any float32 kernel can return.",
        "zh": "float32 的结果与参考值相差不到 1e-4，就算正确。这里拿离精确和最近的 float32 数来检验，它是任何 float32 kernel 能给出的最好结果。",
    },
    predicted=1e-4,
    measured=best,
    unit="largest difference",
    verdict="confirmed" if best < 1e-4 else "refuted",
)
