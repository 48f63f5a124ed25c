"""Numbers of 8 or 4 bits with a scale for each short block of them, in NumPy.

    BLOCKS["nvfp4"].round(x)     # what is left of x, float64

The names are those of the OCP microscaling specification (mx...) and of NVIDIA
(nvfp4).
"""

from dataclasses import dataclass

import numpy as np
from cudatut.book.numbers.formats import FORMATS, Format

# Sign, two bits of exponent, one of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
E2M1 = Format(2, 1, special="none", saturates=True)


# --8<-- [start:block]
@dataclass(frozen=True)
class Block:
    """`size` numbers of one type that share a scale.

    scale: 'e8m0', a byte that is the exponent of a power of two; or 'e4m3',
    with one more scale in fp32 for the whole array.
    """

    element: Format
    size: int
    scale: str

    @property
    def bits(self):
        """Bits for each number, its part of the scale included."""
        return self.element.bits + 8 / self.size

    def scales(self, x):
        """A scale for each block of x, [blocks]; x: [blocks, size]."""
        largest = np.abs(x).max(axis=1)
        if self.scale == "e8m0":
            # The power of two that brings the largest number of the block to
            # the largest exponent of the type.
            _, top = np.frexp(self.element.largest)
            _, power = np.frexp(np.where(largest > 0, largest, 1.0))
            return np.ldexp(1.0, np.clip(power - top, -127, 127))
        # The largest scale of all becomes the largest number of e4m3.
        e4m3 = FORMATS["e4m3"]
        whole = largest.max() / self.element.largest / e4m3.largest or 1.0
        scales = e4m3.round(largest / self.element.largest / whole)
        return np.where(scales > 0, scales, 1.0) * whole

    def round(self, x):
        """x, a multiple of `size` numbers, after rounding; float64."""
        blocks = np.asarray(x, "float64").reshape(-1, self.size)
        scales = self.scales(blocks)[:, None]
        return (self.element.round(blocks / scales) * scales).reshape(x.shape)

    # --8<-- [end:block]


BLOCKS = {
    "mxfp8": Block(FORMATS["e4m3"], 32, "e8m0"),
    "nvfp4": Block(E2M1, 16, "e4m3"),
    "mxfp4": Block(E2M1, 32, "e8m0"),
}


def one_scale(x, element):
    """x rounded to a type after one scale for all of it: no blocks."""
    scale = np.abs(x).max() / element.largest
    return element.round(np.asarray(x, "float64") / scale) * scale
