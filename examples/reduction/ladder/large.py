"""Sums of more elements than the host should have to make: random elements that repeat, copied on the GPU."""

from functools import cached_property

import numpy as np
from cudatut.book.reduction.ladder.ladder import Sum, random_elements

import cudatut as ct

# A prime number: a tile that is read twice does not make up for another.
PERIOD = 1_048_573


class Repeated(Sum):
    """The sum of n elements, of which the first PERIOD are random and the rest repeat them; n any length.

    The reference is the sum of one period times their number, so the host never holds more than 4 MiB.
    """

    def __init__(self, n: int, dtype: str = "float32", seed: int = 0):
        import pycuda.driver as cuda

        self.dtype, self.n = np.dtype(dtype), n
        self.host = random_elements(min(n, PERIOD), dtype, seed)
        self.x = ct.empty(n, dtype)
        start, have = int(self.x.gpudata), self.host.size
        cuda.memcpy_htod(start, self.host)
        while have < n:  # double what is there
            count = min(have, n - have)
            cuda.memcpy_dtod(
                start + have * self.dtype.itemsize,
                start,
                count * self.dtype.itemsize,
            )
            have += count
        self.bytes, self.flops = n * self.dtype.itemsize, None

    def _whole(self, period: np.ndarray) -> float | int:
        """What n elements add up to when the first ones are `period` and the rest repeat it."""
        kind = "float64" if self.dtype.kind == "f" else "int64"
        turns, rest = divmod(self.n, period.size)
        return (
            period.sum(dtype=kind).item() * turns
            + period[:rest].sum(dtype=kind).item()
        )

    @cached_property
    def expected(self) -> np.ndarray:
        """As in Sum."""
        total = np.array([self._whole(self.host)])
        return total if self.dtype.kind == "f" else total.astype("int32")

    @cached_property
    def _magnitude(self) -> float:
        return float(self._whole(np.abs(self.host)))
