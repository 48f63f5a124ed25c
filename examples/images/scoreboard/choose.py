"""Which kernel of the book computes a convolution: a choice by its sizes.

    run = convolution("fp32", shape, images, weights, results)
    run()                     # launches; run.way says what
    way("bf16", shape)        # that name alone

fp32 is NCHW, bf16 NHWC, as in the chapters. `WAYS` are those that there are, by
kind; `able` says which of them take a convolution.
"""

from collections.abc import Callable
from typing import Any

import cudatut as ct
from cudatut.book.images.depthwise import launch as depthwise
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
        "im2col": im2col.convolve,
        # `fp32` chooses between its kernels, where there is more than one.
        IMPLICIT: implicit.fp32,
    },
    "bf16": {"depthwise": depthwise.channels, IMPLICIT: implicit.bf16},
}
# --8<-- [end:ways]
FOLDERS = [module.FOLDER for module in (depthwise, im2col, implicit, winograd)]
PIXELS = 64  # of the results of an image, which are few
DEEP = 1024  # weights of a filter


# --8<-- [start:able]
def able(kind: str, shape: Shape) -> list[str]:
    """The ways that can compute it; the last one can compute all."""
    found = [IMPLICIT]
    if kind == "fp32" and shape.groups == 1:
        found.insert(0, "im2col")
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
    # Its tiles are of pixels of several images, which a copy brings together.
    if shape.groups == 1 and high * wide <= PIXELS and depth >= DEEP:
        return "im2col"
    return IMPLICIT


# --8<-- [end:way]


# --8<-- [start:ahead]
def instances(*folders: str) -> list[tuple]:
    """What `ct.compile_ahead` takes: the instances that the files of kernels
    name themselves."""
    found = []
    for folder in folders or FOLDERS:
        for path in sorted((ct.paths.examples_dir() / folder).glob("*.cu")):
            text = path.read_text(encoding="utf-8")
            arch = "sm_90a" if "requires: sm_90a" in text else None
            found += [
                (f"{folder}/{path.name}", name, None, (), arch)
                for name in ct.instances.declared(text)
            ]
    return found


# --8<-- [end:ahead]


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
