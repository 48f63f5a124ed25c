"""SwiGLU, the rows of the embedding, rows picked from others: launchers of
the kernels of activation.cu. bfloat16 travels as uint16.
"""

from typing import Any

import cudatut as ct

from cudatut.book.llm.kernels.rows import (
    LONGEST,
    NULL,
    begin_at,
    elements_per_load,
    grid,
    kernel,
)

SOURCE = "llm/kernels/activation.cu"


def swiglu(gate_up: Any, out: Any, stream: Any = None) -> None:
    """out = silu(gate) * up, computed in fp32 and rounded once.

    gate_up: bf16, [n, 2 ffn], a row's gate and then its up; out: bf16, [n,
    ffn], not in gate_up; rows may be strided. 16 bytes per load where ffn,
    strides and addresses allow it. Raises TypeError, ValueError.
    """
    take = ct.operands("swiglu")
    a = take.read("gate_up", gate_up, "uint16", (None, None), rows=1)
    n, width = a.count, a.width // 2
    if a.width % 2:
        raise ValueError(f"swiglu: a row of {a.width} cannot be gate and up")
    out = take.write("out", out, "uint16", (n, width), rows=1)
    if not n or not width:
        return
    vec = elements_per_load(a._replace(width=width), out)
    vectors = ct.cdiv(width, vec)
    # Two vectors per thread once every multiprocessor has all its threads.
    per = 2 if n * vectors > 2 * 2048 * ct.device().sm_count else 1
    parts = ct.cdiv(vectors, 256 * per)
    threads = ct.cdiv(ct.cdiv(vectors, parts * per), 32) * 32
    blocks = grid(take, n * parts)
    run = kernel(SOURCE, "swiglu", vec, per)
    run(
        a.address, a.stride, out.address, out.stride, width, parts,
        grid=blocks, block=threads, stream=stream,
    )  # fmt: skip


def embed(
    tokens: Any, embedding: Any, x: Any, stream: Any = None, drawn: Any = None
) -> None:
    """x[t] = the embedding of tokens[t].

    tokens: int32, [n]; not checked. drawn: int32, tokens that may have been
    drawn just before: -1 - i in `tokens` stands for drawn[i]. embedding: bf16,
    [vocab, dim], dim a multiple of 4; or the bytes of Q8_0, uint8, [vocab, dim
    / 32 * 34], as `checkpoint.Checkpoint.blocks` has them. x: fp32, [n, dim].
    All are contiguous. Raises TypeError, ValueError.
    """
    take = ct.operands("embed")
    to = take.write("x", x, "float32", (None, None))
    n, dim = to.shape
    whose = take.read("tokens", tokens, "int32", (n,))
    kinds = "uint16", "uint8"
    table = take.read("embedding", embedding, kinds, (None, None))
    name, multiple, width, align = "embed_bf16", 4, dim, 8
    if table.dtype == "uint8":
        name, multiple, width, align = "embed_q8", 32, dim // 32 * 34, 2
    if dim % multiple or dim > LONGEST or table.width != width:
        raise ValueError(
            f"embed: x is {list(to.shape)}, embedding {list(table.shape)} of {table.dtype}: rows of dim elements, a multiple of 4, or of Q8_0 of dim / 32 * 34 bytes, dim a multiple of 32; up to {LONGEST}"
        )
    begin_at(take, align, table)
    begin_at(take, 16, to)
    others = NULL
    if drawn is not None:
        others = take.read("drawn", drawn, "int32").address
    if n and dim:
        arrays = whose.address, others, table.address, to.address
        _launch_rows(name, arrays, n, dim, stream)


def gather(indices: Any, x: Any, out: Any, stream: Any = None) -> None:
    """out[t] = x[indices[t]]. indices: int32, [m]; not checked. x: fp32, [n,
    dim], out: fp32, [m, dim], not in x; dim is a multiple of 4. All are
    contiguous. Raises TypeError, ValueError.
    """
    take = ct.operands("gather")
    to = take.write("out", out, "float32", (None, None))
    m, dim = to.shape
    rows = take.read("x", x, "float32", (None, dim))
    whose = take.read("indices", indices, "int32", (m,))
    if dim % 4 or dim > LONGEST:
        raise ValueError(
            f"gather: rows of {dim} elements: 16 bytes are read at a time, so that they must be a multiple of 4, up to {LONGEST}"
        )
    begin_at(take, 16, rows, to)
    if m and not rows.count:
        raise ValueError("gather: x has no rows")
    if m and dim:
        arrays = whose.address, rows.address, to.address
        _launch_rows("gather", arrays, m, dim, stream)


def _launch_rows(name, addresses, n, dim, stream) -> None:
    run = kernel(SOURCE, name)
    run(
        *addresses, dim,
        grid=n, block=min(256, ct.cdiv(dim, 128) * 32), stream=stream,
    )  # fmt: skip
