"""Numbers in e4m3 on the host, as uint8: a sign, 4 bits of exponent, 3 of
mantissa. They reach to 448; there is a NaN, 0x7f, but no infinity.
"""

import numpy as np

NAN, LARGEST = 0x7F, 448.0


def _values() -> np.ndarray:
    """What each of the 256 codes stands for."""
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    steps = np.where(exponent > 0, 8 + mantissa, mantissa)
    size = steps * 2.0 ** (np.maximum(exponent, 1) - 10)
    size[code & NAN == NAN] = np.nan
    return np.where(code < 128, size, -size)


VALUES = _values()
_SIZES = VALUES[:NAN]  # 0 to 448, in order
_BETWEEN = (_SIZES[1:] + _SIZES[:-1]) / 2


def from_e4m3(codes) -> np.ndarray:
    """In float64."""
    return VALUES[codes]


def to_e4m3(x) -> np.ndarray:
    """Rounded to the nearest, ties to even; beyond 448 it becomes 448."""
    x = np.asarray(x, "float64")
    size = np.abs(np.where(np.isnan(x), 0, x))
    # A number between two codes belongs to the upper one where it is beyond
    # their middle, or in the middle and the upper one is even.
    code = np.searchsorted(_BETWEEN, size, "left")
    middle = _BETWEEN[np.minimum(code, NAN - 2)] == size
    code = np.where(middle & (code % 2 == 1), code + 1, code)
    code = np.where(np.signbit(x), code | 0x80, code)
    return np.where(np.isnan(x), NAN, code).astype("uint8")


def quantize(x, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes and scales of a float32 matrix, as fp8_quantize.cu finds them.

    by: 'tensor' (one scale), 'rows' (one for 128 numbers of a row; scales are
    [column block, row]) or 'tiles' (one for 128 x 128 numbers).
    """
    x = np.asarray(x, "float32")
    high, wide = {
        "tensor": x.shape,
        "rows": (1, 128),
        "tiles": (128, 128),
    }[by]
    rows, columns = x.shape
    down, across = -(-rows // high), -(-columns // wide)
    padded = np.zeros((down * high, across * wide), "float32")
    padded[:rows, :columns] = np.abs(x)
    largest = padded.reshape(down, high, across, wide).max(axis=(1, 3))
    scales = np.maximum(largest / np.float32(448), np.float32(2.0**-126))
    each = spread(scales, x.shape, (high, wide))
    codes = to_e4m3(x * (np.float32(1) / each))
    return codes, scales.T if by == "rows" else scales


def spread(scales, shape, block) -> np.ndarray:
    """The scale of each element, from one for each block."""
    each = np.repeat(np.repeat(scales, block[0], 0), block[1], 1)
    return each[: shape[0], : shape[1]]
