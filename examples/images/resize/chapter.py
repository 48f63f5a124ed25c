# ---
# jupyter:
#   cudatut:
#     title: {en: "Resize", zh: "缩放"}
#     requires: sm_75
#     extra: images
#     timeout_s: 120
#     sizes:
#       large: [[4_320, 7_680], [66, 130]]
#       small: [[2_160, 3_840], [33, 65]]
# ---

# %% [markdown]
# A photograph of 512 x 512 pixels becomes one of 300 x 400, each pixel between
# the four around its center.

# %% program
import numpy as np
from cudatut.book.images.photograph import photograph
from cudatut.book.images.resize import reference
from cudatut.book.images.resize.resize import axis

import cudatut as ct

photo = photograph()
rows, columns = 300, 400
image = ct.to_device(photo)
out = ct.empty((rows, columns, 3), "uint8")

down, across = axis(photo.shape[0], rows), axis(photo.shape[1], columns)
bilinear = ct.Kernel("images/resize/resize.cu", "resize_bilinear")
grid = (ct.cdiv(columns, 32), ct.cdiv(rows, 8))
bilinear(out, image, down, across, grid=grid, block=(32, 8))

up, low, weight = reference.taps(photo.shape[0], rows)
for y in (0, 1, 150):
    print(f"row {y}: rows {up[y]} and {low[y]}, weight {weight[y]:.3f}")
values = reference.resize_bilinear(photo, rows, columns)  # fp64, not rounded
got = out.get()
ct.check(got, reference.rounded(values, got), name="300 x 400", atol=0, rtol=0)

# %% [markdown]
# 24 x 24 pixels become 192 x 192: the nearest pixel, and between pixels.

# %% pictures
from cudatut.book.images.resize import resize

eye = np.ascontiguousarray(photo[90:114, 190:214])
part = ct.to_device(eye)
side = 192


def made(launcher, *options, **more):
    target = ct.empty((side, side, 3), "uint8")
    launcher(part, target, *options, **more)()
    return target.get()


nearest, between = made(resize.nearest), made(resize.bilinear)
values = reference.resize_bilinear(eye, side, side)
off = np.abs(between - np.rint(values))
ct.picture(
    "nearest pixel",
    nearest,
    alt={
        "en": "An eye in squares of eight by eight equal pixels.",
        "zh": "一只眼睛，由 8 x 8 个相同像素的方块组成。",
    },
    quality=80,
)
ct.picture(
    "between pixels",
    between,
    alt={
        "en": "The same eye, soft, without squares.",
        "zh": "同一只眼睛，柔和，没有方块。",
    },
    quality=80,
)
ct.picture(
    "between pixels, difference to fp64, times 8",
    (8 * off).astype("uint8"),
    alt={
        "en": "All black: each byte is that of fp64, rounded.",
        "zh": "一片漆黑：每个字节都等于 fp64 结果取整。",
    },
)
ct.facts(
    "beside fp64, rounded",
    {"bytes that differ": int((off > 0).sum()), "most": int(off.max())},
)

# %% [markdown]
# A letterbox: the image as large as fits, the rest gray. The last picture comes
# from a kernel that does not write the border, into an array that has held
# another image before.

# %% letterbox
wide, high = photo[100:420], np.ascontiguousarray(photo[:, 100:420])
box = ct.empty((side, side, 3), "uint8")
boxes = {}
for name, centered in (("top left", False), ("centered", True)):
    resize.letterbox(ct.to_device(wide), box, 114, centered)()
    boxes[name] = box.get()
    ct.check(
        boxes[name],
        reference.rounded(
            reference.letterbox(wide, side, side, 114, centered), boxes[name]
        ),
        name=f"letterbox, {name}",
        atol=0,
        rtol=0,
    )
resize.letterbox(ct.to_device(high), box)()  # another image
new_rows, _, top, _ = reference.placed(*wide.shape[:2], side, side)
resize.bilinear(ct.to_device(wide), box[top : top + new_rows])()
boxes["border not written"] = box.get()
for (name, picture), en, zh in zip(
    boxes.items(),
    (
        "The photograph above, a gray bar below it.",
        "The photograph between two gray bars.",
        "The photograph; in the bars lies what is left of another image.",
    ),
    (
        "照片在上，下面是一条灰边。",
        "照片位于两条灰边之间。",
        "照片的上下两条边里，是另一幅图像的残留。",
    ),
):
    ct.picture(name, picture, alt={"en": en, "zh": zh}, quality=80)

# %% [markdown]
# Three mistakes, one at a time and all at once, on an enlarged picture. What
# leaves 0 to 255 is cut off here.

# %% mistakes
MISTAKES = {
    "corner": reference.CORNER,
    "round": reference.NEAREST,
    "weights exchanged": reference.EXCHANGED,
    "all three": 7,
}
right = reference.resize_bilinear(eye, side, side)
shown, rows_of = {}, {}
for name, mistake in MISTAKES.items():
    target = ct.empty((side, side, 3), "float32")
    resize.wrong(part, target, mistake)()
    found = shown[name] = target.get()
    wanted = reference.wrong(eye, side, side, mistake)
    ct.check(found, wanted, name=name, atol=1e-3)
    far = np.abs(found - right)
    rows_of[name] = {
        "mean": float(far.mean()),
        "most": float(far.max()),
        "not in 0 to 255": 100 * float(((found < 0) | (found > 255)).mean()),
    }
SEEN = {  # what each picture shows, in words
    "corner": ("The eye lies further left and up.", "眼睛偏向左上方。"),
    "round": ("The eye with hard steps in it.", "眼睛上有生硬的台阶。"),
    "weights exchanged": ("The eye behind a grid.", "眼睛上像罩了一层格子。"),
    "all three": (
        "The eye behind a grid, shifted, with hard steps.",
        "眼睛移了位，罩着格子，还有生硬的台阶。",
    ),
}
for name, found in shown.items():
    en, zh = SEEN[name]
    ct.picture(
        name,
        found.round().clip(0, 255).astype("uint8"),
        alt={"en": en, "zh": zh},
        quality=75,
    )
ct.table(
    "differences to fp64, in steps of a byte",
    rows_of,
    corner="mistake",
    units={"not in 0 to 255": "%"},
)

# %% mistakes-differences
for name, found in shown.items():
    ct.picture(
        f"{name}, difference times 4",
        np.abs(4 * (found - right)).clip(0, 255).astype("uint8"),
        alt={
            "en": f"The outlines of the eye shine. Mistake: {name}.",
            "zh": f"眼睛的轮廓发亮。错误：{name}。",
        },
        quality=60,
    )

# %% [markdown]
# Where a center lies is a fraction. How often does fp32 alone find another
# nearest pixel, for all sizes up to 2,048 of a row of 1,920 pixels?

# %% exact
n = 1_920
other = total = sizes_with = 0
for to in range(1, 2_049):
    x = np.arange(to, dtype="float32")
    alone = (x + np.float32(0.5)) * np.float32(n / to)
    differ = (alone.astype(int) != reference.nearest(n, to)).sum()
    other, total, sizes_with = (
        other + differ,
        total + to,
        sizes_with + (differ > 0),
    )
ct.facts(
    "the nearest pixel in fp32 alone, of 1,920",
    {"pixels": total, "another one": other, "sizes with one": sizes_with},
)

# %% [markdown]
# Right before fast: every kernel on images of any size, as a whole and as a
# letterbox, beside fp64. Where a value lies halfway, either neighbor is right.

# %% check
WAYS = {"one pixel": "pixel", "4 x 4 pixels": "rows", "rows kept": "kept"}
SIZES = ((1, 1), (1, 9), (3, 3), (31, 33), (65, 130))
found = {name: [] for name in ("nearest pixel", *WAYS)}


def compare(name, launch, target, values):
    """Keeps what the kernel writes and what it should write."""
    ct.poison(target, 251)  # no pixel is 251, so none between two is
    launch()
    got = target.get()
    wanted = reference.rounded(values, got)
    found[name].append((got.reshape(-1), wanted.reshape(-1)))


for size in SIZES:
    host = ct.rng(size[0]).integers(0, 251, (*size, 3), np.uint8)
    x = ct.to_device(host)
    for to in SIZES:
        y = ct.empty((*to, 3), "uint8")
        values = reference.resize_nearest(host, *to)
        compare("nearest pixel", resize.nearest(x, y), y, values)
        for name, way in WAYS.items():
            whole = resize.letterbox(x, y, whole=True, way=way)
            compare(name, whole, y, reference.resize_bilinear(host, *to))
            boxed = resize.letterbox(x, y, way=way)
            compare(name, boxed, y, reference.letterbox(host, *to))
for name, pairs in found.items():
    got, wanted = (np.concatenate(each) for each in zip(*pairs))
    ct.check(got, wanted, name=f"{name}, {len(pairs)} images", rtol=0, atol=0)

# %% [markdown]
# Half as large and back: bytes that count, each once, and what a kernel asks
# for.

# %% predict
large = (4_320, 7_680)
small = (2_160, 3_840)
limit = ct.limits.bandwidth()
useful = reference.useful_bytes(*large, *small)
ct.facts(
    "half as large, and twice as large",
    {
        "bytes, half": (useful / 1e6, "MB"),
        "bytes, twice": (reference.useful_bytes(*small, *large) / 1e6, "MB"),
        "time of the bytes": (useful / limit / 1e3, "us"),
    },
)
ct.table(
    "of one pixel of the output",
    {
        "nearest pixel": {"loads": 3, "stores": 3, "channels blended": 0},
        "one pixel": {"loads": 12, "stores": 3, "channels blended": 9},
        "4 x 4 pixels": {"loads": 6, "stores": 0.75, "channels blended": 9},
        "rows kept, twice as large": {
            "loads": 3 * 10 / 16,  # 16 rows lie between 10 of the image
            "stores": 0.75,
            "channels blended": 3 + 3 * 10 / 16,
        },
    },
    corner="kernel",
)

# %% [markdown]
# 4320 x 7680 pixels become 2160 x 3840, and the other way, beside a copy of as
# many bytes.

# %% bench
from cudatut.book.rivals.torch_rival import rival

source = ct.rng(0).integers(0, 255, useful // 2, np.uint8)
a, b = ct.to_device(source), ct.empty(useful // 2, "uint8")


def contest(size, to, name):
    host = ct.rng(1).integers(0, 255, (*size, 3), np.uint8)
    x, y = ct.to_device(host), ct.empty((*to, 3), "uint8")
    runs = {"nearest pixel": resize.nearest(x, y)}
    runs |= {
        name: resize.letterbox(x, y, whole=True, way=way)
        for name, way in WAYS.items()
        if way != "kept" or to > size
    }
    runs["copy"] = rival(lambda torch, a, b: lambda: b.copy_(a), a, b)
    return ct.bench(
        runs,
        bytes=reference.useful_bytes(*size, *to),
        name=f"{name}: {size[0]} x {size[1]} to {to[0]} x {to[1]}",
        rounds=25,
    )


half = contest(large, small, "half")

# %% bench-twice
twice = contest(small, large, "twice")
