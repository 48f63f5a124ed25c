"""examples/images/resize: every kernel on ragged sizes against NumPy, views, and what is refused."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.resize import reference, resize

SIZES = [(1, 1), (1, 2), (2, 1), (3, 3), (1, 9), (9, 1), (7, 5), (31, 33), (130, 257)]
POISON = 251  # no pixel is, so nothing between pixels is
PLANS = [
    {}, {"ROWS": 1}, {"ROWS": 2}, {"WORDS": 0}, {"BY_BITS": 0}, {"WORDS": 0, "BY_BITS": 0},
    {"way": "kept"}, {"way": "kept", "ROWS": 1}, {"way": "kept", "ROWS": 16, "RESIDENT": 4},
]  # fmt: skip


def picture(height, width, seed=0):
    return ct.rng(seed).integers(0, POISON, (height, width, 3), np.uint8)


def fresh(height, width):
    out = ct.empty((height, width, 3), np.uint8)
    ct.poison(out, POISON)
    return out


def judged(out, values, name):
    ct.check(out, reference.rounded(values, out.get()), name)


@pytest.mark.parametrize("to", SIZES, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_thread_for_each_pixel(size, to):
    image = picture(*size)
    x, out = ct.to_device(image), fresh(*to)
    resize.nearest(x, out)()
    ct.check(out, reference.resize_nearest(image, *to), "nearest")
    ct.poison(out, POISON)
    resize.bilinear(x, out, block=(16, 16))()
    judged(out, reference.resize_bilinear(image, *to), "bilinear")
    ct.poison(out, POISON)
    resize.letterbox(x, out, border=7, way="pixel")()
    judged(out, reference.letterbox(image, *to, 7), "letterbox")


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_four_pixels_of_a_thread(plan):
    for size in SIZES:
        image = picture(*size)
        x = ct.to_device(image)
        for to in SIZES:
            for centered in (False, True):
                out = fresh(*to)
                resize.letterbox(x, out, 7, centered, **plan)()
                judged(out, reference.letterbox(image, *to, 7, centered), f"{size} {to} {centered}")
            out = fresh(*to)
            resize.letterbox(x, out, whole=True, **plan)()
            judged(out, reference.resize_bilinear(image, *to), f"whole, {size} {to}")


def test_large_sides():
    for size, to in (((1, 1 << 20), (1, 3333)), ((3, 5), (2, 1 << 20)), ((1 << 18, 1), (777, 2))):
        image = picture(*size)
        x, out = ct.to_device(image), fresh(*to)
        resize.letterbox(x, out, whole=True)()
        judged(out, reference.resize_bilinear(image, *to), f"{size} {to}")
        resize.nearest(x, out)()
        ct.check(out, reference.resize_nearest(image, *to))
        ct.poison(out, POISON)
        resize.letterbox(x, out, whole=True, way="kept")()
        judged(out, reference.resize_bilinear(image, *to), f"{size} {to}, kept")


@pytest.mark.parametrize(
    "size, to", [((700, 900), (1100, 1300)), ((1500, 1500), (1024, 1111)), ((40, 30), (70, 20))]
)
def test_the_fastest_is_right_whatever_it_takes(size, to):
    image = picture(*size)
    out = fresh(*to)
    resize.fastest(ct.to_device(image), out)()
    judged(out, reference.resize_bilinear(image, *to), f"{size} {to}")


@pytest.mark.parametrize("mistakes", range(8))
def test_each_mistake_is_the_one_that_it_says(mistakes):
    for size, to in (((20, 30), (13, 50)), ((3, 3), (9, 9)), ((1, 1), (2, 2)), ((31, 33), (7, 5))):
        image = picture(*size)
        out = ct.empty((*to, 3), np.float32)
        resize.wrong(ct.to_device(image), out, mistakes)()
        ct.check(out, reference.wrong(image, *to, mistakes), atol=1e-3)


def test_a_wrong_map_is_noticed():
    image = picture(20, 30)
    x, out = ct.to_device(image), ct.empty((13, 50, 3), np.float32)
    for mistake in (reference.CORNER, reference.NEAREST, reference.EXCHANGED):
        resize.wrong(x, out, mistake)()
        with pytest.raises(ct.CheckError):
            ct.check(out, reference.resize_bilinear(image, 13, 50), atol=0.5)


def test_what_is_refused():
    x, out = ct.to_device(picture(4, 4)), fresh(4, 4)
    long = ct.to_device(np.zeros(100, np.uint8))
    odd = long[1:49].reshape(4, 4, 3)
    refused = [
        (TypeError, lambda: resize.bilinear(ct.to_device(np.zeros((4, 4, 3), "f4")), out)),
        (ValueError, lambda: resize.bilinear(ct.to_device(np.zeros((4, 4, 4), "u1")), out)),
        (ValueError, lambda: resize.nearest(x, x)),
        (ValueError, lambda: resize.letterbox(odd, out)),
        (ValueError, lambda: resize.letterbox(x, out, border=-1)),
        (ValueError, lambda: resize.letterbox(x, out, way="best")),
        (ValueError, lambda: resize.wrong(x, ct.empty((4, 4, 3), "f4"), 8)),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
    resize.letterbox(odd, out, way="pixel")()  # any place will do for bytes
