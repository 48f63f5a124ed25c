"""A kernel for each operation: launchers of the kernels of separate.cu."""

from functools import cache
from typing import Any

import cudatut as ct


@cache
def _kernel(name: str) -> ct.Kernel:
    return ct.Kernel("llm/layers/separate.cu", name)


def add(x: Any, added: Any) -> None:
    """x += added.

    x: fp32; added: bf16, of the same shape; a multiple of 4 elements. Raises
    TypeError, ValueError.
    """
    take = ct.operands("add")
    to = take.write("x", x, "float32", align=16)
    of = take.read("added", added, "uint16", to.shape, align=8)
    if x.size % 4:
        raise ValueError(f"add: {x.size} elements are no multiple of 4")
    if not x.size:
        return
    vectors = x.size // 4
    _kernel("add_rows")(
        to.address, of.address, vectors,
        grid=ct.cdiv(vectors, 256), block=256,
    )  # fmt: skip


def two_steps(gate_up: Any, out: Any) -> None:
    """SwiGLU by two kernels.

    gate_up: bf16, [n, 2 ffn], ffn a multiple of 8; out: bf16, [n, ffn]; at
    most 65535 rows. Raises TypeError, ValueError.
    """
    take = ct.operands("two_steps")
    a = take.read("gate_up", gate_up, "uint16", (None, None), align=16)
    n, ffn = a.shape[0], a.shape[1] // 2
    if a.shape[1] % 16:
        raise ValueError(f"two_steps: ffn is {ffn}, no multiple of 8")
    if n > 65535:
        raise ValueError(f"two_steps: {n} rows are more than a grid has")
    to = take.write("out", out, "uint16", (n, ffn), align=16)
    if not n or not ffn:
        return
    grid = ct.cdiv(ffn, 8 * 256), n
    _kernel("silu_rows")(a.address, to.address, ffn, grid=grid, block=256)
    _kernel("multiply_rows")(a.address, to.address, ffn, grid=grid, block=256)
