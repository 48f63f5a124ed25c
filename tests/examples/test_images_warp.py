"""examples/images/warp without a GPU: positions in integers, borders, weights, that a resize is a warp, and what launchers refuse."""

import ctypes

import numpy as np
import pytest

from cudatut.book.images.resize import reference as resized
from cudatut.book.images.warp import reference, textures, warp

IDENTITY = [[1, 0, 0], [0, 1, 0]]


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype="uint8")


def test_positions_are_exact_to_the_last_bits_of_fp64_and_better_than_fp32():
    matrix = reference.rotation(17, 4000, 6000, 0.7)
    integers = reference.fixed(reference.inverted(matrix))
    _, _, column, across = reference.positions(integers, 100, 6000)
    back = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))
    y, x = np.mgrid[:100, :6000]
    wanted = back[0, 0] * x + back[0, 1] * y + back[0, 2]
    assert np.abs(column + across - wanted).max() < 6000 / reference.ONE
    single = back.astype("float32")
    alone = single[0, 0] * x.astype("f4") + single[0, 1] * y.astype("f4") + single[0, 2]
    assert np.abs(alone - wanted).max() > 1e-4  # what the picture shows


def test_the_inverse_leads_back_exactly():
    matrix = [[0.1, 0.2, 0.3], [-0.4, 0.5, 0.6]]
    (a, b, c), (d, e, f) = reference.inverted(matrix)
    (p, q, r), (s, t, u) = reference.inverted(
        [[float(a), float(b), float(c)], [float(d), float(e), float(f)]]
    )
    assert np.allclose(np.array([[p, q, r], [s, t, u]], float), matrix, rtol=1e-14)
    assert reference.fixed(reference.inverted(IDENTITY)) == [[1 << 32, 0, 0], [0, 1 << 32, 0]]


@pytest.mark.parametrize(
    "bad", [[[1, 2, 0], [2, 4, 0]], [[1, 0], [0, 1]], [[np.nan, 0, 0], [0, 1, 0]]]
)
def test_what_has_no_inverse_is_refused(bad):
    with pytest.raises(ValueError):
        reference.inverted(bad)


@pytest.mark.parametrize(
    "border, wanted",
    [
        (reference.CONSTANT, "------abcd-------"),
        (reference.REPLICATE, "aaaaaaabcdddddddd"),
        (reference.REFLECT_101, "abcdcb" + "abcd" + "cbabcdc"),
        (reference.WRAP, "cdabcd" + "abcd" + "abcdabc"),
    ],
)
def test_borders(border, wanted):
    found = reference.inside(np.arange(-6, 11), 4, border)
    assert "".join("-" if i < 0 else "abcd"[i] for i in found) == wanted
    one = reference.inside(np.arange(-3, 4), 1, border)
    assert (one[one >= 0] == 0).all() and (border == reference.CONSTANT or (one == 0).all())


@pytest.mark.parametrize("taps", [1, 2, 4])
@pytest.mark.parametrize("border", range(4))
def test_the_identity_is_a_copy_and_a_constant_stays_one(taps, border):
    image = picture(5, 7)
    assert np.allclose(reference.warp(image, IDENTITY, 5, 7, taps, border), image)
    flat = np.full((5, 7, 3), 90, "uint8")
    turned = reference.warp(flat, reference.rotation(30, 5, 7), 9, 9, taps, border, value=90)
    assert np.allclose(turned, 90)


def test_whole_shifts_and_quarter_turns_move_pixels():
    image = picture(6, 6)
    moved = reference.warp(image, [[1, 0, 2], [0, 1, -1]], 6, 6, 2, value=7)
    assert (
        (moved[:5, 2:] == image[1:, :4]).all()
        and (moved[5] == 7).all()
        and (moved[:, :2] == 7).all()
    )
    turned = reference.warp(image, np.rint(2 * reference.rotation(90, 6, 6)) / 2, 6, 6, 2)
    assert np.allclose(turned, np.rot90(image))


def test_beyond_the_edge_the_border_is_mixed_in():
    image = np.full((1, 1, 3), 200, "uint8")
    assert reference.warp(image, [[1, 0, 0.25], [0, 1, 0]], 1, 1, 2, value=100)[0, 0, 0] == 175


@pytest.mark.parametrize("shape", [(5, 9), (20, 4), (12, 12)])
def test_a_resize_is_a_warp_that_goes_on_at_the_edge(shape):
    image = picture(12, 8)
    matrix = reference.resizing(12, 8, *shape)
    warped = reference.warp(image, matrix, *shape, 2, reference.REPLICATE)
    assert np.abs(warped - resized.resize_bilinear(image, *shape)).max() < 1e-5


def test_weights_sum_to_one_and_cubic_reaches_beyond():
    t = np.linspace(0, 1, 33)
    for taps in (1, 2, 4):
        assert np.allclose(sum(reference.weights(t, taps)), 1)
    assert np.allclose(reference.weights(np.array(0.0), 4), [0, 1, 0, 0])
    assert min(w.min() for w in reference.weights(t, 4)) < 0
    steps = np.repeat(np.array([[0, 0, 255, 255]], "uint8")[:, :, None], 3, 2)
    values = reference.warp(steps, [[4, 0, 0], [0, 1, 0]], 1, 13, 4, reference.REPLICATE)
    assert values.min() < 0 and values.max() > 255


def test_sent_forward_a_larger_picture_has_holes():
    full = reference.forward(picture(10, 10), IDENTITY, 10, 10)
    assert full.all()
    holes = reference.forward(picture(10, 10), [[2, 0, 0], [0, 2, 0]], 20, 20)
    assert holes.sum() == 100
    turned = reference.forward(picture(60, 60), reference.rotation(30, 60, 60), 60, 60)
    assert 0 < (~turned[20:40, 20:40]).sum() < 400


def test_the_map_of_the_kernel():
    assert warp.map_back(IDENTITY, 10, 10).tolist() == (1 << 32, 0, 0, 0, 1 << 32, 0)
    assert warp.FIXED.itemsize == 48 and warp.FLOATS.itemsize == 24
    for far in (
        [[1, 0, 2.0**31], [0, 1, 0]],
        [[1e-9, 0, 0], [0, 1, 0]],
        [[1, 0, 1e300], [0, 1, 0]],
    ):
        with pytest.raises(ValueError):
            warp.map_back(far, 10, 10)


@pytest.mark.parametrize(
    "wants",
    [
        {"interpolation": "lanczos"}, {"border": "mirror"}, {"way": "fast"}, {"value": -1},
        {"way": "float", "border": "wrap"}, {"way": "words", "interpolation": "cubic"}, {"BY_BITS": 0},
    ],
)  # fmt: skip
def test_what_a_warp_refuses(wants):
    with pytest.raises(ValueError):
        warp.warp(None, None, IDENTITY, **wants)


def test_structs_are_as_large_as_those_of_the_driver():
    """On a machine of 64 bits, by cuda.h."""
    sizes = {"ResourceDesc": 144, "TextureDesc": 104, "ArrayDesc": 40, "Copy2D": 128}
    assert {name: ctypes.sizeof(getattr(textures, name)) for name in sizes} == sizes
    assert textures.ResourceDesc.source.offset == 8 and textures.TextureDesc.border.offset == 40
