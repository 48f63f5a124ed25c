"""Small arrays of a step on their way to the GPU: all of them in one copy."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import cudatut as ct

ALIGN = 16  # bytes


# --8<-- [start:staging]
class Staging:
    """A piece of page-locked memory, and as large a one on the GPU.

    `send` copies arrays one behind the other into the first and starts one copy
    to the second; `places` says where they lie there. Arrays of the same sizes
    lie at the same places in every step, as a CUDA graph needs it.
    """

    def __init__(self, nbytes: int, stream: Any):
        import pycuda.driver as cuda

        self._host = cuda.pagelocked_empty(nbytes, np.uint8)
        self._gpu = ct.empty(nbytes, "uint8")
        self._stream, self._sent = stream, cuda.Event()

    def send(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Start the copy. The arrays are C-contiguous. Raises ValueError if
        there is no room.
        """
        import pycuda.driver as cuda

        self._sent.synchronize()  # the last step's have been read
        end = 0
        for array in arrays.values():
            start = next_place(end)
            end = start + array.nbytes
            if end > self._host.size:
                raise ValueError(
                    f"the arrays of a step need more than {self._host.size} bytes"
                )
            self._host[start:end] = array.reshape(-1).view("uint8")
        if end:
            cuda.memcpy_htod_async(
                self._gpu.gpudata, self._host[:end], self._stream
            )
        self._sent.record(self._stream)

    def places(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Where `send` puts these arrays."""
        found, end = {}, 0
        for name, array in arrays.items():
            start = next_place(end)
            end = start + array.nbytes
            piece = self._gpu[start:end].view(array.dtype)
            found[name] = piece.reshape(array.shape)
        return found


def next_place(end: int) -> int:
    return -(-end // ALIGN) * ALIGN


# --8<-- [end:staging]
