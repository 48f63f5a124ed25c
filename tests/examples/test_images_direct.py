"""examples/images/direct without a GPU: references, tiles with halos, pitches, what each rung takes, instances of the kernels."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.direct import launch, reference
from cudatut.book.images.implicit_gemm.shapes import LARGE, RAGGED, SMALL, Shape
from cudatut.book.images.implicit_gemm.shapes import reference as plain

LITTLE = [shape for shape in RAGGED if shape.flops < 2e6]
PARTS = [launch.MANY, launch.FEW, launch.Part(8, 8, 32, 4), launch.Part(8, 8, 16, 4)]


def numbers(shape, seed=0):
    rng = ct.rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    return images.astype("float32"), weights.astype("float32")


@pytest.mark.parametrize("shape", LITTLE, ids=str)
def test_scipy_agrees_and_turns_the_window_where_it_convolves(shape):
    pytest.importorskip("scipy.signal")
    images, weights = numbers(shape)
    expected = plain(shape, images, weights)
    assert np.array_equal(reference.by_scipy(shape, images, weights), expected)
    turned = reference.by_scipy(shape, images, reference.turn(weights), turned=True)
    assert np.array_equal(turned, expected)
    # Of a window that is dilated beyond the image, only the word in the middle meets it.
    if max(shape.window) > 1 and max(shape.out) > 1 and max(shape.dilation) < 4:
        assert not np.array_equal(reference.by_scipy(shape, images, weights, True), expected)


def test_spread_puts_zeros_between():
    spread = reference.spread(np.arange(1, 7).reshape(1, 2, 3), (3, 2))
    assert spread.shape == (1, 4, 5)
    assert spread[0].tolist() == [[1, 0, 2, 0, 3], [0] * 5, [0] * 5, [4, 0, 5, 0, 6]]


def by_tiles(shape, images, weights, tile):
    """As the kernels with tiles do it: rows and columns that `covered` counts, zeros outside, loops over results of a tile."""
    (high, wide), (down, across) = launch.covered(shape, tile), launch.tiles(shape, tile)
    (p, q), filters = shape.out, shape.filters // shape.groups
    out = np.full((shape.images, shape.filters, p, q), np.nan)
    for ty, tx in np.ndindex(down, across):
        top = ty * tile[0] * shape.stride[0] - shape.pad[0]
        left = tx * tile[1] * shape.stride[1] - shape.pad[1]
        part = np.zeros((shape.images, shape.channels, high, wide))
        ys, xs = np.arange(high) + top, np.arange(wide) + left
        iny, inx = (ys >= 0) & (ys < shape.height), (xs >= 0) & (xs < shape.width)
        part[:, :, np.flatnonzero(iny)[:, None], np.flatnonzero(inx)] = images[
            :, :, ys[iny][:, None], xs[inx]
        ]
        part = part.reshape(shape.images, shape.groups, -1, high, wide)
        w = weights.reshape(shape.groups, filters, -1, *shape.window)
        for y in range(ty * tile[0], min((ty + 1) * tile[0], p)):
            for x in range(tx * tile[1], min((tx + 1) * tile[1], q)):
                fy, fx = (y - ty * tile[0]) * shape.stride[0], (x - tx * tile[1]) * shape.stride[1]
                window = part[
                    ...,
                    fy : fy + (shape.window[0] - 1) * shape.dilation[0] + 1 : shape.dilation[0],
                    fx : fx + (shape.window[1] - 1) * shape.dilation[1] + 1 : shape.dilation[1],
                ]
                assert window.shape[-2:] == shape.window  # the halo is large enough
                out[:, :, y, x] = np.einsum("ngcrs,gkcrs->ngk", window, w).reshape(shape.images, -1)
    return out


@pytest.mark.parametrize("tile", [launch.TILE, *(part.tile for part in PARTS)], ids=str)
def test_tiles_with_their_halos_cover_all_windows(tile):
    for shape in LITTLE:
        high, wide = launch.covered(shape, tile)
        if high * wide < 1 << 16:
            images, weights = numbers(shape)
            assert np.array_equal(
                by_tiles(shape, images, weights, tile), plain(shape, images, weights)
            )


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_lanes_of_a_warp_meet_in_no_bank(part):
    for window in (1, 3, 5, 7):
        shape = SMALL._replace(window=(window, window), pad=(window // 2,) * 2)
        pitch, _, _ = launch.step_of(shape, part)
        assert launch.meeting(pitch, part.wide, part.results) == 1
        assert pitch >= launch.covered(shape, part.tile)[1]
        two = shape._replace(stride=(2, 2))
        pitch, _, _ = launch.step_of(two, part)
        assert launch.meeting(pitch, part.wide, 2 * part.results, 2) == 2


@pytest.mark.parametrize("shape", [*RAGGED, SMALL, LARGE], ids=str)
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_shared_memory_holds_a_step(shape, part):
    pitch, channels, shared = launch.step_of(shape, part)
    high, _ = launch.covered(shape, part.tile)
    window = shape.window[0] * shape.window[1]
    assert 1 <= channels <= shape.channels // shape.groups
    # As several.cu counts them.
    words = (channels * high * pitch + 3) // 4 * 4 + channels * window * part.together
    assert shared == 4 * words
    if channels > 1:
        assert shared <= 32 << 10
    if not launch.refuses_window(shape):
        assert launch.step_of(shape, part, 0)[2] * launch.channels_of(shape, part) <= launch.SHARED


def test_which_rung_takes_what():
    assert launch.chosen(SMALL) == launch.chosen(LARGE) == "window"
    assert launch.chosen(SMALL._replace(dilation=(2, 2))) == "several"
    assert launch.chosen(SMALL._replace(stride=(1, 2))) == "several"
    assert launch.chosen(SMALL._replace(window=(9, 9), pad=(4, 4))) == "several"
    far = SMALL._replace(dilation=(100, 100), pad=(100, 100))
    assert launch.chosen(far) == "naive" and "more than" in launch.refuses_tiles(far)
    depthwise = Shape(2, 64, 9, 9, 64, (3, 3), pad=(1, 1), groups=64)
    assert launch.suits(depthwise) == launch.FEW and launch.suits(SMALL) == launch.MANY
    assert {launch.chosen(shape) for shape in RAGGED} == {"window", "several", "naive"}


def test_parts_that_kernels_can_have():
    for part in PARTS:
        assert 32 % part.wide == 0 and 32 % part.filters == 0


@pytest.mark.parametrize("change", [{"images": 0}, {"groups": 3}, {"window": (31, 3)}])
@pytest.mark.parametrize("rung", ["naive", "constant", "tiled", "several", "window", "direct"])
def test_what_is_no_convolution_is_refused_before_any_array_is_looked_at(rung, change):
    shape = SMALL._replace(**change)
    with pytest.raises((ValueError, ZeroDivisionError), match="."):
        getattr(launch, rung)(shape, None, None, None)
