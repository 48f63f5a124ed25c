# ---
# jupyter:
#   cudatut:
#     title: {en: "Affine warp: the contest", zh: "仿射变换：比赛"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [5760, 96]
#       rounds: [25, 1]
# ---

# %% [markdown]
# A square image of 100 MB, turned by 0, 30 and 90 degrees, and shifted by a
# part of a pixel: our kernels, PyTorch's `grid_sample`, torchvision's `affine`,
# and a copy of as many bytes.

# %% setup
import numpy as np
from cudatut.book.images.warp import reference, warp
from cudatut.book.rivals import vision
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

warp.compile_ahead()
side = 5760
rounds = 25
host = ct.rng(0).integers(0, 256, (side, side, 3), "uint8")
x, out = ct.to_device(host), ct.empty(host.shape, "uint8")
pixels = ct.empty((side, warp.pitch_of(side), 4), "uint8")
quads = ct.empty((side, side, 4), "uint8")
padding = warp.pad(x, pixels)
padding()
ANGLES = (0, 30, 90)


def matrix(degrees):
    turn = reference.rotation(degrees, side, side)
    turn[:, 2] += 0.3, 0.4
    return turn


# %% [markdown]
# Useful bytes: each pixel of the image that lies in the output, once, and the
# output.


# %% useful
def share(degrees, step=16):
    """Of the output, how much lies in the image, by every 16th pixel."""
    back = reference.inverted(matrix(degrees))
    (a, b, c), (d, e, f) = [[float(v) for v in row] for row in back]
    j, i = np.mgrid[step // 2 : side : step, step // 2 : side : step]
    column, row = a * i + b * j + c, d * i + e * j + f
    on = (column >= 0) & (column < side) & (row >= 0) & (row < side)
    return float(on.mean())


useful = {d: int(host.nbytes * (1 + share(d))) for d in ANGLES}
ct.table(
    f"{side} x {side} pixels",
    {
        f"{d}°": {
            "in the image": 100 * share(d),
            "useful bytes": useful[d] / 1e6,
            "time of the bytes": useful[d] / ct.limits.bandwidth() / 1e3,
        }
        for d in ANGLES
    },
    corner="turned by",
    units={
        "in the image": "%",
        "useful bytes": "MB",
        "time of the bytes": "us",
    },
)

# %% [markdown]
# Right before fast: every kernel of the contest against the plain one, and the
# plain one against NumPy on a part of the rows.

# %% check
few = min(side, 64)
for d in ANGLES:
    warp.warp(x, out, matrix(d))()
    plain = out.get()
    values = reference.warp(host, matrix(d), few, side)
    wanted = reference.rounded(values, plain[:few])
    ct.check(out[:few], wanted, name=f"plain, {d}°")
    again = ct.empty(out.shape, "uint8")
    ways = {
        way: warp.warp(x, again, matrix(d), way=way) for way in warp.BY_WORDS
    }
    ways["gathered"] = warp.by_texture(
        pixels, side, again, matrix(d), gather=True
    )
    for way, run in ways.items():
        ct.poison(again, 0x5A)
        run()
        # fp32 rounds a value near a half upwards by one way, down by another.
        off = np.abs(again.get().astype("int16") - plain).max()
        ct.check(off, 0, name=f"{way}, {d}°: off by", atol=1)

# %% [markdown]
# What others are given: for `grid_sample` planes of fp32 and a grid, both made
# before; torchvision's `affine` takes and returns uint8, without the shift.


# %% rivals
def grid_sample(degrees):
    back = reference.inverted(matrix(degrees))

    def prepare(torch, image):
        double = {"device": "cuda", "dtype": torch.float64}
        i, j = torch.arange(side, **double), torch.arange(side, **double)
        column, row = (
            float(a) * i + float(b) * j[:, None] + float(c) for a, b, c in back
        )
        grid = [(2 * v + 1) / side - 1 for v in (column, row)]
        grid = torch.stack(grid, -1).float()[None]
        planes = image.movedim(-1, 0)[None].float().contiguous()
        return lambda: torch.nn.functional.grid_sample(
            planes, grid, align_corners=False
        )

    return rival(prepare, x)


def affine(degrees):
    def prepare(torch, image):
        from torchvision.transforms.v2 import functional as tv

        planes = image.movedim(-1, 0).contiguous()
        how = tv.InterpolationMode.BILINEAR
        # Its angles are clockwise.
        turn = (-float(degrees), [0, 0], 1.0, [0.0, 0.0])
        return lambda: tv.affine(planes, *turn, interpolation=how)

    return rival(prepare, x)


def copy(degrees):
    half = useful[degrees] // 2

    def prepare(torch, image, target):
        a, b = (one.reshape(-1)[:half] for one in (image, target))
        return lambda: b.copy_(a)

    return rival(prepare, x, out)


# %% angles
TALL = (8, 16)
TEXTURE = {"block": (32, 8), "ROWS": 4}
by_angle = {}
for d in ANGLES:
    m = matrix(d)
    by_angle[d] = ct.bench(
        {
            "plain": warp.warp(x, out, m),
            "words": warp.warp(x, out, m, way="words", block=TALL),
            "tile": warp.warp(x, out, m, way="tile"),
            "texture, points": warp.by_texture(pixels, side, quads, m),
            "texture, gathered": warp.by_texture(
                pixels, side, out, m, gather=True, **TEXTURE
            ),
            "texture, filtered": warp.by_texture(
                pixels, side, out, m, True, array=True, **TEXTURE
            ),
            "copy of the useful bytes": copy(d),
            "grid_sample": grid_sample(d),
            "torchvision": affine(d),
        },
        bytes=useful[d],
        name=f"turned by {d}°",
        rounds=rounds,
    )

# %% [markdown]
# What a texture costs before its first read: a fourth byte for each pixel, and
# the copy into a CUDA array. And the CPU.

# %% before
from cudatut.book.images.warp.textures import Texture

texture = Texture(pixels, side, filtered=True, array=True)
before = ct.bench(
    {
        "a fourth byte": padding,
        "copy into a CUDA array": texture.refresh,
        "filtered, from an array": warp.by_texture(
            pixels, side, out, matrix(90), True, array=True, **TEXTURE
        ),
        "filtered, from pitched memory": warp.by_texture(
            pixels, side, out, matrix(90), True, **TEXTURE
        ),
    },
    name="what a texture needs first, and turned by 90 degrees",
    rounds=rounds,
)


# %% cpu
def on_cpu(degrees):
    m, size = matrix(degrees), (side, side)
    return vision.opencv_us(
        lambda cv2: lambda: cv2.warpAffine(host, m, size), rounds=3
    )


took = {d: on_cpu(d) for d in ANGLES}
if not ct.tool.running():
    import os

    ct.table(
        "OpenCV on the CPU",
        {
            f"{d}°": {
                "threads": os.cpu_count(),
                "time": us,
                "its time / tile": us / by_angle[d]["tile"].median_us,
            }
            for d, us in took.items()
            if isinstance(us, float)
        },
        corner="turned by",
        units={"time": "us", "its time / tile": "×"},
    )

# %% goals
GOALS = {
    ("tile", "copy of the useful bytes"): 0.5,
    ("texture, gathered", "copy of the useful bytes"): 0.5,
    ("tile", "grid_sample"): 1.0,
    ("tile", "torchvision"): 3.0,
}
if not ct.tool.running():
    ct.goals(
        "exact kernels beside others",
        {
            f"{d}°: {ours} / {other}": by_angle[d].goal(ours, other, times)
            for (ours, other), times in GOALS.items()
            for d in ANGLES
        },
    )
