"""The four launches of steps.cu, one behind the other."""

from collections.abc import Callable
from typing import Any

import cudatut as ct
from cudatut.book.images.preprocess.preprocess import (
    ACROSS,
    DOWN,
    FOLDER,
    Batch,
    scale_of,
)
from cudatut.book.images.preprocess.reference import MEAN, STD


def four_launches(batch: Batch, out: Any, border: int = 114) -> Callable:
    """As `letterbox`, rounded to uint8 behind the resize. What lies between the
    launches is kept from one call to the next. Raises TypeError, ValueError."""
    n = len(batch.shapes)
    o = ct.operands("steps").write("out", out, "uint16", (n, 3, None, None))
    height, width = o.shape[2:]
    if not 0 <= border <= 255:
        raise ValueError(f"steps: a border of {border}, not a byte's")
    plane = height * width
    first, second = (ct.empty(3 * n * plane, "uint8") for _ in range(2))
    third = ct.empty(3 * n * plane, "float32")
    table = ct.to_device(batch.places(height, width).view("uint8"))
    scale = scale_of("pixel", border, MEAN, STD)
    resize, swap, normalize, planes = (
        ct.Kernel(f"{FOLDER}/steps.cu", f"step_{name}")
        for name in ("resize", "swap", "normalize", "planes")
    )
    grid = (ct.cdiv(width, ACROSS), ct.cdiv(height, DOWN), n)
    flat = {"grid": ct.cdiv(n * plane, 256), "block": 256}

    def run():
        resize(
            batch.pixels, table, border, height, width, first,
            grid=grid, block=(ACROSS, DOWN),
        )  # fmt: skip
        swap(first, second, n * plane, **flat)
        normalize(second, third, scale, n * plane, **flat)
        planes(
            third, o.address, plane, grid=(ct.cdiv(plane, 256), n), block=256
        )

    return run
