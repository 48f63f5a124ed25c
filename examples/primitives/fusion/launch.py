"""Launchers of gelu.cu. Elements are fp32, or bf16 as uint16; arrays are
contiguous, of any length, and begin anywhere: a view that does not begin at a
multiple of 16 bytes has shorter vectors."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import cudatut as ct

SOURCE = "primitives/fusion/gelu.cu"
C_TYPES = {"float32": "float", "uint16": "__nv_bfloat16"}
OPS = {"erf": 0, "tanh": 1, "erf, fast": 2, "tanh, fast": 3}
MOST = 1 << 40  # elements: blocks of a grid, times those of a block


@cache
def _kernel(source: str, name: str) -> ct.Kernel:
    return ct.Kernel(source, name)


def instances() -> list[tuple[str, str]]:
    """What the chapter launches, for ct.compile_ahead."""
    names = []
    for ctype, wide in (("float", 4), ("__nv_bfloat16", 8)):
        names += [f"gelu<{ctype},{wide},2,256,{op}>" for op in OPS.values()]
        names += [f"gelu<{ctype},{n},2,256,0>" for n in (1, 2)]
        fused = "bias_gelu_residual"
        names += [f"{fused}<{ctype},{wide},1,256,{op}>" for op in (0, 2)]
        names += [
            f"{name}<{ctype},{wide},2,256>" for name in ("add_bias", "add")
        ]
        names.append(f"gelu_one<{ctype},0>")
    return [(SOURCE, name) for name in names]


def elements_per_access(*operands: Any, columns: int = 0) -> int:
    """The most elements, up to 16 bytes of them, at whose multiples all arrays
    begin, and rows of `columns` elements too."""
    n = 16 // operands[0].size
    while n > 1 and (
        columns % n or any(int(a.address) % (n * a.size) for a in operands)
    ):
        n //= 2
    return n


def _run(kernel, operands, numbers, n, per_block, block) -> Callable:
    grid = ct.cdiv(n, per_block)
    if not grid:
        return lambda stream=None: None
    arguments = [*(one.address for one in operands), *numbers]

    def run(stream=None):
        kernel(*arguments, grid=grid, block=block, stream=stream)

    run.operands = operands  # an address keeps no array alive
    return run


def gelu(
    x: Any,
    out: Any,
    op: str = "erf",
    each: int = 2,
    block: int = 256,
    one: bool = False,
) -> Callable:
    """out = gelu(x); out may be x. each: vectors of a thread. one: one element
    per thread. Raises TypeError, ValueError."""
    take = ct.operands("gelu")
    a = take.read("x", x, tuple(C_TYPES), most=MOST)
    b = take.write("out", out, a.dtype, a.shape, most=MOST, over="x")
    n, ctype = math.prod(a.shape), C_TYPES[a.dtype]
    if one:
        per, name = block, f"gelu_one<{ctype},{OPS[op]}>"
    else:
        wide = elements_per_access(a, b)
        per = wide * each * block
        name = f"gelu<{ctype},{wide},{each},{block},{OPS[op]}>"
    kernel = _kernel(SOURCE, name)
    return _run(kernel, (a, b), (n,), n, per, block)


def _matrix(take, x, bias, residual, out, over=("x", "residual")):
    """The operands. What is written may be one of those named by `over`."""
    a = take.read("x", x, tuple(C_TYPES), (None, None))
    row = take.read("bias", bias, a.dtype, a.shape[1:])
    r = take.read("residual", residual, a.dtype, a.shape)
    return a, row, r, take.write("out", out, a.dtype, a.shape, over=over)


def bias_gelu_residual(
    x: Any,
    bias: Any,
    residual: Any,
    out: Any,
    op: str = "erf",
    each: int = 2,
    block: int = 256,
) -> Callable:
    """out = gelu(x + bias) + residual, a matrix with one bias per column, in
    fp32 and rounded once. out may be x or residual."""
    take = ct.operands("bias_gelu_residual")
    a, row, r, b = _matrix(take, x, bias, residual, out)
    n, columns = math.prod(a.shape), a.shape[1]
    if not n:
        return lambda stream=None: None
    wide = elements_per_access(a, row, r, b, columns=columns)
    kernel = _kernel(
        SOURCE,
        f"bias_gelu_residual<{C_TYPES[a.dtype]},{wide},{each},{block},{OPS[op]}>",
    )
    per = wide * each * block
    return _run(kernel, (a, row, r, b), (n, columns), n, per, block)


def three_kernels(
    x: Any,
    bias: Any,
    residual: Any,
    out: Any,
    op: str = "erf",
    each: int = 2,
    block: int = 256,
) -> Callable:
    """The same by three kernels, each of which reads and writes memory. out may
    be x; the residual is read after out has been written."""
    take = ct.operands("three_kernels")
    a, row, r, b = _matrix(take, x, bias, residual, out, over=("x",))
    n, columns = math.prod(a.shape), a.shape[1]
    if not n:
        return lambda stream=None: None
    wide = elements_per_access(a, row, r, b, columns=columns)
    ctype = C_TYPES[a.dtype]
    shape = f"{wide},{each},{block}"
    per = wide * each * block
    first = _run(
        _kernel(SOURCE, f"add_bias<{ctype},{shape}>"),
        (a, row, b),
        (n, columns),
        n,
        per,
        block,
    )
    second = gelu(out, out, op, each, block)
    third = _run(
        _kernel(SOURCE, f"add<{ctype},{shape}>"),
        (b, r, b),
        (n,),
        n,
        per,
        block,
    )

    def run(stream=None):
        first(stream)
        second(stream)
        third(stream)

    return run
