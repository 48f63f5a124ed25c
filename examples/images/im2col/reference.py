"""The matrix of im2col in NumPy; nothing here needs a GPU."""

import numpy as np

from cudatut.book.images.shapes import Shape


# --8<-- [start:matrix]
def matrix(shape: Shape, images: np.ndarray) -> np.ndarray:
    """A row for each (channel, row, column) of a window, a column for each
    (image, row, column) of a result."""
    (down, right), (high, wide) = shape.pad, shape.out
    padded = np.pad(images, ((0, 0), (0, 0), (down, down), (right, right)))
    rows, columns = shape.window
    found = np.empty(
        (shape.channels, rows, columns, shape.images, high, wide), images.dtype
    )
    for r in range(rows):
        for q in range(columns):
            y, x = r * shape.dilation[0], q * shape.dilation[1]
            words = padded[
                :,
                :,
                y : y + (high - 1) * shape.stride[0] + 1 : shape.stride[0],
                x : x + (wide - 1) * shape.stride[1] + 1 : shape.stride[1],
            ]
            found[:, r, q] = words.transpose(1, 0, 2, 3)
    return found.reshape(shape.channels * rows * columns, -1)


# --8<-- [end:matrix]


def by_product(
    shape: Shape, images: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The convolution as products of the weights and the matrix, in fp64."""
    g = shape.groups
    factor = matrix(shape, images.astype("float64")).reshape(
        g, -1, shape.images * shape.out[0] * shape.out[1]
    )
    product = weights.astype("float64").reshape(g, shape.filters // g, -1)
    product = (product @ factor).reshape(
        shape.filters, shape.images, *shape.out
    )
    return product.transpose(1, 0, 2, 3)
