"""Softmax of rows, by the kernels of softmax.cu and softmax_cluster.cu."""

from typing import Any

import cudatut as ct
from cudatut.gpu.operands import Operand

from cudatut.book.llm.kernels.rows import (
    FLOATS,
    LONGEST,
    NULL,
    WIDEST,
    ctype,
    elements_per_load,
    grid,
    kernel,
    launch_shape,
    share,
)

SOURCE = "llm/kernels/softmax.cu"
OF_CLUSTERS = "llm/kernels/softmax_cluster.cu"
RUNGS = ("three_pass", "online", "fused", "shared", "cluster")
SLOTS = 2 * 32 * 4  # bytes of shared memory for reductions
MOST_BLOCKS = 8  # of a cluster, on every GPU that has them
SHARED_FROM = 16384  # the shortest row that a cluster shares, where it can


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
    but -inf gives zeros. out may be x for 'fused', 'shared' and 'cluster'.
    by: one of `rungs()`; default: fewer than SHARED_FROM elements stay in the
    registers of one SM, more in those of a cluster; without clusters, in
    registers or shared memory as far as they have room. Longer rows are read
    twice. most: as in `rows.share`.
    The same row gives the same bits whatever other rows there are. Raises
    TypeError, ValueError.
    """
    take = ct.operands("softmax")
    x = take.read("x", x, FLOATS, (None, None), rows=1)
    n, width = x.shape
    if not 1 <= width <= LONGEST:
        raise ValueError(
            f"softmax: a row of {width} elements: 1 to {LONGEST} are possible"
        )
    if not 0 < scale < float("inf") or queries < 0:
        raise ValueError(
            f"softmax: {scale=}, {queries=}: above 0, and at least 0"
        )
    out = take.write("out", out, FLOATS, x.shape, rows=1, over="x")
    vec = elements_per_load(x, out)
    by = by or _choice(x)
    if by not in rungs():
        raise ValueError(
            f"softmax: by is {by!r}, and should be one of {rungs()}"
        )
    # The first two read a row again after they have begun to write it.
    if x.overlaps(out) and by not in RUNGS[2:]:
        raise ValueError(
            f"softmax: out must not be x, which {by!r} still reads"
        )
    if width > _room(by, x):
        raise ValueError(
            f"softmax: {by!r} holds {_room(by, x)} elements of a row, not {width}"
        )
    seen = NULL
    if lengths is not None:
        seen = take.read("lengths", lengths, "int32", (n,)).address
    if not n:
        return
    lanes, per = share(width, vec, most)
    types = ctype(x), ctype(out)
    arguments = width, scale, queries, seen
    source, shared = SOURCE, 0
    if by == "cluster":
        source = OF_CLUSTERS
        threads, per, blocks = cluster_share(width, vec)
        instance = *types, vec, threads, per, blocks
        shape = {"grid": grid(take, n * blocks), "block": threads}
    elif by == "fused":
        instance = *types, vec, lanes, per
        arguments = (n, *arguments)
        shape = launch_shape(n, lanes)
    else:
        threads = max(128, lanes)
        instance = *types, vec, threads
        if by == "shared":
            shared = width * x.size
        shape = {"grid": n, "block": threads}
    run = kernel(source, f"softmax_{by}", *instance)
    run(
        x.address, x.stride, out.address, out.stride, *arguments,
        **shape, shared=shared, stream=stream,
    )  # fmt: skip


# --8<-- [end:softmax]


# --8<-- [start:cluster]
def cluster_share(width: int, vec: int) -> tuple[int, int, int]:
    """Threads of a block, vectors of each thread, blocks of a cluster, for a
    row of up to 8 * WIDEST elements.

    A thread has up to 8 vectors, or 32 elements that are loaded one by one: up
    to 32 registers. Of blocks of 256 threads an SM has room for four, so they
    are taken first; larger ones are for rows that would need more than 8 blocks.
    """
    threads, blocks = 256, 2
    most = 8 * vec if vec > 1 else 32
    while blocks < MOST_BLOCKS and blocks * threads * most < width:
        blocks *= 2
    while blocks * threads * most < width:
        threads *= 2
    return threads, ct.cdiv(ct.cdiv(width, vec), threads * blocks), blocks


# --8<-- [end:cluster]


def rungs() -> tuple[str, ...]:
    """Those of RUNGS that this GPU can run: clusters came with sm_90."""
    clusters = ct.device().compute_capability >= (9, 0)
    return RUNGS if clusters else RUNGS[:-1]


def _room(by: str, x: Operand) -> int:
    """Elements of a row that it can take."""
    if by == "shared":
        return (ct.device().shared_per_block_optin - SLOTS) // x.size
    room = {"fused": WIDEST, "cluster": MOST_BLOCKS * WIDEST}
    return room.get(by, LONGEST)


def _choice(x: Operand) -> str:
    clusters = x.width <= _room("cluster", x) and "cluster" in rungs()
    if clusters and x.width >= SHARED_FROM:
        return "cluster"
    if x.width <= WIDEST:
        return "fused"
    return "shared" if x.width <= _room("shared", x) else "online"
