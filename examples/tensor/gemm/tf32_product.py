"""Products of fp32 matrices as TF32, by tf32.cu.

    run = prepare(a, b, c)                     # C = A B, B is k x n
    run = prepare(a, b, c, transpose_b=True)   # C = A B^T, B lies as n x k
    run()                                      # as often as wanted

wgmma reads TF32 along the depth only. So a B that lies as k x n is transposed
first, each time; weights, which lie as n x k, need not be.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.tensor.gemm import gemm
from cudatut.book.tensor.gemm.addresses import address

SOURCE, DEPTH = "tensor/gemm/tf32.cu", 32

# A step of 32 words is as many bytes as one of 64 bf16, and takes the tensor
# cores as long: what `gemm` says of a product of twice the depth holds here.
TILES = tuple(
    gemm.Tile(columns, stages, cluster, buffers)
    for columns, stages, cluster, buffers in (
        (256, 4, 2, 2),
        (256, 4, 1, 2),
        (192, 5, 1, 1),
        (128, 6, 2, 2),
        (128, 6, 1, 2),
        (64, 8, 1, 2),
    )
)


class _Work(ctypes.Structure):
    """`Work` in tf32.cu."""

    _fields_ = [
        *((name, ctypes.c_int) for name in (
            "m", "n", "group", "steps", "whole", "share", "boxes",
        )),
        *((name, ctypes.c_uint64) for name in ("C", "parts", "flags")),
    ]  # fmt: skip


@cache
def kernel(tile: gemm.Tile):
    """The instance of tf32.cu; on all GPUs but Hopper a compile error."""
    numbers = f"{tile.columns},{tile.stages},{tile.cluster},{tile.buffers}"
    return ct.Kernel(SOURCE, f"tf32_product<{numbers}>", arch="sm_90a")


def choose(m: int, n: int, k: int, sms: int) -> gemm.Plan:
    """The plan that should be fastest, by the costs of gemm.py."""
    options = [
        plan for tile in TILES for plan in gemm.plans(m, n, 2 * k, tile, sms)
    ]
    return min(options, key=lambda plan: gemm.cycles(plan, 2 * k))


# --8<-- [start:prepare]
def prepare(
    a: Any,
    b: Any,
    c: Any,
    transpose_b: bool = False,
    plan: gemm.Plan | None = None,
    group: int | None = None,
) -> Callable[[], None]:
    """What computes the product each time it is called.

    a: m x k; b: k x n, or n x k; c: m x n; all float32, C-contiguous; C shares
    no memory with the others. Raises TypeError for types, ValueError for what
    else does not fit, a k that is no multiple of 4 included.
    """
    take, extents = ct.operands("tf32_product"), {"most": gemm.LARGEST}
    of_a = take.read("A", a, "float32", (None, None), align=16, **extents)
    m, k = of_a.shape
    if not k or k % 4:
        raise ValueError(f"A is {[m, k]}: k must be a multiple of 4, above 0")
    shape, align = ((None, k), 16) if transpose_b else ((k, None), 4)
    of_b = take.read("B", b, "float32", shape, align=align, **extents)
    n = of_b.shape[0 if transpose_b else 1]
    to = take.write("C", c, "float32", (m, n), **extents)
    if not c.size:
        return lambda: None
    lines, turn = b, None
    if not transpose_b:
        lines = ct.empty((n, k), "float32")
        transpose = ct.Kernel("gemm/kernels/transpose.cu", "transpose")
        blocks = ct.cdiv(k, 64) * ct.cdiv(n, 64)

        def turn() -> None:
            transpose(b, n, lines, k, k, n, grid=blocks, block=256)

    sms = ct.device().sm_count
    plan = plan or choose(m, n, k, sms)
    tile = plan.tile
    maps = [
        ct.tensor_map(a, (gemm.ROWS, DEPTH), swizzle=128),
        ct.tensor_map(
            lines, (tile.columns // tile.cluster, DEPTH), swizzle=128
        ),
    ]
    boxes = n % 4 == 0 and to.aligned(16)  # as its rows have to begin
    maps.append(ct.tensor_map(c, (64, 32), swizzle=128) if boxes else maps[0])
    # For parts of tiles: one for each consumer of each block.
    parts = plan.workers * tile.cluster * gemm.CONSUMERS if plan.share else 0
    space = ct.empty(max(parts, 1) * 64 * tile.columns, "float32")
    flags = ct.to_device(np.zeros(max(parts, 1), "uint32"))
    work = _Work(
        m, n, group or gemm.group_for(tile, sms), ct.cdiv(k, DEPTH),
        plan.whole, plan.share, boxes, address(c), address(space),
        address(flags),
    )  # fmt: skip
    function = kernel(tile)

    def run() -> None:
        if turn:
            turn()
        function(
            *maps, work, grid=plan.workers * tile.cluster,
            block=128 * (1 + gemm.CONSUMERS), shared=tile.shared,
        )  # fmt: skip

    run.out, run.plan = c, plan
    run.flags = flags  # all 0 before and after each run
    run.kept = a, b, lines, space  # an address keeps nothing alive
    return run


# --8<-- [end:prepare]


def error_bound(k: int) -> float:
    """g so that |c - exact| <= g * (sum of |a_i b_i|).

    Each factor keeps 11 significant bits of 24, the others cut off, and the
    sums are as exact as those of bf16 products.
    """
    cut, u = 2.0**-10, float(np.finfo("float32").eps)
    return 2 * cut + cut * cut + 1.01 * k * u / (1 - k * u)
