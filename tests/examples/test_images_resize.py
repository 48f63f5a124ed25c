"""examples/images/resize without a GPU: index maps and weights, letterbox, mistakes, rounding, and what launchers refuse."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from cudatut.book.images.resize import reference, resize

SIZES = [1, 2, 3, 5, 7, 8, 31, 640, 1999]


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype="uint8")


def kernel_tap(n, to):
    """taps.cuh in NumPy: a guess in fp32, put right by integers."""
    x, one = np.arange(to, dtype=np.int64), resize.axis(n, to)
    at = (2 * x + 1) * n - to
    half = np.float32(0.5)
    guess = np.maximum((x.astype("f4") + half) * one["scale"] - half, 0).astype(np.int64)
    rest = at - guess * 2 * to
    inside = at > 0
    assert (rest[inside] >= -2 * to).all() and (rest[inside] < 4 * to).all()  # off by one at most
    low = guess + np.where(rest < 0, -1, 0) + np.where(rest >= 2 * to, 1, 0)
    rest = at - low * 2 * to
    weight = rest.astype("f4") * one["part"]
    low, weight = np.where(at <= 0, 0, low), np.where(at <= 0, 0, weight)
    last = low >= n - 1
    return np.where(last, n - 1, low), np.where(last, 0, weight)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("to", SIZES)
def test_maps_are_those_of_fractions(n, to):
    low, high, weight = reference.taps(n, to)
    near = reference.nearest(n, to)
    for x in {*range(min(to, 40)), *range(max(to - 40, 0), to)}:
        center = Fraction(2 * x + 1, 2) * Fraction(n, to)
        assert near[x] == floor(center)
        at = min(max(center - Fraction(1, 2), 0), n - 1)
        assert low[x] == floor(at) and weight[x] == float(at - floor(at))
        assert high[x] == min(low[x] + 1, n - 1)


@pytest.mark.parametrize(
    "n, to",
    [*((a, b) for a in SIZES for b in SIZES), (1 << 22, (1 << 22) - 1), ((1 << 22) - 3, 12345), (7, 1 << 22)],
)  # fmt: skip
def test_a_guess_in_fp32_is_put_right(n, to):
    low, weight = kernel_tap(n, to)
    wanted, _, exact = reference.taps(n, to)
    assert (low == wanted).all() and np.abs(weight - exact).max() <= 2**-22


def test_in_fp32_alone_the_nearest_pixel_is_another_one_somewhere():
    bad = 0
    for to in range(1, 300):
        for n in (640, 641, 1000, 1920):
            x = np.arange(to, dtype="f4")
            alone = np.floor((x + np.float32(0.5)) * np.float32(n / to)).astype(int)
            bad += (alone != reference.nearest(n, to)).sum()
    assert bad > 0


def test_same_size_is_a_copy_and_one_pixel_fills_everything():
    image = picture(7, 9)
    assert (reference.resize_nearest(image, 7, 9) == image).all()
    assert (reference.resize_bilinear(image, 7, 9) == image).all()
    assert (reference.resize_bilinear(image[:1, :1], 4, 5) == image[0, 0]).all()


def test_half_is_the_mean_of_four_and_turning_commutes():
    image = picture(8, 12)
    mean = image.reshape(4, 2, 6, 2, 3).astype(float).mean(axis=(1, 3))
    assert np.allclose(reference.resize_bilinear(image, 4, 6), mean)
    there = reference.resize_bilinear(image, 5, 31)
    assert np.allclose(reference.resize_bilinear(image[::-1, ::-1], 5, 31), there[::-1, ::-1])


@pytest.mark.parametrize("shape", [(1, 1), (1, 5000), (5000, 1), (480, 640), (641, 639)])
@pytest.mark.parametrize("centered", [False, True])
def test_a_letterbox_holds_the_image_and_nothing_is_left_out(shape, centered):
    for out in ((1, 1), (640, 640), (33, 65)):
        h, w, top, left = reference.placed(*shape, *out, centered)
        assert 1 <= h <= out[0] and 1 <= w <= out[1] and (h == out[0] or w == out[1])
        assert top + h <= out[0] and left + w <= out[1]
        if centered:
            assert 0 <= out[0] - h - 2 * top <= 1 and 0 <= out[1] - w - 2 * left <= 1
    boxed = reference.letterbox(np.full((10, 20, 3), 50, "uint8"), 8, 8, 7, centered)
    assert (boxed == 50).all(axis=(1, 2)).sum() == 4 and (boxed == 7).all(axis=(1, 2)).sum() == 4


def test_no_mistake_is_no_mistake_and_each_one_shows():
    image = picture(20, 30)
    right = reference.resize_bilinear(image, 13, 50)
    assert np.abs(reference.wrong(image, 13, 50, 0) - right).max() < 0.01  # positions in fp32
    for mistake in (reference.CORNER, reference.NEAREST, reference.EXCHANGED):
        assert np.abs(reference.wrong(image, 13, 50, mistake) - right).max() > 20
    beyond = reference.wrong(image, 13, 50, reference.NEAREST)
    assert beyond.min() < 0 and beyond.max() > 255  # weights are not in 0 to 1
    both = reference.wrong(image, 13, 50, reference.CORNER | reference.EXCHANGED)
    assert both.min() >= 0 and both.max() <= 255  # in the image, though not in its place


def test_a_gradient_tells_a_shift_from_an_exchange():
    """Bilinear resize keeps a plane; the corner moves it by half of (scale - 1)."""
    y, x = np.mgrid[:40, :60]
    plane = np.repeat((2 * y + 3 * x)[:, :, None], 3, 2).astype("uint8")
    moved = reference.wrong(plane, 20, 20, reference.CORNER)
    right = reference.resize_bilinear(plane, 20, 20)
    inner = np.s_[1:-1, 1:-1]
    assert np.allclose((right - moved)[inner], 2 * (2 - 1) / 2 + 3 * (3 - 1) / 2, atol=1e-3)


def test_rounding_takes_either_at_a_half_and_nothing_else():
    values = np.array([1.5, 1.49, 2.5, 254.5, 7.0])
    assert reference.rounded(values, np.array([2, 1, 3, 255, 7])).tolist() == [2, 1, 3, 255, 7]
    assert reference.rounded(values, np.array([1, 2, 2, 0, 8])).tolist() == [1, 1, 2, 254, 7]


def test_bytes_that_count():
    assert reference.useful_bytes(8, 8, 4, 4) == 3 * (64 + 16)
    assert reference.useful_bytes(9, 9, 3, 3) == 3 * (9 + 9)  # the middle of three


def test_an_axis_has_16_bytes():
    one = resize.axis(7, 3)
    assert one.nbytes == 16 and one["n"] == 7 and one["to"] == 3


@pytest.mark.parametrize(
    "wants, error",
    [({"way": "best"}, ValueError), ({"border": 256}, ValueError), ({"way": "pixel", "ROWS": 2}, ValueError)],
)  # fmt: skip
def test_what_a_letterbox_refuses(wants, error):
    with pytest.raises(error):
        resize.letterbox(None, None, **wants)
