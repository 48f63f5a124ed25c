"""examples/images/preprocess without a GPU: where an image goes, the taps, the bytes that count, and what a launcher refuses."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.preprocess import preprocess, reference


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(ct, "to_device", np.asarray)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 640, 1999])
@pytest.mark.parametrize("new", [1, 2, 5, 640])
def test_taps_stay_inside_and_weights_in_0_to_1(n, new):
    low, high, weight = reference.taps(n, new)
    assert (low >= 0).all() and (high < n).all() and (low <= high).all()
    assert (weight >= 0).all() and (weight < 1).all()
    assert (weight[low == n - 1] == 0).all()  # the kernel relies on it


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 5000), (5000, 1), (480, 640), (1080, 1920), (641, 639)]
)
def test_an_image_fits_and_lies_in_the_middle(shape):
    for out in ((1, 1), (640, 640), (33, 65)):
        h, w, top, left = reference.placed(*shape, *out)
        assert 1 <= h <= out[0] and 1 <= w <= out[1] and (h == out[0] or w == out[1])
        assert 0 <= out[0] - h - 2 * top <= 1 and 0 <= out[1] - w - 2 * left <= 1


def test_a_constant_image_stays_constant_and_the_border_is_the_border():
    out = reference.letterbox(
        np.full((10, 20, 3), 50, "uint8"), 8, 8, mean=(0, 0, 0), std=(1, 1, 1)
    )
    assert np.allclose(out[:, 2:6], 50 / 255) and np.allclose(out[:, :2], 114 / 255)


def test_half_the_size_is_the_mean_of_four():
    image = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype="uint8")
    mean = image.reshape(4, 2, 4, 2, 3).astype(float).mean(axis=(1, 3))
    assert np.allclose(reference.resized(image, 4, 4), mean)


def test_bytes_that_count():
    assert reference.useful_bytes([(640, 640)], 640, 640) == 9 * 640 * 640
    assert reference.useful_bytes([(1280, 1280)], 640, 640) == 3 * 1280**2 + 6 * 640**2
    assert (
        reference.useful_bytes([(1920, 1920)], 640, 640) == 3 * 640**2 + 6 * 640**2
    )  # the middle of three


def test_batch_and_its_table():
    images = [np.full((3, 5, 3), 1, "uint8"), np.full((1, 1, 3), 2, "uint8")]
    batch = preprocess.Batch(images)
    assert batch.firsts == [0, 48] and batch.pixels.size == 64 + preprocess.BEHIND
    table = batch.places(10, 10)
    assert preprocess.IMAGE.itemsize == 40 and table["first"].tolist() == [0, 48]
    assert table[0]["new_height"] == 6 and table[0]["top"] == 2 and table[0]["across"] == 0.5


@pytest.mark.parametrize(
    "images, error",
    [
        ([], ValueError),
        ([np.zeros((2, 2, 3), "float32")], TypeError),
        ([np.zeros((0, 2, 3), "uint8")], ValueError),
        ([np.zeros((2, 2), "uint8")], ValueError),
    ],
)
def test_what_is_no_batch_is_refused(images, error):
    with pytest.raises(error):
        preprocess.Batch(images)


def test_neighbors_divide_the_width():
    assert [preprocess.plan_of(w, PIXELS=4)["PIXELS"] for w in (640, 642, 641, 1)] == [4, 2, 1, 1]
