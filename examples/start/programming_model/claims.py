# ---
# jupyter:
#   cudatut:
#     title: {en: "The programming model: claims of another source", zh: "编程模型：另一份资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [33333333, 40009]
# ---
# %% [markdown]
# Does a kernel take the time of its data plus the time of its arithmetic? The kernel of the roofline, with so many FMAs
# that both times are equal on this GPU.

# %% both-equal
import numpy as np

import cudatut as ct

fma_k = ct.Kernel("start/programming_model/programming_model.cu", "fma_k")
n = 33_333_333
x_host = ct.rng(0).standard_normal(n, dtype="float32")
x, out = ct.to_device(x_host), ct.empty(n, "float32")
a, b = np.float64(np.float32(0.999)), np.float64(np.float32(0.001))


def fmas(k):
    return lambda: fma_k(x, out, n, k, grid=ct.cdiv(n, 4 * 256), block=256)


moving = ct.bench({"k = 0": fmas(0)}, bytes=8 * n, name="data only")
io_us = moving["k = 0"].median_us
# 2 k n operations; k is a multiple of 16, as the kernel unrolls its loop.
equal = io_us * ct.limits.fma() * 1e6 / (2 * n)
k = min(max(16, 16 * round(equal / 16)), 1024)
compute_us = 2 * k * n / ct.limits.fma() / 1e6
for count in (k, 0):
    ct.poison(out)
    fmas(count)()
    wanted = a**count * x_host + b * (1 - a**count) / (1 - a)
    name = "k = 0" if count == 0 else "both times equal"
    ct.check(out, wanted, name=name, rtol=1e-4)
times = ct.bench(
    {
        "k = 0": fmas(0),
        "both times equal": fmas(k),
        "k = 0 again": fmas(0),
    },
    bytes=8 * n,
    name="data, and as much arithmetic",
)
alone, together, again = (
    times[name].median_us
    for name in ("k = 0", "both times equal", "k = 0 again")
)

# %% equal-facts
ct.facts(
    "where both times are equal",
    {
        "k": k,
        "time of the data": (alone, "us"),
        "time of the arithmetic": (compute_us, "us"),
        "their sum": (alone + compute_us, "us"),
        "measured": (together, "us"),
    },
)

# %% claim-sum
stated, measured = 1 + compute_us / alone, together / alone
ct.claim(
    id="data-plus-arithmetic",
    source="CUDATutorial 00",
    place={
        "en": "section on the theoretical performance of an operation, the "
        "formula",
        "zh": "“算子理论性能”一节的公式",
    },
    form="said",
    statement={
        "en": "The theoretical time of an operation, the best that it can reach, "
        "is the time of its data plus the time of its arithmetic. (The roofline, "
        "its next section, takes the larger of the two.) Time where both are "
        "about equal, as a multiple of the time of the data, never less if so:",
        "zh": "算子的理论时间，即它能达到的最好成绩，等于访存时间加计算时间。（下一节的 "
        "Roof-Line 取两者中较大的。）两者大致相等时，总时间是访存时间的几倍，若是如此"
        "就不会更少：",
    },
    expected=stated,
    measured=measured,
    unit="×",
    rule="above",
    control=(
        {
            "en": "the same time as a multiple of the larger of the two, which no "
            "kernel can beat: were one of the times wrong, it would",
            "zh": "同样的时间是两者中较大者的几倍：没有 kernel 能比它更快，若是其中一个"
            "时间有误，就会更快",
        },
        together / max(alone, compute_us),
        (0.97, 2.5),
    ),
)

# %% [markdown]
# The source works out both times for an addition of 128 x 1024 x 128 numbers on a V100. Here are the same divisions.

# %% v100
elements = 128 * 1024 * 128
peak, bandwidth = 7.5e12, 900  # the source's figures: FLOP/s, GB/s
compute = elements / peak * 1e6
data = 3 * 4 * elements / 1024**3 / bandwidth * 1e6  # as it divides: by GiB
ct.facts(
    "the source's divisions",
    {"arithmetic": (compute, "us"), "data, in GiB": (data, "us")},
)

# %% claim-v100
ct.claim(
    id="v100-compute-time",
    source="CUDATutorial 00",
    place={
        "en": "section on the theoretical performance of an operation, the "
        "example",
        "zh": "“算子理论性能”一节的例子",
    },
    form="printed",
    statement={
        "en": "At 7.5 TFLOP/s the additions of 128 x 1024 x 128 numbers take "
        "0.002236962 µs. Divided again, with the same two figures:",
        "zh": "按 7.5 TFLOP/s 计算，128 × 1024 × 128 个数的加法要 "
        "0.002236962 µs。用同样的两个数重新相除：",
    },
    expected=0.002236962,
    measured=round(compute, 9),
    unit="us",
    rule="equal",
    found="computed",
    control=(
        {
            "en": "its other division, of the data, for which it prints "
            "208.3333333",
            "zh": "它的另一个除法（访存），原文印出 208.3333333",
        },
        round(data, 7),
        208.3333333,
    ),
)
