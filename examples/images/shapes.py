"""What a convolution is, a reference in fp64, and the shapes that several chapters use; nothing here needs a GPU.

A convolution of a network is a cross-correlation: the filter is not turned round.
"""

from typing import NamedTuple

import numpy as np


MOST = (1 << 31) - 1


class Shape(NamedTuple):
    """A convolution; pairs are (down, right). channels and filters are those of all groups."""

    images: int
    channels: int
    height: int
    width: int
    filters: int
    window: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    @property
    def out(self) -> tuple[int, int]:
        """Height and width of the results."""
        sides = zip(
            (self.height, self.width),
            self.window,
            self.stride,
            self.pad,
            self.dilation,
            strict=True,
        )
        return tuple(
            (n + 2 * pad - dilation * (w - 1) - 1) // stride + 1
            for n, w, stride, pad, dilation in sides
        )

    @property
    def product(self) -> tuple[int, int, int]:
        """Rows, columns and depth of the product of a group: filters, places of results, weights of a filter."""
        high, wide = self.out
        depth = self.channels // self.groups * self.window[0] * self.window[1]
        return self.filters // self.groups, self.images * high * wide, depth

    @property
    def text(self) -> str:
        """In words, as titles have it: images, channels and pixels; filters and their window; and what is not usual."""

        def pair(of: tuple[int, int]) -> str:
            return f"{of[0]} x {of[1]}" if of[0] != of[1] else f"{of[0]}"

        high, wide = self.window
        said = f"{self.images} x {self.channels} x {self.height} x {self.width}, {self.filters} of {high} x {wide}"
        for name, found, usual in (
            ("stride", self.stride, (1, 1)),
            ("pad", self.pad, (0, 0)),
            ("dilation", self.dilation, (1, 1)),
        ):
            if found != usual:
                said += f", {name} {pair(found)}"
        return said + (f", {self.groups} groups" if self.groups > 1 else "")

    @property
    def flops(self) -> int:
        m, n, k = self.product
        return 2 * m * n * k * self.groups

    def check(self, launcher: str) -> None:
        """Raises ValueError for what is no convolution, or does not fit the kernels' numbers."""

        def no(why: str) -> ValueError:
            return ValueError(f"{launcher}: {why}: {self}")

        extents = self[:5] + self.window + self.stride + self.dilation
        if min(*extents, self.groups) < 1 or min(self.pad) < 0:
            raise no("extents, strides, dilations must be 1 at least, pads 0")
        if self.channels % self.groups or self.filters % self.groups:
            raise no("groups must divide channels and filters")
        if min(self.out) < 1:
            raise no("the window is larger than the padded image")
        reach = [
            (w - 1) * d for w, d in zip(self.window, self.dilation, strict=True)
        ]
        if max(reach) > 32767:
            raise no("a window may reach over 32,768 pixels at most")
        if (
            max(self.height, self.width, *self.stride) + max(self.pad)
            >= 1 << 29
        ):
            raise no("an extent is too large")
        high, wide = self.out
        per_group = self.channels // self.groups
        if (
            max(
                (per_group + 1) * self.height * self.width
                + reach[0] * self.width
                + reach[1],
                high * wide,
                self.product[2] + 64,
            )
            > MOST
        ):
            raise no("one image of a group must have less than 2^31 words")

    def struct(self) -> bytes:
        """The struct Shape of the kernels (shape.cuh), by value."""
        numbers = (
            self.images, self.groups, self.channels // self.groups, self.height,
            self.width, self.filters // self.groups, *self.window, *self.out,
            *self.stride, *self.pad, *self.dilation,
        )  # fmt: skip
        return np.array(numbers, "int32").tobytes()


def reference(shape: Shape, images, weights) -> np.ndarray:
    """The convolution in fp64; images NCHW, weights [filter][channel of the group][row][column]."""
    (high, wide), (down, right) = shape.out, shape.stride
    padded = np.pad(
        images.astype("float64"),
        ((0, 0), (0, 0), (shape.pad[0],) * 2, (shape.pad[1],) * 2),
    )
    g = shape.groups
    padded = padded.reshape(shape.images, g, -1, *padded.shape[2:])
    weights = weights.astype("float64").reshape(g, -1, *weights.shape[1:])
    out = np.zeros((shape.images, g, weights.shape[1], high, wide))
    for r in range(shape.window[0]):
        for c in range(shape.window[1]):
            y, x = r * shape.dilation[0], c * shape.dilation[1]
            part = padded[
                ...,
                y : y + (high - 1) * down + 1 : down,
                x : x + (wide - 1) * right + 1 : right,
            ]
            out += np.einsum("ngchw,gkc->ngkhw", part, weights[..., r, c])
    return out.reshape(shape.images, shape.filters, high, wide)


# The anchors of the part.
SMALL = Shape(32, 128, 28, 28, 128, (3, 3), pad=(1, 1))
LARGE = Shape(64, 256, 56, 56, 256, (3, 3), pad=(1, 1))
# Layers of networks, beside which the chapters set their kernels.
LAYERS = {
    "small anchor": SMALL,
    "large anchor": LARGE,
    "the first of a ResNet": Shape(32, 3, 224, 224, 64, (7, 7), (2, 2), (3, 3)),
    "stride of 2": Shape(32, 128, 56, 56, 128, (3, 3), (2, 2), (1, 1)),
    "pointwise": Shape(32, 1024, 14, 14, 256, (1, 1)),
    "7 x 7 pixels": Shape(32, 512, 7, 7, 512, (3, 3), pad=(1, 1)),
    "depthwise": Shape(32, 96, 112, 112, 96, (3, 3), pad=(1, 1), groups=96),
}


def shrunk(shape: Shape) -> Shape:
    """For a tool, under which all is slow: few images, pixels, channels and filters."""
    least = {
        "height": shape.window[0] * shape.dilation[0],
        "width": shape.window[1] * shape.dilation[1],
    }
    return shape._replace(
        images=min(shape.images, 2),
        channels=min(shape.channels, 12),
        filters=min(shape.filters, 12),
        groups=min(shape.groups, 12),
        **{
            side: max(few, min(getattr(shape, side), 9))
            for side, few in least.items()
        },
    )


# Ragged ones, to check against the reference.
RAGGED = (
    Shape(1, 1, 1, 1, 1, (1, 1)),
    Shape(1, 3, 1, 1, 5, (3, 3), pad=(1, 1)),
    Shape(2, 5, 7, 9, 3, (3, 2), pad=(1, 0)),
    Shape(3, 16, 13, 17, 24, (3, 3), (2, 1), (0, 2), (1, 3)),
    Shape(
        1, 8, 5, 6, 8, (3, 3), pad=(9, 8), dilation=(7, 8)
    ),  # beyond the image
    Shape(2, 72, 19, 15, 136, (3, 3), (2, 2), (1, 1)),
    Shape(2, 12, 10, 11, 18, (3, 3), pad=(1, 1), groups=3),
    Shape(2, 16, 9, 9, 16, (5, 5), pad=(2, 2), groups=16),  # depthwise
    Shape(1, 4, 30, 31, 7, (7, 7), (2, 2), (3, 3)),  # 49 weights: no mask
    Shape(2, 200, 8, 8, 264, (1, 1)),
    Shape(1, 8, 40, 40, 16, (1, 1), (9, 9)),
    Shape(5, 64, 14, 14, 320, (3, 1), pad=(1, 0)),
    Shape(2, 24, 300, 3, 8, (1, 3), (1, 2), (4, 7), (1, 2)),
)
