"""Launchers of the kernels of this chapter. Images are uint8 on the GPU,
height x width x 3, of one pixel and more.

    run = bilinear(image, out)        # out of any size
    run = letterbox(image, out)       # keeps the shape; the rest is border
    run()                             # launches; returns at once

Rounding: bilinear kernels write the nearest integer, of two equally near ones
the even one. Weights are right to the last place of fp32 or two.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.images.resize.reference import placed

FOLDER = "images/resize"
BLOCK = (32, 8)  # threads along a row, and rows
PIXELS = 4  # of a thread of letterbox_rows and letterbox_kept
ROWS = {"rows": 4, "kept": 16}  # of a thread, by way
FEW = 1 << 20  # pixels of an output that a thread for each makes sooner
MOST = 1 << 22  # pixels of an axis: a guess in fp32 is off by one at most
AXIS = np.dtype([("n", "i4"), ("to", "i4"), ("scale", "f4"), ("part", "f4")])


@cache
def kernel(source: str, name: str, defines: tuple = ()) -> ct.Kernel:
    return ct.Kernel(f"{FOLDER}/{source}.cu", name, dict(defines))


def axis(n: int, to: int) -> np.void:
    """An axis as kernels get it."""
    return np.array((n, to, n / to, 0.5 / to), AXIS)[()]


def images(name: str, image: Any, out: Any, **wants: Any) -> tuple[Any, Any]:
    """Both, checked. Raises TypeError, ValueError."""
    take = ct.operands(name)
    shape = (None, None, 3)
    source = take.read("image", image, "uint8", shape, most=MOST, **wants)
    target = take.write("out", out, "uint8", shape, most=MOST, **wants)
    for one in (source, target):
        if 0 in one.shape:
            height, width, _ = one.shape
            raise ValueError(
                f"{name}: {one.name} has no pixel: {height} x {width}"
            )
    if target.shape[0] > 65535 * BLOCK[1]:
        raise ValueError(
            f"{name}: out has {target.shape[0]} rows, at most {65535 * BLOCK[1]}"
        )
    return source, target


def _whole(name: str, image: Any, out: Any, block: tuple) -> Callable:
    source, target = images(name, image, out)
    height, width, _ = target.shape
    grid = (ct.cdiv(width, block[0]), ct.cdiv(height, block[1]))
    if grid[1] > 65535:
        raise ValueError(f"{name}: {height} rows are too many for this block")
    down = axis(source.shape[0], height)
    across = axis(source.shape[1], width)
    one = kernel("resize", name)

    def run(stream=None):
        one(
            target.address, source.address, down, across,
            grid=grid, block=(*block, 1), stream=stream,
        )  # fmt: skip

    run.operands = source, target  # an address keeps no array alive
    return run


def nearest(image: Any, out: Any, block: tuple = BLOCK) -> Callable:
    """out = for each pixel the one of the image in which its center lies."""
    return _whole("resize_nearest", image, out, block)


def bilinear(image: Any, out: Any, block: tuple = BLOCK) -> Callable:
    """out = between the four pixels around each center."""
    return _whole("resize_bilinear", image, out, block)


def letterbox(
    image: Any,
    out: Any,
    border: int = 114,
    centered: bool = True,
    way: str = "rows",
    whole: bool = False,
    **plan: int,
) -> Callable:
    """out = the image as large as fits without a change of its shape, the rest
    border. centered: False puts it into the corner. whole: fill the output, as
    `bilinear` does. way: "pixel", or "rows" or "kept", which want both arrays
    to begin at multiples of 4 bytes. plan: macros of rows.cu or kept.cu.
    Raises TypeError, ValueError."""
    if way not in ("pixel", *ROWS):
        raise ValueError(f"letterbox: no way {way!r}: pixel, rows, kept")
    if not 0 <= border <= 255:
        raise ValueError(f"letterbox: border {border} is not in 0 to 255")
    if plan and way == "pixel":
        raise ValueError(f"letterbox: {sorted(plan)} belong to rows and kept")
    source, target = images(
        "letterbox", image, out, align=1 if way == "pixel" else 4
    )
    size, (height, width) = source.shape[:2], target.shape[:2]
    new_height, new_width, top, left = (
        (height, width, 0, 0)
        if whole
        else placed(*size, height, width, centered)
    )
    arguments = (
        target.address, source.address, axis(size[0], new_height),
        axis(size[1], new_width), height, width, top, left, border,
    )  # fmt: skip
    if way == "pixel":
        one, per = kernel("resize", "letterbox"), BLOCK
    else:
        plan = {"ROWS": ROWS[way], **plan}
        one = kernel(way, f"letterbox_{way}", tuple(sorted(plan.items())))
        per = (BLOCK[0] * PIXELS, BLOCK[1] * plan["ROWS"])
    grid = (ct.cdiv(width, per[0]), ct.cdiv(height, per[1]))

    def run(stream=None):
        one(*arguments, grid=grid, block=(*BLOCK, 1), stream=stream)

    run.operands = source, target
    return run


def way_for(size: tuple, to: tuple, sms: int) -> dict[str, Any]:
    """What `fastest` tells `letterbox` for an image of `size` and an output of
    `to`, height and width each, on a GPU of so many SMs."""
    if to[0] * to[1] < FEW:
        return {"way": "pixel"}
    if to[0] <= size[0]:
        return {"way": "rows"}
    # More rows of a thread share more, if enough blocks are left.
    for rows, waves in ((32, 6), (16, 3)):
        blocks = ct.cdiv(to[1], BLOCK[0] * PIXELS) * ct.cdiv(
            to[0], BLOCK[1] * rows
        )
        if blocks >= waves * sms:
            return {"way": "kept", "ROWS": rows}
    return {"way": "kept", "ROWS": 8}


def fastest(image: Any, out: Any) -> Callable:
    """As `bilinear`, by the kernel that was the fastest here for such sizes."""
    plan = way_for(image.shape[:2], out.shape[:2], ct.device().sm_count)
    return letterbox(image, out, whole=True, **plan)


def wrong(image: Any, out: Any, mistakes: int) -> Callable:
    """out: fp32, what a bilinear resize with these mistakes makes, a sum of
    reference.CORNER, NEAREST, EXCHANGED."""
    if not 0 <= mistakes <= 7:
        raise ValueError(f"wrong: mistakes {mistakes} are not in 0 to 7")
    take = ct.operands("wrong")
    source = take.read("image", image, "uint8", (None, None, 3), most=MOST)
    target = take.write("out", out, "float32", (None, None, 3), most=MOST)
    (height, width), (out_height, out_width) = (
        source.shape[:2],
        target.shape[:2],
    )
    if 0 in (*source.shape, *target.shape) or out_height > 65535 * BLOCK[1]:
        raise ValueError(f"wrong: {source.shape} to {target.shape}")
    one = kernel("formula", "resize_wrong")
    grid = (ct.cdiv(out_width, BLOCK[0]), ct.cdiv(out_height, BLOCK[1]))

    def run(stream=None):
        one(
            target.address, source.address, out_height, out_width, height,
            width, mistakes, grid=grid, block=(*BLOCK, 1), stream=stream,
        )  # fmt: skip

    run.operands = source, target
    return run
