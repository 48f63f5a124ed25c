"""examples/images/cutlass_conv on a GPU of Hopper, where the headers of CUTLASS are installed: right on ragged shapes, and refused where it must be."""

import pytest

import cudatut as ct
from cudatut.book.images.cutlass_conv import conv
from cudatut.book.images.implicit_gemm import im2col
from cudatut.book.images.implicit_gemm.shapes import RAGGED, Shape, reference
from cudatut.book.numbers.bf16 import to_bf16, to_float

TILES = conv.Tile(128, 128, 64, 1, 1), conv.Tile(64, 256, 64, 2, 1)  # those of the chapter


@pytest.fixture(scope="module", autouse=True)
def libraries():
    """Compiled once, and kept."""
    if not ct.supports(ct.device().compute_capability, "sm_90a"):
        pytest.skip("not a GPU of Hopper")
    try:
        conv.libraries(TILES)
    except ct.ToolMissing as error:
        pytest.skip(str(error))


def taken(shape):
    """CUTLASS's convolution for Hopper reads images in the same mode as ours does, and has no groups."""
    return shape.groups == 1 and not im2col.refused(shape)


def arrays(shape, seed=0):
    n, c, h, w = shape[:4]
    given = (
        to_bf16(ct.rng(seed).standard_normal((n, h, w, c), dtype="float32")),
        to_bf16(ct.rng(seed + 1).standard_normal((shape.filters, *shape.window, c), dtype="float32")),
    )  # fmt: skip
    return given, ct.empty((n, *shape.out, shape.filters), "uint16")


@pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile.name)
@pytest.mark.parametrize("shape", [one for one in RAGGED if taken(one)], ids=str)
def test_ragged_shapes(tile, shape):
    given, results = arrays(shape)
    run = conv.Made(tile, shape, *map(ct.to_device, given), results)
    exact = reference(shape, *(to_float(one).transpose(0, 3, 1, 2) for one in given))
    for _ in range(2):
        ct.poison(results)
        run()
        ct.check(to_float(results.get()), exact.transpose(0, 2, 3, 1), rtol=2**-8, atol=1e-3)


@pytest.mark.parametrize("shape", [one for one in RAGGED if not taken(one)], ids=str)
def test_what_the_im2col_mode_cannot_do_is_refused(shape):
    if max(shape.stride) > 8:
        pytest.skip("CUTLASS does not look at strides")
    assert conv.refused(TILES[0], shape)
    per_group = shape.channels // shape.groups
    arrays_ = (
        ct.empty((shape.images, shape.height, shape.width, shape.channels), "uint16"),
        ct.empty((shape.filters, *shape.window, per_group), "uint16"),
        ct.empty((shape.images, *shape.out, shape.filters), "uint16"),
    )
    with pytest.raises(conv.Refused):
        conv.Made(TILES[0], shape, *arrays_)
    one = conv.prepare(shape, *arrays_, TILES[:1])
    assert not one and one.reason


def test_arrays_that_do_not_fit():
    shape = Shape(1, 8, 4, 4, 8, (1, 1))
    (x, w), results = arrays(shape)
    for wrong in (
        (ct.to_device(x[..., :4]), ct.to_device(w), results),
        (ct.to_device(x), ct.to_device(w[:4]), results),
        (ct.to_device(x), ct.to_device(w), results[:, :2]),
        (ct.to_device(x.astype("float32")), ct.to_device(w), results),
    ):
        with pytest.raises((TypeError, ValueError)):
            conv.prepare(shape, *wrong, TILES[:1])


def test_the_report_of_a_library():
    for tile in TILES:
        said = conv.report(tile)
        assert said["spilled"] == 0 and said["stages"] >= 3 and said["compiled in"] > 0
        assert said["blocks of a cluster"] == tile.down * tile.across


def test_the_fastest_of_two_is_taken():
    shape = Shape(4, 64, 28, 28, 64, (3, 3), pad=(1, 1))
    (x, w), results = arrays(shape)
    run = conv.prepare(shape, ct.to_device(x), ct.to_device(w), results, TILES)
    assert run and run.tile in TILES
