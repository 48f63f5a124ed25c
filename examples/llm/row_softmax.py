"""Softmax of rows, by the kernels of softmax.cu and softmax_cluster.cu."""

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
OF_CLUSTERS = "llm/softmax_cluster.cu"
RUNGS = ("three_pass", "online", "fused", "shared", "cluster")
SLOTS = 2 * 32 * 4  # bytes of shared memory for reductions
MOST_BLOCKS = 8  # of a cluster, on every GPU that has them


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
    by: one of `rungs()`; default: the row stays in registers; if it is too
    long, in shared memory, where loads are wide; else in the registers of a
    cluster, or where there are none it is read twice. most: as in `rows.share`.
    The same row gives the same bits whatever other rows there are. Raises
    ValueError.
    """
    x = rows_of(x, "x")
    out = rows_of(out, "out", shape=(x.rows, x.width))
    if not 1 <= x.width <= 1 << 30:
        raise ValueError(f"a row of {x.width} elements: 1 to 2^30 are possible")
    if not 0 < scale < float("inf"):
        raise ValueError(f"scale is {scale}, and should be above 0")
    vec = elements_per_load(x, out)
    by = by or _choice(x, vec)
    if by not in rungs():
        raise ValueError(f"by is {by!r}, and should be one of {rungs()}")
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
    lanes, per = share(x.width, vec, most)
    arguments = x.width, scale, queries, seen
    source, shared = SOURCE, 0
    if by == "cluster":
        if x.width > MOST_BLOCKS * WIDEST:
            room = MOST_BLOCKS * WIDEST
            raise ValueError(f"a cluster holds {room} elements, not {x.width}")
        source = OF_CLUSTERS
        threads, per, blocks = cluster_share(x.width, vec)
        instance = x.ctype, out.ctype, vec, threads, per, blocks
        shape = {"grid": x.rows * blocks, "block": threads}
    elif by == "fused":
        if x.width > WIDEST:
            raise ValueError(f"registers hold {WIDEST} elements, not {x.width}")
        instance = x.ctype, out.ctype, vec, lanes, per
        arguments = (x.rows, *arguments)
        shape = launch_shape(x.rows, lanes)
    else:
        threads = max(128, lanes)
        instance = x.ctype, out.ctype, vec, threads
        if by == "shared":
            shared = x.width * x.bytes
        shape = {"grid": x.rows, "block": threads}
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

    A thread has up to 32 elements. With 512 threads two blocks fit into an SM;
    1024 are for rows that would otherwise need more than 8 blocks.
    """
    threads, blocks = 512, 2
    while blocks < MOST_BLOCKS and blocks * threads * 32 < width:
        blocks *= 2
    if blocks * threads * 32 < width:
        threads = 1024
    return threads, ct.cdiv(ct.cdiv(width, vec), threads * blocks), blocks


# --8<-- [end:cluster]


def rungs() -> tuple[str, ...]:
    """Those of RUNGS that this GPU can run: clusters came with sm_90."""
    clusters = ct.device().compute_capability >= (9, 0)
    return RUNGS if clusters else RUNGS[:-1]


def _choice(x: Any, vec: int) -> str:
    if x.width <= WIDEST:
        return "fused"
    room = ct.device().shared_per_block_optin - SLOTS
    fits = x.width * x.bytes <= room
    # Single loads are too many for one block at a time: several SMs share them.
    clusters = x.width <= MOST_BLOCKS * WIDEST and "cluster" in rungs()
    if clusters and not (fits and vec > 1):
        return "cluster"
    return "shared" if fits else "online"
