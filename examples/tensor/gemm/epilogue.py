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
from cudatut.book.tensor.gemm.addresses import address

MOST = 1 << 33  # elements: the kernel counts pieces of eight in an int
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

    def take(
        self, operands: Any, dtype: str, m: int, n: int, align: int = 4
    ) -> None:
        """The arrays of a launch whose result is m x n of this dtype and has
        been taken as C. align: bytes of which the bias begins at a multiple;
        threads read it by pairs. Raises ValueError, TypeError.
        """
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation is one of {', '.join(ACTIVATIONS)}, not"
                f" {self.activation!r}"
            )
        if self.bias is not None:
            operands.read("bias", self.bias, "uint16", (n,), align=align)
        if self.residual is not None:
            # A thread reads an element before it writes the one in its place.
            operands.read(
                "residual", self.residual, dtype, (m, n), over=("C", "out"),
                align=16 if align == 16 else 1,
            )  # fmt: skip


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
    of its own; `out` may be c, or the residual. n must be a multiple of 8.
    Raises TypeError for types, ValueError for shapes and places.
    """
    take = ct.operands("after")
    of_c = take.read("C", c, "uint16", (None, None), align=16)
    m, n = of_c.shape
    if n % 8 or m * n >= MOST:
        raise ValueError(
            f"after: C is {[m, n]}; n must be a multiple of 8, and m n below"
            f" {MOST}"
        )
    take.write("out", out, "uint16", (m, n), over="C", align=16)
    epilogue.take(take, "uint16", m, n, align=16)
    if not m or not n:
        return lambda: None
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
    return ct.Kernel("tensor/gemm/after.cu", name)


def _words(array: Any) -> np.uint64:
    """The kernel takes 16 bytes at a time; null where there is nothing."""
    if array is None:
        return np.uint64(0)
    return np.uint64(address(array))
