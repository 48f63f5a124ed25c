"""Epilogues of final.cu: C = scale activation(alpha A B + bias) + beta R.

    fused = Epilogue("gelu-tanh", bias, residual)
    gemm.prepare(a, b, c, beta=1.0, epilogue=fused)()

The same by a kernel of its own after the product, and by PyTorch:

    after(c, out, fused)                  # out = activation(c + bias) + residual
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct

ACTIVATIONS = {
    "none": "None",
    "relu": "Relu",
    "gelu-tanh": "GeluTanh",
    "gelu-erf": "GeluErf",
}


class Epilogue(NamedTuple):
    """activation: a key of ACTIVATIONS. bias: n numbers in bf16 (uint16), or
    None. residual: R, m x n as C and of its dtype; None is C itself. It is read
    where beta is not 0. by_tma: whether the TMA may fetch it.
    """

    activation: str = "none"
    bias: Any = None
    residual: Any = None
    scale: float = 1.0
    by_tma: bool = True

    @property
    def type(self) -> str:
        """The template argument of final.cu."""
        return f"Fused<{ACTIVATIONS[self.activation]}>"

    def check(self, c: Any) -> None:
        """Raises ValueError for arrays that do not fit C."""
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation is one of {', '.join(ACTIVATIONS)}, not"
                f" {self.activation!r}"
            )
        n = c.shape[1]
        if self.bias is not None and (
            self.bias.shape != (n,) or str(self.bias.dtype) != "uint16"
        ):
            raise ValueError(
                f"bias must be {n} numbers in uint16, but is"
                f" {self.bias.shape} in {self.bias.dtype}"
            )
        other = self.residual
        if other is not None and (other.shape, other.dtype) != (
            c.shape,
            c.dtype,
        ):
            raise ValueError(
                f"the residual must be as C, {c.shape} in {c.dtype}, but is"
                f" {other.shape} in {other.dtype}"
            )


def reference(x: np.ndarray, activation: str) -> np.ndarray:
    """The activation in float64."""
    x = np.asarray(x, "float64")
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "gelu-tanh":
        u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(u))
    if activation == "gelu-erf":
        return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return x


# --8<-- [start:after]
def after(c: Any, out: Any, epilogue: Epilogue) -> Callable[[], None]:
    """What computes out = activation(c + bias) + residual, in bf16, by a kernel
    of its own; `out` may be c. n must be a multiple of 8.
    """
    m, n = c.shape
    if n % 8:
        raise ValueError(f"n must be a multiple of 8, but C is {c.shape}")
    epilogue.check(c)
    kernel = _after(ACTIVATIONS[epilogue.activation])
    words = [_words(x) for x in (c, epilogue.bias, epilogue.residual, out)]
    grid = min(ct.cdiv(m * n // 8, 256), 16 * ct.device().sm_count)

    def run() -> None:
        kernel(*words, n // 8, m * n // 8, grid=grid, block=256)

    run.out, run.kept = out, (c, epilogue)
    return run


# --8<-- [end:after]


@cache
def _after(activation: str):
    name = f"after<{activation}>"  # one of those in the source
    return ct.Kernel("tensor/after.cu", name)


def _words(array: Any) -> np.uint64:
    """The kernel takes 16 bytes at a time; null where there is nothing."""
    if array is None:
        return np.uint64(0)
    return np.uint64(array.__cuda_array_interface__["data"][0])
