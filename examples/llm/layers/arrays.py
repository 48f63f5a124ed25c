"""Arrays for the checks and benchmarks of this chapter."""

from typing import Any

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16

EPS = 1e-5  # of a norm
ROUNDED = 1.01 * 2.0**-8  # relative error of one rounding to bf16


def random(shape: int | tuple[int, ...], seed: int, dtype: str = "uint16"):
    """Random numbers on the GPU; uint16 stands for bf16."""
    x = ct.rng(seed).standard_normal(shape, dtype="float32")
    return ct.to_device(to_bf16(x) if dtype == "uint16" else x)


def copy_of(nbytes: int) -> Any:
    """A copy that reads and writes so many bytes together."""
    a, b = (ct.empty(nbytes // 2, "uint8") for _ in range(2))
    return ct.vendor.copy(a, b)
