# ---
# jupyter:
#   cudatut:
#     title: {en: "Affine warp", zh: "仿射变换"}
#     requires: sm_75
#     extra: images
#     timeout_s: 120
#     sizes:
#       side: [4096, 96]
#       widths: [[512, 4_096, 32_768, 262_144], [512]]
#       reads: [65_536, 300]
#       shapes: [[[1, 1], [1, 9], [7, 5], [31, 33], [130, 65]], [[1, 1], [7, 5]]]
# ---

# %% [markdown]
# Turn a photograph by 30 degrees. First the whole program: each thread has a
# pixel of the result, and asks where in the photograph it comes from.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.images.photograph import photograph
from cudatut.book.images.warp import reference, warp

image = photograph()
height, width, _ = image.shape
matrix = reference.rotation(30, height, width)  # where its pixels go
back = warp.map_back(matrix, height, width)  # where a pixel comes from
border = 0  # beyond the photograph is black
kernel = ct.Kernel("images/warp/warp.cu", "warp<2, CONSTANT>")
x, out = ct.to_device(image), ct.empty(image.shape, "uint8")
kernel(
    out, x, back, height, width, height, width, border,
    grid=(ct.cdiv(width, 16), ct.cdiv(height, 16)), block=(16, 16),
)  # fmt: skip

values = reference.warp(image, matrix, height, width)  # by NumPy, in fp64
ct.check(out, reference.rounded(values, out.get()), name="turned")
for row, column in ((0, 0), (255, 255), (511, 300)):
    at = [int(back[k]) * column + int(back[k + 1]) * row for k in (0, 3)]
    left, top = (at[k] + int(back[3 * k + 2]) >> 32 for k in (0, 1))
    print(f"row {row}, column {column} comes from row {top}, column {left}")

# %% [markdown]
# As pictures, of a quarter of the pixels: before, and after.

# %% turned
small = np.ascontiguousarray(image[:256, 96:352])  # where her face is
here, there = ct.to_device(small), ct.empty(small.shape, "uint8")
turn = reference.rotation(30, 256, 256)
warp.warp(here, there, turn)()
ct.picture(
    "photograph",
    small,
    alt={
        "en": "The head of an astronaut in an orange suit, who smiles at us.",
        "zh": "一位身穿橙色宇航服、面带微笑的宇航员的头像。",
    },
    quality=80,
)
ct.picture(
    "turned by 30 degrees",
    there.get(),
    alt={
        "en": "The same picture, turned counterclockwise by 30 degrees; the four "
        "corners of the frame are black.",
        "zh": "同一幅画面逆时针旋转 30 度，画框的四角是黑色。",
    },
    quality=80,
)

# %% [markdown]
# The other way: each pixel of the photograph is sent to where it goes. Which
# pixels of the result get none?

# %% forward
sent = ct.to_device(np.zeros(small.shape, "uint8"))
warp.forward(here, sent, turn)()
ones = ct.to_device(np.zeros(small.shape, "uint8"))
warp.forward(ct.to_device(np.full_like(small, 255)), ones, turn)()
full = ones.get()[..., 0] == 255
wanted = reference.warp(np.full_like(small, 255), turn, 256, 256) > 254
holes = wanted[..., 0] & ~full
ct.facts(
    "sent forward, of the pixels that lie in the photograph",
    {
        "pixels": int(wanted[..., 0].sum()),
        "holes": int(holes.sum()),
        "share of holes": (100 * holes.sum() / wanted[..., 0].sum(), "%"),
    },
)
ct.picture(
    "sent forward",
    sent.get(),
    alt={
        "en": "The picture turned by 30 degrees, with a regular pattern of black "
        "holes all over it.",
        "zh": "旋转 30 度之后的画面，上面布满规则排列的黑色小孔。",
    },
    quality=60,
)
ct.picture(
    "sent forward, 32 x 32 pixels of it",
    np.ascontiguousarray(sent.get()[112:144, 96:128]),
    alt={
        "en": "A part of it enlarged: single pixels are black, no two of them "
        "side by side.",
        "zh": "放大其中一块：有许多单独的黑色像素，没有两个左右相邻。",
    },
    scale=8,
)

# %% [markdown]
# Right before fast: every way, on ragged sizes, against NumPy in fp64.

# %% check
warp.compile_ahead()
shapes = ((1, 1), (1, 9), (7, 5), (31, 33), (130, 65))


def matrices(height, width):
    yield reference.rotation(30, height, width, 0.8)
    yield reference.rotation(90, height, width)
    yield [[1, 0, -1.25], [0, 1, 0.75]]  # a shift
    yield [[1.5, 0.4, -3], [-0.2, 0.3, 5]]


def fresh(*shape):
    """An output whose poison is brighter than all pixels."""
    target = ct.empty(shape, "uint8")
    ct.poison(target, 253)
    return target


def judge(name, target, values, near=reference.NEAR):
    """The first three channels; a fourth one is as it is."""
    got = target.get()
    wanted = reference.rounded(values, got[..., :3], near)
    ct.check(target, np.dstack([wanted, got[..., 3:]]), name=name)


def fourth(x):
    """x on the GPU, with a fourth channel."""
    height, width, _ = x.shape
    target = fresh(height, warp.pitch_of(width), 4)
    warp.pad(x, target)()
    return target


for h, w in shapes:
    host = ct.rng(h).integers(0, 251, (h, w, 3), "uint8")
    a = ct.to_device(host)
    pixels = fourth(a)
    to = (w, h + 3)
    for m in matrices(h, w):
        for number, edge in enumerate(reference.BORDERS):
            for how, taps in warp.TAPS.items():
                b = fresh(*to, 3)
                warp.warp(a, b, m, how, edge, 77)()
                values = reference.warp(host, m, *to, taps, number, 77)
                judge(f"{how}, {edge}", b, values)
        for number, edge in enumerate(reference.BORDERS[:2]):
            values = reference.warp(host, m, *to, 2, number, 77)
            for way in warp.BY_WORDS:
                b = fresh(*to, 3)
                warp.warp(a, b, m, "linear", edge, 77, way)()
                judge(f"{way}, {edge}", b, values)
            b = fresh(*to, 4)
            warp.four(pixels, w, b, m, edge, 77)()
            judge(f"four bytes, {edge}", b, values)
            values = reference.warp(host, m, *to, 2, number, 0)
            b = fresh(*to, 3)
            warp.by_texture(pixels, w, b, m, border=edge, gather=True)()
            judge(f"gathered, {edge}", b, values)
            for array in (False, True):
                b = fresh(*to, 4)
                warp.by_texture(pixels, w, b, m, False, edge, array)()
                judge(f"points, {edge}", b, values)
                # Weights of 8 bits are off by 1/256 at most.
                for channels in (3, 4):
                    b = fresh(*to, channels)
                    warp.by_texture(pixels, w, b, m, True, edge, array)()
                    judge(f"filtered, {edge}", b, values, near=2)

# %% [markdown]
# What lies beyond the border: four answers, for a picture made smaller.

# %% borders
quarter = np.ascontiguousarray(small[32:224:2, 32:224:2])
a, b = ct.to_device(quarter), ct.empty((160, 160, 3), "uint8")
smaller = reference.rotation(15, 96, 96, 0.7)
smaller[:, 2] += 32  # into the middle of a larger frame
for edge, (en, zh) in {
    "constant": ("gray around it", "四周是灰色"),
    "replicate": (
        "the pixels of its edges go on as stripes",
        "边缘的像素向外延伸成条纹",
    ),
    "reflect_101": (
        "it is mirrored at each edge",
        "在每条边上都像照镜子一样翻转过去",
    ),
    "wrap": (
        "it begins again behind each edge, like tiles",
        "在每条边之外重新开始，像瓷砖一样铺开",
    ),
}.items():
    warp.warp(a, b, smaller, border=edge, value=114)()
    ct.picture(
        edge,
        b.get(),
        alt={
            "en": f"The face, small and turned by 15 degrees; {en}.",
            "zh": f"缩小并旋转 15 度的头像，{zh}。",
        },
        quality=70,
    )

# %% [markdown]
# Positions in fp32 and in integers: how many values of an image differ from the
# exact result, by its width?

# %% positions
widths = (512, 4_096, 32_768, 262_144)
rows = {}
for w in widths:
    host = ct.rng(w).integers(0, 256, (32, w, 3), "uint8")
    a, b = ct.to_device(host), ct.empty(host.shape, "uint8")
    m = [[0.9, 1e-4, 0.3], [-1e-4, 0.9, 1.7]]
    ground = np.rint(reference.warp(host, m, 32, w)).astype(int)
    row = {}
    for name, way in (("fp32", "float"), ("integers", "plain")):
        warp.warp(a, b, m, way=way)()
        off = np.abs(b.get() - ground)
        row |= {
            f"{name}: values that differ": 100 * float((off > 0).mean()),
            f"{name}: at most by": int(off.max()),
        }
    rows[w] = row
ct.table(
    "positions in fp32 and in integers",
    rows,
    corner="width",
    units={f"{name}: values that differ": "%" for name in ("fp32", "integers")},
)

# %% [markdown]
# How fine are the weights of a texture? Two pixels, 0 and 255, and a series of
# reads from the first to the second.

# %% weights
from cudatut.book.images.warp.textures import Texture

reads = 65_536
two = np.zeros((1, 8, 4), "uint8")
two[0, 1] = 255
texture = Texture(ct.to_device(two), 2, filtered=True)
found = ct.empty(reads, "float32")
ct.Kernel("images/warp/four.cu", "between")(
    found, texture.handle, reads, grid=ct.cdiv(reads, 256), block=256
)
exact = 255 * np.arange(reads) / reads
ct.facts(
    f"{reads} reads between two pixels",
    {
        "different values": len(np.unique(found.get())),
        "largest difference": (
            float(np.abs(found.get() - exact).max()),
            "levels",
        ),
    },
)

# %% [markdown]
# The same in the turned photograph: the texture's result, less the exact one.

# %% difference
pixels = fourth(here)
filtered = ct.empty((256, 256, 4), "uint8")
warp.by_texture(pixels, 256, filtered, turn, filtered=True, array=True)()
ground = np.rint(reference.warp(small, turn, 256, 256))
levels = filtered.get()[..., :3] - ground
ct.facts(
    "filtered texture, less the exact result",
    {
        "values that differ": (100 * float((levels != 0).mean()), "%"),
        "at most by": (int(np.abs(levels).max()), "levels"),
    },
)
ct.picture(
    "difference, times 64",
    np.clip(64 * np.abs(levels), 0, 255).astype("uint8"),
    alt={
        "en": "Mostly black, with colored dots where the picture has edges and "
        "textures.",
        "zh": "大部分是黑色，画面里有边缘和纹理的地方散布着彩色的点。",
    },
    quality=60,
)

# %% [markdown]
# What the bytes need, and what a copy takes.

# %% predict
side = 4096
megabytes = 3 * side * side / 1e6
limit = ct.limits.bandwidth()
ct.facts(
    f"{side} x {side} pixels of three bytes, read once and written once",
    {
        "bytes": (2 * megabytes, "MB"),
        "time of the bytes": (2 * megabytes / limit * 1e3, "us"),
        "reads of a pixel by the plain kernel": 12,
        "reads of a pixel by words": 6,
    },
)

# %% [markdown]
# All ways beside each other, turned by 30 degrees.

# %% bench
host = ct.rng(0).integers(0, 256, (side, side, 3), "uint8")
m = reference.rotation(30, side, side)
a, b, c = (
    ct.to_device(host),
    ct.empty(host.shape, "uint8"),
    fresh(side, side, 4),
)
of_four, tall = fourth(a), (8, 16)
texture = {"block": (32, 8), "ROWS": 4}
bench = ct.bench(
    {
        "nearest": warp.warp(a, b, m, "nearest"),
        "plain": warp.warp(a, b, m),
        "cubic": warp.warp(a, b, m, "cubic"),
        "words": warp.warp(a, b, m, way="words", block=tall),
        "tile": warp.warp(a, b, m, way="tile"),
        "four bytes": warp.four(of_four, side, c, m),
        "texture, gathered": warp.by_texture(
            of_four, side, b, m, gather=True, **texture
        ),
        "texture, filtered": warp.by_texture(
            of_four, side, b, m, True, array=True, **texture
        ),
    },
    name=f"{side} x {side}, turned by 30 degrees",
)

# %% [markdown]
# A letterbox as a warp: one matrix resizes and shifts, first to a smaller
# picture, then to a larger one.

# %% letterbox
from cudatut.book.images.resize import reference as resized


def boxed(host, side):
    """The picture in a gray square, by one matrix, and where it lies."""
    height, width, _ = host.shape
    high, wide, top, left = resized.placed(height, width, side, side)
    one = reference.resizing(height, width, high, wide)
    one[:, 2] += left, top
    target = ct.empty((side, side, 3), "uint8")
    warp.warp(ct.to_device(host), target, one, value=114)()
    rim = ct.cdiv(wide, 2 * width)  # half a pixel of the picture
    within = np.zeros((side, side), bool)
    within[top + rim : top + high - rim, left + rim : left + wide - rim] = True
    return target.get(), within


rows = {}
for name, host in {
    "512 x 256 to 224": np.ascontiguousarray(image[:256]),
    "64 x 32 to 224": np.ascontiguousarray(image[64:96, 192:256]),
}.items():
    got, within = boxed(host, 224)
    wanted = reference.rounded(resized.letterbox(host, 224, 224), got, 1e-3)
    off = np.abs(got.astype(int) - wanted).max(axis=2)
    rows[name] = {
        "levels off, inside": int(off[within].max()),
        "levels off, at the rim": int(off[~within].max()),
    }
    if host.shape[1] == 512:
        square = got
ct.table(
    "a letterbox by one matrix, beside resize and border",
    rows,
    corner="picture",
)
ct.picture(
    "letterbox by one matrix",
    square,
    alt={
        "en": "The upper half of the photograph, smaller, in the middle of a "
        "gray square.",
        "zh": "照片的上半部分，缩小后位于灰色正方形的中央。",
    },
    quality=75,
)
