"""examples/images/implicit_gemm: every kernel, tile, box and number of parts against the reference, exactly, on whole numbers; what
is refused; planted faults in index maps, which must show."""

import itertools

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.implicit_gemm import im2col, launch
from cudatut.book.images.implicit_gemm.launch import Boxes, Tile
from cudatut.book.images.shapes import RAGGED, Shape, reference
from cudatut.book.numbers.bf16 import to_bf16, to_float

SHAPES = [
    *RAGGED,
    Shape(2, 24, 8, 12, 72, (3, 3), pad=(1, 1)),
    Shape(3, 40, 5, 4, 20, (3, 3), pad=(1, 0), dilation=(1, 2)),
    Shape(3, 40, 5, 8, 20, (5, 3), (2, 1), (3, 1)),
    Shape(1, 34, 9, 12, 24, (5, 3), pad=(3, 1), dilation=(2, 1), groups=2),
    Shape(1, 32, 9, 12, 72, (3, 1), pad=(1, 0), groups=2),
    Shape(2, 96, 8, 8, 48, (3, 3), pad=(1, 1), groups=2),
    Shape(1, 64, 9, 9, 64, (3, 3), pad=(1, 1), groups=8),
    Shape(2, 64, 9, 10, 64, (3, 3), (2, 2), (1, 1), groups=16),
    Shape(1, 3, 30, 31, 64, (7, 7), (2, 2), (3, 3)),
    Shape(1, 512, 7, 7, 64, (3, 3), pad=(1, 1)),
    Shape(3, 40, 6, 6, 144, (1, 1)),
]
HOPPER = pytest.mark.skipif(
    "ct.device().compute_capability < (9, 0)", reason="the TMA came with Hopper"
)


def whole(shape, seed=0):
    rng = ct.rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    return images.astype("float32"), weights.astype("float32")


def last(x):
    return to_bf16(np.ascontiguousarray(np.moveaxis(x, 1, -1)))


def given(shape, half=False):
    """The arguments of a launcher, and the results."""
    images, weights = whole(shape)
    expected = reference(shape, images, weights)
    if half:
        images, weights, expected = last(images), last(weights), to_float(last(expected))
    y = ct.empty(expected.shape, "uint16" if half else "float32")
    return (shape, ct.to_device(images), ct.to_device(weights), y), expected


def wrong(run, y, expected):
    """How many results are not what is expected, after each of two launches."""
    found = 0
    for _ in range(2):
        ct.poison(y)
        run()
        got = y.get()
        got = to_float(got) if got.dtype == np.uint16 else got
        found += int((~(got == expected)).sum())
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fp32(shape):
    arguments, expected = given(shape)
    for way in (launch.maps, launch.offsets, launch.taps, launch.fp32):
        assert wrong(way(*arguments), arguments[-1], expected) == 0, way.__name__


@pytest.mark.parametrize("tile", launch.CONFIGS, ids=str)
def test_tiles_and_parts(tile):
    for shape in SHAPES[2:12:3] + SHAPES[13:]:
        arguments, expected = given(shape)
        assert wrong(launch.offsets(*arguments, tile), arguments[-1], expected) == 0
        for parts in (1, 2, 5, 16):
            run = launch.taps(*arguments, tile, parts)
            assert wrong(run, arguments[-1], expected) == 0, (shape, parts)


@pytest.mark.parametrize("shape", [one for one in SHAPES if not launch.no_lines(one, 0)], ids=str)
def test_lines(shape):
    arguments, expected = given(shape)
    for changes in ({}, {"stages": 3}, {"bk": 8, "stages": 4}, {"bn": 64, "blocks": 5}):
        run = launch.lines(*arguments, launch.OF_LINES._replace(**changes))
        assert wrong(run, arguments[-1], expected) == 0, changes


@HOPPER
@pytest.mark.parametrize("shape", [one for one in SHAPES if not launch.no_boxes(one, 0)], ids=str)
def test_boxes(shape):
    arguments, expected = given(shape)
    patches = launch.STRIPS if launch.pointwise(shape) else launch.PATCHES
    tiles = launch.WIDE, Tile(64, 64, 16, 8, 8, 3, 6)
    for tile, patch in itertools.product(tiles, patches):
        if shape.groups > 1 and shape.channels // shape.groups % tile.bk:
            continue
        run = launch.boxes(*arguments, tile, patch)
        assert wrong(run, arguments[-1], expected) == 0, (tile, patch)


@HOPPER
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bf16(shape):
    arguments, expected = given(shape, True)
    assert wrong(launch.bf16(*arguments), arguments[-1], expected) == 0
    assert wrong(launch.gather(*arguments), arguments[-1], expected) == 0
    if im2col.refused(shape):
        return
    for boxes in launch.BOXES:
        if launch.wider(shape, boxes.bk) is None:
            continue
        for parts in (1, 3):
            run = launch.bf16(*arguments, boxes, parts)
            assert wrong(run, arguments[-1], expected) == 0, (boxes, parts)


def test_bf16_rounds_the_exact_sum():
    shape = Shape(1, 64, 6, 6, 16, (3, 3), pad=(1, 1))
    rng = ct.rng(5)
    x = to_bf16(rng.standard_normal((1, 6, 6, 64), "float32"))
    w = to_bf16(rng.standard_normal((16, 3, 3, 64), "float32"))
    y = ct.empty((1, 6, 6, 16), "uint16")
    launch.gather(shape, ct.to_device(x), ct.to_device(w), y)()
    expected = reference(shape, np.moveaxis(to_float(x), -1, 1), np.moveaxis(to_float(w), -1, 1))
    close = np.abs(to_float(y.get()) - np.moveaxis(expected, 1, -1))
    assert (close <= 2.0**-8 * np.abs(np.moveaxis(expected, 1, -1)) + 1e-3).all()


def test_what_is_refused_writes_nothing():
    arguments, _ = given(Shape(1, 16, 5, 5, 4, (3, 3), pad=(1, 1)))
    shape, x, w, y = arguments
    ct.poison(y)
    before = y.get().view("uint32")
    with pytest.raises(ValueError, match="shares"):
        launch.taps(shape, x, w, x)
    with pytest.raises(TypeError):
        launch.offsets(shape, x.get(), w, y)
    with pytest.raises(ValueError):
        launch.fp32(shape._replace(filters=5), x, w, y)
    with pytest.raises(ValueError, match="16 bytes"):
        launch.boxes(*arguments)
    assert np.array_equal(before, y.get().view("uint32"))


@HOPPER
def test_boxes_that_a_convolution_cannot_have_are_refused():
    arguments, _ = given(Shape(1, 3, 5, 5, 8, (3, 3), pad=(1, 1)), True)
    with pytest.raises(ValueError, match="multiples of 8"):
        launch.bf16(*arguments, Boxes(2, 64, 8))


FAULTS = {
    "offsets.cu": [
        ("inside ? 4 : 0", "4"),
        ("< (unsigned)height &&", "<= (unsigned)height &&"),
        ("place % s.out_width * s.stride_x", "place % s.out_width"),
        ("<< (r * s.columns + c);", "<< (r * s.rows + c);"),
    ],
    "lines.cu": [
        ("x > 0 ? at + 3 : OfB::ZERO", "at + 3"),
        ("from[j / 4][TAP + j % 4]", "from[j / 4][2 - TAP + j % 4]"),
        ("block = 0, a_copy.from += 2ll * deep * pitch;", "block = 0;"),
        ("threadIdx.x % 2 ? left + EXTENT : left - 4", "left - 4"),
    ],
    "taps.cu": [
        ("column = 0, ++row;", "column = 0;"),
        ("right = column * s.dilation_x", "right = column"),
        ("s.groups * s.channels *", "s.channels *"),
        ("step % steps * BK", "0"),
    ],
}
CAUGHT_BY = [
    Shape(3, 16, 13, 17, 24, (3, 2), (2, 2), (1, 2), (1, 3)),
    Shape(2, 96, 7, 9, 48, (3, 3), pad=(1, 1), groups=2),
]
ON_LINES = [
    Shape(2, 24, 6, 8, 20, (3, 3), pad=(1, 1)),
    Shape(2, 24, 6, 136, 20, (3, 3), pad=(1, 1)),
]


@pytest.mark.parametrize("source", FAULTS)
def test_faults_in_index_maps_are_noticed(source, monkeypatch):
    text = (ct.paths.examples_dir() / launch.FOLDER / source).read_text()
    way = getattr(launch, source.removesuffix(".cu"))
    more = (4,) if source == "taps.cu" else ()
    tile = launch.OF_LINES if source == "lines.cu" else launch.WIDE
    caught_by = ON_LINES if source == "lines.cu" else CAUGHT_BY
    # Images in the middle of an array: what is read beside them is there.
    for before, after in FAULTS[source]:
        assert text.count(before) == 1, before
        changed = text.replace(before, after)

        def kernel(of, name, arch=None, changed=changed):
            return ct.Kernel(changed if of == source else f"{launch.FOLDER}/{of}", name, arch=arch)

        found = 0
        with monkeypatch.context() as patched:
            patched.setattr(launch, "kernel", kernel)
            for shape in caught_by:
                images, weights = whole(shape._replace(images=shape.images + 4))
                expected = reference(shape, images[2:-2], weights)
                y = ct.empty(expected.shape, "float32")
                x = ct.to_device(images)[2:-2]
                run = way(shape, x, ct.to_device(weights), y, tile, *more)
                found += wrong(run, y, expected)
        assert found, f"nobody notices {after!r} for {before!r}"
