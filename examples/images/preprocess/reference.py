"""What the kernel should write, by NumPy; and what of an image it has to read."""

from fractions import Fraction

import numpy as np

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of red, green, blue


def placed(height, width, out_height, out_width):
    """new_height, new_width, top, left: an image that fits, in the middle.
    Halves are rounded to the even number."""
    scale = min(Fraction(out_height, height), Fraction(out_width, width))
    new_height = min(max(round(height * scale), 1), out_height)
    new_width = min(max(round(width * scale), 1), out_width)
    top, left = (out_height - new_height) // 2, (out_width - new_width) // 2
    return new_height, new_width, top, left


def taps(n, new):
    """Of each of `new` pixels: the pixel before it, the one behind, and the
    weight of that one."""
    at = ((np.arange(new) + 0.5) * (n / new) - 0.5).clip(0, n - 1)
    low = at.astype(int)
    return low, np.minimum(low + 1, n - 1), at - low


def resized(image, new_height, new_width):
    """Bilinear, in fp64, not rounded."""
    up, down, along = taps(image.shape[0], new_height)
    left, right, across = taps(image.shape[1], new_width)
    image = image.astype("float64")
    rows = image[up] + along[:, None, None] * (image[down] - image[up])
    a, b = rows[:, left], rows[:, right]
    return a + across[None, :, None] * (b - a)


def letterbox(image, out_height, out_width, border=114, mean=MEAN, std=STD):
    """[3][out_height][out_width], red first, of an image whose blue is first."""
    new_height, new_width, top, left = placed(
        *image.shape[:2], out_height, out_width
    )
    out = np.full((out_height, out_width, 3), float(border))
    part = out[top : top + new_height, left : left + new_width]
    part[:] = resized(image, new_height, new_width)
    out = out[:, :, ::-1] / 255
    return ((out - mean) / std).transpose(2, 0, 1)


def useful_bytes(shapes, out_height, out_width):
    """Bytes of the pixels that any output needs, each once, and of the
    output."""
    total = 6 * len(shapes) * out_height * out_width
    for height, width in shapes:
        new_height, new_width, *_ = placed(height, width, out_height, out_width)
        rows, columns = (
            len(np.unique(np.concatenate([low[:], high[weight > 0]])))
            for low, high, weight in (
                taps(height, new_height),
                taps(width, new_width),
            )
        )
        total += 3 * rows * columns
    return total
