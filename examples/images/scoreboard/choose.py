"""Which kernel of the book computes a convolution: a choice by its sizes.

    run = convolution("fp32", shape, images, weights, results)
    run()                     # launches; run.way says what
    way("bf16", shape)        # that name alone

fp32 is NCHW, bf16 NHWC, as in the chapters. `WAYS` are those that there are, by
kind; `able` says which of them take a convolution.
"""

from collections.abc import Callable
from typing import Any

from cudatut.book.images.depthwise import launch as depthwise
from cudatut.book.images.direct import launch as direct
from cudatut.book.images.im2col import launch as im2col
from cudatut.book.images.implicit_gemm import launch as implicit
from cudatut.book.images.shapes import Shape
from cudatut.book.images.winograd import launch as winograd

IMPLICIT = "implicit GEMM"
# --8<-- [start:ways]
# Name -> launcher, which takes a shape, images, weights and results.
WAYS: dict[str, dict[str, Callable]] = {
    "fp32": {
        "depthwise": depthwise.planes,
        "Winograd": winograd.winograd,
        "direct": direct.window,
        "im2col": im2col.convolve,
        IMPLICIT: getattr(implicit, "fp32", implicit.offsets),
    },
    "bf16": {"depthwise": depthwise.channels, IMPLICIT: implicit.bf16},
}
# --8<-- [end:ways]
FEW = 4  # channels of a group, in a window of which a product is shallow
PIXELS = 64  # of the results of an image, which are few
DEEP = 1024  # weights of a filter


# --8<-- [start:able]
def able(kind: str, shape: Shape) -> list[str]:
    """The ways that can compute it; the last one can compute all."""
    found = [IMPLICIT]
    if kind == "fp32" and shape.groups == 1:
        found.insert(0, "im2col")
    if kind == "fp32" and not direct.refuses_window(shape):
        found.insert(0, "direct")
    if kind == "fp32" and not winograd.refuses(shape):
        found.insert(0, "Winograd")
    if not depthwise.refuses(shape):
        found.insert(0, "depthwise")
    return found


# --8<-- [end:able]


# --8<-- [start:way]
def way(kind: str, shape: Shape) -> str:
    """The one that is expected to be fastest."""
    high, wide = shape.out
    depth = shape.product[2]
    if not depthwise.refuses(shape):
        return "depthwise"
    if kind == "bf16":
        return IMPLICIT
    if winograd.suits(shape):
        return "Winograd"
    # A product is shallow, and a direct kernel reads the image once.
    if shape.channels // shape.groups <= FEW and not direct.refuses_window(
        shape
    ):
        return "direct"
    # Its tiles are of pixels of several images, which a copy brings together.
    if shape.groups == 1 and high * wide <= PIXELS and depth >= DEEP:
        return "im2col"
    return IMPLICIT


# --8<-- [end:way]


def convolution(
    kind: str, shape: Shape, images: Any, weights: Any, results: Any
) -> Callable[[], None]:
    """kind: "fp32" or "bf16". Raises as the launcher that is chosen."""
    name = way(kind, shape)
    run = WAYS[kind][name](shape, images, weights, results)

    def chosen() -> None:
        run()

    chosen.way, chosen.run = name, run
    return chosen
