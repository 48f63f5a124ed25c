"""Pin the memory of an array that is already there.

By the driver itself: `register_host_memory` of PyCUDA 2026.1 fails with today's
NumPy, a known fault that its tests name.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from cudatut.gpu.device import installed_driver


def pin(array: np.ndarray) -> None:
    """Raises RuntimeError where the driver refuses."""
    _call("cuMemHostRegister_v2", array, ctypes.c_size_t(array.nbytes), 0)


def unpin(array: np.ndarray) -> None:
    """Raises RuntimeError for memory that `pin` has not pinned."""
    _call("cuMemHostUnregister", array)


@contextmanager
def pinned(array: np.ndarray) -> Iterator[np.ndarray]:
    """The array, pinned while the block runs. Nothing may copy from it or to it
    any more when the block ends.
    """
    pin(array)
    try:
        yield array
    finally:
        unpin(array)


def _call(name: str, array: np.ndarray, *more: object) -> None:
    address = ctypes.c_void_p(array.ctypes.data)
    if status := getattr(installed_driver(), name)(address, *more):
        raise RuntimeError(f"{name} ended with CUDA error {status}")
