# ---
# jupyter:
#   cudatut:
#     title: {en: "Winograd's convolution: rounding", zh: "Winograd 卷积：舍入误差"}
#     requires: sm_80
#     timeout_s: 90
#     sizes:
#       layer: [[2, 128, 28, 28, 128], [1, 16, 9, 9, 8]]
# ---

# %% [markdown]
# How far each way is from fp64, with normally distributed numbers. F(6 x 6) and
# other points of F(4 x 4) are computed in NumPy, in fp32.

# %% errors
from fractions import Fraction

import numpy as np

import cudatut as ct
from cudatut.book.images.implicit_gemm.launch import offsets
from cudatut.book.images.shapes import Shape, reference
from cudatut.book.images.winograd import launch
from cudatut.book.images.winograd import reference as winograd
from cudatut.book.rivals import cudnn_conv

layer = (2, 128, 28, 28, 128)
shape = Shape(*layer, (3, 3), pad=(1, 1))
rng = ct.rng(1)
images = rng.standard_normal(layer[:4], "float32")
weights = rng.standard_normal((layer[4], layer[1], 3, 3), "float32")
x, w = ct.to_device(images), ct.to_device(weights)
y = ct.empty((layer[0], layer[4], *shape.out), "float32")
exact = reference(shape, images, weights)
typical = np.sqrt((exact**2).mean())


def by(run):
    """What a launch writes."""
    ct.poison(y)
    run()
    return y.get()


OTHER = (0, *(Fraction(n, d) for n, d in ((2, 3), (-2, 3), (3, 2), (-3, 2))))
found = {
    "implicit GEMM": (1, by(offsets(shape, x, w, y))),
    "F(2 x 2)": (2, by(launch.winograd(shape, x, w, y, 2))),
    "F(4 x 4)": (4, by(launch.winograd(shape, x, w, y, 4))),
}
cudnn = cudnn_conv.contestants(x, w, y, pad=(1, 1))["cuDNN"]
if callable(cudnn):
    found["cuDNN"] = (None, by(cudnn))
others = winograd.minimal(4, OTHER)
for name, m, matrices in (
    ("F(4 x 4), other points", 4, others),
    ("F(6 x 6)", 6, winograd.minimal(6)),
):
    values = winograd.convolve(shape, images, weights, m, matrices, "float32")
    found[name] = (m, values)
rows = {}
for name, (m, values) in found.items():
    off = np.abs(values - exact)
    rows[name] = {
        "typical error": 1e6 * np.sqrt((off**2).mean()) / typical,
        "largest error": 1e6 * off.max() / typical,
        "amplification": m
        and winograd.amplification(m, OTHER if "other" in name else None),
    }
ct.table(
    "errors in millionths of a typical result",
    rows,
    corner="way",
)

# %% [markdown]
# The check: every result within its own bound.

# %% check
for name in ("implicit GEMM", "F(2 x 2)", "F(4 x 4)"):
    m, values = found[name]
    share = (values - exact) / winograd.bound(shape, images, weights, m)
    ct.check(
        share.astype("float32"),
        np.zeros_like(share),
        name=f"{name}, errors as parts of their bounds",
        rtol=0,
        atol=1,
    )

# %% [markdown]
# The photograph, with three filters for each of red, green and blue: it comes
# out sharper. Which of its pixels are off, and by how much?

# %% photograph
from cudatut.book.images.photograph import photograph

pixels = photograph().reshape(256, 2, 256, 2, 3).mean(axis=(1, 3))
color = pixels.transpose(2, 0, 1)[None].astype("float32") / 255
sharper = -np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
sharper[1, 1] += 2
kept = np.zeros((3, 3, 3, 3), "float32")
for channel in range(3):
    kept[channel, channel] = sharper
whole = Shape(1, 3, 256, 256, 3, (3, 3), pad=(1, 1))
a, b = ct.to_device(color), ct.to_device(kept)
out = ct.empty((1, 3, 256, 256), "float32")
wanted = reference(whole, color, kept)
pictures = {}
for m in launch.WAYS:
    ct.poison(out)
    launch.winograd(whole, a, b, out, m)()
    allowed = winograd.bound(whole, color, kept, m)
    off = np.abs(out.get() - wanted)
    share = (off / allowed).astype("float32")
    name = f"photograph, F({m})"
    ct.check(share, np.zeros_like(share), name=name, rtol=0, atol=1)
    pictures[m] = out.get()[0], off[0]


def levels(values):
    return np.clip(np.rint(values), 0, 255).astype("uint8")


ct.picture(
    "before",
    levels(pixels),
    alt={
        "en": "A woman in an orange spacesuit smiles; behind her a flag and a "
        "model of a space shuttle.",
        "zh": "一位身穿橙色宇航服的女士面带微笑，身后是国旗和航天飞机模型。",
    },
    quality=80,
)
ct.picture(
    "after",
    levels(255 * pictures[4][0].transpose(1, 2, 0)),
    alt={
        "en": "The same photograph, sharper: edges of the helmet ring and hair "
        "stand out.",
        "zh": "同一张照片变得更锐利：头盔环和头发的边缘更突出。",
    },
    quality=80,
)

# %% [markdown]
# A part of the photograph, in squares of four pixels of the screen. White is
# the same error in both pictures.

# %% pattern
least, size = 96, 64
part = {
    m: off[:, least : least + size, least : least + size].max(axis=0)
    for m, (_, off) in pictures.items()
}
most = max(float(one.max()) for one in part.values())
for m, one in part.items():
    ct.picture(
        f"errors of F({m} x {m})",
        levels(255 * one / max(most, 1e-30)),
        alt={
            "en": "Nearly black: errors are small everywhere."
            if m == 2
            else "Noise with a grid in it: every fourth row and column is "
            "brighter than those before.",
            "zh": "几乎全黑：各处误差都很小。"
            if m == 2
            else "带有网格的噪声：每隔三行三列有一行一列更亮。",
        },
        scale=4,
    )

# %% [markdown]
# By the place in a tile of 4 x 4: the typical error of all tiles.

# %% places
off = np.abs(found["F(4 x 4)"][1] - exact)
high, wide = shape.out
high, wide = high // 4 * 4, wide // 4 * 4
tiled = off[..., :high, :wide].reshape(-1, high // 4, 4, wide // 4, 4)
typical_at = np.sqrt((tiled**2).mean(axis=(0, 1, 3))) / typical
ct.table(
    "typical error by the place in a tile, in millionths",
    {
        f"row {i}": {f"column {j}": 1e6 * typical_at[i, j] for j in range(4)}
        for i in range(4)
    },
    corner="place",
)
