"""Shared libraries that another package has loaded into this process, and
arrays on the GPU, for ctypes.
"""

import ctypes
from typing import Any


def loaded(name: str) -> ctypes.CDLL | None:
    """The library whose path has '/NAME.so' in it; None where that cannot be
    told: Linux says it.
    """
    try:
        with open("/proc/self/maps") as maps:
            path = next(
                line.split()[-1] for line in maps if f"/{name}.so" in line
            )
    except (OSError, StopIteration):
        return None
    return ctypes.CDLL(path)


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.__cuda_array_interface__["data"][0])
