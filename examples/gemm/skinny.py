"""Products with few rows or few columns, by the kernel of skinny.cu: when, and with how many blocks.

C then has a long side and a short one, `many` and `few` results; so has one of A and B. `roles` says which, and the other
one is the matrix X of the kernel, read once from memory.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import cudatut as ct

SOURCE = "gemm/skinny.cu"
MOST = 8  # of the short side
THREADS, WARPS = 256, 8


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


def roles(m, n, a, lda, b, ldb, ldc, transpose_a, transpose_b) -> Roles:
    """X is the longer of op(A) and op(B); of two short ones A, unless only B runs along the depth."""
    a_is_x = m >= n if max(m, n) > MOST else not (transpose_a and transpose_b)
    if a_is_x:
        y = (1, ldb) if transpose_b else (ldb, 1)
        return Roles(m, n, a, lda, not transpose_a, b, *y, ldc, 1)
    y = (lda, 1) if transpose_a else (1, lda)
    return Roles(n, m, b, ldb, transpose_b, a, *y, 1, ldc)


# --8<-- [start:suits]
def suits(m: int, n: int, k: int, transpose_a: bool, transpose_b: bool) -> bool:
    """Whether this kernel is likely to be faster than tiles, as on the shapes of scoreboard_skinny.py.

    Tiles compute results that nobody stores, but up to 8 of them hide behind the time for reading X. And a warp whose
    lanes share the depth of a row needs much of it.
    """
    shape = roles(m, n, None, 0, None, 0, 0, transpose_a, transpose_b)
    large = shape.many * k >= 1 << 21  # words of X
    if shape.along:
        return shape.few <= MOST and k >= 256 and (shape.few <= 4 or large)
    return shape.few <= 4 and k >= 64 and large


# --8<-- [end:suits]


# --8<-- [start:parts]
def split(shape: Roles, k: int, sms: int) -> tuple[int, int, int, int]:
    """Warps with rows of their own, groups of rows, blocks that share the depth of a group, and depth of each.

    Two blocks for each SM, as long as each has a chunk of depth for all of its warps.
    """
    row_warps = 1
    while shape.along and row_warps < WARPS and 4 * row_warps < shape.many:
        row_warps *= 2
    groups = ct.cdiv(shape.many, 4 * row_warps if shape.along else 128)
    chunk = max(512, 128 * WARPS // row_warps) if shape.along else 512
    parts = max(1, min(2 * sms // groups, ct.cdiv(k, chunk)))
    per_part = ct.cdiv(ct.cdiv(k, parts), 4) * 4
    return row_warps, groups, max(1, ct.cdiv(k, per_part)), per_part


# --8<-- [end:parts]


def launcher(
    m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, transpose_a, transpose_b,
    workspace, stream=None,
) -> Callable[[], None]:  # fmt: skip
    """As `sgemm.launcher`; `.kernel`, `.parts` say how. Any extents are right, though few suit."""
    shape = roles(m, n, a, lda, b, ldb, ldc, transpose_a, transpose_b)
    if shape.few > MOST:
        raise ValueError(f"{m} x {n}: one of the two must be at most {MOST}")
    row_warps, groups, parts, per_part = split(shape, k, ct.device().sm_count)
    few = next(count for count in (1, 2, 4, 8) if count >= shape.few)
    line = k if shape.along else shape.many  # of X
    start = shape.x.__cuda_array_interface__["data"][0] or 0
    aligned = line % 4 == 0 and shape.ldx % 4 == 0 and start % 16 == 0
    along = "true" if shape.along else "false"
    kernel = ct.Kernel(
        SOURCE, f"skinny<{few},{along},{4 if aligned else 1},{row_warps}>"
    )
    results = few * (4 * row_warps if shape.along else 128)
    partials = workspace.words("partials", groups * parts * results)
    tickets = workspace.tickets(groups)
    arguments = (
        shape.many, shape.few, k, alpha, shape.x, shape.ldx, shape.y,
        shape.y_depth, shape.y_few, beta, c, shape.c_many, shape.c_few, parts,
        per_part, partials, tickets,
    )  # fmt: skip

    def run() -> None:
        if m and n:
            kernel(
                *arguments, grid=groups * parts, block=THREADS, stream=stream
            )

    run.kernel, run.parts, run.shared = kernel, parts, 0
    return run
