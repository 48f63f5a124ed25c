"""Products of matrices in e4m3: quantize, multiply by fp8.cu, and PyTorch's.

    a, b = quantize(x), quantize(w)          # one scale each
    a, b = quantize(x, "rows"), quantize(w, "tiles")   # scales of blocks
    run = prepare(a, b, c)                   # C = A B^T
    run()                                    # as often as wanted

A is m x k; B lies as n x k, as weights do. C is bf16 (uint16) or float32.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.book.rivals import torch_rival
from cudatut.book.tensor.gemm import rounds
from cudatut.book.tensor.gemm.addresses import address

SOURCE, QUANTIZE = "tensor/gemm/fp8.cu", "tensor/gemm/fp8_quantize.cu"
ROWS, DEPTH, BLOCK = 128, 128, 128
TYPES = {"uint16": "__nv_bfloat16", "float32": "float"}
LAYOUTS = "tensor", "rows", "tiles"  # which numbers share a scale
LARGEST = 2**31 - 1 - 1024  # of an extent: tiles may reach past it


class Scaled(NamedTuple):
    """A matrix in e4m3: its element is codes times the scale of its block."""

    codes: Any  # uint8, rows x k
    scales: Any  # float32: [1], rows: [k / 128, rows], tiles: [.., k / 128]
    by: str


class Tile(NamedTuple):
    """Columns of a tile, whose rows are 128, and of a part that is summed up at
    a time; stages; blocks of a cluster; boxes through which a consumer stores.
    """

    columns: int = 256
    part: int = 128
    stages: int = 4
    cluster: int = 2
    buffers: int = 2

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        stage = (ROWS + self.columns) * DEPTH + ROWS * 4 + 2 * 8
        return self.stages * stage + 2 * self.buffers * 64 * 128


# --8<-- [start:quantize]
def quantize(x: Any, by: str = "tensor") -> Scaled:
    """A matrix, float32 or bf16 (uint16), in e4m3.

    by: 'tensor' (one scale), 'rows' (one for 128 numbers of a row) or 'tiles'
    (one for 128 x 128 numbers). Raises TypeError for another type, ValueError
    for columns that are no multiple of 16, and for rows that lie apart.
    """
    run = quantizer(x, by)
    run()
    return run.out


# --8<-- [end:quantize]


def quantizer(x: Any, by: str = "tensor") -> Callable[[], None]:
    """What quantizes each time it is called; `.out` is where it goes to."""
    of_x = ct.operands("quantize").read(
        "x", x, tuple(TYPES), (None, None), align=16
    )
    rows, columns = of_x.shape
    if columns % 16 or not rows * columns:
        raise ValueError(
            f"quantize: columns are a multiple of 16, but x is {[rows, columns]}"
        )
    if by not in LAYOUTS:
        raise ValueError(f"quantize: by is one of {LAYOUTS}, not {by!r}")
    if by != "tensor" and ct.cdiv(rows, BLOCK) > 65535:  # of a grid's y
        raise ValueError(
            f"quantize: {rows} rows; with blocks 65535 x 128 at most"
        )
    element, fours = TYPES[of_x.dtype], x.size // 4
    codes = ct.empty((rows, columns), "uint8")
    words = np.uint64(address(codes))  # the same memory, four codes to a word
    if by == "tensor":
        most, scales = ct.empty(1, "float32"), ct.empty(1, "float32")
        grid = min(ct.cdiv(fours, 256), 16 * ct.device().sm_count)
        find = _kernel(f"largest<{element}>")
        convert = _kernel(f"quantize_all<{element}>")

        def run() -> None:
            most.fill(np.float32(0))
            find(x, most, fours, grid=grid, block=256)
            convert(x, most, words, scales, fours, grid=grid, block=256)

    else:
        grid = ct.cdiv(columns, BLOCK), ct.cdiv(rows, BLOCK)
        pitch = 4 * ct.cdiv(rows, 4)  # of a line of scales
        shape = shape_of_scales(rows, columns, by)
        # What pads a line nobody writes, but who copies all of them reads it.
        scales = ct.to_device(np.zeros(shape, "float32"))
        tile = str(by == "tiles").lower()
        convert = _kernel(f"quantize_blocks<{element},{tile}>")

        def run() -> None:
            convert(
                x, words, scales, rows, columns, pitch, grid=grid, block=256
            )

    run.out = Scaled(codes, scales, by)
    return run


def shape_of_scales(rows: int, columns: int, by: str) -> tuple[int, ...]:
    """Of a matrix in e4m3."""
    across = ct.cdiv(columns, BLOCK)
    return {
        "tensor": (1,),
        "rows": (across, 4 * ct.cdiv(rows, 4)),
        "tiles": (ct.cdiv(rows, BLOCK), across),
    }[by]


@cache
def _kernel(name: str):
    return ct.Kernel(QUANTIZE, name)


@cache
def kernel(levels: int, blocks: bool, tile: Tile, dtype: str):
    """The instance of fp8.cu; on all GPUs but Hopper a compile error."""
    sums = (
        f"OneLevel<{tile.columns}>"
        if levels == 1
        else f"TwoLevels<{tile.columns},{tile.part},{str(blocks).lower()}>"
    )
    numbers = f"{tile.stages},{tile.cluster},{tile.buffers}"
    name = f"fp8_product<{sums},{TYPES[dtype]},{numbers}>"
    return ct.Kernel(SOURCE, name, arch="sm_90a")


class Work(ctypes.Structure):
    """`Work` in fp8.cu."""

    _fields_ = [
        *((name, ctypes.c_int) for name in ("m", "n", "k", "group")),
        *((name, ctypes.c_uint64) for name in ("scale_a", "scale_b", "C")),
    ]


# --8<-- [start:prepare]
def prepare(
    a: Scaled,
    b: Scaled,
    c: Any,
    levels: int = 2,
    tile: Tile | None = None,
    group: int | None = None,
) -> Callable[[], None]:
    """What computes C = A B^T each time it is called.

    a, b: m x k and n x k, both by 'tensor', or by 'rows' and 'tiles'; c: m x n.
    levels: 1 for sums by the tensor cores alone, which scales of blocks cannot
    have. group: tiles of a cluster below each other in the order. All arrays
    are C-contiguous, and C shares no memory with the others. Raises TypeError
    for types, ValueError for what else does not fit.
    """
    tile = tile or Tile()
    blocks = (a.by, b.by) == ("rows", "tiles")
    if not blocks and (a.by, b.by) != ("tensor", "tensor"):
        raise ValueError(f"scales by {a.by} and {b.by} do not go together")
    if blocks and (levels == 1 or tile.part != BLOCK):
        raise ValueError("scales of blocks need two levels, parts of 128")
    take, wants = ct.operands("fp8_product"), {"most": LARGEST, "align": 16}
    of_a = take.read("A", a.codes, "uint8", (None, None), **wants)
    m, k = of_a.shape
    of_b = take.read("B", b.codes, "uint8", (None, k), **wants)
    n = of_b.shape[0]
    if not k or k % 16 or n % 8:
        raise ValueError(
            f"A is {[m, k]}, B {[n, k]}: k must be a multiple of 16, n of 8"
        )
    for name, some, rows in (("A", a, m), ("B", b, n)):
        shape = shape_of_scales(rows, k, some.by)
        take.read(f"scales of {name}", some.scales, "float32", shape, align=16)
    to = take.write("C", c, tuple(TYPES), (m, n), **wants)
    if not m or not n:
        return lambda: None
    bf16 = to.dtype == "uint16"
    maps = [
        ct.tensor_map(a.codes, (ROWS, DEPTH), swizzle=128),
        ct.tensor_map(
            b.codes, (tile.columns // tile.cluster, DEPTH), swizzle=128
        ),
        ct.tensor_map(c, (64, 64), swizzle=128) if bf16 else bytes(128),
        ct.tensor_map(a.scales, (1, ROWS)) if blocks else bytes(128),
    ]
    work = Work(
        m, n, k, group or 16 // tile.cluster,
        address(a.scales), address(b.scales), address(c),
    )  # fmt: skip
    tiles = ct.cdiv(m, ROWS * tile.cluster) * ct.cdiv(n, tile.columns)
    clusters = rounds.workers(tiles, ct.device().sm_count // tile.cluster)
    function = kernel(levels, blocks, tile, str(c.dtype))

    def run() -> None:
        function(
            *maps, work, grid=clusters * tile.cluster, block=384,
            shared=tile.shared,
        )  # fmt: skip

    run.out, run.kept = c, (a, b, c)  # a map keeps nothing alive
    return run


# --8<-- [end:prepare]


# --8<-- [start:rival]
def rival(a: Scaled, b: Scaled, c: Any, fast: bool) -> Any:
    """torch._scaled_mm on the same arrays, which calls cublasLt; `fast` is its
    use_fast_accum. What ct.bench takes. C is bf16 or float32.
    """

    def ready(torch, x, y, sx, sy, out):
        x, y = (z.view(torch.float8_e4m3fn) for z in (x, y))
        if a.by == "rows":  # as PyTorch wants them: m x k / 128, k / 128 x ..
            sx, sy = sx[:, : x.shape[0]].t(), sy.t()
        return lambda: torch._scaled_mm(
            x, y.t(), sx, sy, out_dtype=out.dtype, use_fast_accum=fast, out=out
        )

    arrays = a.codes, b.codes, a.scales, b.scales, c
    return torch_rival.rival(ready, *arrays, vendor=True)


# --8<-- [end:rival]
