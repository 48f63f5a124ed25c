"""Winograd's minimal filtering in NumPy: its matrices from points, the whole
convolution, and how far rounding can take it. Nothing here needs a GPU.

    minimal(4)                                  # of F(4, 3): A^T, G, B^T
    convolve(shape, images, weights, 4)         # by F(4 x 4, 3 x 3)
    bound(shape, images, weights, 4)            # of its error in fp32
"""

import math
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.book.images.shapes import RAGGED, Shape, reference

# Finite points of F(m, 3), m + 1 of them; infinity is always one more.
POINTS: dict[int, tuple[Any, ...]] = {
    2: (0, 1, -1),
    4: (0, 1, -1, 2, -2),
    6: (0, 1, -1, 2, -2, Fraction(1, 2), Fraction(-1, 2)),
}


class Minimal(NamedTuple):
    """The matrices of F(m, 3): results = A^T ((G weights) * (B^T words))."""

    results: np.ndarray  # A^T, m x (m + 2)
    weights: np.ndarray  # G, (m + 2) x 3
    words: np.ndarray  # B^T, (m + 2) x (m + 2)


# --8<-- [start:matrices]
@cache
def exact(m: int, points: tuple | None = None) -> Minimal:
    """The matrices in fractions, by the construction of Toom and Cook.

    Row j of G evaluates the weights, as a polynomial, at point j and divides by
    what the polynomial with all other points as roots is there; B^T has these
    polynomials' coefficients; A^T evaluates at the points again. Infinity takes
    the highest coefficient. Signs are such that G divides by what is positive.
    """
    points = tuple(map(Fraction, points or POINTS[m]))
    size = m + 2
    if len(set(points)) != size - 1:
        raise ValueError(f"F({m}, 3) needs {size - 1} different points")

    def product(roots: list[Fraction]) -> list[Fraction]:
        """Coefficients of the polynomial with these roots, lowest first."""
        found = [Fraction(1)]
        for root in roots:
            shifted = [Fraction(0), *found]
            lower = [root * one for one in found] + [Fraction(0)]
            found = [a - b for a, b in zip(shifted, lower, strict=True)]
        return found

    zeros = [Fraction(0)] * size
    a, g, b = [], [], []
    for j, point in enumerate(points):
        others = [one for i, one in enumerate(points) if i != j]
        scale = math.prod(point - one for one in others)
        sign = 1 if scale > 0 else -1
        a.append([point**i for i in range(m)])
        g.append([point**i / abs(scale) for i in range(3)])
        b.append([sign * one for one in (product(others) + zeros)[:size]])
    a.append([Fraction(int(i == m - 1)) for i in range(m)])
    g.append([Fraction(int(i == 2)) for i in range(3)])
    b.append(product(list(points)))
    return Minimal(np.array(a).T, np.array(g), np.array(b))


def minimal(m: int, points: tuple | None = None) -> Minimal:
    """The matrices of F(m, 3) in fp64."""
    return Minimal(*(one.astype("float64") for one in exact(m, points)))


# --8<-- [end:matrices]


# --8<-- [start:tiles]
def phases(shape: Shape) -> tuple[int, int]:
    """Rows (columns) that lie the dilation apart are a convolution of their
    own: of how many such the results consist, down and right."""
    return tuple(
        min(n, d) for n, d in zip(shape.out, shape.dilation, strict=True)
    )


def tiles(shape: Shape, m: int) -> tuple[int, int]:
    """Tiles of m x m results in an image, down and across."""
    sides = zip(shape.out, shape.dilation, phases(shape), strict=True)
    return tuple(p * ct.cdiv(ct.cdiv(n, d), m) for n, d, p in sides)


def firsts(shape: Shape, m: int) -> tuple[np.ndarray, np.ndarray]:
    """First row of the results of each tile down, first column across."""
    found = []
    sides = zip(tiles(shape, m), phases(shape), shape.dilation, strict=True)
    for count, some, dilation in sides:
        step, phase = np.divmod(np.arange(count), some)
        found.append(phase + step * dilation * m)
    return found[0], found[1]


# --8<-- [end:tiles]


def _gathered(shape: Shape, images: np.ndarray, m: int) -> np.ndarray:
    """Words of every tile: [image][channel][tile down][tile across][row]
    [column]."""
    down, across = firsts(shape, m)
    steps = np.arange(m + 2)
    y = down[:, None] + steps * shape.dilation[0] - shape.pad[0]
    x = across[:, None] + steps * shape.dilation[1] - shape.pad[1]
    inside = ((y >= 0) & (y < shape.height))[:, None, :, None] & (
        (x >= 0) & (x < shape.width)
    )[None, :, None, :]
    y, x = y.clip(0, shape.height - 1), x.clip(0, shape.width - 1)
    return images[:, :, y[:, None, :, None], x[None, :, None, :]] * inside


def _scattered(shape: Shape, found: np.ndarray, m: int) -> np.ndarray:
    """Results of every tile, put into their images."""
    down, across = firsts(shape, m)
    high, wide = shape.out
    steps = np.arange(m)
    y = (down[:, None] + steps * shape.dilation[0])[:, None, :, None]
    x = (across[:, None] + steps * shape.dilation[1])[None, :, None, :]
    y, x = np.broadcast_arrays(y, x)
    kept = (y < high) & (x < wide)
    results = np.zeros((shape.images, shape.filters, high, wide), found.dtype)
    results[:, :, y[kept], x[kept]] = found[:, :, kept]
    return results


def refuses(shape: Shape) -> str | None:
    """Why a convolution is not computed this way; None if it can be."""
    if shape.window != (3, 3):
        return "its window is not 3 x 3"
    if shape.stride != (1, 1):
        return "its strides are not 1"
    return None


# Ragged ones, to check against the reference.
SHAPES = [
    *(shape for shape in RAGGED if not refuses(shape)),
    Shape(1, 1, 1, 1, 1, (3, 3), pad=(1, 1)),
    Shape(2, 3, 3, 3, 2, (3, 3)),  # one result
    Shape(2, 5, 7, 9, 3, (3, 3), pad=(1, 0)),
    Shape(3, 4, 8, 12, 5, (3, 3), pad=(1, 1)),  # whole tiles, stores of four
    Shape(1, 2, 6, 10, 6, (3, 3), pad=(1, 1)),  # stores of two
    Shape(2, 2, 4, 5, 3, (3, 3), pad=(4, 7)),  # padding beyond the window
    Shape(2, 6, 13, 17, 4, (3, 3), pad=(0, 2), dilation=(2, 3)),
    Shape(2, 6, 8, 8, 6, (3, 3), pad=(1, 1), groups=6),
    Shape(1, 3, 5, 300, 2, (3, 3), pad=(1, 1)),  # several blocks of tiles
]


def numbers(
    shape: Shape, seed: int = 0, most: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers of which fp32 rounds nothing in any step: weights are
    multiples of 9, since sums of them are divided by 6 and by 24, twice."""
    rng = ct.rng(seed)
    images = rng.integers(
        -most,
        most + 1,
        (shape.images, shape.channels, shape.height, shape.width),
    )
    weights = rng.integers(
        -most,
        most + 1,
        (shape.filters, shape.channels // shape.groups, *shape.window),
    )
    return images.astype("float32"), 9 * weights.astype("float32")


# --8<-- [start:convolve]
def convolve(
    shape: Shape,
    images: np.ndarray,
    weights: np.ndarray,
    m: int,
    matrices: Minimal | None = None,
    dtype: str = "float64",
) -> np.ndarray:
    """The convolution by F(m x m, 3 x 3), all of it in `dtype`."""
    if why := refuses(shape):
        raise ValueError(f"convolve: {why}")
    a, g, b = (one.astype(dtype) for one in matrices or minimal(m))
    d = _gathered(shape, images.astype(dtype), m)
    v = b @ d @ b.T
    u = g @ weights.astype(dtype) @ g.T
    groups = shape.groups
    v = v.reshape(shape.images, groups, -1, *v.shape[2:])
    u = u.reshape(groups, -1, *u.shape[1:])
    # One product for each place of a tile.
    products = np.einsum("gkcij,ngcyxij->ngkyxij", u, v, optimize=True)
    products = products.reshape(shape.images, shape.filters, *v.shape[3:])
    return _scattered(shape, a @ products @ a.T, m)


# --8<-- [end:convolve]


# --8<-- [start:bound]
def sizes(shape: Shape, images: np.ndarray, weights: np.ndarray, m: int):
    """What the sums of a result would be if nothing cancelled, in any of its
    steps: the algorithm on absolute values, by the matrices' absolute values.
    m = 1: the direct sum."""
    images, weights = np.abs(images), np.abs(weights)
    if m == 1:
        return reference(shape, images, weights)
    matrices = Minimal(*(np.abs(one) for one in minimal(m)))
    return convolve(shape, images, weights, m, matrices)


def bound(shape: Shape, images: np.ndarray, weights: np.ndarray, m: int):
    """How far each result in fp32 can be off, to first order.

    A word passes at most 5 roundings in each of its two transforms, a weight 5,
    of which one is that of 1/6 or 1/24, a product 1 and 1 more for each channel
    that is added to it, and a result 5 in each of two. A rounding changes its
    value by at most 2^-24 of it.
    """
    channels = shape.channels // shape.groups
    if m == 1:
        return 2.0**-24 * (9 * channels + 1) * sizes(shape, images, weights, 1)
    roundings = 2 * 5 + 2 * 5 + 1 + channels + 2 * 5
    return 2.0**-24 * roundings * sizes(shape, images, weights, m)


def amplification(m: int, points: tuple | None = None) -> float:
    """How many times as large `sizes` can be as the largest word times the
    largest weight, for one channel: 9 for the direct sum."""
    if m == 1:
        return 9.0
    a, g, b = (np.abs(one) for one in minimal(m, points))
    return float((a @ (g.sum(1) * b.sum(1))).max() ** 2)


# --8<-- [end:bound]
