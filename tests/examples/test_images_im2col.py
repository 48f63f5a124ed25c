"""examples/images/im2col without a GPU: the matrix, its product, and how many bytes it takes."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.im2col import launch
from cudatut.book.images.im2col.reference import by_product, matrix
from cudatut.book.images.shapes import LARGE, RAGGED, SMALL, Shape
from cudatut.book.images.shapes import reference as plain

LITTLE = [shape for shape in RAGGED if shape.flops < 2e7]


def numbers(shape, seed=0):
    rng = ct.rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    return images.astype("float32"), weights.astype("float32")


def four_places(shape, column):
    """The places of four columns as im2col_four finds them: one division, then steps."""
    high, wide = shape.out
    image, place = divmod(column, high * wide)
    row, at = divmod(place, wide)
    found = []
    for _ in range(4):
        found.append((image, row, at))
        at += 1
        if at == wide:
            at, row = 0, row + 1
        if row == high:
            row, image = 0, image + 1
    return found


@pytest.mark.parametrize("shape", LITTLE, ids=str)
def test_the_matrix_times_weights_is_the_convolution(shape):
    images, weights = numbers(shape)
    assert np.array_equal(by_product(shape, images, weights), plain(shape, images, weights))


@pytest.mark.parametrize("shape", LITTLE, ids=str)
def test_index_maps_of_the_kernels_are_those_of_the_matrix(shape):
    images, _ = numbers(shape)
    expected, (rows, pitch) = matrix(shape, images), launch.extents(shape)
    assert expected.shape[0] == rows and 0 <= pitch - expected.shape[1] < 4 and pitch % 4 == 0
    places = [one for column in range(0, pitch, 4) for one in four_places(shape, column)]
    rng = ct.rng(1)
    for row, column in zip(rng.integers(0, rows, 200), rng.integers(0, expected.shape[1], 200)):
        rest, q = divmod(int(row), shape.window[1])
        channel, r = divmod(rest, shape.window[0])
        image, p, at = places[column]
        y = p * shape.stride[0] - shape.pad[0] + r * shape.dilation[0]
        x = at * shape.stride[1] - shape.pad[1] + q * shape.dilation[1]
        inside = 0 <= y < shape.height and 0 <= x < shape.width
        assert expected[row, column] == (images[image, channel, y, x] if inside else 0)
    # Columns beyond the last are of images that do not exist, so zeros are written.
    assert all(one[0] >= shape.images for one in places[expected.shape[1] :])


def test_memory_is_counted():
    found = launch.memory(LARGE)
    assert found.growth == 9  # a window of 3 x 3 at each place
    assert found.matrix == 9 * found.images == 4 * 64 * 256 * 9 * 56 * 56
    assert found.product == found.results == found.images
    one = launch.memory(LARGE, 1)
    assert one.product == 0 and one.matrix * 64 == found.matrix
    assert launch.memory(SMALL._replace(window=(1, 1), pad=(0, 0))).growth == 1
    strided = launch.memory(SMALL._replace(window=(1, 1), pad=(0, 0), stride=(2, 2)))
    assert strided.growth == 0.25
    grouped = SMALL._replace(groups=4)
    assert launch.memory(grouped).matrix == launch.memory(SMALL).matrix
    assert launch.memory(grouped, 1).product > 0


def test_as_many_images_as_have_room():
    assert launch.fitting(LARGE) == 64 and launch.fitting(SMALL) == 32
    assert launch.fitting(LARGE, 1 << 28) == (1 << 28) // (4 * 2304 * 3136)
    assert launch.fitting(LARGE, 1) == 1
    for room in (1 << 24, 1 << 26, 1 << 28):
        at_once = launch.fitting(SMALL, room)
        assert launch.memory(SMALL, at_once).matrix <= room


@pytest.mark.parametrize("change", [{"images": 0}, {"groups": 3}, {"window": (31, 3)}])
@pytest.mark.parametrize("launcher", [launch.convolve, launch.pointwise])
def test_what_is_no_convolution_is_refused_before_any_array_is_looked_at(launcher, change):
    with pytest.raises(ValueError, match="."):
        launcher(SMALL._replace(**change), None, None, None)


def test_pointwise_takes_windows_of_one_word():
    with pytest.raises(ValueError, match="windows of 1 x 1"):
        launch.pointwise(SMALL, None, None, None)
    with pytest.raises(ValueError, match="one group"):
        launch.pointwise(Shape(1, 4, 3, 3, 4, (1, 1), groups=2), None, None, None)
    with pytest.raises(ValueError, match="no kernel"):
        launch._filled("five", SMALL, 0, None, 4)


def test_blocks_have_one_channel_or_several():
    rows, pitch = launch.extents(SMALL)
    assert launch._grid("words", SMALL, pitch, 1) == (ct.cdiv(rows * pitch, 256), 1)
    assert launch._grid("four", SMALL, pitch, 1 << 30) == (ct.cdiv(pitch, 1024), 128)
    blocks, high = launch._grid("four", LARGE, launch.extents(LARGE)[1], 4096)
    assert blocks == 196 and high == ct.cdiv(256, 196 * 256 // 4096)
    for most in (1, 100, 4096, 1 << 30):
        blocks, high = launch._grid("row", SMALL, pitch, most)
        each = ct.cdiv(128, high)
        assert 1 <= high <= 128 and each * high >= 128


def test_words_of_a_row_are_loaded_once_where_four_places_lie_in_one():
    assert launch.chosen(SMALL) == launch.chosen(LARGE) == "row"
    assert launch.chosen(SMALL._replace(stride=(2, 2))) == "four"  # 14 places a row
    assert launch.chosen(SMALL._replace(window=(1, 1), pad=(0, 0))) == "four"
    assert launch.chosen(SMALL._replace(dilation=(2, 2), pad=(2, 2))) == "four"
    assert launch.chosen(SMALL._replace(height=7, width=7)) == "four"
    assert "dilated" in launch.refuses_row(SMALL._replace(dilation=(1, 2)))
    assert "stride" in launch.refuses_row(SMALL._replace(stride=(1, 3)))
    assert "columns" in launch.refuses_row(SMALL._replace(window=(3, 9)))
