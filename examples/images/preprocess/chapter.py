# ---
# jupyter:
#   cudatut:
#     title: {en: "One kernel for a network's input", zh: "一个 kernel 备好网络输入"}
#     requires: sm_75
#     extra: images
#     timeout_s: 120
#     sizes:
#       many: [64, 2]
#       rounds: [15, 1]
#       outputs: [[[1, 1], [3, 5], [64, 64], [31, 33], [66, 130]], [[31, 33]]]
# ---

# %% [markdown]
# Two photographs of different sizes become the input of a network. First the
# whole program: one launch, a thread for each pixel of the output.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.images.photograph import photograph

side, border = 256, 114
mean = np.array([0.485, 0.456, 0.406])  # of red, green, blue
std = np.array([0.229, 0.224, 0.225])
whole = photograph()[:, :, ::-1]  # blue first, as OpenCV reads files
images = [whole, whole[20:200, 130:410]]

# What the kernel is told of each image: 48 bytes, as its struct has them.
table = np.zeros(len(images), "i8, i4, i4, i4, i4, i4, i4, f8, f8")
first = 0
for k, image in enumerate(images):
    height, width = image.shape[:2]
    scale = min(side / height, side / width)  # it fits
    new_height, new_width = round(height * scale), round(width * scale)
    top, left = (side - new_height) // 2, (side - new_width) // 2  # centered
    table[k] = (
        first, height, width, top, left, new_height, new_width,
        height / new_height, width / new_width,
    )  # fmt: skip
    first += image.size

by, plus = 1 / (255 * std), -mean / std  # (x / 255 - mean) / std
normalize = np.array([*by, *plus, border], "float32")
pixels = ct.to_device(np.concatenate([image.ravel() for image in images]))
out = ct.empty((len(images), 3, side, side), "uint16")  # the bits of bf16
prepare = ct.Kernel("images/preprocess/pixel.cu", "letterbox_pixel")
prepare(
    pixels, ct.to_device(table.view("uint8")), normalize, side, side, out,
    grid=(side // 32, side // 8, len(images)), block=(32, 8),
)  # fmt: skip

found = (out.get().astype("uint32") << 16).view("float32")
for image, planes in zip(images, found):
    print(*image.shape, "->", *planes.shape)
    for c, color in enumerate(("red", "green", "blue")):
        print(f"  {color:5}  from {planes[c].min():6.3f}", end="")
        print(f" to {planes[c].max():6.3f}, corner {planes[c, 0, 0]:6.3f}")

# %% [markdown]
# To look at the input of a network, undo what was done to its numbers.

# %% pictures
from cudatut.book.images.preprocess import reference
from cudatut.book.images.preprocess.batches import SIDE, bf16, mixed, noise


def shown(planes):
    """Planes of the network's input as an image: red, green, blue."""
    levels = 255 * (planes.transpose(1, 2, 0) * std + mean)
    return np.rint(levels).clip(0, 255).astype("uint8")


ct.picture(
    "the second image",
    np.ascontiguousarray(images[1][:, :, ::-1]),
    alt={
        "en": "The head of an astronaut beside a model of the Space Shuttle, "
        "280 pixels wide and 180 high",
        "zh": "一位宇航员的头部，旁边是航天飞机模型；宽 280 像素，高 180 像素",
    },
    quality=80,
)
ct.picture(
    "the network's input",
    np.concatenate([shown(planes) for planes in found], axis=1),
    alt={
        "en": "Two squares side by side: the whole photograph, which fills "
        "its square, and the wide cut-out with gray above and below",
        "zh": "两个并排的正方形：整张照片占满第一个；较宽的那幅在第二个中，上下各有一条灰边",
    },
    quality=80,
)
for image, planes in zip(images, found):
    expected = reference.letterbox(image, side, side)
    ct.check(
        planes,
        expected,
        name=f"{image.shape[0]} x {image.shape[1]}",
        rtol=2**-8,
        atol=1e-3,
    )

# %% [markdown]
# The bytes of 64 photographs of different sizes: by four launches, of which
# each does one thing, and by one.

# %% predict
many = 64
rounds = 15
shapes = mixed(many)
limit = ct.limits.bandwidth()
made = many * SIDE * SIDE  # pixels of the output
one = reference.useful_bytes(shapes, SIDE, SIDE)
needed = one - 6 * made  # of the photographs
moved = {
    "resize": needed + 3 * made,  # 3 bytes for a pixel, uint8
    "swap": (3 + 3) * made,
    "normalize": (3 + 12) * made,  # to fp32
    "planes": (12 + 6) * made,  # to bf16
}
ct.table(
    f"the bytes of {many} photographs",
    {
        name: {"MB": count / 1e6, "time of the bytes": count / limit / 1e3}
        for name, count in {
            **moved,
            "four launches": sum(moved.values()),
            "one launch": one,
        }.items()
    },
    corner="launch",
    units={"time of the bytes": "us"},
)

# %% [markdown]
# Right before fast: every kernel, on images and outputs from one pixel on, at
# any alignment, and with the channels last.

# %% check
from cudatut.book.images.preprocess.preprocess import Batch, letterbox
from cudatut.book.images.preprocess.steps import four_launches

outputs = ((1, 1), (3, 5), (64, 64), (31, 33), (66, 130))
sizes = [(1, 1), (1, 7), (7, 1), (2, 3), (33, 65), (192, 96), (641, 639)]
small = noise(sizes)


WAYS = {
    "pixel": "a pixel for each thread",
    "rows": "words",
    "dots": "dot products",
}


def check(way, height, width, align, last=False):
    shape = (3, height, width)
    target = ct.empty((len(sizes), *np.roll(shape, -last)), "uint16")
    ct.poison(target)
    letterbox(Batch(small, align), target, way=way, channels_last=last)()
    wanted = np.stack([reference.letterbox(i, height, width) for i in small])
    if last:
        wanted = wanted.transpose(0, 2, 3, 1)
    ct.check(
        bf16(target.get()), wanted, rtol=2**-8, atol=1e-3,
        name=f"{WAYS[way]}, {height} x {width}, aligned to {align}"
        + (", channels last" if last else ""),
    )  # fmt: skip


for height, width in outputs:
    check("pixel", height, width, 16)
    for way in ("rows", "dots"):
        for align in (16, 1):
            check(way, height, width, align)
        check(way, height, width, 1, last=True)

# %% [markdown]
# 64 photographs to 640 x 640: the steps of this chapter, torchvision's chain of
# functions, and a copy of as many bytes.

# %% bench
from cudatut.book.rivals import vision

host = noise(shapes)
batch = Batch(host)
target = ct.empty((many, 3, SIDE, SIDE), "uint16")
half = ct.empty(one // 2, "uint8"), ct.empty(one // 2, "uint8")
each = [ct.to_device(image) for image in host]
runs = {
    "four launches": four_launches(batch, target),
    "a pixel for each thread": letterbox(batch, target, way="pixel"),
    "words, 4 x 4 pixels": letterbox(batch, target, way="rows"),
    "dot products": letterbox(batch, target),
    "torchvision": vision.preprocess(
        each, reference.placed, SIDE, reference.MEAN, reference.STD
    ),
    "copy": ct.vendor.copy(*half),
}
bench = ct.bench(runs, bytes=one, name=f"{many} photographs", rounds=rounds)

# %% compare
if not ct.tool.running():
    us = {row.name: row.median_us for row in bench.rows}
    ours = us["dot products"]
    ct.facts(
        "dot products, beside the others",
        {f"{name} / dot products": (us[name] / ours, "×") for name in us},
    )

# %% [markdown]
# torchvision rounds to whole levels behind its resize, our kernel does not.

# %% rounding
given = [ct.to_device(np.ascontiguousarray(image)) for image in images]
chain = vision.preprocess(
    given, reference.placed, side, reference.MEAN, reference.STD
)
four = ct.empty(out.shape, "uint16")
four_launches(Batch(images), four)()
if callable(chain):
    theirs = chain().float().cpu().numpy()

    def off(planes):
        """The difference in levels, 0 to 255."""
        return 255 * std[:, None, None] * np.abs(planes - theirs)

    ct.facts(
        "difference to torchvision's result",
        {
            "one launch, largest": (off(found).max(), "levels"),
            "one launch, mean": (off(found).mean(), "levels"),
            "four launches, mean": (off(bf16(four.get())).mean(), "levels"),
        },
    )
    part = off(found)[1].max(axis=0)[60:156, 80:176]
    ct.picture(
        "difference to torchvision",
        np.rint(255 * part).clip(0, 255).astype("uint8"),
        alt={
            "en": "Gray noise, nowhere much brighter than a middle gray, "
            "which is half a level",
            "zh": "灰色噪点，几乎没有比中灰更亮的地方；中灰就是半级",
        },
        scale=3,
    )

# %% [markdown]
# The border is not written, and the output is the one of another batch.

# %% stale
leaves = ct.Kernel(
    "images/preprocess/pixel.cu", "letterbox_pixel", {"BORDER": 0}
)
turned = table[::-1].copy()  # the other order, into the same output
leaves(
    pixels, ct.to_device(turned.view("uint8")), normalize, side, side, out,
    grid=(side // 32, side // 8, len(images)), block=(32, 8),
)  # fmt: skip
again = bf16(out.get())
wanted = [reference.letterbox(image, side, side) for image in images[::-1]]
wrong = [100 * np.mean(np.abs(a - b) > 0.02) for a, b in zip(again, wanted)]
ct.facts(
    "wrong elements",
    {"first output": (wrong[0], "%"), "second output": (wrong[1], "%")},
)
ct.picture(
    "the first output",
    shown(again[0]),
    alt={
        "en": "The cut-out in the middle; above and below it, where gray "
        "should be, parts of the whole photograph",
        "zh": "中间是截取的部分；上下本该是灰色的地方，却是整张照片的内容",
    },
    quality=80,
)
