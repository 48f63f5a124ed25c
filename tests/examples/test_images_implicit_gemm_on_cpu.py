"""The kernels of examples/images/implicit_gemm on a CPU: their own text in random interleavings, by their own launchers, on whole
numbers against the reference. Faults that are planted in index maps, masks, tickets and copies must show."""

import numpy as np
import pytest
from convolutions_on_cpu import Kernels, array, on_cpu
from emulator import fault

from cudatut.book.images.implicit_gemm import launch
from cudatut.book.images.implicit_gemm.launch import Boxes, Tile
from cudatut.book.images.shapes import Shape, reference
from cudatut.book.numbers.bf16 import to_bf16, to_float

PADDED = Shape(2, 24, 6, 8, 20, (3, 3), pad=(1, 1))
POINTS = Shape(2, 40, 4, 5, 70, (1, 1))
UNEVEN = Shape(1, 22, 5, 7, 9, (3, 2), (2, 1), (2, 1), (1, 2))
GROUPS = Shape(2, 32, 5, 4, 24, (3, 3), pad=(1, 0), groups=2)
WINDOWS_OF_49 = Shape(1, 3, 9, 9, 12, (7, 7), (2, 2), (3, 3))
BEYOND = Shape(1, 16, 3, 4, 8, (3, 3), pad=(9, 8), dilation=(7, 8))
SMALL_TILE, SMALL_BOXES = Tile(32, 32, 16, 4, 4, 4, 8), Boxes(1, 64, 3)


def numbers(shape, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    return images.astype("float32"), weights.astype("float32")


def last(x):
    return to_bf16(np.ascontiguousarray(np.moveaxis(x, 1, -1)))


def wrong(monkeypatch, shape, way, *more, change=lambda text: text, seed=1):
    """What is wrong with the results of a launcher, called twice; None if nothing is."""
    with monkeypatch.context() as patched:
        on_cpu(patched, Kernels(change, seed))
        images, weights = numbers(shape)
        expected = reference(shape, images, weights)
        half = way in (launch.bf16, launch.gather)
        if half:
            images, weights, expected = last(images), last(weights), to_float(last(expected))
        y = array(np.full(expected.shape, 0x7FC1 if half else np.nan, "uint16" if half else "f4"))
        run = way(shape, array(images), array(weights), y, *more)
        for _ in range(2):
            y[...] = 0x7FC1 if half else np.nan
            try:
                run()
            except AssertionError as error:
                return str(error)
            found = to_float(np.asarray(y)) if half else np.asarray(y)
            if not np.array_equal(found, expected):
                return "results"
    return None


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [PADDED, POINTS, UNEVEN, GROUPS, WINDOWS_OF_49, BEYOND])
@pytest.mark.parametrize("way", ["maps", "offsets", "taps"])
def test_fp32(monkeypatch, shape, way):
    assert wrong(monkeypatch, shape, getattr(launch, way)) is None


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [PADDED, POINTS, UNEVEN, GROUPS])
@pytest.mark.parametrize("tile", launch.CONFIGS)
def test_tiles_and_parts(monkeypatch, shape, tile):
    assert wrong(monkeypatch, shape, launch.offsets, tile) is None
    for parts in (1, 3):
        assert wrong(monkeypatch, shape, launch.taps, tile, parts) is None


@pytest.mark.sweep
@pytest.mark.parametrize(
    "shape",
    [
        PADDED,
        Shape(2, 20, 5, 4, 70, (1, 3), (2, 1), (0, 1)),
        Shape(1, 34, 9, 12, 24, (5, 3), pad=(3, 1), dilation=(2, 1), groups=2),
        Shape(3, 16, 1, 8, 8, (3, 3), pad=(2, 1)),
    ],
)
@pytest.mark.parametrize("stages", [2, 3])
def test_lines(monkeypatch, shape, stages):
    tile = launch.OF_LINES._replace(stages=stages)
    assert wrong(monkeypatch, shape, launch.lines, tile) is None


@pytest.mark.parametrize("shape", [POINTS, Shape(1, 32, 9, 12, 72, (3, 1), pad=(1, 0), groups=2)])
@pytest.mark.parametrize("patch", [(8, 8), (4, 16)])
def test_boxes(monkeypatch, shape, patch):
    assert wrong(monkeypatch, shape, launch.boxes, launch.WIDE, patch) is None


@pytest.mark.parametrize("patch", launch.STRIPS)
def test_strips(monkeypatch, patch):
    assert wrong(monkeypatch, POINTS, launch.boxes, launch.WIDE, patch) is None


@pytest.mark.sweep
@pytest.mark.parametrize(
    "shape",
    [
        Shape(2, 24, 6, 8, 24, (3, 3), pad=(1, 1)),
        Shape(1, 72, 5, 5, 80, (3, 2), (2, 1), (2, 1), (1, 2)),
        Shape(1, 64, 6, 5, 64, (3, 3), pad=(1, 1), groups=8),
        Shape(2, 32, 5, 5, 64, (3, 3), (2, 2), (1, 1), groups=8),
    ],
)
@pytest.mark.parametrize("boxes", [SMALL_BOXES, Boxes(1, 64, 4, 32), *launch.BOXES[1::3]])
def test_bf16(monkeypatch, shape, boxes):
    if launch.wider(shape, boxes.bk) is None:
        with monkeypatch.context() as patched:
            on_cpu(patched, Kernels())
            with pytest.raises(ValueError, match="groups"):
                launch.bf16(shape, *map(array, [np.zeros(1)] * 3), boxes)
        return
    for parts in (1, 3):
        assert wrong(monkeypatch, shape, launch.bf16, boxes, parts, seed=parts) is None


@pytest.mark.parametrize(
    "shape", [WINDOWS_OF_49, Shape(2, 10, 5, 5, 18, (3, 3), pad=(1, 1), groups=2)]
)
def test_gather(monkeypatch, shape):
    assert wrong(monkeypatch, shape, launch.gather) is None


FAULTS = {
    "a division less": (launch.maps, (), PADDED, "k % window / s.columns", "k % window"),
    "no border above": (launch.maps, (), PADDED, "from_y >= 0 &&", "from_y >= -1 &&"),
    "no mask": (launch.offsets, (SMALL_TILE,), PADDED, "inside ? 4 : 0", "4"),
    "a row too much": (launch.offsets, (SMALL_TILE,), PADDED, "< (unsigned)height &&", "<= (unsigned)height &&"),
    "another bit": (launch.offsets, (SMALL_TILE,), UNEVEN, "<< (r * s.columns + c);", "<< (r * s.rows + c);"),
    "stride forgotten": (launch.taps, (SMALL_TILE, 1), UNEVEN, "* s.stride_y - s.pad_y", "- s.pad_y"),
    "dilation forgotten": (launch.taps, (SMALL_TILE, 1), UNEVEN, "right = column * s.dilation_x", "right = column"),
    "the next row of the window": (launch.taps, (SMALL_TILE, 1), PADDED, "column = 0, ++row;", "column = 0;"),
    "a group's images": (launch.taps, (SMALL_TILE, 1), GROUPS, "s.groups * s.channels *", "s.channels *"),
    "a part begins elsewhere": (launch.taps, (SMALL_TILE, 4), PADDED, "step % steps * BK", "0"),
    "weights of another tap": (launch.taps, (SMALL_TILE, 1), PADDED, "tap = (left + i) % window", "tap = (left + i) % channels % window"),
    "no zero at the left": (launch.lines, (), PADDED, "x > 0 ? at + 3 : OfB::ZERO", "at + 3"),
    "no zero at the right": (launch.lines, (), PADDED, "x + 4 < s.width ?", "x + 4 <= s.width ?"),
    "zeros never written": (launch.lines, (), PADDED, "OfB::ZERO + i % 4] = 0.0f;", "OfB::ZERO + i % 4] = 1.0f;"),
    "the side of another line": (launch.lines, (), PADDED._replace(width=136), "threadIdx.x % 2 ? left + EXTENT : left - 4", "left - 4"),
    "two taps exchanged": (launch.lines, (), PADDED, "from[j / 4][TAP + j % 4]", "from[j / 4][2 - TAP + j % 4]"),
    "weights of the next row": (launch.lines, (), PADDED, "block = 0, a_copy.from += 2ll * deep * pitch;", "block = 0;"),
    "a box behind the image": (launch.boxes, (launch.WIDE, (8, 8)), Shape(2, 24, 6, 12, 20, (3, 1), pad=(1, 0)), "right >= s.out_width", "right > s.out_width"),
    "a slot too early": (launch.boxes, (launch.WIDE, (1, 16)), POINTS, "slot > 0 ? slot - 1 : STAGES - 1", "slot"),
    "no wait for boxes": (launch.boxes, (launch.WIDE, (1, 16)), POINTS, "if (step + 1 < steps) wait(&full[slot], parity);", ""),
}  # fmt: skip
OF_WINDOWS = Shape(1, 72, 5, 5, 72, (3, 2), (2, 1), (2, 1), (1, 2))
FAULTS |= {
    "offsets exchanged": (launch.bf16, (SMALL_BOXES, 1), OF_WINDOWS, '"h"((unsigned short)right),\n      "h"((unsigned short)down)', '"h"((unsigned short)down),\n      "h"((unsigned short)right)'),
    "a window of the next row": (launch.bf16, (SMALL_BOXES, 1), OF_WINDOWS, "x = place % s.out_width * s.stride_x - s.pad_x;", "x = place % s.out_width * s.stride_x;"),
    "channels of a group": (launch.bf16, (SMALL_BOXES, 1), Shape(1, 128, 4, 4, 128, (1, 1), groups=2), "group * s.channels + channel", "channel"),
    "too soon empty": (launch.bf16, (SMALL_BOXES, 1), OF_WINDOWS, "wait_for_products<1>();", ""),
    "a ticket for all": (launch.bf16, (Boxes(2, 64, 3), 3), OF_WINDOWS, "tickets + mine, parts", "tickets, parts"),
    "a tap of the table": (launch.gather, (), WINDOWS_OF_49, "which & 0xffff", "which & 0xfffe"),
}  # fmt: skip


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(monkeypatch, name):
    way, more, shape, before, after = FAULTS[name]

    def change(text):
        return fault(before, after)(text) if before in text else text

    for seed in range(1, 5):
        if wrong(monkeypatch, shape, way, *more, change=change, seed=seed):
            return
    raise AssertionError(f"nobody notices {name}")


def test_no_mask_goes_unnoticed_where_no_window_leaves_the_image(monkeypatch):
    inside = PADDED._replace(pad=(0, 0))
    change = fault("inside ? 4 : 0", "4")
    assert wrong(monkeypatch, inside, launch.offsets, SMALL_TILE, change=change) is None
