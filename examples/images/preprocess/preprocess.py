"""A batch of photographs of different sizes to the input of a network, by one
kernel.

    batch = Batch(images)             # uint8 [height][width][3], blue first
    run = letterbox(batch, out)       # out: bf16 as uint16, [n][3][640][640]
    run()
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.images.preprocess.reference import MEAN, STD, placed

SOURCE = "images/preprocess/letterbox.cu"
ACROSS, DOWN = 32, 8  # threads of a block, as in the kernel
BEHIND = 12  # bytes that the kernel may read behind the last image
MOST_IMAGES, MOST_BYTES = 65_535, (1 << 32) - 4
IMAGE = np.dtype(
    [("first", "int64")]
    + [(name, "int32") for name in ("height", "width", "top", "left")]
    + [(name, "int32") for name in ("new_height", "new_width")]
    + [(name, "float32") for name in ("down", "across")]
)
DEFAULTS = {"PIXELS": 2, "ROWS": 4, "WORDS": 1, "BY_BITS": 1}


class Batch:
    """Images on the GPU, one behind the other. images: uint8 arrays on the host
    of [height][width][3]. Raises TypeError, ValueError."""

    def __init__(self, images: list, align: int = 16):
        if not 1 <= len(images) <= MOST_IMAGES:
            raise ValueError(f"batch: {len(images)} images")
        for i, image in enumerate(images):
            if image.dtype != np.uint8:
                raise TypeError(f"batch: image {i} of {image.dtype}, not uint8")
            if image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
                raise ValueError(f"batch: image {i} of shape {image.shape}")
            if image.nbytes >= MOST_BYTES:
                raise ValueError(f"batch: image {i} has {image.nbytes} bytes")
        self.shapes = [image.shape[:2] for image in images]
        self.firsts, end = [], 0
        for image in images:
            self.firsts.append(end)
            end += -(-image.nbytes // align) * align
        host = np.zeros(end + BEHIND, "uint8")
        for first, image in zip(self.firsts, images):
            host[first : first + image.nbytes] = image.reshape(-1)
        self.pixels = ct.to_device(host)

    def places(self, height: int, width: int) -> np.ndarray:
        """What the kernel is told about each image."""
        table = np.zeros(len(self.shapes), IMAGE)
        for row, first, (h, w) in zip(table, self.firsts, self.shapes):
            new_h, new_w, top, left = placed(h, w, height, width)
            row["first"], row["height"], row["width"] = first, h, w
            row["top"], row["left"] = top, left
            row["new_height"], row["new_width"] = new_h, new_w
            row["down"], row["across"] = h / new_h, w / new_w
        return table


@functools.cache
def kernel(name: str, defines: tuple) -> ct.Kernel:
    return ct.Kernel(SOURCE, name, dict(defines))


def plan_of(width: int, **plan: Any) -> dict:
    """The macros: as many neighbors as wanted, if they divide the width."""
    plan = {**DEFAULTS, **plan}
    while width % plan["PIXELS"]:
        plan["PIXELS"] //= 2
    return plan


def letterbox(
    batch: Batch,
    out: Any,
    border: int = 114,
    mean: tuple = MEAN,
    std: tuple = STD,
    way: str = "rows",
    channels_last: bool = False,
    **plan: Any,
) -> Callable:
    """out: bf16 as uint16 [images][3][height][width], or [height][width][3]
    with channels_last. way: "pixel" or "rows". plan: macros of the kernel.
    Raises TypeError, ValueError."""
    if way not in ("pixel", "rows") or (way == "pixel" and channels_last):
        raise ValueError(f"letterbox: no way {way!r} for this layout")
    if min(std) <= 0:
        raise ValueError(f"letterbox: a standard deviation in {std}")
    take = ct.operands("letterbox")
    pixels = take.read(
        "pixels", batch.pixels, "uint8", (None,), align=4, most=1 << 40
    )
    n = len(batch.shapes)
    shape = (n, None, None, 3) if channels_last else (n, 3, None, None)
    o = take.write("out", out, "uint16", shape, align=16)
    height, width = o.shape[1:3] if channels_last else o.shape[2:]
    if not (1 <= height <= DOWN * 65_535 and width >= 1):
        raise ValueError(f"letterbox: an output of {height} x {width}")
    plan = plan_of(width, **plan, CHANNELS_LAST=int(channels_last))
    table = ct.to_device(batch.places(height, width).view("uint8"))
    by = [1 / (255 * s) for s in std]
    plus = [-m / s for m, s in zip(mean, std)]
    scale = np.array([*by, *plus, border], "float32")
    one = kernel(f"letterbox_{way}", tuple(sorted(plan.items())))
    across, down = ACROSS, DOWN
    if way == "rows":
        across, down = ACROSS * plan["PIXELS"], DOWN * plan["ROWS"]
    grid = (ct.cdiv(width, across), ct.cdiv(height, down), n)

    def run(stream=None):
        one(
            pixels.address, table, scale, height, width,
            o.address, grid=grid, block=(ACROSS, DOWN), stream=stream,
        )  # fmt: skip

    run.operands = (pixels, o, table)
    return run
