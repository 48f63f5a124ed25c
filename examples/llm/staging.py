"""Small arrays of a step on their way to the GPU: all of them in one copy."""

from typing import Any

import numpy as np

import cudatut as ct

ALIGN = 16  # bytes


# --8<-- [start:staging]
class Staging:
    """A piece of page-locked memory, and as large a one on the GPU.

    `put` copies an array into the first and says where it will lie on the GPU,
    `send` starts the copy. The arrays of a step stand at the same addresses in
    every step if their sizes are the same, as a CUDA graph needs it.
    """

    def __init__(self, words: int, stream: Any):
        import pycuda.driver as cuda

        self._host = cuda.pagelocked_empty(4 * words, np.uint8)
        self._gpu = ct.empty(4 * words, "uint8")
        self._stream, self._sent, self._at = stream, cuda.Event(), 0

    def begin(self) -> None:
        """Before the first `put` of a step: wait until the last one's copy has
        been read, so that nothing is overwritten on its way.
        """
        self._sent.synchronize()
        self._at = 0

    def put(self, array: np.ndarray) -> Any:
        """Where this array will be on the GPU. Raises ValueError if there is no
        room.
        """
        start, found = self._at, self.room(array.shape, array.dtype)
        piece = self._host[start : start + array.nbytes]
        piece.view(array.dtype)[:] = array.ravel()
        return found

    def room(self, shape: Any, dtype: Any) -> Any:
        """Room for an array that the GPU will write. Raises ValueError."""
        dtype = np.dtype(dtype)
        start, nbytes = self._at, int(np.prod(shape)) * dtype.itemsize
        if start + nbytes > self._gpu.size:
            raise ValueError(
                f"the arrays of a step need more than {self._gpu.size} bytes"
            )
        self._at += -(-nbytes // ALIGN) * ALIGN
        return self._gpu[start : start + nbytes].view(dtype).reshape(shape)

    def send(self) -> None:
        """Start the copy of all that was put."""
        import pycuda.driver as cuda

        if self._at:
            cuda.memcpy_htod_async(
                self._gpu.gpudata, self._host[: self._at], self._stream
            )
        self._sent.record(self._stream)


# --8<-- [end:staging]
