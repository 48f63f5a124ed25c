"""What the kernels should write, by NumPy: indices in integers, values in fp64,
not rounded."""

from fractions import Fraction

import numpy as np

NEAR = 1e-4  # what fp32 may add to a value of 0 to 255


def nearest(n, to):
    """Of each of `to` pixels: the pixel of n in which its center lies."""
    return (2 * np.arange(to) + 1) * n // (2 * to)


def taps(n, to):
    """Of each of `to` pixels: the pixel before its center, the one behind, and
    the weight of that one."""
    at = np.clip((2 * np.arange(to) + 1) * n - to, 0, 2 * to * (n - 1))
    low, rest = at // (2 * to), at % (2 * to)
    return low, np.minimum(low + 1, n - 1), rest / (2 * to)


def resize_nearest(image, height, width):
    rows, columns = (
        nearest(image.shape[0], height),
        nearest(image.shape[1], width),
    )
    return image[rows][:, columns]


def resize_bilinear(image, height, width, only=slice(None)):
    """only: the rows of the output that are wanted."""
    up, low, down = (one[only] for one in taps(image.shape[0], height))
    left, right, across = taps(image.shape[1], width)
    above, below = image[up].astype("float64"), image[low].astype("float64")
    rows = above + down[:, None, None] * (below - above)
    a, b = rows[:, left], rows[:, right]
    return a + across[None, :, None] * (b - a)


# --8<-- [start:placed]
def placed(height, width, out_height, out_width, centered=True):
    """new_height, new_width, top, left: the largest image of the same shape
    that fits, rounded to pixels."""
    scale = min(Fraction(out_height, height), Fraction(out_width, width))
    new_height = min(max(round(height * scale), 1), out_height)
    new_width = min(max(round(width * scale), 1), out_width)
    if not centered:
        return new_height, new_width, 0, 0
    top, left = (out_height - new_height) // 2, (out_width - new_width) // 2
    return new_height, new_width, top, left


# --8<-- [end:placed]


def letterbox(image, height, width, border=114, centered=True):
    new_height, new_width, top, left = placed(
        *image.shape[:2], height, width, centered
    )
    out = np.full((height, width, 3), float(border))
    part = resize_bilinear(image, new_height, new_width)
    out[top : top + new_height, left : left + new_width] = part
    return out


def rounded(values, got):
    """values as uint8. Where a value lies halfway between two integers, or so
    near that fp32 may see it there, either is right: then what was got."""
    either = np.abs(got - values) <= 0.5 + NEAR
    return np.where(either, got, np.rint(values)).astype("uint8")


CORNER, NEAREST, EXCHANGED = 1, 2, 4


def wrong(image, height, width, mistakes):
    """What a bilinear resize with these mistakes writes, not rounded."""

    def axis(n, to):
        # In fp32, as in the kernel: with a mistake, a result may jump where a
        # position is a whole number.
        half = np.float32(0 if mistakes & CORNER else 0.5)
        scale = np.float32(n) / np.float32(to)
        at = (np.arange(to, dtype="float32") + half) * scale - half
        if mistakes & NEAREST:  # halves away from zero, as roundf has it
            low = np.sign(at) * np.floor(np.abs(at.astype("float64")) + 0.5)
        else:
            low = np.floor(at)
        keep = [(low + i).clip(0, n - 1).astype(int) for i in (0, 1)]
        return *keep, at.astype("float64") - low

    up, low, down = axis(image.shape[0], height)
    left, right, across = axis(image.shape[1], width)
    t, s = down[:, None, None], across[None, :, None]
    weights = [(1 - s) * (1 - t), s * (1 - t), (1 - s) * t, s * t]
    if mistakes & EXCHANGED:
        weights[1], weights[2] = weights[2], weights[1]
    image = image.astype("float64")
    pixels = [image[r][:, c] for r in (up, low) for c in (left, right)]
    return sum(w * p for w, p in zip(weights, pixels))


def useful_bytes(height, width, out_height, out_width):
    """Bytes of the pixels with a weight, each once, and of the output."""
    rows, columns = (
        len(np.unique(np.concatenate([low, high[weight > 0]])))
        for low, high, weight in (
            taps(height, out_height),
            taps(width, out_width),
        )
    )
    return 3 * (rows * columns + out_height * out_width)
