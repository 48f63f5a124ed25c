"""Arrays that only tell of themselves, as those on a GPU do: for tests of what looks at an array before a launch."""

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
