"""Shared libraries that another package has loaded into this process, for ctypes."""

import ctypes


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
