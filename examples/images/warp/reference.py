"""What the kernels should write, by NumPy: positions in integers as kernels
have them, values in fp64, not rounded."""

from fractions import Fraction

import numpy as np

CONSTANT, REPLICATE, REFLECT_101, WRAP = range(4)
BORDERS = ("constant", "replicate", "reflect_101", "wrap")
NEAR = 2e-4  # what fp32 may add to a value of 0 to 255
ONE = 1 << 32  # of a position: one pixel


def rotation(degrees, height, width, scale=1.0):
    """The 2 x 3 matrix that turns an image about its middle, counterclockwise
    as one sees it, and scales it; as OpenCV's getRotationMatrix2D."""
    t = np.radians(degrees)
    a, b = scale * np.cos(t), scale * np.sin(t)
    x, y = (width - 1) / 2, (height - 1) / 2
    return np.array([[a, b, (1 - a) * x - b * y], [-b, a, b * x + (1 - a) * y]])


def resizing(height, width, out_height, out_width):
    """The matrix of a resize. Centers are at integers here, edges at halves."""
    sx, sy = out_width / width, out_height / height
    return np.array([[sx, 0, (sx - 1) / 2], [0, sy, (sy - 1) / 2]])


def inverted(matrix):
    """The matrix that leads back, in fractions of the given numbers: exact.
    Raises ValueError."""
    m = np.asarray(matrix, "float64")
    if m.shape != (2, 3) or not np.isfinite(m).all():
        raise ValueError(f"a matrix has to be 2 x 3, of finite numbers: {m}")
    (a, b, c), (d, e, f) = [[Fraction(float(v)) for v in row] for row in m]
    det = a * e - b * d
    if not det:
        raise ValueError(f"a matrix without an inverse: {m}")
    return [
        [e / det, -b / det, (b * f - c * e) / det],
        [-d / det, a / det, (c * d - a * f) / det],
    ]


def fixed(back):
    """A matrix that leads back, in integers of 2^-32."""
    return [[round(v * ONE) for v in row] for row in back]


def positions(integers, height, width):
    """Of each output pixel: its row and its column in the image, whole part and
    fraction of each."""
    y, x = np.mgrid[:height, :width].astype("int64")
    column, row = (a * x + b * y + c for a, b, c in integers)
    return (
        row >> 32,
        (row & (ONE - 1)) / ONE,
        column >> 32,
        (column & (ONE - 1)) / ONE,
    )


def inside(i, n, border):
    """Indices beyond an axis of n pixels, led back into it; constant: -1."""
    if border == REPLICATE:
        return np.clip(i, 0, n - 1)
    if border == WRAP:
        return i % n
    if border == REFLECT_101:
        r = np.abs(i) % max(2 * n - 2, 1)
        return np.where(r < n, r, 2 * n - 2 - r)
    return np.where((i >= 0) & (i < n), i, -1)


def weights(t, taps):
    """Of `taps` pixels in a row: weights at t behind the first of 2, or the
    second of 4."""
    if taps == 1:
        return [np.ones_like(t)]
    if taps == 2:
        return [1 - t, t]

    def near(s):  # Keys, a = -0.75
        return (1.25 * s - 2.25) * s * s + 1

    def far(s):
        return -0.75 * s * (1 - s) * (1 - s)

    return [far(t), near(t), near(1 - t), far(1 - t)]


def warp(image, matrix, height, width, taps=2, border=CONSTANT, value=0):
    """matrix: where pixels of the image go."""
    integers = fixed(inverted(matrix))
    if taps == 1:  # the whole part of a position half a pixel on
        integers = [[a, b, c + ONE // 2] for a, b, c in integers]
    row, down, column, across = positions(integers, height, width)
    first = 1 if taps == 4 else 0
    out = np.zeros((height, width, 3))
    for j, w in enumerate(weights(down, taps)):
        r = inside(row + j - first, image.shape[0], border)
        for i, v in enumerate(weights(across, taps)):
            c = inside(column + i - first, image.shape[1], border)
            found = image[r, c].astype("float64")
            found[(r < 0) | (c < 0)] = value
            out += (w * v)[:, :, None] * found
    return out


def rounded(values, got, near=NEAR):
    """values as uint8. Where a value lies halfway between two integers, or so
    near that fp32 may see it there, either is right: then what was got."""
    values = np.clip(values, 0, 255)
    either = np.abs(got - values) <= 0.5 + near
    return np.where(either, got, np.rint(values)).astype("uint8")


def forward(image, matrix, height, width, value=0):
    """Each pixel of the image sent to where it goes, rounded: which pixels of
    the output get any. Where several arrive, any may stay."""
    m = np.asarray(matrix, "float32").astype("float64")
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    column, row = (np.rint(a * x + b * y + c).astype("int64") for a, b, c in m)
    on = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    got = np.zeros((height, width), bool)
    got[row[on], column[on]] = True
    return got
