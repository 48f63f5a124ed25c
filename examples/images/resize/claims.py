# ---
# jupyter:
#   cudatut:
#     title: {en: "Resize: claims", zh: "缩放：说法的检验"}
#     requires: sm_75
#     extra: images
#     timeout_s: 60
# ---

# %% [markdown]
# The slides "CUDA programming" end with a bilinear resize in one kernel. What
# its formula says, line by line, on a photograph's sizes and on a ramp.

# %% setup
import numpy as np
from cudatut.book.images.photograph import photograph
from cudatut.book.images.resize import reference, resize

import cudatut as ct

SOURCE = "CUDA slides 2.10"
FINAL = {
    "en": "the final kernel, which resizes and exchanges channels",
    "zh": "最终实现的 kernel（缩放并交换通道）",
}

# %% [markdown]
# The first of two pixels is found by `round`. How far is the center from it?

# %% distance
n, to = 600, 256  # rows: 1000 x 600 pixels become 256 x 256
at = np.arange(to, dtype="float32") * np.float32(n / to)
by_round = at - np.floor(at + np.float32(0.5))  # no negative halves here
by_floor = at - np.floor(at)
ct.claim(
    id="resize-distance-by-round",
    source=SOURCE,
    place=FINAL,
    form="said",
    statement={
        "en": "The distances to the first pixel, found by `round`, lie between "
        "0 and 1. (Of 256 rows, those with a distance below 0; 600 rows become "
        "256.)",
        "zh": "到第一个像素的距离在 0 到 1 之间，这个像素由 `round` 得到。（256 行里距离小于"
        " 0 的行数；600 行缩小为 256 行。）",
    },
    expected=0,
    measured=int((by_round < 0).sum()),
    rule="equal",
    found="computed",
    control=(
        {"en": "found by `floor`", "zh": "由 `floor` 得到时"},
        int((by_floor < 0).sum()),
        0,
    ),
)

# %% [markdown]
# The areas of two of the four pixels are exchanged. On a ramp, whose columns
# are of one brightness each, all rows of the output should be equal.

# %% exchanged
ramp = np.zeros((32, 32, 3), "uint8")
ramp[:] = 8 * np.arange(32, dtype="uint8")[None, :, None]
source, target = ct.to_device(ramp), ct.empty((100, 100, 3), "float32")


def rows_that_differ(mistakes):
    resize.wrong(source, target, mistakes)()
    got = target.get()
    wanted = reference.wrong(ramp, 100, 100, mistakes)
    ct.check(got, wanted, name=f"ramp, mistakes {mistakes}", atol=1e-3)
    return int((np.abs(got - got[:1]).max(axis=(1, 2)) > 0.5).sum())


ct.claim(
    id="resize-areas",
    source=SOURCE,
    place=FINAL,
    form="code",
    statement={
        "en": "The pixel to the right is weighed by the area (1 - tw) th, the one "
        "below by tw (1 - th). (A ramp from left to right: of 100 rows of the "
        "output, those that differ from the first.)",
        "zh": "右边像素的权重是面积 (1 - tw) th，下方像素的权重是 tw (1 - th)。（从左到右渐变"
        "的图像：输出 100 行里与第一行不同的行数。）",
    },
    expected=0,
    measured=rows_that_differ(reference.EXCHANGED),
    rule="equal",
    found="counted",
    control=(
        {"en": "with the two exchanged", "zh": "把两者对调"},
        rows_that_differ(0),
        0,
    ),
)

# %% [markdown]
# A position is refused where its first row is larger than the number of rows.
# Which rows does the formula read beyond the last one? No kernel does so here:
# the rows are counted.


# %% beyond
def beyond(n, to, refused):
    """Rows of the output for which a row outside of the image is read."""
    first = np.floor(np.arange(to) * (n / to) + 0.5)
    return int((~refused(first) & (first + 1 > n - 1)).sum())


ct.claim(
    id="resize-reads-beyond",
    source=SOURCE,
    place=FINAL,
    form="code",
    statement={
        "en": "Where the first row is not larger than the number of rows, its "
        "four pixels may be read. (Rows of the output that read outside of the "
        "image: 600 rows become 1200.)",
        "zh": "第一行的行号不大于行数时，四个像素都可以读取。（600 行放大为 1200 行时，读到图像"
        "之外的输出行数。）",
    },
    expected=0,
    measured=beyond(600, 1200, lambda first: first > 600),
    rule="equal",
    found="computed",
    control=(
        {
            "en": "refused where the second row is not in the image",
            "zh": "第二行不在图像内就跳过",
        },
        beyond(600, 1200, lambda first: first + 1 > 599),
        0,
    ),
)

# %% [markdown]
# The letterbox writes the image's part of the output alone. The array has held
# another letterbox before.

# %% border
photo = photograph()
wide, high = photo[100:420], np.ascontiguousarray(photo[:, 100:420])
side, border = 256, 114
values = reference.letterbox(wide, side, side, border)
rows, columns, top, left = reference.placed(*wide.shape[:2], side, side)
outside = np.ones((side, side), bool)
outside[top : top + rows, left : left + columns] = False
box = ct.empty((side, side, 3), "uint8")


def wrong_border():
    off = np.abs(box.get() - values).max(axis=2)
    assert off[~outside].max() <= 0.5 + reference.NEAR  # the image is right
    return int((off[outside] > 0).sum())


resize.letterbox(ct.to_device(high), box, border)()
resize.bilinear(ct.to_device(wide), box[top : top + rows])()
left_over = wrong_border()
resize.letterbox(ct.to_device(wide), box, border)()
ct.claim(
    id="resize-letterbox-border",
    source=SOURCE,
    place={
        "en": "letterbox and centered letterbox, and the final kernel",
        "zh": "letter box、letter box(center) 两节与最终的 kernel",
    },
    form="code",
    statement={
        "en": "A kernel that writes no pixel of the border leaves a letterbox. "
        "(Pixels of the border that are not gray, of 24,576: the array has held "
        "another image.)",
        "zh": "kernel 不写边框里的像素，得到的仍是 letterbox。（24,576 个边框像素里不是灰色的"
        "个数；数组里原先有另一幅图像。）",
    },
    expected=0,
    measured=left_over,
    rule="equal",
    found="counted",
    control=(
        {
            "en": "a kernel that writes all pixels",
            "zh": "写出所有像素的 kernel",
        },
        wrong_border(),
        0,
    ),
)

# %% [markdown]
# The gain that the last page tells, by the times that stand above it.

# %% gain
CPU, GPU, LETTERBOX = 1.185867, 0.037280, 0.018336  # ms, as printed
ct.claim(
    id="resize-65",
    source=SOURCE,
    place={"en": "the last sentence", "zh": "最后一句话"},
    form="printed",
    statement={
        "en": "CUDA can make it 65 times as fast. (CPU / GPU, both the bilinear "
        "resize, by the times printed there, on an RTX 3080.)",
        "zh": "CUDA 可以加速到 65 倍。（CPU / GPU，两边都是双线性缩放，用那里打印的时间计算，"
        "RTX 3080。）",
    },
    expected=65,
    measured=CPU / GPU,
    rule="gain",
    found="computed",
    elsewhere=False,
    unit="×",
    control=(
        {
            "en": "the same against the letterbox, which makes fewer pixels",
            "zh": "分母换成 letterbox，它计算的像素更少",
        },
        CPU / LETTERBOX,
        (64.5, 65.5),
    ),
)
