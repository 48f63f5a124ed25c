# ---
# jupyter:
#   cudatut:
#     title: {en: "Unrolled, and the last warp on its own: claims", zh: "循环展开，最后一个线程束单独处理：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [33554432, 16384, 1048576]}
# ---

# %% [markdown]
# What CUDATutorial says of unrolling and of the last warp, tried.

# %% setup
import cudatut as ct

from ladder import LADDER

n = 33_554_432

# %% unroll-claim
last_warp = ct.read_rung("reduction/last_warp.cu")
bench = LADDER.bench([last_warp, "unrolled"], n=n, name="the step")
gain = bench["last_warp"].median_us / bench["unrolled"].median_us
ct.claim(
    id="reduction-full-unrolling",
    source="CUDATutorial 09/04",
    statement={
        "en": "After the last warp (484.01 us), unrolling the rest of the loop gains 1.4 % (477.23 us).",
        "zh": "最后一个线程束单独处理之后（484.01 us），再把循环完全展开，只快 1.4%（477.23 us）。",
    },
    predicted=100 * (484.01 / 477.23 - 1),
    measured=100 * (gain - 1),
    unit="%",
    verdict="confirmed" if abs(gain - 484.01 / 477.23) < 0.02 else "depends",
)

# %% volatile-claim
report = ct.sanitize(
    """
import numpy as np
import cudatut as ct

kernel = ct.Kernel("reduction/unrolling.cu", "reduce_volatile")
out = ct.empty(1, "int32")
kernel(ct.to_device(np.ones(256, "int32")), out, grid=1, block=256)
print(out.get())
""",
    tool="racecheck",
)
ct.claim(
    id="reduction-volatile-warp",
    source="CUDATutorial 09/04",
    statement={
        "en": "Inside one warp a volatile pointer is enough: the last six steps need no barrier. "
        "Hazards that racecheck should then report in them:",
        "zh": "在同一个线程束内，指针加上 volatile 就够了，最后六步不需要同步。那么 racecheck 在其中报告的冒险数应当是：",
    },
    predicted=0,
    measured=report.errors,
    unit="hazards",
    verdict="confirmed" if report.errors == 0 else "refuted",
)
