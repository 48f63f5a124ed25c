"""The sizes of a step, which its launches depend on, and its arrays on their
way to the GPU.
"""

from typing import NamedTuple

import numpy as np

from cudatut.book.llm.kernels.attention import decode
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.engine.batch import Batch
from cudatut.book.llm.kernels.gemv import ROWS


# --8<-- [start:arrange]
class Shape(NamedTuple):
    """Sizes of a step: all that its launches depend on.

    decode: requests with one new token, whose rows come first. tokens: rows of
    the others, requests: how many these are, items: their tiles in flash.cu.
    logits: rows. parts: of the longest sequence, in decode.cu. width: of a
    table of blocks.
    """

    decode: int
    tokens: int
    requests: int
    items: int
    logits: int
    parts: int
    width: int


def power_of_two(n: int) -> int:
    """The least one that is not below n; 0 for 0."""
    return 1 << (n - 1).bit_length() if n else 0


def rounded(n: int) -> int:
    """The number of rows that stands for n: a power of two, and above 64 a
    multiple of 64, of which at most a third is filled up.
    """
    return power_of_two(n) if n <= 64 else -(-n // 64) * 64


def coarse(n: int, first: int) -> int:
    """The first of `first`, 4 times that, 16 times that, ... that is not below
    n; 0 for 0.
    """
    size = first if n else 0
    while size < n:
        size *= 4
    return size


def coarse_rows(n: int) -> int:
    """ROWS, at the price of one, or a power of two from 64 on; 0 for 0."""
    return max(64, power_of_two(n)) if n > ROWS else min(n, 1) * ROWS


def rounded_up(shape: Shape, prompts: bool, tile: flash.Tile) -> Shape:
    """The shape whose graph serves this one. prompts: of a step with prompts.
    Hardly two of those have the same sizes, so they are rounded more: rows,
    which cost time, less than what costs next to none.
    """
    one, others, requests, items, logits, parts, width = shape
    up = power_of_two
    if not prompts:
        return Shape(
            rounded(one), up(others), up(requests), up(items),
            rounded(logits), up(parts), up(width),
        )  # fmt: skip
    rows = coarse_rows if one + others > ROWS else up  # few rows stay few
    others = rows(others)
    if requests:  # as many tiles as there may be: not where they begin counts
        items = (others - requests) // tile.bm + 2 * requests
    return Shape(
        rows(one), others, coarse(requests, 16), coarse(items, 2),
        rows(logits), up(parts), coarse(width, 64),
    )  # fmt: skip


def padded(
    array: np.ndarray, shape: tuple[int, ...], value: int, dtype: str = "int32"
) -> np.ndarray:
    """In an array of this shape, all else in it is `value`."""
    if array.shape == shape:
        return np.ascontiguousarray(array, dtype)
    found = np.empty(shape, dtype)
    found.fill(value)
    found[tuple(map(slice, array.shape))] = array
    return found


def arrange(
    batch: Batch, tile: flash.Tile, all_by_flash: bool, for_graphs: bool
) -> tuple[Shape, dict[str, np.ndarray]]:
    """A step's sizes and arrays. for_graphs: sizes are rounded up, so that few
    graphs serve all steps; rows that are added store nothing, and nobody asks
    for their logits.
    """
    n, s, m = len(batch.tokens), len(batch.lengths), len(batch.wanted)
    more_than_one = batch.starts[1:] - batch.starts[:-1] != 1
    one = int(more_than_one.argmax()) if more_than_one.any() else s
    prompts = one < s
    one = 0 if all_by_flash else one
    longest = int(batch.lengths[:one].max(initial=0))
    work = np.zeros((0, 2), "int32")
    if one < s:
        work = flash.order(batch.starts[one:], batch.lengths[one:], tile)
    shape = Shape(
        one, n - one, s - one, len(work), m,
        decode.parts(longest) if one else 0, batch.tables.shape[1],
    )  # fmt: skip
    if for_graphs:
        shape = rounded_up(shape, prompts, tile)
    more = shape.decode - one  # rows between the two parts
    a = {}
    for name, value in (("tokens", 0), ("positions", 0), ("slots", -1)):
        array = getattr(batch, name)
        found = padded(array[:one], (shape.decode + shape.tokens,), value)
        found[one + more : n + more] = array[one:]
        a[name] = found
    for name, rows, own in (
        ("", shape.decode, slice(one)),
        ("flash ", shape.requests, slice(one, s)),
    ):
        lengths, tables = batch.lengths[own], batch.tables[own]
        a[f"{name}lengths"] = padded(lengths, (rows,), 0)
        a[f"{name}tables"] = padded(tables, (rows, shape.width), -1)
    starts = batch.starts[one:] + more
    a["flash starts"] = padded(starts, (shape.requests + 1,), starts[-1])
    a["work"] = padded(work, (shape.items, 2), -1)
    wanted = batch.wanted + more * (batch.wanted >= one)
    a["wanted"] = padded(wanted, (shape.logits,), 0)
    return shape, a


# --8<-- [end:arrange]
