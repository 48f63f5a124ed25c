# ---
# jupyter:
#   cudatut:
#     title: {en: "Resize: attempts", zh: "缩放：各次尝试"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       size: [[2_160, 3_840], [16, 32], [2_160, 3_840]]
#       rounds: [40, 1]
# ---

# %% [markdown]
# What made an image that grows faster, and what did not. Each row changes one
# thing of another row. What was predicted was written down before the row ran.

# %% setup
import numpy as np
from cudatut.book.images.resize import reference, resize
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

size = (2_160, 3_840)
rounds = 40
to = tuple(2 * side for side in size)
ATTEMPTS = {  # name: plan, the row that it changes, times as fast as that one
    "4 x 4 pixels": ({"way": "rows", "ROWS": 8}, None, None),
    # 12 loads and some 100 instructions for two rows of the image become a
    # half of them: 150 instructions for four pixels instead of 360.
    "rows kept": ({"way": "kept", "STEPS": 0}, "4 x 4 pixels", 2.4),
    # Three of four columns without 64-bit arithmetic: 6 of some 210
    # instructions for four pixels.
    "columns by additions": ({"way": "kept"}, "rows kept", 1.03),
    # Half of what a thread does first, and 18 rows of the image for 32 instead
    # of 10 for 16: 14 of some 205 instructions.
    "32 rows of a thread": (
        {"way": "kept", "ROWS": 32},
        "columns by additions",
        1.07,
    ),
    # 24 warps of an SM instead of 32, with more registers.
    "three blocks of an SM": (
        {"way": "kept", "RESIDENT": 3},
        "columns by additions",
        0.97,
    ),
}

# %% check
host = ct.rng(0).integers(0, 251, (*size, 3), np.uint8)
x, y = ct.to_device(host), ct.empty((*to, 3), "uint8")
some = slice(0, 9)
values = reference.resize_bilinear(host, *to, only=some)
runs = {}
for name, (plan, *_) in ATTEMPTS.items():
    runs[name] = resize.letterbox(x, y, whole=True, **plan)
    ct.poison(y, 251)
    runs[name]()
    got = y[some].get()
    ct.check(got, reference.rounded(values, got), name=name, rtol=0, atol=0)
    assert not (y[to[0] - 1].get() == 251).any()

# %% bench
useful = reference.useful_bytes(*size, *to)
a, b = (ct.empty(useful // 2, "uint8") for _ in range(2))
ct.poison(a, 1)
runs["copy"] = rival(lambda torch, a, b: lambda: b.copy_(a), a, b)
bench = ct.bench(runs, bytes=useful, name="twice as large", rounds=rounds)

# %% [markdown]
# The profiler counts the launches of the check, on a smaller image.

# %% counted
INSTRUCTIONS = "smsp__inst_executed.sum"
SLOTS = "smsp__issue_active.avg.pct_of_peak_sustained_active"
WARPS = "sm__warps_active.avg.per_cycle_active"
counted = ct.profile_launches(
    "images/resize_attempts",
    kernel="regex:^letterbox_(rows|kept)$",
    metrics=[INSTRUCTIONS, SLOTS, WARPS],
    launches=len(ATTEMPTS),
)

# %% table
if counted:
    fours = 4 * 2_160 * 3_840 / 4 / 32  # warps of four pixels each lane
    rows = {}
    for (name, (_, beside, predicted)), c in zip(ATTEMPTS.items(), counted):
        time = bench[name].median_us
        rows[name] = {
            "changes": beside,
            "predicted": predicted,
            "gain": bench[beside].median_us / time if beside else None,
            "time": time,
            "of a copy": bench["copy"].median_us / time,
            "instructions for four pixels": c[INSTRUCTIONS] / fours,
            "slots used": c[SLOTS],
            "warps per SM": c[WARPS],
        }
    ct.table(
        "twice as large",
        rows,
        corner="attempt",
        units={
            "predicted": "×",
            "gain": "×",
            "time": "us",
            "slots used": "%",
        },
    )
