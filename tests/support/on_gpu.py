"""Arrays that only tell of themselves, as those on a GPU do: for tests of what looks at an array before a launch."""

import itertools
import math
from typing import Any

import numpy as np


class OnGpu:
    """A host array that tells of itself as one on a GPU does; `shift` bytes further on."""

    def __init__(self, host: np.ndarray, shift: int = 0):
        self.host, self.shift = host, shift

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        host = self.host
        return {
            "data": (host.__array_interface__["data"][0] + self.shift, False),
            "shape": host.shape,
            "strides": host.strides,
            "typestr": host.dtype.str,
            "version": 3,
        }


class Told:
    """An array without memory, so of any size: at an address of its own, far from all others, unless one is given.

    strides: in bytes; None of a C-contiguous one.
    """

    _next = itertools.cycle(range(1, 1 << 16))

    def __init__(
        self, dtype: str, *shape: int, strides: tuple | None = None, at: int | None = None
    ):
        self.dtype, self.shape, self.strides = np.dtype(dtype), shape, strides
        self.address = next(self._next) << 47 if at is None else at

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.address, False), "shape": self.shape, "strides": self.strides, "typestr": self.dtype.str,
            "version": 3,
        }  # fmt: skip

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def reshape(self, *shape: int) -> "Told":
        return Told(self.dtype.name, *shape, at=self.address)

    def fill(self, value: Any) -> None:
        """There is nothing to fill."""

    def __len__(self) -> int:
        return self.shape[0]
