# ---
# jupyter:
#   cudatut:
#     title: {en: "Direct convolution: pictures", zh: "直接卷积：图像"}
#     requires: sm_75
#     extra: images
#     timeout_s: 60
# ---

# %% [markdown]
# Four filters of 5 x 5 for the photograph, by constant memory: two that blur,
# and Sobel's two, which find edges.

# %% filters
import numpy as np
from cudatut.book.images.direct import launch
from cudatut.book.images.direct.reference import by_scipy
from cudatut.book.images.photograph import photograph
from cudatut.book.images.shapes import Shape

import cudatut as ct

# Gray, and 2 x 2 pixels for each: whole numbers from 0 to 255.
gray = photograph() @ np.array([0.299, 0.587, 0.114])
gray = np.rint(gray.reshape(256, 2, 256, 2).mean(axis=(1, 3)))

box = np.ones((5, 5)) / 25
row = np.array([1, 4, 6, 4, 1])
gauss = np.outer(row, row) / 256
to_the_right = np.zeros((5, 5))
to_the_right[1:4, 1:4] = np.outer([1, 2, 1], [-1, 0, 1])
downwards = to_the_right.T
filters = np.stack([box, gauss, to_the_right, downwards]).astype("float32")

shape = Shape(1, 1, 256, 256, 4, (5, 5), pad=(2, 2))
x = ct.to_device(gray.astype("float32").reshape(1, 1, 256, 256))
w = ct.to_device(filters.reshape(4, 1, 5, 5))
y = ct.empty((1, 4, 256, 256), "float32")
launch.constant(shape, x, w, y)()
found = y.get()[0]

# %% [markdown]
# Beside SciPy's `correlate2d` in fp64. 25 products of at most 255 are added: a
# sum may be off by 25 roundings, each of half a last place of 255.

# %% check
bound = 25 * 2.0**-17
expected = by_scipy(shape, x.get(), w.get())[0]
for name, ours, theirs in zip(
    ("box", "Gaussian", "Sobel, to the right", "Sobel, downwards"),
    found,
    expected,
):
    ct.check(ours, theirs, name=name, rtol=0, atol=bound)

# %% off
off = np.abs(found - expected)
ct.facts(
    "differences to SciPy, of 255 levels",
    {
        "box": (float(off[0].max()), "levels"),
        "Gaussian": (float(off[1].max()), "levels"),
        "Sobel": (float(off[2:].max()), "levels"),
        "bound": (bound, "levels"),
    },
)


# %% pictures
def gray_levels(values):
    return np.clip(np.rint(values), 0, 255).astype("uint8")


def show(name, values, en, zh):
    ct.picture(name, gray_levels(values), alt={"en": en, "zh": zh}, quality=80)


edges = np.hypot(found[2], found[3])
show(
    "the photograph",
    gray,
    "A woman in a spacesuit smiles, in shades of gray; behind her a flag and a "
    "model of a space shuttle.",
    "灰度照片：一位身穿宇航服的女士面带微笑，身后是国旗和航天飞机模型。",
)
show(
    "box of 5 x 5",
    found[0],
    "The same photograph, blurred: fine lines are gone, and a dark frame of "
    "two pixels lies around it.",
    "同一张照片变得模糊：细线消失，四周有两个像素宽的暗边。",
)
show(
    "Gaussian of 5 x 5",
    found[1],
    "The same photograph, blurred less than by the box.",
    "同一张照片，比方框模糊得轻一些。",
)
show(
    "edges by Sobel",
    edges / 2,
    "White lines on black where the photograph has edges: face, helmet ring, "
    "stripes of the flag; a white frame lies around it.",
    "黑底白线，画出照片中的边缘：脸、头盔环、国旗的条纹；四周有一圈白框。",
)

# %% [markdown]
# Where the box differs from SciPy's: the middle of the picture, black where
# both are the same word, white where they differ most.

# %% difference
part = off[0][64:192, 64:192]
ct.picture(
    "difference to SciPy, box",
    gray_levels(255 * part / max(float(part.max()), 1e-30)),
    alt={
        "en": "Noise, black where the photograph is dark: at the neck and in the "
        "lower right.",
        "zh": "噪声；照片暗的地方（颈部和右下角）是黑的。",
    },
    scale=2,
)

# %% [markdown]
# The same window turned round, as a convolution outside of networks has it:
# light and dark are exchanged.

# %% turned
turned = by_scipy(shape, x.get(), w.get(), turned=True)[0]
for name, values in (
    ("cross-correlation", found[2]),
    ("convolution", turned[2]),
):
    en = "light on the left, dark on the right"
    zh = "左亮右暗"
    if name == "convolution":
        en, zh = "dark on the left, light on the right", "左暗右亮"
    show(
        f"Sobel, to the right, by {name}",
        128 + values / 8,
        f"A gray relief of the photograph: vertical edges, {en}.",
        f"照片的灰色浮雕：竖直的边缘，{zh}。",
    )
