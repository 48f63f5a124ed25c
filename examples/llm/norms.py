"""RMSNorm, with an addition before it if need be, and LayerNorm: launchers of
the kernels of norms.cu.

Rows are of 1 to 32768 elements, fp32 or bf16 (as uint16), and may be strided:
views of GPUArrays are fine. Loads take 16 bytes where width, strides and
addresses allow it. The same row gives the same bits whatever other rows there
are. All raise ValueError for shapes, dtypes and widths, and return at once.
"""

from typing import Any

from rows import (
    WIDEST,
    Rows,
    elements_per_load,
    kernel,
    launch_shape,
    rows_of,
    share,
)

SOURCE = "llm/norms.cu"


def rms_norm(
    x: Any, weight: Any, out: Any, eps: float, stream: Any = None, most: int = 4
) -> None:
    """out = x / sqrt(mean of x^2 + eps) * weight, row by row.

    x: [n, dim], fp32 or bf16. weight: [dim], fp32 or bf16. out: [n, dim], bf16;
    may be x itself. most: as in `rows.share`; it changes the order of sums.
    """
    x, weight, out = _arrays(x, weight, out)
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
    added = rows_of(added, "added")
    x, weight, out = _arrays(x, weight, out)
    if added[2:4] != x[2:4]:
        raise ValueError(
            f"x is [{x.rows}, {x.width}], but added is [{added.rows}, {added.width}]"
        )
    if x.overlaps(added) or x.overlaps(out) or added.overlaps(out):
        raise ValueError("x, added and out must not share memory")
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
    x, weight, out = _arrays(x, weight, out)
    bias = rows_of(bias, "bias", weight.dtype, shape=(x.width,))
    _launch("layer_norm", (x, weight, bias), out, eps, stream, most)


def _arrays(x: Any, weight: Any, out: Any) -> tuple[Rows, Rows, Rows]:
    x = rows_of(x, "x")
    if not 1 <= x.width <= WIDEST:
        raise ValueError(f"a row has 1 to {WIDEST} elements, not {x.width}")
    weight = rows_of(weight, "weight", shape=(x.width,))
    out = rows_of(out, "out", "uint16", shape=(x.rows, x.width))
    same = (x.dtype, x.stride) == (out.dtype, out.stride)
    if x.address == out.address and x.rows and not same:
        raise ValueError("out begins where x does, but its rows lie elsewhere")
    return x, weight, out


def _launch(base, arrays, out, eps, stream, most) -> None:
    """arrays: the kernel's before `out`, in order; vectors have no stride."""
    x = arrays[0]
    if not x.rows:
        return
    vec = elements_per_load(*arrays, out)
    lanes, per = share(x.width, vec, most)
    typed = arrays[:2] if base == "layer_norm" else arrays  # bias: as weight
    types = [a.ctype for a in typed]
    run = kernel(SOURCE, base, *types, vec, lanes, per)
    count = 2 if base == "add_rms_norm" else 1  # arrays with rows
    arguments = [part for a in arrays[:count] for part in (a.address, a.stride)]
    arguments += [a.address for a in arrays[count:]]
    run(
        *arguments, out.address, out.stride, x.rows, x.width, eps,
        **launch_shape(x.rows, lanes), stream=stream,
    )  # fmt: skip
