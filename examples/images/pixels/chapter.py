# ---
# jupyter:
#   cudatut:
#     title: {en: "Pixels", zh: "像素"}
#     requires: sm_75
#     extra: images
#     timeout_s: 120
#     sizes:
#       size: [[4_320, 7_680], [33, 65]]
# ---

# %% [markdown]
# A photograph as bytes. OpenCV reads blue first, networks and screens want red
# first: a thread for each pixel exchanges the two.

# %% program
import numpy as np
from cudatut.book.images.photograph import photograph

import cudatut as ct

rgb = photograph()  # 512 x 512 pixels, red first
bgr = np.ascontiguousarray(rgb[:, :, ::-1])  # blue first
height, width, _ = bgr.shape
image, out = ct.to_device(bgr), ct.empty(bgr.shape, "uint8")

swap = ct.Kernel("images/pixels/pixels.cu", "swap_channels")
block = (32, 8)  # pixels along a row, and rows
grid = (ct.cdiv(width, 32), ct.cdiv(height, 8))  # x first
swap(out, image, height, width, grid=grid, block=block)

ct.check(out, rgb, name="red first", rtol=0, atol=0)
swapped = out.get()
print("a pixel, before:", *map(int, bgr[330, 300]))
print("a pixel, after: ", *map(int, swapped[330, 300]))

# %% [markdown]
# What a screen shows of these bytes: it takes the first one of three for red.

# %% pictures
face = np.s_[16:208, 128:320]
ct.picture(
    "blue first",
    bgr[face],
    alt={
        "en": "An astronaut whose face is blue: red and blue are exchanged.",
        "zh": "宇航员的脸是蓝色的：红与蓝颠倒了。",
    },
    quality=80,
)
ct.picture(
    "red first",
    swapped[face],
    alt={
        "en": "The same astronaut, Eileen Collins, in her natural colors.",
        "zh": "同一位宇航员 Eileen Collins，颜色正常。",
    },
    quality=80,
)
off = np.abs(swapped.astype(int) - rgb)
ct.picture(
    "difference to NumPy, times 8",
    np.minimum(8 * off, 255).astype("uint8")[face],
    alt={
        "en": "All black: no byte is another than NumPy's.",
        "zh": "一片漆黑：没有一个字节与 NumPy 不同。",
    },
)

# %% enlarged
eye = np.s_[94:106, 190:206]
ct.picture(
    "16 x 12 pixels, enlarged",
    rgb[eye],
    alt={
        "en": "Squares of one color each: the pixels around an eye.",
        "zh": "一个个单色方块：一只眼睛周围的像素。",
    },
    scale=12,
)
ct.table(
    "the first pixels of its first row",
    {
        f"x = {190 + x}": dict(zip(("red", "green", "blue"), map(int, pixel)))
        for x, pixel in enumerate(rgb[94, 190:193])
    },
    corner="pixel",
)

# %% [markdown]
# Each channel as an image of its own, CHW.

# %% channels
from cudatut.book.images.pixels import launch

launch.compile_ahead()
planes = ct.empty((3, height, width), "uint8")
launch.to_chw_four(ct.to_device(rgb), planes)()
ct.check(planes, rgb.transpose(2, 0, 1), name="CHW", rtol=0, atol=0)
for number, (name, en, zh) in enumerate(
    (
        ("red", "The suit is almost white.", "太空服几乎是白的。"),
        ("green", "The suit is gray.", "太空服是灰的。"),
        ("blue", "The suit is almost black.", "太空服几乎是黑的。"),
    )
):
    ct.picture(
        f"channel {number}, {name}",
        planes.get()[number, 200:392, 96:288],
        alt={"en": en, "zh": zh},
        quality=75,
    )

# %% [markdown]
# Right before fast: images of any size, each kernel beside NumPy.

# %% check
KERNELS = {
    "one pixel": (launch.swap_channels, False),
    "grid turned": (launch.swap_turned, False),
    "one pixel to CHW": (launch.to_chw, True),
    "four pixels": (launch.swap_four, False),
    "four pixels to CHW": (launch.to_chw_four, True),
    "16 pixels": (launch.swap_sixteen, False),
}


def expected(host, chw):
    return host.transpose(2, 0, 1) if chw else host[:, :, ::-1]


def check(name, rows, columns):
    make, chw = KERNELS[name]
    host = ct.rng(rows).integers(0, 255, (rows, columns, 3), np.uint8)
    wanted = expected(host, chw)
    target = ct.empty(wanted.shape, "uint8")
    make(ct.to_device(host), target)()
    got = target.get()
    ct.check(got, wanted, name=f"{name}, {rows} x {columns}", rtol=0, atol=0)


for name in KERNELS:
    for rows, columns in ((1, 1), (1, 3), (5, 13), (33, 31), (257, 1023)):
        check(name, rows, columns)

# %% [markdown]
# What 32 lanes touch, counted from their addresses, for 128 pixels: requests
# are the loads and stores of a warp, sectors are pieces of 32 bytes.

# %% predict
size = (4_320, 7_680)
lane = np.arange(32)
row = 3 * size[1]  # bytes from one row to the next


def sectors(first, each):
    """Sectors of a request: `each` bytes of each lane, from `first` on."""
    return len(np.unique((first[:, None] + np.arange(each)) // 32))


REQUESTS = {  # pixels of a warp; first byte and bytes of a lane: load, store
    "one pixel": (32, (3 * lane, 1), (3 * lane, 1)),
    "grid turned": (32, (row * lane, 1), (row * lane, 1)),
    "one pixel to CHW": (32, (3 * lane, 1), (lane, 1)),
    "four pixels": (128, (12 * lane, 4), (12 * lane, 4)),
    "four pixels to CHW": (128, (12 * lane, 4), (4 * lane, 4)),
    "16 pixels": (512, (48 * lane, 16), (48 * lane, 16)),
}
predicted = {
    name: {
        "requests": 6 * 128 / pixels,
        "sectors of a load": sectors(*load),
        "sectors of a store": sectors(*store),
    }
    for name, (pixels, load, store) in REQUESTS.items()
}
ct.table("of 128 pixels", predicted, corner="kernel")
limit = ct.limits.bandwidth()
moved = 6 * size[0] * size[1]  # bytes: read once, written once
ct.facts(
    "an image of 4320 x 7680",
    {
        "bytes": (moved / 1e6, "MB"),
        "time of the bytes": (moved / limit / 1e3, "us"),
        "sectors of a store, grid turned / one pixel": (
            predicted["grid turned"]["sectors of a store"]
            / predicted["one pixel"]["sectors of a store"],
            "×",
        ),
    },
)

# %% [markdown]
# An image of 4320 x 7680 pixels, beside a copy of as many bytes.

# %% bench
from cudatut.book.rivals.torch_rival import rival

host = ct.rng(0).integers(0, 255, (*size, 3), np.uint8)
x, y = ct.to_device(host), ct.empty((*size, 3), "uint8")
chw = ct.empty((3, *size), "uint8")
runs = {
    name: make(x, chw if to_chw else y)
    for name, (make, to_chw) in KERNELS.items()
}
for name, (_, to_chw) in KERNELS.items():
    target = chw if to_chw else y
    ct.poison(target)
    runs[name]()
    some = np.s_[:, :9] if to_chw else np.s_[:9]
    got, wanted = target.get()[some], expected(host, to_chw)[some]
    ct.check(got, wanted, name=f"{name}, large", rtol=0, atol=0)
runs["copy"] = rival(lambda torch, a, b: lambda: b.copy_(a), x, y)
bench = ct.bench(runs, bytes=moved, name="4320 x 7680 pixels", rounds=40)

# %% [markdown]
# More light: 80 is added to each byte. A sum above 255 does not fit into one.

# %% brighter
photo, light = ct.to_device(rgb), ct.empty(rgb.shape, "uint8")
results = {}
for name, keep in (("as it comes", False), ("at most 255", True)):
    launch.brighter(photo, light, 80, keep)()
    results[name] = light.get()
sums = rgb.astype(int) + 80
ct.check(results["as it comes"], sums % 256, name="wraps", rtol=0, atol=0)
ct.check(
    results["at most 255"],
    np.minimum(sums, 255),
    name="stays at 255",
    rtol=0,
    atol=0,
)
ct.picture(
    "the sum as it comes",
    results["as it comes"][face],
    alt={
        "en": "Patches of false color: what was bright has become dark.",
        "zh": "一块块假色：原来亮的地方变暗了。",
    },
    quality=75,
)
ct.picture(
    "the sum, at most 255",
    results["at most 255"][face],
    alt={
        "en": "The face in more light; the background is white.",
        "zh": "脸变亮了；背景成了白色。",
    },
    quality=80,
)
ct.facts(
    "of the photograph",
    {"bytes that overflow": (100 * float((sums > 255).mean()), "%")},
)
