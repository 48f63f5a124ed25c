"""y = x @ W.T in bf16 for any number of rows of x, by the kernel of linear.cu.

    linear(x, weights, out)             # out, bf16 or fp32, is overwritten
    linear(x, weights, out, add=True)   # out, fp32, is the residual stream
    linear(x, interleaved, out, swiglu=True)  # out, bf16: silu(gate) * up

bf16 travels as uint16. The same x and W give a row of the result the same bits
in every launch, whatever rows are beside it and whatever tile is chosen: no sum
is split.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct

SOURCE = "llm/linear.cu"
C_TYPES = {"float32": "float", "uint16": "__nv_bfloat16"}


# --8<-- [start:tiles]
class Tile(NamedTuple):
    """Rows and columns of y that a block computes, the depth of a slab, rows
    and columns of a warp, and slabs in shared memory.
    """

    rows: int
    columns: int
    depth: int
    warp_rows: int
    warp_columns: int
    stages: int

    @property
    def threads(self) -> int:
        warps = self.rows // self.warp_rows * self.columns // self.warp_columns
        return 32 * warps

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return self.stages * (self.rows + self.columns) * self.depth * 2


# The largest first: per element that it copies it multiplies the most. With
# each, of how many blocks per SM it takes to keep the SMs busy: large blocks
# that do not end together leave more of them idle.
TILES = {
    Tile(128, 256, 64, 64, 64, 4): 3,
    Tile(128, 128, 64, 64, 64, 3): 3,
    Tile(64, 128, 64, 32, 64, 3): 2,
    Tile(64, 64, 64, 32, 32, 4): 2,
    Tile(32, 64, 64, 16, 32, 4): 1,
    Tile(16, 64, 64, 16, 16, 4): 1,
    Tile(16, 32, 64, 16, 16, 4): 0,
}


def choose(n: int, outputs: int, sms: int, shared: int) -> Tile:
    """The largest tile of which there are enough for `sms` SMs, and that fits
    into `shared` bytes, or the smallest.
    """
    for tile, enough in TILES.items():
        blocks = ct.cdiv(n, tile.rows) * ct.cdiv(outputs, tile.columns)
        if blocks >= enough * sms and tile.shared <= shared:
            break
    return tile


# --8<-- [end:tiles]


def instance(tile: Tile, dtype: str, add: bool, swiglu: bool = False) -> str:
    """The kernel's name with its template arguments."""
    arguments = *tile, C_TYPES[dtype], str(add).lower()
    if swiglu:
        arguments += ("true",)
    return f"linear<{', '.join(map(str, arguments))}>"


@cache
def _kernel(tile: Tile, dtype: str, add: bool, swiglu: bool) -> Any:
    return ct.Kernel(SOURCE, instance(tile, dtype, add, swiglu))


def linear(
    x: Any,
    weights: Any,
    out: Any,
    add: bool = False,
    stream: Any = None,
    tile: Tile | None = None,
    swiglu: bool = False,
) -> None:
    """out = x @ weights.T, or out += x @ weights.T with `add`.

    x: bf16 (uint16), [n, inputs]; weights: bf16, [outputs, inputs]; out: [n,
    outputs], bf16 or float32, float32 with `add`; n may be 0. inputs: a
    multiple of 8. tile: instead of `choose`'s.

    swiglu: out, bf16, [n, outputs / 2], is silu(gate) * up, where the rows of
    weights are in the order of `fused.interleave`; the products stay fp32 until
    then. Raises ValueError.
    """
    n, inputs = _matrix(x, "x", ("uint16",))
    outputs, depth = _matrix(weights, "weights", ("uint16",))
    allowed = tuple(C_TYPES)
    if add or swiglu:
        allowed = ("float32",) if add else ("uint16",)
    if swiglu and (add or outputs % 16):
        raise ValueError(
            f"{outputs} outputs, {add=}: SwiGLU takes interleaved gates and ups, "
            "a multiple of 16, and adds to nothing"
        )
    columns = outputs // 2 if swiglu else outputs
    if _matrix(out, "out", allowed) != (n, columns):
        raise ValueError(
            f"out is {list(out.shape)}, but the result is [{n}, {columns}]"
        )
    if depth != inputs or inputs % 8 or not inputs:
        raise ValueError(
            f"x has {inputs} inputs, weights {depth}: they must be equal, and "
            "a multiple of 8, so that rows begin at multiples of 16 bytes"
        )
    for name, array, bytes_ in (
        ("x", x, 16), ("weights", weights, 16), ("out", out, 8),
    ):  # fmt: skip
        if (array.__cuda_array_interface__["data"][0] or 0) % bytes_:
            raise ValueError(
                f"{name} begins at no multiple of {bytes_} bytes: copy it into "
                "an array of its own"
            )
    if not n or not outputs:
        return
    gpu = ct.device()
    limits = gpu.sm_count, gpu.shared_per_block_optin
    tile = tile or choose(n, outputs, *limits)
    blocks = ct.cdiv(n, tile.rows) * ct.cdiv(outputs, tile.columns)
    _kernel(tile, str(out.dtype), add, swiglu)(
        x, weights, out, n, outputs, inputs,
        grid=blocks, block=tile.threads, shared=tile.shared, stream=stream,
    )  # fmt: skip


def _matrix(array: Any, name: str, dtypes: tuple[str, ...]) -> tuple[int, int]:
    """Its shape. Raises ValueError unless it is a matrix of one of `dtypes`."""
    if len(array.shape) != 2 or np.dtype(array.dtype).name not in dtypes:
        raise ValueError(
            f"{name} is {array.dtype} of shape {list(array.shape)}; needed is "
            f"a matrix of {' or '.join(dtypes)}"
        )
    return tuple(map(int, array.shape))
