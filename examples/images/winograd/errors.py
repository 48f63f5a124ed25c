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
# Where in the layer the errors are: at each place, the typical error of all
# images and filters, in squares of eight pixels of the screen. The brightness
# is the square root, so that small errors are seen, too; white is the same in
# both pictures.


# %% grid
def levels(values):
    return np.clip(np.rint(values), 0, 255).astype("uint8")


at = {
    name: np.sqrt(((values - exact) ** 2).mean(axis=(0, 1)))
    for name, (_, values) in found.items()
}
whitest = float(at["F(4 x 4)"].max())


def show(name, en, zh):
    shown = levels(255 * np.sqrt(at[name] / whitest))
    title = f"typical errors of {name}"
    ct.picture(title, shown, alt={"en": en, "zh": zh}, scale=8)


show(
    "F(4 x 4)",
    "A grid: every fourth row and column is bright, and white where they cross.",
    "网格：每四行、每四列有一行、一列是亮的，交叉处是白的。",
)

# %% flat
show("F(2 x 2)", "An even dark grey.", "均匀的深灰色。")

# %% [markdown]
# The check: every result within its own bound.

# %% check
for name in ("implicit GEMM", "F(2 x 2)", "F(4 x 4)"):
    m, values = found[name]
    off = np.abs(values - exact)
    beyond = np.maximum(off - winograd.bound(shape, images, weights, m), 0)
    ct.check(beyond, 0 * off, name=f"{name}, beyond their bounds", rtol=0)

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
    beyond, name = np.maximum(off - allowed, 0), f"photograph, F({m})"
    ct.check(beyond, 0 * off, name=f"{name}, beyond their bounds", rtol=0)
    pictures[m] = out.get()[0], off[0]


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
# The errors of F(4 x 4) in a part of the photograph, in squares of four pixels
# of the screen; their brightness as above.

# %% pattern
least, size = 96, 64
off = pictures[4][1][:, least : least + size, least : least + size].max(axis=0)
ct.picture(
    "errors of F(4 x 4) in the photograph",
    levels(255 * np.sqrt(off / max(float(off.max()), 1e-30))),
    alt={
        "en": "Noise, dark where the photograph is dark: at the neck above on "
        "the left. A fine grid runs through it.",
        "zh": "噪声；左上方的颈部，照片暗的地方误差也小。噪声里有一层细网格。",
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
