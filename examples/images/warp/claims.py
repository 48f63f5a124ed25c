# ---
# jupyter:
#   cudatut:
#     title: {en: "Affine warp: claims of other sources", zh: "仿射变换：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown] about
# The slides end their chapter on resizing with the remark that these steps can
# be written as one affine transformation. Is a letterbox one matrix?

# %% letterbox
import numpy as np
from cudatut.book.images.resize import reference as resized
from cudatut.book.images.warp import reference, warp

import cudatut as ct

side = 224
host = ct.rng(0).integers(0, 256, (333, 500, 3), "uint8")
height, width, _ = host.shape
high, wide, top, left = resized.placed(height, width, side, side)
x = ct.to_device(host)


def off_by(matrix):
    """How far its result is from a resize that is put into a gray square."""
    out = ct.empty((side, side, 3), "uint8")
    ct.poison(out, 0x5A)
    warp.warp(x, out, matrix, value=114)()
    values = resized.letterbox(host, side, side)
    wanted = reference.rounded(values, out.get(), 1e-3)
    return int(np.abs(out.get().astype(int) - wanted).max())


matrix = reference.resizing(height, width, high, wide)
matrix[:, 2] += left, top
corner = [[wide / width, 0, left], [0, high / height, top]]
found, of_corner = off_by(matrix), off_by(corner)
ct.facts(
    "a letterbox by one matrix",
    {
        "off by": (found, "levels"),
        "off by, without half-pixel centers": (of_corner, "levels"),
    },
)

# %% claim-affine
ct.claim(
    id="letterbox-is-affine",
    source="CUDA slides 2.10",
    place={
        "en": "below the kernel that resizes, shifts and swaps channels",
        "zh": "在完成缩放、平移和通道交换的 kernel 之后",
    },
    form="said",
    statement={
        "en": "This series of steps (bilinear interpolation, BGR to RGB, shift) "
        "can also be written as an affine transformation. Of resize and shift "
        "by one matrix, 500 x 333 pixels into 224 x 224, the largest difference "
        "to resizing first, in levels:",
        "zh": "这一系列操作（双线性插值、BGR2RGB、shift）也可以写成一个仿射变换。"
        "把 500 x 333 像素用一个矩阵缩放并平移到 224 x 224，与先缩放再放置相比，"
        "最大相差的灰度级：",
    },
    expected=0,
    measured=found,
    rule="equal",
    found="counted",
    control=(
        {
            "en": "more than 8 levels with a matrix that leaves out half pixels",
            "zh": "矩阵里不计半个像素，相差超过 8 级",
        },
        of_corner > 8,
        True,
    ),
)
