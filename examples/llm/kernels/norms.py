"""RMSNorm, with an addition before it if need be, and LayerNorm: launchers of
the kernels of norms.cu.

Rows are of 1 to 32768 elements, fp32 or bf16 (as uint16), and may be strided:
views of GPUArrays are fine. Loads take 16 bytes where width, strides and
addresses allow it. The same row gives the same bits whatever other rows there
are. All raise ValueError for shapes, dtypes and widths, and return at once.
"""

from typing import Any

import cudatut as ct
from cudatut.gpu.operands import Operand, Operands

from cudatut.book.llm.kernels.rows import (
    FLOATS,
    WIDEST,
    ctype,
    elements_per_load,
    kernel,
    launch_shape,
    share,
)

SOURCE = "llm/kernels/norms.cu"


def rms_norm(
    x: Any, weight: Any, out: Any, eps: float, stream: Any = None, most: int = 4
) -> None:
    """out = x / sqrt(mean of x^2 + eps) * weight, row by row.

    x: [n, dim], fp32 or bf16. weight: [dim], fp32 or bf16. out: [n, dim], bf16;
    may be x itself. most: as in `rows.share`; it changes the order of sums.
    """
    take = ct.operands("rms_norm")
    x = _input(take, x)
    weight = _weight(take, weight, x)
    out = _output(take, out, x, over="x")
    _launch("rms_norm", (x, weight), out, eps, stream, most)


def add_rms_norm(
    x: Any,
    added: Any,
    weight: Any,
    out: Any,
    eps: float,
    stream: Any = None,
    most: int = 4,
) -> None:
    """x += added, and then `rms_norm` of x into `out`, in one pass.

    added: [n, dim], fp32 or bf16; out: bf16, and neither lies in x.
    """
    take = ct.operands("add_rms_norm")
    x = _input(take, x, written=True)
    weight = _weight(take, weight, x)
    added = take.read("added", added, FLOATS, x.shape, rows=1)
    out = _output(take, out, x)
    _launch("add_rms_norm", (x, added, weight), out, eps, stream, most)


def layer_norm(
    x: Any,
    weight: Any,
    bias: Any,
    out: Any,
    eps: float,
    stream: Any = None,
    most: int = 4,
) -> None:
    """out = (x - mean) / sqrt(variance + eps) * weight + bias, row by row.

    Arrays as those of `rms_norm`; bias: [dim], of the type of weight.
    """
    take = ct.operands("layer_norm")
    x = _input(take, x)
    weight = _weight(take, weight, x)
    bias = take.read("bias", bias, weight.dtype, (x.width,))
    out = _output(take, out, x, over="x")
    _launch("layer_norm", (x, weight, bias), out, eps, stream, most)


def _input(take: Operands, x: Any, written: bool = False) -> Operand:
    how = take.write if written else take.read
    x = how("x", x, FLOATS, (None, None), rows=1)
    if not 1 <= x.width <= WIDEST:
        raise ValueError(
            f"{take.launcher}: a row has 1 to {WIDEST} elements, not {x.width}"
        )
    return x


def _weight(take: Operands, weight: Any, x: Operand) -> Operand:
    return take.read("weight", weight, FLOATS, (x.width,))


def _output(
    take: Operands, out: Any, x: Operand, over: tuple[str, ...] | str = ()
) -> Operand:
    """over: x, where a row's threads have read it before they write it."""
    return take.write("out", out, "uint16", x.shape, rows=1, over=over)


def _launch(base, arrays, out, eps, stream, most) -> None:
    """arrays: the kernel's before `out`, in order; vectors have no stride."""
    x = arrays[0]
    if not x.count:
        return
    vec = elements_per_load(*arrays, out)
    lanes, per = share(x.width, vec, most)
    typed = arrays[:2] if base == "layer_norm" else arrays  # bias: as weight
    types = [ctype(a) for a in typed]
    run = kernel(SOURCE, base, *types, vec, lanes, per)
    count = 2 if base == "add_rms_norm" else 1  # arrays with rows
    arguments = [part for a in arrays[:count] for part in (a.address, a.stride)]
    arguments += [a.address for a in arrays[count:]]
    run(
        *arguments, out.address, out.stride, x.count, x.width, eps,
        **launch_shape(x.count, lanes), stream=stream,
    )  # fmt: skip
