"""examples/images/warp: every kernel on ragged sizes against NumPy, textures, and what is refused."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.resize import reference as resized
from cudatut.book.images.warp import reference, warp
from cudatut.book.images.warp.reference import BORDERS, rotation
from cudatut.book.images.warp.textures import Texture

SIZES = [(1, 1), (1, 2), (2, 1), (3, 3), (1, 9), (7, 5), (31, 33), (65, 130)]
POISON = 251  # no pixel is, so nothing between pixels is
IDENTITY = [[1, 0, 0], [0, 1, 0]]


def picture(height, width, seed=0):
    return ct.rng(seed).integers(0, POISON, (height, width, 3), np.uint8)


def fresh(*shape):
    out = ct.empty(shape, np.uint8)
    ct.poison(out, POISON)
    return out


def judged(out, values, name, near=reference.NEAR):
    got = out.get()
    wanted = reference.rounded(values, got[..., :3], near)
    ct.check(out, np.dstack([wanted, got[..., 3:]]), name)


def matrices(height, width):
    return [
        IDENTITY,
        [[1, 0, -1.25], [0, 1, 0.75]],
        rotation(30, height, width, 0.8),
        rotation(90, height, width),
        [[1.5, 0.4, -3], [-0.2, 0.3, 5]],
        [[1, 0, 5000], [0, 1, 0]],
    ]


def cases(sizes=SIZES):
    for size in sizes:
        for to in (size, (1, 1), (40, 67)):
            for matrix in matrices(*size):
                yield picture(*size), to, matrix


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("interpolation", warp.TAPS)
def test_every_interpolation_and_border(interpolation, border):
    taps, number = warp.TAPS[interpolation], BORDERS.index(border)
    for image, to, matrix in cases():
        out = fresh(*to, 3)
        warp.warp(ct.to_device(image), out, matrix, interpolation, border, 77)()
        values = reference.warp(image, matrix, *to, taps, number, 77)
        judged(out, values, f"{image.shape} to {to}, {matrix}")


@pytest.mark.parametrize("border", BORDERS[:2])
@pytest.mark.parametrize("plan", [{}, {"BY_BITS": 0}], ids=str)
def test_four_pixels_of_a_thread(border, plan):
    for image, to, matrix in cases():
        out = fresh(*to, 3)
        warp.warp(ct.to_device(image), out, matrix, "linear", border, 77, "words", **plan)()
        values = reference.warp(image, matrix, *to, 2, BORDERS.index(border), 77)
        judged(out, values, f"{image.shape} to {to}, {matrix}")


def padded(image):
    height, width, _ = image.shape
    pixels = ct.to_device(np.full((height, warp.pitch_of(width), 4), 99, np.uint8))
    warp.pad(ct.to_device(image), pixels)()
    return pixels


def test_pad():
    for size in SIZES:
        image = picture(*size)
        pixels = padded(image)
        wanted = np.full(pixels.shape, 99, np.uint8)
        wanted[:, : size[1], :3], wanted[:, : size[1], 3] = image, 255
        ct.check(pixels, wanted, f"{size}")


@pytest.mark.parametrize("border", BORDERS[:2])
def test_four_bytes_of_a_pixel(border):
    for image, to, matrix in cases():
        pixels, out, width = padded(image), fresh(*to, 4), image.shape[1]
        warp.four(pixels, width, out, matrix, border, 77)()
        values = reference.warp(image, matrix, *to, 2, BORDERS.index(border), 77)
        judged(out, values, f"{image.shape} to {to}, {matrix}")


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("border", BORDERS[:2])
def test_textures(border, filtered, array):
    for image, to, matrix in cases(SIZES[:1] + SIZES[3:]):
        pixels, out, width = padded(image), fresh(*to, 4), image.shape[1]
        warp.by_texture(pixels, width, out, matrix, filtered, border, array)()
        values = reference.warp(image, matrix, *to, 2, BORDERS.index(border), 0)
        # Weights of a texture have 8 bits: each is off by 1/256 at most.
        near = 2.0 if filtered else reference.NEAR
        judged(out, values, f"{image.shape} to {to}, {matrix}", near)


def test_positions_in_fp32_are_near_on_a_small_image():
    image = picture(31, 33)
    out, matrix = fresh(31, 33, 3), rotation(30, 31, 33)
    warp.warp(ct.to_device(image), out, matrix, way="float")()
    judged(out, reference.warp(image, matrix, 31, 33), "float", near=0.02)


def test_a_warp_can_resize():
    image = picture(31, 33)
    out, matrix = fresh(20, 90, 3), reference.resizing(31, 33, 20, 90)
    warp.warp(ct.to_device(image), out, matrix, border="replicate")()
    judged(out, resized.resize_bilinear(image, 20, 90), "resize")


def test_sent_forward():
    image = np.full((10, 10, 3), 200, np.uint8)
    out = ct.to_device(np.zeros((20, 20, 3), np.uint8))
    matrix = [[2, 0, 0], [0, 2, 0]]
    warp.forward(ct.to_device(image), out, matrix)()
    wanted = 200 * reference.forward(image, matrix, 20, 20).astype("uint8")
    ct.check(out, np.dstack([wanted] * 3))


def test_a_transposed_map_is_noticed():
    image, matrix = picture(31, 33), rotation(30, 31, 33)
    out = fresh(31, 33, 3)
    warp.warp(ct.to_device(image), out, np.asarray(matrix)[::-1])()
    with pytest.raises(ct.CheckError):
        judged(out, reference.warp(image, matrix, 31, 33), "transposed")


def test_what_is_refused():
    x, out = ct.to_device(picture(4, 4)), fresh(4, 4, 3)
    four = ct.to_device(np.zeros((4, 12, 4), np.uint8))
    odd = ct.to_device(np.zeros(49, np.uint8))[1:].reshape(4, 4, 3)
    refused = [
        (TypeError, lambda: warp.warp(np.zeros((4, 4, 3), "u1"), out, IDENTITY)),
        (ValueError, lambda: warp.warp(x, x, IDENTITY)),
        (ValueError, lambda: warp.warp(x, out, [[1, 2, 0], [2, 4, 0]])),
        (ValueError, lambda: warp.warp(x, out, [[1e-9, 0, 0], [0, 1, 0]])),
        (ValueError, lambda: warp.warp(odd, out, IDENTITY, way="words")),
        (ValueError, lambda: Texture(four, 12)),  # a pitch of 48 bytes
        (ValueError, lambda: Texture(four, 13, array=True)),
        (ValueError, lambda: warp.four(four, 0, fresh(4, 4, 4), IDENTITY)),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
