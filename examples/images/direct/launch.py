"""Launchers of the kernels of this chapter: convolutions in fp32, NCHW.

    run = direct(shape, images, weights, results)   # the rung that suits
    run = naive(shape, images, weights, results)    # or one rung
    run()                                           # launches; returns at once

images: [image][channel][row][column]; weights: [filter][channel of the
group][row][column]; results as images. `naive` takes any convolution that
`Shape.check` lets through; each of the others says what it does not take.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import cudatut as ct
from cudatut.book.images.shapes import MOST, Shape

FOLDER = "images/direct"
HELD = 16384  # weights that constant memory holds
TILE = 8, 32  # rows and columns of results, of a block of `tiled`
SHARED = 48 << 10  # bytes that every block may have
# Of `direct_constant`, as in Python's `struct`: Shape, first, two addresses.
ARGUMENTS = f"{len(Shape(1, 1, 1, 1, 1, (1, 1)).struct())}siPP"


class Part(NamedTuple):
    """What a thread and a block of `several` and of `window` compute: results
    below each other, filters of a thread; places across; warps."""

    results: int = 7
    filters: int = 8
    wide: int = 8
    warps: int = 4

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of results."""
        return 32 // self.wide * self.results, self.wide

    @property
    def together(self) -> int:
        """Filters of a block."""
        return self.warps * self.filters

    @property
    def weights_pitch(self) -> int:
        """Words from one place of a window to the next, as weights.cuh has it."""
        return self.together + (4 if self.together % 32 == 0 else 0)

    @property
    def text(self) -> str:
        return ",".join(map(str, self))


MANY = Part()
FEW = Part(8, 1, 8, 1)  # groups of few filters, such as depthwise ones
EIGHT = Part(7, 8, 8, 8)  # 64 filters have one copy of the image


@cache
def kernel(source: str, name: str, defines: tuple = ()) -> ct.Kernel:
    return ct.Kernel(f"{FOLDER}/{source}.cu", name, defines=dict(defines))


def _taken(launcher: str, shape: Shape, images, weights, results) -> tuple:
    shape.check(launcher)
    take = ct.operands(launcher)
    channels = shape.channels // shape.groups
    return (
        take.read(
            "images",
            images,
            "float32",
            (shape.images, shape.channels, shape.height, shape.width),
        ),
        take.read(
            "weights",
            weights,
            "float32",
            (shape.filters, channels, *shape.window),
        ),
        take.write(
            "results",
            results,
            "float32",
            (shape.images, shape.filters, *shape.out),
        ),
    )


def _blocks(launcher: str, count: int) -> int:
    if count > MOST:
        raise ValueError(f"{launcher}: {count} blocks, a grid has {MOST}")
    return count


def covered(shape: Shape, tile: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of the image that the windows of a tile cover."""
    sides = zip(tile, shape.stride, shape.window, shape.dilation, strict=True)
    return tuple((n - 1) * s + (w - 1) * d + 1 for n, s, w, d in sides)


def tiles(shape: Shape, tile: tuple[int, int]) -> tuple[int, int]:
    """Tiles in the results of an image, down and across."""
    return tuple(ct.cdiv(n, t) for n, t in zip(shape.out, tile, strict=True))


def _launched(function, given, taken, **launch) -> Callable:
    def run(stream=None) -> None:
        function(*given, **launch, stream=stream)

    run.operands = taken  # an address keeps no array alive
    return run


def naive(shape: Shape, images, weights, results, threads: int = 256):
    """One output per thread."""
    x, w, y = taken = _taken("naive", shape, images, weights, results)
    high, wide = shape.out
    count = shape.images * shape.filters * high * wide
    return _launched(
        kernel("naive", "direct_naive"),
        (shape.struct(), x.address, w.address, y.address),
        taken,
        grid=_blocks("naive", ct.cdiv(count, threads)),
        block=threads,
    )


# --8<-- [start:constant]
def constant(shape: Shape, images, weights, results, threads: int = 256):
    """The weights in constant memory, as many filters as fit at a time.

    That memory is this launcher's own: its launches on two streams must not
    overlap. Raises ValueError where one filter does not fit.
    """
    x, w, y = taken = _taken("constant", shape, images, weights, results)
    depth = shape.product[2]
    if depth > HELD:
        raise ValueError(
            f"constant: a filter has {depth} weights, constant memory holds {HELD}"
        )
    import pycuda.driver as cuda

    function = kernel("constant", "direct_constant")
    module = cuda.module_from_buffer(function.cubin)
    held, _ = module.get_global("held")
    launch = module.get_function(function.symbol).prepare(ARGUMENTS)
    high, wide = shape.out
    grid_x = _blocks("constant", ct.cdiv(shape.images * high * wide, threads))
    some = HELD // depth

    # --8<-- [start:constant-loop]
    def run(stream=None) -> None:
        for first in range(0, shape.filters, some):
            filters = min(some, shape.filters - first)
            cuda.memcpy_dtod_async(
                held,
                int(w.address) + 4 * depth * first,
                4 * depth * filters,
                stream,
            )
            launch.prepared_async_call(
                (grid_x, filters),
                (threads, 1, 1),
                stream,
                shape.struct(),
                first,
                int(x.address),
                int(y.address),
            )

    # --8<-- [end:constant-loop]
    run.operands, run.module = taken, module
    return run


# --8<-- [end:constant]


def refuses_tiles(shape: Shape) -> str | None:
    """Why `tiled` cannot compute it; None if it can."""
    high, wide = covered(shape, TILE)
    if 4 * high * wide > SHARED:
        return f"windows of a tile cover {high} x {wide} words of the image, more than {SHARED} bytes"
    return None


def tiled(shape: Shape, images, weights, results):
    """A tile of the image with a halo in shared memory. Raises ValueError as
    `refuses_tiles` says."""
    x, w, y = taken = _taken("tiled", shape, images, weights, results)
    if why := refuses_tiles(shape):
        raise ValueError(f"tiled: {why}: `naive` takes it")
    high, wide = covered(shape, TILE)
    down, across = tiles(shape, TILE)
    given = high, wide, down, across, x.address, w.address, y.address
    blocks = shape.images * shape.filters * down * across
    return _launched(
        kernel("tiled", "direct_tiled"),
        (shape.struct(), *given),
        taken,
        grid=_blocks("tiled", blocks),
        block=TILE[::-1],
        shared=4 * high * wide,
    )


# --8<-- [start:pitch]
def meeting(pitch: int, wide: int, down: int, stride: int = 1) -> int:
    """How many lanes of a warp meet in one bank at most: lane l reads at
    l % wide * stride, in row l // wide * down."""
    banks = [
        (lane // wide * down * pitch + lane % wide * stride) % 32
        for lane in range(32)
    ]
    return max(map(banks.count, banks))


def pitch_of(least: int, wide: int, down: int, stride: int = 1) -> int:
    """The smallest of 32 pitches from `least` on with the fewest of them."""
    pitches = range(least, least + 32)
    return min(pitches, key=lambda one: meeting(one, wide, down, stride))


# --8<-- [end:pitch]


def step_of(
    shape: Shape, part: Part, room: int = 32 << 10
) -> tuple[int, int, int]:
    """The pitch of a tile, the channels of a step, and bytes of shared memory:
    as many channels as have room, one at least."""
    high, wide = covered(shape, part.tile)
    # Odd strides permute the banks, even ones meet whatever the pitch is; both
    # are counted modulo 32.
    pitch = pitch_of(
        wide,
        part.wide,
        part.results * shape.stride[0] % 32,
        shape.stride[1] % 32,
    )
    window = shape.window[0] * shape.window[1]
    tile, weights = 4 * high * pitch, 4 * window * part.weights_pitch
    channels = max(
        1, min(room // (tile + weights), shape.channels // shape.groups)
    )
    return (
        pitch,
        channels,
        ct.cdiv(channels * tile, 16) * 16 + channels * weights,
    )


def refuses_several(shape: Shape, part: Part = MANY) -> str | None:
    """Why `several` cannot compute it; None if it can."""
    shared = step_of(shape, part)[2]
    if shared > SHARED:
        return f"a channel of a tile and its weights take {shared} bytes of shared memory, more than {SHARED}"
    return None


def _parts(launcher: str, shape: Shape, part: Part) -> tuple[int, int, int]:
    """Tiles down and across, and blocks."""
    down, across = tiles(shape, part.tile)
    parts = ct.cdiv(shape.filters // shape.groups, part.together)
    blocks = shape.images * shape.groups * down * across * parts
    return down, across, _blocks(launcher, blocks)


def several(
    shape: Shape,
    images,
    weights,
    results,
    part: Part = MANY,
    room: int = 32 << 10,
    defines: tuple = (),
):
    """Several results per thread. room: bytes of shared memory that the
    channels of a step fill; defines: macros and their values. Raises ValueError
    as `refuses_several` says."""
    x, w, y = taken = _taken("several", shape, images, weights, results)
    if why := refuses_several(shape, part):
        raise ValueError(f"several: {why}: `naive` takes it")
    high, wide = covered(shape, part.tile)
    pitch, channels, shared = step_of(shape, part, min(room, SHARED))
    down, across, blocks = _parts("several", shape, part)
    tile = high, wide, pitch, down, across, channels
    packed = b"".join(n.to_bytes(4, "little") for n in tile)
    return _launched(
        kernel("several", f"direct_several<{part.text}>", defines),
        (shape.struct(), packed, x.address, w.address, y.address),
        taken,
        grid=blocks,
        block=part.warps * 32,
        shared=shared,
    )


def refuses_window(shape: Shape) -> str | None:
    """Why `window` cannot compute it; None if it can."""
    if shape.dilation != (1, 1):
        return "it is dilated"
    if shape.stride not in ((1, 1), (2, 2)):
        return "its strides are not both 1 or both 2"
    if max(shape.window) > 7:
        return "its window has more than 7 rows or columns"
    return None


def channels_of(
    shape: Shape, part: Part, ahead: bool = False, room: int = 34 << 10
) -> int:
    """Channels of a step of `window`: 8, or as many as have room, one at least;
    no more than a group has, rounded up to a power of two, so that there are
    few instances. ahead: there are two steps in shared memory."""
    _, _, shared = step_of(shape, part, 0)  # of one channel
    most = max(1, min(8, room // (shared << ahead)))
    group = shape.channels // shape.groups
    return max(1, min(most, 1 << (group - 1).bit_length()))


def instance(shape: Shape, part: Part, channels: int, ahead: bool) -> str:
    """The name of the kernel of `window`."""
    numbers = *part, channels, *shape.window, shape.stride[0]
    text = ",".join(map(str, numbers))
    return f"direct_window<{text},{str(ahead).lower()}>"


def window(
    shape: Shape,
    images,
    weights,
    results,
    part: Part | None = None,
    channels: int | None = None,
    ahead: bool = False,
    defines: tuple = (),
):
    """The window known to the compiler. part: None for MANY, or FEW where a
    group has few filters; channels: of a step; ahead: the next step is on its
    way while this one is computed (from sm_80 on); defines: macros and their
    values. Raises ValueError as `refuses_window` says."""
    x, w, y = taken = _taken("window", shape, images, weights, results)
    if why := refuses_window(shape):
        raise ValueError(f"window: {why}: `several` or `naive` takes it")
    part = part or suits(shape)
    channels = channels or channels_of(shape, part, ahead)
    down, across, blocks = _parts("window", shape, part)
    return _launched(
        kernel("window", instance(shape, part, channels, ahead), defines),
        (shape.struct(), down, across, x.address, w.address, y.address),
        taken,
        grid=blocks,
        block=part.warps * 32,
    )


def ahead(shape: Shape, images, weights, results, part: Part | None = None):
    """As `window`; the next step is on its way while this one is computed."""
    shape.check("ahead")
    part = part or suits(shape, ahead=True)
    return window(shape, images, weights, results, part, ahead=True)


def suits(shape: Shape, ahead: bool = False) -> Part:
    """MANY, or FEW for groups of few filters; for `ahead`, EIGHT where there is
    much to copy for each FMA and there are filters for 8 warps."""
    filters = shape.filters // shape.groups
    if filters < 4:
        return FEW
    much = shape.stride != (1, 1) or shape.window == (1, 1)
    return EIGHT if ahead and much and filters >= EIGHT.together else MANY


# --8<-- [start:choose]
def chosen(shape: Shape) -> str:
    """The rung that `direct` takes: the last that can compute it."""
    if not refuses_window(shape):
        return "window"
    if not refuses_several(shape, suits(shape)):
        return "several"
    return "naive"


def direct(shape: Shape, images: Any, weights: Any, results: Any):
    """The convolution, by the rung that suits it."""
    shape.check("direct")
    operands = shape, images, weights, results
    rung = chosen(shape)
    if rung == "window":  # sm_75 has no copies that go their way by themselves
        modern = ct.device().compute_capability >= (8, 0)
        return ahead(*operands) if modern else window(*operands)
    if rung == "several":
        return several(*operands, suits(shape))
    return naive(*operands)


# --8<-- [end:choose]
