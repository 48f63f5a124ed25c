"""FP8 numbers (e4m3) in NumPy, as uint8: what they are, and what is rounded to them."""

import numpy as np

NAN = 0x7F


def _values():
    """Of all 256 codes: a sign, 4 bits of exponent, 3 of mantissa; the last of each sign is NaN."""
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    size = np.where(exponent > 0, 8 + mantissa, mantissa) * 2.0 ** (np.maximum(exponent, 1) - 10)
    size[code & NAN == NAN] = np.nan
    return np.where(code < 128, size, -size)


VALUES = _values()
SIZES = VALUES[:NAN]  # 0 to 448, in order


def from_fp8(codes):
    """In float64."""
    return VALUES[codes]


def to_fp8(x):
    """Rounded to the nearest, ties to even; what is larger than 448 becomes 448."""
    x = np.asarray(x, "float64")
    size = np.abs(np.where(np.isnan(x), 0, x))
    above = np.minimum(np.searchsorted(SIZES, size), NAN - 1)
    below = np.maximum(above - 1, 0)
    up, down = SIZES[above] - size, size - SIZES[below]
    code = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    code = np.where(size >= SIZES[-1], NAN - 1, code) | np.where(np.signbit(x), 0x80, 0)
    return np.where(np.isnan(x), NAN, code).astype("uint8")


def store(x, scales):
    """What the cache holds for x, float32, [..., kv_heads, head_dim], with a scale for each KV head."""
    by = np.float32(1) / np.asarray(scales, "float32")[..., None]
    return to_fp8(np.asarray(x, "float32") * by)
