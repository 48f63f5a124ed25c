# ---
# jupyter:
#   cudatut:
#     title: {en: "Double buffering: claims", zh: "双缓冲：有关说法"}
#     requires: sm_80
#     timeout_s: 60
#     alone: false
#     sizes: {depth: [512, 64], first: [24, 2], count: [16, 4], most: [64, 1]}
# ---

# %% [markdown]
# Two buffers and loads that come as late as with one: the clock of the SM, with
# one block per SM.

# %% setup
import math

import numpy as np
from ladder import Gemm

import cudatut as ct

sms = ct.device().sm_count
depth = 512
first = 24
count = 16
most = 64

# %% claim-late
kernel = ct.Kernel(
    "gemm/double_buffering.cu", "ordered<8, TWO_BUFFERS, true, true>"
)
wide = min(most, math.isqrt(sms))
high = min(2 * most, sms // wide)
problem = Gemm(128 * high, 128 * wide, depth)
stamps = ct.to_device(np.zeros((wide * high, count, 4), "uint32"))
for _ in range(2):  # the first launch brings A and B into the L2 cache
    ct.poison(problem.c)
    kernel(
        problem.a,
        problem.b,
        problem.c,
        problem.n,
        problem.k,
        stamps,
        first,
        count,
        grid=(wide, high),
        block=256,
    )
problem.compare("two buffers, loads late")
raw = stamps.get()
at = (raw - raw[:, :1, :1]).astype("int32")
begun, done = at[:, :, 2], at[:, :, 3]
step = float(np.median(np.diff(begun, axis=1)))
multiplication = float(np.median(done - begun))
ct.claim(
    id="double-buffer-seed",
    source="CUDATutorial 11/04",
    statement={
        "en": "Two buffers alone, each tile still loaded right before it is "
        "multiplied, hide the loads: a step takes no longer than its "
        "multiplication",
        "zh": "只要有两个缓冲区，即使每个分块仍是先加载、紧接着就乘，加载也会被掩盖：一步不比乘法本身更长",
    },
    predicted=1.0,
    measured=step / multiplication,
    unit="step / multiplication, one block per SM",
    verdict="refuted" if step > 1.25 * multiplication else "confirmed",
)
