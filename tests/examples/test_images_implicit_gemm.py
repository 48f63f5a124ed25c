"""examples/images/implicit_gemm without a GPU: index maps, the table of offsets, what the im2col mode can express."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.implicit_gemm import im2col
from cudatut.book.images.implicit_gemm.launch import BOXES, CONFIGS
from cudatut.book.images.implicit_gemm.shapes import table
from cudatut.book.images.shapes import LARGE, RAGGED, SMALL, Shape, reference

SMALL_ONES = [shape for shape in RAGGED if shape.flops < 2e7]


def numbers(shape, seed=0):
    rng = ct.rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    return images.astype("float32"), weights.astype("float32")


def by_hand(shape, images, weights):
    """A loop per result, over the window: nothing in common with `reference`."""
    out = np.zeros((shape.images, shape.filters, *shape.out))
    per_group, filters = shape.channels // shape.groups, shape.filters // shape.groups
    for at in np.ndindex(out.shape):
        n, k, p, q = at
        for r, s in np.ndindex(*shape.window):
            y = p * shape.stride[0] - shape.pad[0] + r * shape.dilation[0]
            x = q * shape.stride[1] - shape.pad[1] + s * shape.dilation[1]
            if 0 <= y < shape.height and 0 <= x < shape.width:
                first = k // filters * per_group
                out[at] += images[n, first : first + per_group, y, x] @ weights[k, :, r, s]
    return out


def by_table(shape, images, weights, bk):
    """As `offsets.cu` finds its words: a table of offsets, and a mask for each result's place."""
    rows, bits = table(shape, bk)
    depth = shape.product[2]
    first = depth - (ct.cdiv(depth, bk) - 1) * bk
    rows = np.concatenate([rows[:first], rows[bk:]])
    per_group, filters = shape.channels // shape.groups, shape.filters // shape.groups
    flat = images.reshape(shape.images, shape.groups, -1)
    out = np.zeros((shape.images, shape.groups, filters, *shape.out))
    for n, g, p, q in np.ndindex(shape.images, shape.groups, *shape.out):
        y, x = p * shape.stride[0] - shape.pad[0], q * shape.stride[1] - shape.pad[1]

        def meets(down, right, y=y, x=x):
            return 0 <= y + down < shape.height and 0 <= x + right < shape.width

        mask = 0
        if bits:
            for r, c in np.ndindex(*shape.window):
                meet = meets(r * shape.dilation[0], c * shape.dilation[1])
                mask |= meet << (r * shape.window[1] + c)
        b = np.zeros(depth)
        for i, (offset, which) in enumerate(rows.tolist()):
            inside = mask & which & 0xFFFFFFFF if bits else meets(which >> 16, which & 0xFFFF)
            if inside:
                b[i] = flat[n, g, y * shape.width + x + offset]
        out[n, g, :, p, q] = weights.reshape(shape.groups, filters, -1)[g] @ b
    assert per_group * np.prod(shape.window) == depth
    return out.reshape(shape.images, shape.filters, *shape.out)


@pytest.mark.parametrize("shape", SMALL_ONES)
def test_the_reference_and_the_table_agree_with_a_plain_loop(shape):
    if shape.flops > 1e6:
        shape = shape._replace(images=1, filters=shape.groups)
    images, weights = numbers(shape)
    expected = reference(shape, images, weights)
    assert np.array_equal(by_table(shape, images, weights, 16), expected)
    if np.prod(expected.shape) < 3000:
        assert np.array_equal(by_hand(shape, images, weights), expected)


def test_rows_without_a_weight_fill_the_first_step():
    rows, bits = table(Shape(1, 3, 5, 5, 1, (3, 3)), 16)  # 27 = 11 + 16
    assert bits and len(rows) == 32 and not rows[11:16].any() and rows[10:11].any()
    rows, bits = table(Shape(1, 1, 9, 9, 1, (7, 7)), 16)  # 49 = 1 + 3 x 16
    assert not bits and (rows[1:16, 1] == -1).all() and (rows[16:, 1] >= 0).all()


@pytest.mark.parametrize("shape", [*RAGGED, SMALL, LARGE])
def test_the_box_of_windows_holds_as_many_as_there_are_results(shape):
    lower, upper = im2col.corners(shape)
    for axis, extent in enumerate((shape.height, shape.width)):
        box = extent + upper[axis] - lower[axis]
        assert ct.cdiv(box, shape.stride[axis]) == shape.out[axis]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"channels": 12}, "multiples of 8"),
        ({"filters": 9}, "multiples of 8"),
        ({"stride": (9, 1)}, "strides"),
        ({"pad": (129, 1)}, "corners"),
        ({"pad": (0, 0), "dilation": (65, 1), "height": 200}, "corners"),
        ({"pad": (128, 1), "dilation": (128, 1)}, "offsets"),
    ],
)
def test_what_the_im2col_mode_cannot_express(change, why):
    assert why in im2col.refused(SMALL._replace(**change))


def test_what_it_can():
    assert im2col.refused(SMALL) is None and im2col.refused(LARGE) is None
    assert im2col.refused(SMALL._replace(stride=(8, 2), dilation=(3, 2))) is None
    assert im2col.refused(SMALL._replace(pad=(128, 128))) is None


@pytest.mark.parametrize(
    "change",
    [{"images": 0}, {"groups": 3}, {"window": (31, 3)}, {"pad": (-1, 0)}, {"height": 1 << 24}],
)
def test_no_convolution(change):
    with pytest.raises(ValueError, match="check"):
        SMALL._replace(**change).check("check")


def test_shared_memory_fits():
    assert all(boxes.shared <= 227 * 1024 for boxes in BOXES)
    for tile in CONFIGS:
        assert tile.blocks * (tile.shared(4) + 1024) <= 228 * 1024
