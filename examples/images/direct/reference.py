"""References of this chapter: SciPy's, in fp64; nothing here needs a GPU."""

import numpy as np

from cudatut.book.images.shapes import Shape


def spread(weights: np.ndarray, dilation: tuple[int, int]) -> np.ndarray:
    """Windows with zeros between their words, as dilation wants them."""
    (down, right), (rows, columns) = dilation, weights.shape[-2:]
    extents = (rows - 1) * down + 1, (columns - 1) * right + 1
    found = np.zeros((*weights.shape[:-2], *extents), weights.dtype)
    found[..., ::down, ::right] = weights
    return found


def by_scipy(
    shape: Shape, images: np.ndarray, weights: np.ndarray, turned: bool = False
) -> np.ndarray:
    """The convolution by `scipy.signal.correlate2d`, image by image.

    turned: by `convolve2d`, which turns the window round: what the word means
    outside of networks. Raises ImportError without SciPy.
    """
    from scipy.signal import convolve2d, correlate2d

    call = convolve2d if turned else correlate2d
    windows = spread(weights.astype("float64"), shape.dilation)
    (down, right), (y, x) = shape.pad, shape.stride
    padded = np.pad(
        images.astype("float64"),
        ((0, 0), (0, 0), (down, down), (right, right)),
    )
    out = np.zeros((shape.images, shape.filters, *shape.out))
    channels = shape.channels // shape.groups
    filters = shape.filters // shape.groups
    for n, k in np.ndindex(shape.images, shape.filters):
        first = k // filters * channels
        for c in range(channels):
            whole = call(padded[n, first + c], windows[k, c], mode="valid")
            out[n, k] += whole[::y, ::x]
    return out


def turn(weights: np.ndarray) -> np.ndarray:
    """Windows turned round by 180 degrees: a convolution of these is a
    cross-correlation of those."""
    return weights[..., ::-1, ::-1]
