"""Many copies by one call: cuMemcpyBatchAsync, of CUDA 12.8 and newer."""

import ctypes
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.gpu.device import installed_driver


# --8<-- [start:batch]
class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("source_access_order", ctypes.c_int),
        ("source_hint", _Location),
        ("target_hint", _Location),
        ("flags", ctypes.c_uint),
    ]


IN_STREAM_ORDER = 1  # CU_MEMCPY_SRC_ACCESS_ORDER_STREAM


def copy_batch(
    targets: np.ndarray, sources: np.ndarray, sizes: np.ndarray, stream: Any
) -> None:
    """Enqueue a copy for each element: uint64 arrays of addresses and bytes.
    In which order the copies of a batch run is not said.

    stream: a PyCUDA stream; the driver refuses the default one. Raises
    ValueError for other arrays, ToolMissing before CUDA 12.8, RuntimeError
    where the driver refuses.
    """
    given = targets, sources, sizes
    if any(
        one.dtype != np.uint64
        or one.shape != (len(sizes),)
        or not one.flags.c_contiguous
        for one in given
    ):
        raise ValueError("three arrays of uint64, of one length, are needed")
    driver = installed_driver()
    newer = getattr(driver, "cuMemcpyBatchAsync_v2", None)
    call = newer or getattr(driver, "cuMemcpyBatchAsync", None)
    if call is None:
        raise ct.ToolMissing("copies in a batch need a driver of CUDA 12.8")
    attributes = _Attributes(source_access_order=IN_STREAM_ORDER)
    first, failed = ctypes.c_size_t(0), ctypes.c_size_t(0)
    arrays = [ctypes.c_void_p(one.ctypes.data) for one in given]
    more = [] if newer else [ctypes.byref(failed)]  # CUDA 13 has dropped it
    status = call(
        *arrays,
        ctypes.c_size_t(len(sizes)),
        ctypes.byref(attributes),
        ctypes.byref(first),  # the attributes hold from copy 0 on
        ctypes.c_size_t(1),
        *more,
        ctypes.c_void_p(stream.handle),
    )
    if status:
        raise RuntimeError(f"cuMemcpyBatchAsync ended with CUDA error {status}")


# --8<-- [end:batch]
