"""Products with W.T in bf16 on Hopper by linear_hopper.cu: TMA, wgmma, and what
the engine does to the results in the same launch.

    added(attended, layer.o, x, norm)      # x += ..., and half of the next norm
    gated(h, layer.gate_up, act, norm)     # silu(gate) * up
    turned(h, layer.qkv, ..., norm=norm)   # RoPE, keys and values stored
    stored(h, head, logits)

bf16 travels as uint16. No sum is split: a row's bits depend on no other row and
on no tile. Only the squares of `added` are added up tile by tile.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import cudatut as ct
from turning import turning

SOURCE = "llm/linear_hopper.cu"
EARLY = 256  # rows up to which the next kernel may begin at once


# --8<-- [start:tiles]
class Tile(NamedTuple):
    """Consumers, each with 64 rows of the factor A; columns of the factor B;
    stages in shared memory; and whether W is A.
    """

    consumers: int
    width: int
    stages: int
    turned: bool = False

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


def choose(n: int, outputs: int, inputs: int) -> Tile:
    """The tile for n rows."""
    stages = 9 if inputs <= 576 else 16
    if n <= 384:
        if outputs > 8192:
            return Tile(2, 192, 4)
        if outputs > 1024:
            return Tile(2, 64, 8, True)
        return Tile(1, 32, stages, True)
    if n <= 1024 and outputs <= 1024:
        return Tile(2, 64, 8)
    return Tile(2, 192, 4)


# --8<-- [end:tiles]


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


class _Later(ctypes.Structure):
    _fields_ = [("at", ctypes.c_uint64 * 2), ("bytes", ctypes.c_int * 2)]


class _Store(ctypes.Structure):
    _fields_ = [("y", ctypes.c_uint64)]


class _Add(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64) for name in ("y", "weight", "h", "squares")
    ]


class _Gates(ctypes.Structure):
    _fields_ = [("out", ctypes.c_uint64), ("scale", _Scale)]


class _Turn(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in (
            "positions", "slots", "table", "q",
        )),
        ("q_stride", ctypes.c_int64),
        *((name, ctypes.c_uint64) for name in ("keys", "values", "scales")),
        *((name, ctypes.c_int) for name in ("heads", "kv_heads", "head_dim")),
        ("scale", _Scale),
    ]  # fmt: skip


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


def stored(x: Any, weights: Any, y: Any, stream=None, tile=None, early=None):
    """y, float32, = x @ weights.T."""
    _product(x, weights, "Store", _Store(_at(y)), stream, tile, early)


def added(
    x: Any,
    weights: Any,
    y: Any,
    norm: Norm | None = None,
    stream: Any = None,
    tile: Tile | None = None,
    early: bool | None = None,
    later: Sequence[Any] = (),
) -> int:
    """y, float32, += x @ weights.T, and the first half of `norm`. Columns of
    each of its sums of squares, for the product behind the norm. later: up to
    two matrices of later launches, which come into the L2 cache.
    """
    tile = tile or choose(x.shape[0], *weights.shape)
    end = _Add(_at(y))
    if norm:
        end = _Add(_at(y), _at(norm.weight), _at(norm.h), _at(norm.squares))
    _product(x, weights, "Add", end, stream, tile, early, later)
    return tile.squares


def gated(
    x: Any,
    weights: Any,
    out: Any,
    norm: Norm | None = None,
    squares: int = 0,
    stream: Any = None,
    tile: Tile | None = None,
    early: bool | None = None,
    later: Sequence[Any] = (),
) -> None:
    """out, bf16, = silu(gate) * up, the rows of weights as `fused.interleave`
    orders them. norm: of which x is the first half; squares: what `added` gave.
    later: as for `added`.
    """
    end = _Gates(_at(out), _scale(norm, squares, x))
    _product(x, weights, "Gates", end, stream, tile, early, later)


def turned(
    x: Any,
    weights: Any,
    positions: Any,
    slots: Any,
    table: Any,
    keys: Any,
    values: Any,
    q: Any,
    norm: Norm | None = None,
    squares: int = 0,
    stream: Any = None,
    tile: Tile | None = None,
    scales: Any = None,
    early: bool | None = None,
) -> None:
    """As `linear_qkv`. norm, squares: as for `gated`."""
    to = turning(
        x.shape[0], weights.shape[0], positions, slots, table, keys, values, q,
        scales,
    )  # fmt: skip
    *first, stride, of_keys, of_values = to.arrays
    places = map(int, first)  # positions, slots, table, q
    end = _Turn(
        *places, int(stride), int(of_keys), int(of_values),
        int(to.cache.scales), to.heads, to.kv_heads, to.head_dim,
        _scale(norm, squares, x),
    )  # fmt: skip
    cache = to.cache.arguments or ("__nv_bfloat16",)
    _product(x, weights, f"Turn<{cache[0]}>", end, stream, tile, early)


def _scale(norm: Norm | None, squares: int, x: Any) -> _Scale:
    columns = x.shape[1]
    if not norm:
        return _Scale(0, 0, 1.0, 0.0)
    parts = ct.cdiv(columns, squares)
    return _Scale(_at(norm.squares), parts, 1 / columns, norm.eps)


def _product(x, weights, end, arguments, stream, tile, early, later=()) -> None:
    (n, inputs), (outputs, depth) = x.shape, weights.shape
    if depth != inputs or inputs % 8:
        raise ValueError(
            f"x has {inputs} inputs, weights {depth}: they must be equal, and "
            "a multiple of 8"
        )
    if not n or not outputs:
        return
    tile = tile or choose(n, outputs, inputs)
    boxes = (tile.rows, 64), (tile.columns, 64)
    of_x, of_w = (
        ct.tensor_map(array, box, swizzle=128)
        for array, box in zip((x, weights), boxes)
    )
    rows, columns = ct.cdiv(n, tile.rows), ct.cdiv(outputs, tile.columns)
    gpu = ct.device()
    on_sm = max(1, min(
        gpu.shared_per_block_optin // tile.shared, 2048 // tile.threads
    )) if tile.width < 128 else 1  # fmt: skip
    if early is None:
        early = n <= EARLY
    ahead = _Later()
    for i, array in enumerate(later):
        ahead.at[i], ahead.bytes[i] = _at(array), array.nbytes
    _kernel(tile, end)(
        of_x, of_w, arguments, ahead, n, outputs, inputs, min(rows, 8), int(early),
        grid=min(rows * columns, gpu.sm_count * on_sm), block=tile.threads,
        shared=tile.shared, stream=stream,
    )  # fmt: skip


def _at(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0] or 0)
