"""SwiGLU, the rows of the embedding, rows picked from others: launchers of
the kernels of activation.cu. bfloat16 travels as uint16.
"""

from typing import Any

import cudatut as ct

from rows import NULL, contiguous, elements_per_load, ints, kernel, rows_of

SOURCE = "llm/activation.cu"


def swiglu(gate_up: Any, out: Any, stream: Any = None) -> None:
    """out = silu(gate) * up, computed in fp32 and rounded once.

    gate_up: bf16, [n, 2 ffn], a row's gate and then its up; out: bf16, [n,
    ffn], not in gate_up; rows may be strided. 16 bytes per load where ffn,
    strides and addresses allow it. Raises ValueError.
    """
    a = rows_of(gate_up, "gate_up", "uint16")
    if a.width % 2:
        raise ValueError(f"a row of {a.width} cannot be gate and up")
    n, width = a.rows, a.width // 2
    out = rows_of(out, "out", "uint16", shape=(n, width))
    if a.overlaps(out):
        raise ValueError("out must not lie in gate_up")
    if not n or not width:
        return
    vec = elements_per_load(a._replace(width=width), out)
    vectors = ct.cdiv(width, vec)
    # Two vectors per thread once every multiprocessor has all its threads.
    per = 2 if n * vectors > 2 * 2048 * ct.device().sm_count else 1
    parts = ct.cdiv(vectors, 256 * per)
    threads = ct.cdiv(ct.cdiv(vectors, parts * per), 32) * 32
    run = kernel(SOURCE, "swiglu", vec, per)
    run(
        a.address, a.stride, out.address, out.stride, width, parts,
        grid=n * parts, block=threads, stream=stream,
    )  # fmt: skip


def embed(
    tokens: Any, embedding: Any, x: Any, stream: Any = None, drawn: Any = None
) -> None:
    """x[t] = the embedding of tokens[t].

    tokens: int32, [n]; not checked. drawn: int32, tokens that may have been
    drawn just before: -1 - i in `tokens` stands for drawn[i]. embedding: bf16, [vocab, dim], dim a
    multiple of 4; or the bytes of Q8_0, uint8, [vocab, dim / 32 * 34], as
    `checkpoint.Checkpoint.blocks` has them. x: fp32, [n, dim], contiguous.
    Raises ValueError.
    """
    to, (n, dim) = contiguous(x, "x", "float32", (None, None))
    whose = ints(tokens, "tokens", n)
    if embedding.__cuda_array_interface__["typestr"][1:] == "u1":
        if dim % 32:
            raise ValueError(f"Q8_0 has blocks of 32; dim is {dim}")
        shape, name, align = (None, dim // 32 * 34), "embed_q8", 2
        rows, _ = contiguous(embedding, "embedding", "uint8", shape)
    else:
        if dim % 4:
            raise ValueError(f"dim is {dim}, and should be a multiple of 4")
        shape, name, align = (None, dim), "embed_bf16", 8
        rows, _ = contiguous(embedding, "embedding", "uint16", shape)
    if int(rows) % align or int(to) % 16:
        raise ValueError(
            f"the embedding begins at no multiple of {align} bytes"
        )
    if not n or not dim:
        return
    others = NULL if drawn is None else ints(drawn, "drawn", *drawn.shape)
    _launch_rows(name, (whose, others, rows, to), n, dim, stream)


def gather(indices: Any, x: Any, out: Any, stream: Any = None) -> None:
    """out[t] = x[indices[t]]. indices: int32, [m]; not checked. x: fp32, [n,
    dim], out: fp32, [m, dim], not in x; dim is a multiple of 4. Raises
    ValueError.
    """
    to, (m, dim) = contiguous(out, "out", "float32", (None, None))
    rows, (n, _) = contiguous(x, "x", "float32", (None, dim))
    whose = ints(indices, "indices", m)
    if dim % 4 or int(rows) % 16 or int(to) % 16:
        raise ValueError(f"rows of {dim} elements: 16 bytes are read at a time")
    if rows_of(x, "x").overlaps(rows_of(out, "out")):
        raise ValueError("out must not lie in x")
    if m and not n:
        raise ValueError("x has no rows")
    if m and dim:
        _launch_rows("gather", (whose, rows, to), m, dim, stream)


def _launch_rows(name, addresses, n, dim, stream) -> None:
    run = kernel(SOURCE, name)
    run(
        *addresses, dim,
        grid=n, block=min(256, ct.cdiv(dim, 128) * 32), stream=stream,
    )  # fmt: skip
