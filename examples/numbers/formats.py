"""Floating-point formats of the tensor cores, bit by bit, in NumPy: what a
number is, and what rounding to nearest makes of one.

    FORMATS["e4m3"].decode(np.arange(256))     # all of its numbers, float64
    FORMATS["bf16"].round(x)                   # x, rounded
"""

from dataclasses import dataclass

import numpy as np


# --8<-- [start:decode]
@dataclass(frozen=True)
class Format:
    """A sign, bits of the exponent, bits of the mantissa.

    special: what the largest exponent is kept for: 'inf' for infinities and
    NaN, 'nan' for NaN with the largest mantissa only, 'none' for nothing.
    saturates: what is too large becomes the largest number.
    ties: to the 'even' mantissa, or 'away' from zero.
    """

    exponent: int
    mantissa: int
    special: str = "inf"
    saturates: bool = False
    ties: str = "even"

    @property
    def bits(self):
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self):
        return 2 ** (self.exponent - 1) - 1

    def decode(self, word):
        """float64 of integers that hold the bits."""
        word = np.asarray(word).astype("int64")
        fraction = word & 2**self.mantissa - 1
        power = word >> self.mantissa & 2**self.exponent - 1
        sign = np.where(word >> self.bits - 1, -1.0, 1.0)
        # An exponent of 0 has no leading 1: numbers near zero are evenly
        # spaced ("subnormal").
        leading = np.where(power > 0, 2**self.mantissa, 0)
        scale = np.maximum(power, 1) - self.bias - self.mantissa
        value = np.ldexp((leading + fraction).astype("float64"), scale)
        top = power == 2**self.exponent - 1
        if self.special == "inf":
            value = np.where(top, np.where(fraction, np.nan, np.inf), value)
        elif self.special == "nan":
            full = fraction == 2**self.mantissa - 1
            value = np.where(top & full, np.nan, value)
        return sign * value

    # --8<-- [end:decode]

    @property
    def largest(self):
        beyond = {
            "inf": 2**self.exponent - 1 << self.mantissa,
            "nan": 2 ** (self.bits - 1) - 1,
            "none": 2 ** (self.bits - 1),
        }
        return float(self.decode(beyond[self.special] - 1))

    @property
    def smallest(self):
        """The smallest number with a leading 1."""
        return 2.0 ** (1 - self.bias)

    @property
    def step(self):
        """From 1 to the next number."""
        return 2.0**-self.mantissa

    # --8<-- [start:round]
    def round(self, x):
        """x rounded to the nearest number of this format, as float64."""
        x = np.asarray(x, "float64")
        size = np.abs(x)
        _, power = np.frexp(np.where(np.isfinite(x), size, 0.0))
        # The distance of neighbors of this size.
        power = np.maximum(power - 1, 1 - self.bias)
        step = np.ldexp(1.0, power - self.mantissa)
        with np.errstate(invalid="ignore"):
            steps = size / step
            whole = (
                np.rint(steps)  # a half goes to the even neighbor
                if self.ties == "even"
                else np.floor(steps + 0.5)
            )
            found = np.where(np.isfinite(x), whole * step, size)
        beyond = self.largest if self.saturates else np.inf
        found = np.where(found > self.largest, beyond, found)
        return np.where(np.isnan(x), np.nan, np.copysign(found, x))

    # --8<-- [end:round]


FORMATS = {
    "fp32": Format(8, 23),
    "fp16": Format(5, 10),
    "bf16": Format(8, 7),
    "TF32": Format(8, 10, ties="away"),
    "e4m3": Format(4, 3, special="nan", saturates=True),
    "e5m2": Format(5, 2, saturates=True),
}
