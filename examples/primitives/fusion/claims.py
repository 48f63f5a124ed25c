# ---
# jupyter:
#   cudatut:
#     title: {en: "Element-wise kernels: claims", zh: "逐元素 kernel：说法的检验"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {points: [1_048_576, 4_096]}
# ---

# %% [markdown]
# The slides on CUDA have a GELU kernel. Its comment has one constant, its code
# another. How far is each from GELU?

# %% setup
import math

import numpy as np

import cudatut as ct

points = 1_048_576
kernel = ct.Kernel("primitives/fusion/claims.cu", "gelu_of_slides")
x = np.linspace(-6, 6, points, dtype="float32")
a, out = ct.to_device(x), ct.empty(points, "float32")
erf = np.vectorize(math.erf, otypes=["float64"])
true = 0.5 * x * (1 + erf(x.astype("float64") / math.sqrt(2)))
ROOT = math.sqrt(2 / math.pi)


def off(c):
    """The largest difference to GELU with this constant before x cubed."""
    b = np.float32(ROOT)
    kernel(a, out, b, np.float32(ROOT * c), grid=points // 256, block=256)
    return float(np.abs(out.get() - true).max())


comment, code = off(0.44716), off(0.044715)
ct.facts(
    "largest difference to GELU",
    {"0.44716, the comment": comment, "0.044715, the code": code},
)

# %% comment
SOURCE = "CUDA slides 2.9"
PLACE = {
    "en": "gelu.cu, the listing before 'What is a stream'",
    "zh": "gelu.cu，“Stream 是什么”之前的代码",
}
CONTROL = {
    "en": "the same with the constant of the original paper, 0.044715",
    "zh": "同样的计算，常数取原论文的 0.044715",
}
ct.claim(
    id="gelu-constant-in-the-comment",
    source=SOURCE,
    place=PLACE,
    form="said",
    statement={
        "en": "The comment: GELU is x times half of 1 + tanh(√(2/π) (x + 0.44716 "
        "x³)). (The largest difference to GELU between -6 and 6; we take 0.001 "
        "as the bound.)",
        "zh": "注释：GELU 等于 x 乘以 1 + tanh(√(2/π) (x + 0.44716 x³)) 的一半。"
        "（-6 到 6 之间与 GELU 的最大差；以 0.001 为界。）",
    },
    expected=0.001,
    measured=comment,
    rule="below",
    control=(CONTROL, code, (0.0, 0.001)),
)

# %% code
ct.claim(
    id="gelu-constant-in-the-code",
    source=SOURCE,
    place=PLACE,
    form="code",
    statement={
        "en": "The code computes it with the constant 0.035677408, which is "
        "√(2/π) times 0.044715. (The largest difference to GELU, below 0.001.)",
        "zh": "代码用的常数是 0.035677408，即 √(2/π) 乘以 0.044715。（与 GELU 的最大差，"
        "小于 0.001。）",
    },
    expected=0.001,
    measured=code,
    rule="below",
    control=(
        {"en": "with the comment's constant", "zh": "用注释里的常数"},
        comment,
        (0.01, 1.0),
    ),
)

# %% [markdown]
# The kernel does not ask for the length. Of an array of 1,000 elements in room
# for 1,024, how many elements does it write, with blocks of 256 threads?


# %% length
def written(n, room=1_024):
    given = ct.to_device(np.zeros(room, "float32"))
    out = ct.to_device(np.full(room, 7, "float32"))
    grid = ct.cdiv(n, 256)
    b, c = np.float32(ROOT), np.float32(ROOT * 0.044715)
    kernel(given, out, b, c, grid=grid, block=256)
    return int((out.get() != 7).sum())


ct.claim(
    id="gelu-without-a-guard",
    source=SOURCE,
    place=PLACE,
    form="code",
    statement={
        "en": "The kernel as printed, started with enough blocks, writes the "
        "elements of its array. (Elements written beyond its end.)",
        "zh": "按打印的代码，启动足够多的线程块，写出的就是数组的元素。（越过数组末尾写出的"
        "元素个数。）",
    },
    expected=0,
    depends={
        "en": "whether the length is a multiple of the block's threads",
        "zh": "长度是否为线程块大小的整数倍",
    },
    sides=(
        (
            {"en": "1,024 elements", "zh": "1,024 个元素"},
            written(1_024) - 1_024,
        ),
        (
            {"en": "1,000 elements", "zh": "1,000 个元素"},
            written(1_000) - 1_000,
        ),
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "one element in room for 1,024: all others of its block",
            "zh": "数组只有一个元素，空间有 1,024 个：写的是线程块里其余的全部",
        },
        written(1) - 1,
        255,
    ),
)
