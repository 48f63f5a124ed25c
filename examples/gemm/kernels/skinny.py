"""Products with few rows or few columns, by the kernel of skinny.cu: when, and with how many blocks.

C then has a long side and a short one, `many` and `few` results; so has one of A and B. `roles` says which, and the other
one is the matrix X of the kernel, read once from memory.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import cudatut as ct

SOURCE = "gemm/kernels/skinny.cu"
MOST = 8  # of the short side


class Roles(NamedTuple):
    """How a product looks to the kernel: which matrix is X, and how all of them lie; words from an index to the next."""

    many: int
    few: int
    x: Any
    ldx: int
    along: bool
    y: Any
    y_depth: int
    y_few: int
    c_many: int
    c_few: int


def roles(p: Any) -> Roles:
    """Of a `sgemm.Product`. X is the longer of op(A) and op(B); of two short ones A, unless only B runs along the depth."""
    a_is_x = (
        p.m >= p.n
        if max(p.m, p.n) > MOST
        else not (p.transpose_a and p.transpose_b)
    )
    if a_is_x:
        y = (1, p.ldb) if p.transpose_b else (p.ldb, 1)
        along = not p.transpose_a
        return Roles(p.m, p.n, p.a, p.lda, along, p.b, *y, p.ldc, 1)
    y = (p.lda, 1) if p.transpose_a else (1, p.lda)
    return Roles(p.n, p.m, p.b, p.ldb, p.transpose_b, p.a, *y, 1, p.ldc)


# --8<-- [start:suits]
def suits(p: Any) -> bool:
    """Whether this kernel is likely to be faster than tiles, as on the shapes of scoreboard_skinny.py.

    Tiles compute results that nobody stores, but up to 8 of them hide behind the time for reading X. And a warp whose
    lanes share the depth of a row needs much of it.
    """
    shape = roles(p)
    large = shape.many * p.k >= 1 << 21  # words of X
    if shape.along:
        return shape.few <= MOST and p.k >= 256 and (shape.few <= 4 or large)
    return shape.few <= 4 and p.k >= 64 and (shape.few <= 2 or large)


# --8<-- [end:suits]


# --8<-- [start:parts]
class Split(NamedTuple):
    """How blocks share the work: rows and warps of a block, blocks that share the depth of its rows."""

    rows: int
    warps: int
    parts: int


def split(shape: Roles, k: int, sms: int) -> Split:
    """Warps enough for each SM, as long as each of them has some depth; parts only where blocks are too few."""
    if not shape.along:
        rows = 32  # of each depth a line of 128 bytes
        while k >= 256 and rows < 128 and ct.cdiv(shape.many, rows) > 2 * sms:
            rows *= 2
        parts = sms // max(1, ct.cdiv(shape.many, rows))
        parts = max(1, min(parts, ct.cdiv(k, 512)))
        warps = 16 if rows == 32 and shape.few <= 4 else 8
        # Each lane has 8 depths at least.
        while warps > 1 and warps * 1024 // rows * parts > k:
            warps //= 2
        return Split(rows, warps, parts)
    rows = 4
    while rows < 32 and ct.cdiv(shape.many, rows) > 2 * sms:
        rows *= 2
    parts = 2 * sms // max(1, ct.cdiv(shape.many, rows))
    return Split(
        rows, 8, max(1, min(parts, ct.cdiv(k, max(512, 4096 // rows))))
    )


# --8<-- [end:parts]


def launcher(
    product: Any, workspace: Any, stream: Any = None, by: Split | None = None
) -> Callable[[], None]:
    """As `sgemm.launcher`; `.kernel`, `.splits` say how. Any extents are right, though few suit. by: instead of `split`."""
    product.check("skinny")
    m, n, k, shape = *product[:3], roles(product)
    if shape.few > MOST:
        raise ValueError(f"{m} x {n}: one of the two must be at most {MOST}")
    rows, warps, parts = by or split(shape, k, ct.device().sm_count)
    groups = ct.cdiv(shape.many, rows)
    per_part = ct.cdiv(ct.cdiv(k, parts), 4) * 4
    parts = max(1, ct.cdiv(k, per_part)) if k else 1
    few = next(count for count in (1, 2, 4, 8) if count >= shape.few)
    line = k if shape.along else shape.many  # of X
    start = shape.x.__cuda_array_interface__["data"][0] or 0
    aligned = line % 4 == 0 and shape.ldx % 4 == 0 and start % 16 == 0
    instance = few, str(shape.along).lower(), 4 if aligned else 1, rows, warps
    kernel = ct.Kernel(SOURCE, f"skinny<{','.join(map(str, instance))}>")
    partials = workspace.words("partials", groups * parts * rows * few)
    tickets = workspace.tickets(max(1, groups))
    arguments = (
        shape.many, shape.few, k, product.alpha, shape.x, shape.ldx, shape.y,
        shape.y_depth, shape.y_few, product.beta, product.c, shape.c_many,
        shape.c_few, parts, per_part, partials, tickets,
    )  # fmt: skip

    def run() -> None:
        if m and n:
            kernel(
                *arguments, grid=groups * parts, block=32 * warps, stream=stream
            )

    run.kernel, run.splits, run.shared = kernel, parts, 0
    return run
