"""A kernel for each operation: launchers of the kernels of separate.cu."""

from functools import cache
from typing import Any

import cudatut as ct


@cache
def _kernel(name: str) -> ct.Kernel:
    return ct.Kernel("llm/layers/separate.cu", name)


def add(x: Any, added: Any) -> None:
    """x += added. x: fp32; added: bf16, of as many elements, a multiple of 4."""
    vectors = x.size // 4
    _kernel("add_rows")(
        x, added, vectors, grid=ct.cdiv(vectors, 256), block=256
    )


def two_steps(gate_up: Any, out: Any) -> None:
    """SwiGLU by two kernels. gate_up: bf16, [n, 2 ffn]; out: bf16, [n, ffn]."""
    n, ffn = out.shape
    grid = ct.cdiv(ffn, 8 * 256), n
    _kernel("silu_rows")(gate_up, out, ffn, grid=grid, block=256)
    _kernel("multiply_rows")(gate_up, out, ffn, grid=grid, block=256)
