"""Products with W.T in bf16 on Hopper by linear_hopper.cu: TMA, wgmma, and what
the engine does to the results in the same launch.

    tile = choose("o", n)
    squares = added(attended, layer.o, x, tile, norm)  # and half of the norm
    gated(h, layer.gate_up, act, choose("gate_up", n), norm, squares)
    stored(h, head, logits, choose("logits", m))

bf16 travels as uint16. No sum is split: a row's bits depend on no other row and
on no tile. Only the squares of `added` are added up tile by tile.

x: bf16, [n, inputs], weights: bf16, [outputs, inputs]; inputs is a multiple of
8. Rows of both may lie apart, at multiples of 16 bytes; all other arrays are
contiguous. n may be 0. All raise TypeError, ValueError.
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple

import cudatut as ct
from cudatut.gpu.operands import Operand, Operands

from cudatut.book.llm.kernels.rows import (
    BLOCKS,
    MOST,
    NULL,
    begin_at,
    workspace,
)

SOURCE = "llm/kernels/linear_hopper.cu"


# --8<-- [start:tiles]
class Tile(NamedTuple):
    """Consumers, each with 64 rows of the factor A; columns of the factor B;
    stages in shared memory; whether W is A; and whether the next kernel may
    begin at once, and not when the last product is done.
    """

    consumers: int
    width: int
    stages: int
    turned: bool = False
    early: bool = False

    @property
    def rows(self) -> int:
        """Of the result."""
        return self.width if self.turned else 64 * self.consumers

    @property
    def columns(self) -> int:
        """Of the result."""
        return 64 * self.consumers if self.turned else self.width

    @property
    def squares(self) -> int:
        """Columns whose squares `added` adds up."""
        return self.width

    @property
    def threads(self) -> int:
        return 128 * self.consumers + (128 if self.width >= 128 else 32)

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        stage = (64 * self.consumers + self.width) * 128 + 16
        sums = self.consumers * self.width * 68 if self.turned else 1
        return self.stages * stage + 4 * sums + 4


# --8<-- [end:tiles]


# --8<-- [start:choose]
# What is faster than the kernels of `linear`, measured on an H100 with a model
# of 576 dimensions: for each product, rows, and the tile for them. Its q, k and
# v were faster by linear_qkv.cu for any number of rows.
FEW, MANY = range(100, 385), range(2048, 1 << 31)
FASTER = {
    "o": {FEW: Tile(1, 16, 9, turned=True, early=True)},
    "gate_up": {FEW: Tile(1, 96, 9, early=True), MANY: Tile(2, 256, 4)},
    "down": {FEW: Tile(1, 32, 16, early=True), MANY: Tile(2, 192, 4)},
    "logits": {FEW: Tile(2, 128, 6)},
}


def choose(product: str, n: int) -> Tile | None:
    """The tile for n rows, or None where the other kernels are faster."""
    for rows, tile in FASTER[product].items():
        if n in rows:
            return tile
    return None


# --8<-- [end:choose]


# --8<-- [start:norm]
class Norm(NamedTuple):
    """An RMSNorm between two products. `added` computes the first half: h,
    bf16, [rows, columns], and sums of squares, fp32, with room for [rows,
    columns / 16]; the other product the second.
    """

    weight: Any
    h: Any
    squares: Any
    eps: float


# --8<-- [end:norm]


class _Scale(ctypes.Structure):
    _fields_ = [
        ("squares", ctypes.c_uint64), ("parts", ctypes.c_int),
        ("share", ctypes.c_float), ("eps", ctypes.c_float),
    ]  # fmt: skip


class _Store(ctypes.Structure):
    _fields_ = [("y", ctypes.c_uint64)]


class _Add(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64) for name in ("y", "weight", "h", "squares")
    ]


class _Gates(ctypes.Structure):
    _fields_ = [("out", ctypes.c_uint64), ("scale", _Scale)]


def available() -> bool:
    """Whether this GPU runs linear_hopper.cu: compute capability 9.0."""
    return ct.device().compute_capability == (9, 0)


def instance(tile: Tile, end: str) -> str:
    """The kernel's name with its template arguments."""
    numbers = tile.consumers, tile.width, tile.stages
    turned = str(tile.turned).lower()
    return f"linear_hopper<{', '.join(map(str, numbers))}, {turned}, {end}>"


@cache
def _kernel(tile: Tile, end: str) -> Any:
    return ct.Kernel(SOURCE, instance(tile, end), arch="sm_90a")


def instances() -> list[tuple]:
    """The kernels that FASTER names, for `ct.compile_ahead`."""
    ends = {"o": "Add", "down": "Add", "gate_up": "Gates", "logits": "Store"}
    found = {
        instance(tile, ends[product])
        for product, tiles in FASTER.items()
        for tile in tiles.values()
    }
    return [(SOURCE, name, None, (), "sm_90a") for name in sorted(found)]


def stored(
    x: Any, weights: Any, y: Any, tile: Tile, stream: Any = None
) -> None:
    """y, float32, [n, outputs], = x @ weights.T."""
    take = ct.operands("stored")
    factors = of_x, of_w = _factors(take, x, weights)
    to = take.write("y", y, "float32", (of_x.count, of_w.count))
    begin_at(take, 8, to)
    _product(take, factors, "Store", _Store(to.address), tile, stream)


def added(
    x: Any,
    weights: Any,
    y: Any,
    tile: Tile,
    norm: Norm | None = None,
    stream: Any = None,
) -> int:
    """y, float32, [n, outputs], += x @ weights.T, and the first half of `norm`;
    outputs is even. Columns of each of its sums of squares, for the product
    behind the norm.
    """
    take = ct.operands("added")
    factors = of_x, of_w = _factors(take, x, weights)
    shape = n, outputs = of_x.count, of_w.count
    if outputs % 2:
        raise ValueError(
            f"added: {outputs} outputs: pairs are added, so there must be an even number of them"
        )
    to = take.write("y", y, "float32", shape)
    begin_at(take, 8, to)
    end = _Add(to.address)
    if norm:
        parts = ct.cdiv(outputs, tile.squares)
        of_norm = take.read("norm.weight", norm.weight, "float32", (outputs,))
        h = take.write("norm.h", norm.h, "uint16", shape)
        begin_at(take, 8, of_norm)
        begin_at(take, 4, h)
        squares = workspace(
            take, "norm.squares", norm.squares, "float32", n * parts
        )
        end = _Add(to.address, of_norm.address, h.address, squares.address)
    _product(take, factors, "Add", end, tile, stream)
    return tile.squares


def gated(
    x: Any,
    weights: Any,
    out: Any,
    tile: Tile,
    norm: Norm | None = None,
    squares: int = 0,
    stream: Any = None,
) -> None:
    """out, bf16, [n, outputs / 2], = silu(gate) * up, the rows of weights as
    `fused.interleave` orders them. norm: of which x is the first half; squares:
    what `added` gave.
    """
    take = ct.operands("gated")
    factors = of_x, of_w = _factors(take, x, weights)
    n, outputs = of_x.count, of_w.count
    if outputs % 16:
        raise ValueError(
            f"gated: {outputs} rows of weights: of gates and ups there have to be as many, a multiple of 8"
        )
    to = take.write("out", out, "uint16", (n, outputs // 2))
    begin_at(take, 4, to)
    scale = _scale(take, norm, squares, of_x)
    end = _Gates(to.address, scale)
    _product(take, factors, "Gates", end, tile, stream)


def _scale(
    take: Operands, norm: Norm | None, squares: int, x: Operand
) -> _Scale:
    if not norm:
        return _Scale(NULL, 0, 1.0, 0.0)
    if squares < 1:
        raise ValueError(f"gated: {squares=}: what `added` gave, 1 at least")
    parts = ct.cdiv(x.width, squares)
    need, where = x.count * parts, norm.squares
    sums = workspace(take, "norm.squares", where, "float32", need, False)
    return _Scale(sums.address, parts, 1 / x.width, norm.eps)


def _factors(take: Operands, x: Any, weights: Any) -> tuple[Operand, Operand]:
    how = {"rows": 1, "most": MOST}
    of_x = take.read("x", x, "uint16", (None, None), **how)
    inputs = of_x.width
    of_w = take.read("weights", weights, "uint16", (None, inputs), **how)
    # The TMA goes from one row to the next by a distance, not back.
    if inputs % 8 or not inputs or min(of_x.stride, of_w.stride) < inputs:
        raise ValueError(
            f"{take.launcher}: {inputs} inputs in rows {of_x.stride} and {of_w.stride} elements apart: inputs must be a multiple of 8, and rows must not lie in one another"
        )
    begin_at(take, 16, of_x, of_w)
    return of_x, of_w


def _product(take, factors, end, arguments, tile, stream) -> None:
    x, weights = factors
    (n, inputs), outputs = x.shape, weights.count
    if not n or not outputs:
        return
    rows, columns = ct.cdiv(n, tile.rows), ct.cdiv(outputs, tile.columns)
    gpu = ct.device()
    on_sm = max(1, min(
        gpu.shared_per_block_optin // tile.shared, 2048 // tile.threads
    )) if tile.width < 128 else 1  # fmt: skip
    blocks = min(rows * columns, gpu.sm_count * on_sm)
    if rows * columns + blocks > BLOCKS:
        raise ValueError(
            f"{take.launcher}: {n} x {outputs} results: too many tiles to be numbered in an int; launch several times, on parts"
        )
    boxes = (tile.rows, 64), (tile.columns, 64)
    of_x, of_w = (
        ct.tensor_map(a.owner, box, swizzle=128)
        for a, box in zip(factors, boxes)
    )
    _kernel(tile, end)(
        of_x, of_w, arguments, n, outputs, inputs, min(rows, 8),
        int(tile.early),
        grid=blocks, block=tile.threads, shared=tile.shared, stream=stream,
    )  # fmt: skip
