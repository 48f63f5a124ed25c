"""Launchers of depthwise convolutions: each channel has a filter of its own.

    run = planes(shape, images, weights, results)     # fp32, NCHW
    run = channels(shape, images, weights, results)   # bf16 as uint16, NHWC
    run()                                             # launches; returns at once

`refuses(shape)` says which convolutions are none. Arrays as in the launchers of
implicit GEMM, with one channel in a group: any window, stride, padding and
dilation.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import cudatut as ct
from cudatut.book.images.shapes import MOST, Shape

FOLDER = "images/depthwise"
WINDOWS, STRIDES = (3, 5, 7), (1, 2)  # that the kernels are compiled for


class Strip(NamedTuple):
    """An instance of `planes.cu`: results of a thread across and down, rows
    that it reads in advance, and blocks that an SM shall have room for."""

    across: int
    down: int = 7
    ahead: int = 1
    blocks: int = 3


class Part(NamedTuple):
    """An instance of `channels.cu`: channels and results of a thread, whether a
    row is read in advance, and blocks that an SM shall have room for."""

    channels: int
    across: int = 7
    ahead: bool = False
    blocks: int = 2


class Blocks(NamedTuple):
    """The struct Blocks of `channels.cu`."""

    lanes: int
    across: int
    down: int
    parts: int
    wide: int
    high: int


FOUR, TWO = Part(4), Part(2, blocks=3)


@cache
def kernel(source: str, name: str) -> ct.Kernel:
    return ct.Kernel(f"{FOLDER}/{source}.cu", name)


def refuses(shape: Shape) -> str | None:
    """Why it is no depthwise convolution; None if it is one."""
    if shape.groups != shape.channels:
        return f"groups have {shape.channels // shape.groups} channels, not one"
    if shape.filters != shape.channels:
        return f"a channel has {shape.filters // shape.groups} filters, not one"
    return None


def general(shape: Shape) -> bool:
    """Whether only `any.cu` takes it: its window, stride or dilation is one
    that the others are not compiled for."""
    (rows, columns), (down, right) = shape.window, shape.stride
    return (
        rows != columns
        or rows not in WINDOWS
        or down != right
        or down not in STRIDES
        or shape.dilation != (1, 1)
    )


def _taken(launcher, shape, images, weights, results, dtype, last):
    shape.check(launcher)
    if why := refuses(shape):
        raise ValueError(f"{launcher}: {why}: {shape}")
    arrays = [
        (shape.images, shape.channels, shape.height, shape.width),
        (shape.filters, 1, *shape.window),
        (shape.images, shape.filters, *shape.out),
    ]
    if last:
        arrays = [(n, h, w, c) for n, c, h, w in arrays]
    take = ct.operands(launcher)
    return (
        take.read("images", images, dtype, arrays[0]),
        take.read("weights", weights, dtype, arrays[1]),
        take.write("results", results, dtype, arrays[2]),
    )


def _blocks(launcher: str, count: int) -> int:
    if count > MOST:
        raise ValueError(f"{launcher}: {count} blocks, a grid has {MOST}")
    return count


def _launched(function, given, taken, **launch) -> Callable:
    def run(stream=None) -> None:
        function(*given, **launch, stream=stream)

    run.operands = taken  # an address keeps no array alive
    return run


def _any(launcher: str, shape: Shape, taken: tuple, kind: str) -> Callable:
    x, w, y = taken
    count = shape.filters * shape.product[1]
    return _launched(
        kernel("any", f"any<{kind}>"),
        (shape.struct(), x.address, w.address, y.address),
        taken,
        grid=_blocks(launcher, ct.cdiv(count, 256)),
        block=256,
    )


# --8<-- [start:strip]
def strip(shape: Shape, aligned: bool) -> Strip:
    """As many results across as are a vector that lies in a row or outside."""
    across = 1
    if aligned and shape.pad[1] == shape.window[1] // 2:
        wide = 4 if shape.stride[0] * shape.window[0] < 10 else 2  # registers
        across = next(n for n in (wide, 2, 1) if shape.width % n == 0)
    if shape.window[0] > 3:
        return Strip(across)
    return Strip(across, ahead=2, blocks=4 if shape.stride[0] == 1 else 3)


# --8<-- [end:strip]


def planes(
    shape: Shape, images, weights, results, one: Strip | None = None
) -> Callable[[], None]:
    """fp32, NCHW. one: instead of what `strip` chooses."""
    x, w, y = taken = _taken(
        "planes", shape, images, weights, results, "float32", False
    )
    aligned = all(int(one.address) % 16 == 0 for one in (x, y))
    best = strip(shape, aligned)
    segments = ct.cdiv(shape.out[1], (one or best).across)
    bands = ct.cdiv(shape.out[0], (one or best).down)
    count = shape.images * shape.groups * segments * bands
    if general(shape) or count > MOST:
        if one:
            raise ValueError(f"planes: only any.cu takes it: {shape}")
        return _any("planes", shape, taken, "float,false")
    if one and one.across > best.across:
        raise ValueError(f"planes: vectors of {one.across} words: {shape}")
    numbers = shape.window[0], shape.stride[0], *(one or best)
    return _launched(
        kernel("planes", f"planes<{','.join(map(str, numbers))}>"),
        (
            shape.struct(),
            segments,
            bands,
            count,
            x.address,
            w.address,
            y.address,
        ),
        taken,
        grid=ct.cdiv(count, 128),
        block=128,
    )


# --8<-- [start:part]
def part_of(shape: Shape, aligned: bool) -> Part | None:
    """None: channels cannot be read together, or an image is too large."""
    if not aligned or shape.channels % 2:
        return None
    (high, wide), (down, right) = (shape.height, shape.width), shape.out
    if max((high + shape.pad[0]) * wide, down * right) * shape.channels > MOST:
        return None
    return TWO if shape.channels % 4 else FOUR


# --8<-- [end:part]


# --8<-- [start:blocks]
def blocks_of(shape: Shape, part: Part, threads: int = 256) -> Blocks:
    """All channels of a strip in one block, if they are at most 128; then the
    strips across and the rows that read the fewest words for a result, as
    the windows of neighbors overlap."""
    lanes = shape.channels // part.channels
    parts = ct.cdiv(shape.channels, 128)
    lanes = ct.cdiv(lanes, parts)
    high, strips = shape.out[0], ct.cdiv(shape.out[1], part.across)
    left = threads // lanes

    def cost(across: int) -> tuple:
        down = min(high, left // across)
        blocks = ct.cdiv(strips, across) * ct.cdiv(high, down)
        words = ((down - 1) * shape.stride[0] + shape.window[0]) * (
            (across * part.across - 1) * shape.stride[1] + shape.window[1]
        )
        return blocks * words, across

    across = min(range(1, min(strips, left) + 1), key=cost)
    down = min(high, left // across)
    return Blocks(
        lanes, across, down, parts, ct.cdiv(strips, across), ct.cdiv(high, down)
    )


# --8<-- [end:blocks]


def channels(
    shape: Shape, images, weights, results, part: Part | None = None
) -> Callable[[], None]:
    """bf16, NHWC. part: instead of what `part_of` chooses."""
    x, w, y = taken = _taken(
        "channels", shape, images, weights, results, "uint16", True
    )
    aligned = all(int(one.address) % 16 == 0 for one in (x, y))
    best = part_of(shape, aligned)
    if general(shape) or best is None:
        if part:
            raise ValueError(f"channels: only any.cu takes it: {shape}")
        return _any("channels", shape, taken, "__nv_bfloat16,true")
    if part and shape.channels % part.channels:
        raise ValueError(f"channels: {part.channels} at once: {shape}")
    part = part or best
    b = blocks_of(shape, part)
    numbers = [*part[:2], str(part.ahead).lower(), part.blocks]
    numbers = ",".join(map(str, [shape.window[0], shape.stride[0], *numbers]))
    count = shape.images * b.parts * b.wide * b.high
    packed = b"".join(n.to_bytes(4, "little") for n in b)
    pitch = (b.lanes * part.channels + 7) // 4 * 4
    return _launched(
        kernel("channels", f"channels<{numbers}>"),
        (shape.struct(), packed, x.address, w.address, y.address),
        taken,
        grid=_blocks("channels", count),
        block=b.lanes * b.across * b.down,
        shared=4 * pitch * shape.window[0] * shape.window[1],
    )


def depthwise(
    shape: Shape, images: Any, weights: Any, results: Any, kind: str = "fp32"
) -> Callable[[], None]:
    """By kind, "fp32" or "bf16"."""
    given = shape, images, weights, results
    return planes(*given) if kind == "fp32" else channels(*given)
