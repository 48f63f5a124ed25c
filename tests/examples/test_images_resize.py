"""examples/images/resize without a GPU: index maps and weights, letterbox, mistakes, rounding, and what launchers refuse."""

import ctypes
from fractions import Fraction
from math import floor
from pathlib import Path

import gpp
import numpy as np
import pytest

from cudatut import paths
from cudatut.book.images.resize import reference, resize

HERE = Path(__file__).resolve().parent
FOLDER = paths.examples_dir() / "images/resize"
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


SHAPES = [(1, 1), (1, 2), (2, 1), (3, 3), (1, 9), (9, 1), (7, 5), (31, 33), (40, 70)]
BYTES = "(unsigned char*)out, (const unsigned char*)image"
AXES = "axis(of[0], of[2]), axis(of[1], of[3])"
BOX = f"({BYTES}, {AXES}, of[4], of[5], of[6], of[7], 7)"
KERNELS = {  # file, call, pixels of a thread across and down
    "nearest": ("resize.cu", f"resize_nearest({BYTES}, {AXES})", (1, 1)),
    "bilinear": ("resize.cu", f"resize_bilinear({BYTES}, {AXES})", (1, 1)),
    "pixel": ("resize.cu", f"letterbox{BOX}", (1, 1)),
    "rows": ("rows.cu", f"letterbox_rows{BOX}", (4, 2)),
    "kept": ("kept.cu", f"letterbox_kept{BOX}", (4, 8)),
}


def library(name, folder, change=lambda text: text):
    file, call, _ = KERNELS[name]
    header = folder / "kernels.h"
    text = change((FOLDER / file).read_text()).replace('extern "C"', "static")
    text += """
static Axis axis(int n, int to) { return {n, to, (float)((double)n / to), (float)(0.5 / to)}; }
"""
    header.write_text(text)
    flags = ("-O1", "-ffp-contract=off", "-std=c++20", "-shared", "-fPIC", f"-DCALL={call}")
    places = (f'-DKERNELS="{header}"', f"-I{FOLDER}")
    return ctypes.CDLL(str(gpp.compiled(HERE / "images_on_cpu.cpp", *flags, places=places))).run


def written(run, each, image, to, placed=None):
    """What the kernel writes; it leaves 64 bytes behind it alone."""
    out = np.full(3 * to[0] * to[1] + 64, 251, "uint8")
    new = placed or (*to, 0, 0)
    numbers = (*image.shape[:2], *new[:2], *to, *new[2:])
    grid = (-(-to[1] // (32 * each[0])), -(-to[0] // (8 * each[1])))
    run(out.ctypes, image.ctypes, *grid, 32, 8, (ctypes.c_int * 8)(*numbers))
    assert (out[-64:] == 251).all()
    return out[:-64].reshape(*to, 3)


def right(name, run, size, to):
    """Whether the kernel writes what it should, as a whole and as a letterbox."""
    image, each = picture(*size) % 251, KERNELS[name][2]
    got = written(run, each, image, to)
    if name == "nearest":
        return np.array_equal(got, reference.resize_nearest(image, *to))
    values = reference.resize_bilinear(image, *to)
    good = np.array_equal(got, reference.rounded(values, got))
    if name == "bilinear":
        return good
    got = written(run, each, image, to, reference.placed(*size, *to))
    return good and np.array_equal(got, reference.rounded(reference.letterbox(image, *to, 7), got))


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_on_a_cpu(name, tmp_path):
    run = library(name, tmp_path)
    for size in SHAPES:
        for to in SHAPES:
            assert right(name, run, size, to), (size, to)


FAULTS = {
    "nearest": ("nearest(y, down), nearest(x, across)", "nearest(x, across), nearest(y, down)"),
    "bilinear": ("row.hi, column.lo", "row.lo, column.hi"),
    "pixel": ("tap(y - top, down)", "tap(y, down)"),
    "rows": ("b = 3LL * row.hi * across.n", "b = 3LL * row.lo * across.n"),
    "kept": ("up = above;", "up = below;"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_in_index_maps_are_noticed(name, tmp_path):
    before, after = FAULTS[name]

    def change(text):
        assert before in text
        return text.replace(before, after)

    run = library(name, tmp_path, change)
    assert not all(right(name, run, size, to) for size in SHAPES[3:] for to in SHAPES[3:])


@pytest.mark.parametrize(
    "size, to, way",
    [
        ((10, 10), (20, 20), "pixel"),
        ((540, 960), (1080, 1920), "kept"),
        ((4000, 4000), (2000, 2000), "rows"),
    ],
)
def test_the_way_by_size(size, to, way):
    assert resize.way_for(size, to, 132)["way"] == way


def test_more_rows_for_a_thread_where_there_are_blocks_enough():
    sizes = ((1080, 1920), (2160, 3840), (4320, 7680))
    assert [resize.way_for((540, 960), to, 132)["ROWS"] for to in sizes] == [8, 16, 32]
