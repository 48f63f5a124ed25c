"""Where arrays on the GPU begin, for what kernels get inside a struct."""

from typing import Any


def address(array: Any) -> int:
    return array.__cuda_array_interface__["data"][0]
