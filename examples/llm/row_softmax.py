"""Softmax of rows, by one of the kernels of softmax.cu."""

from typing import Any

import cudatut as ct

from rows import (
    NULL,
    WIDEST,
    elements_per_load,
    ints,
    kernel,
    launch_shape,
    rows_of,
    share,
)

SOURCE = "llm/softmax.cu"
RUNGS = ("three_pass", "online", "fused", "shared")
SLOTS = 2 * 32 * 4  # bytes of shared memory for reductions


# --8<-- [start:softmax]
def softmax(
    x: Any,
    out: Any,
    scale: float = 1.0,
    lengths: Any = None,
    queries: int = 0,
    by: str | None = None,
    stream: Any = None,
    most: int = 4,
) -> None:
    """out = softmax(scale * x), row by row.

    x, out: [n, width], fp32 or bf16 (as uint16), rows may be strided. scale:
    above 0. lengths: [n], int32: row r sees its first lengths[r] columns only.
    queries: 0, or rows are queries of causal attention, that many to a matrix:
    the last of them sees every column, the one before all but the last, and so
    on. What a row doesn't see may be NaN, and gives 0; a row that sees nothing
    but -inf gives zeros. out may be x for 'fused' and 'shared'.
    by: one of RUNGS; default: the row stays in registers, or if it is too long
    in shared memory, or if even that is too small it is read twice. most: as in
    `rows.share`. The same row gives the same bits whatever other rows there
    are. Raises ValueError.
    """
    x = rows_of(x, "x")
    out = rows_of(out, "out", shape=(x.rows, x.width))
    if not 1 <= x.width <= 1 << 30:
        raise ValueError(f"a row of {x.width} elements: 1 to 2^30 are possible")
    if not 0 < scale < float("inf"):
        raise ValueError(f"scale is {scale}, and should be above 0")
    by = by or _choice(x)
    if by not in RUNGS:
        raise ValueError(f"by is {by!r}, and should be one of {RUNGS}")
    same = (x.address, x.dtype, x.stride) == (
        out.address,
        out.dtype,
        out.stride,
    )
    if x.overlaps(out) and not (same and by in RUNGS[2:]):
        raise ValueError(f"out must not lie in x, which {by!r} still reads")
    seen = NULL if lengths is None else ints(lengths, "lengths", x.rows)
    if not x.rows:
        return
    vec = elements_per_load(x, out)
    lanes, per = share(x.width, vec, most)
    arguments = x.width, scale, queries, seen
    if by == "fused":
        if x.width > WIDEST:
            raise ValueError(f"registers hold {WIDEST} elements, not {x.width}")
        instance = x.ctype, out.ctype, vec, lanes, per
        arguments, shared = (x.rows, *arguments), 0
        shape = launch_shape(x.rows, lanes)
    else:
        threads = max(128, lanes)
        instance = x.ctype, out.ctype, vec, threads
        shared = x.width * x.bytes if by == "shared" else 0
        shape = {"grid": x.rows, "block": threads}
    run = kernel(SOURCE, f"softmax_{by}", *instance)
    run(
        x.address, x.stride, out.address, out.stride, *arguments,
        **shape, shared=shared, stream=stream,
    )  # fmt: skip


# --8<-- [end:softmax]


def _choice(x: Any) -> str:
    if x.width <= WIDEST:
        return "fused"
    room = ct.device().shared_per_block_optin - SLOTS
    return "shared" if x.width * x.bytes <= room else "online"
