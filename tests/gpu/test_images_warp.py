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


@pytest.mark.parametrize("border", BORDERS[:2])
@pytest.mark.parametrize("plan", [{}, {"ROWS": 1}, {"ROWS": 4}, {"WEIGHTS": 1}], ids=str)
@pytest.mark.parametrize("block", [(8, 16), (32, 4), (4, 8)], ids=str)
def test_lanes_that_pack_their_pixels(block, plan, border):
    near = 0.02 if "WEIGHTS" in plan else reference.NEAR  # 16 bits
    for image, to, matrix in cases([*SIZES[1:], (40, 44)]):
        out = fresh(*to, 3)
        given = (matrix, "linear", border, 77, "packed", block)
        warp.warp(ct.to_device(image), out, *given, **plan)()
        values = reference.warp(image, matrix, *to, 2, BORDERS.index(border), 77)
        judged(out, values, f"{image.shape} to {to}, {matrix}", near)


@pytest.mark.parametrize("border", BORDERS[:2])
@pytest.mark.parametrize("plan", [{}, {"HIGH": 16}, {"HIGH": 64}, {"WEIGHTS": 1}], ids=str)
def test_tiles_in_shared_memory(plan, border):
    near = 0.02 if "WEIGHTS" in plan else reference.NEAR
    for image, to, matrix in cases([*SIZES[1:], (140, 144)]):
        out = fresh(*to, 3)
        given = (matrix, "linear", border, 77, "tile")
        warp.warp(ct.to_device(image), out, *given, **plan)()
        values = reference.warp(image, matrix, *to, 2, BORDERS.index(border), 77)
        judged(out, values, f"{image.shape} to {to}, {matrix}", near)


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
        # On the host, since an array that nobody wrote is 255 as well.
        ct.check(pixels.get(), wanted, f"{size}")


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


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("border", BORDERS[:2])
def test_textures_to_three_channels(border, rows, array):
    for image, to, matrix in cases(SIZES[3:]):
        pixels, out, width = padded(image), fresh(*to, 3), image.shape[1]
        given = (matrix, True, border, array, (8, 16))
        warp.by_texture(pixels, width, out, *given, ROWS=rows)()
        values = reference.warp(image, matrix, *to, 2, BORDERS.index(border), 0)
        judged(out, values, f"{image.shape} to {to}, {matrix}", near=2.0)


@pytest.mark.parametrize("plan", [{}, {"ROWS": 4}, {"WEIGHTS": 1}], ids=str)
@pytest.mark.parametrize("border", BORDERS[:2])
def test_a_texture_brings_four_neighbors(border, plan):
    near = 0.02 if "WEIGHTS" in plan else reference.NEAR
    for image, to, matrix in cases([*SIZES, (40, 44)]):
        pixels, out, width = padded(image), fresh(*to, 3), image.shape[1]
        given = (matrix, False, border, True, (8, 16), True)
        warp.by_texture(pixels, width, out, *given, **plan)()
        values = reference.warp(image, matrix, *to, 2, BORDERS.index(border), 0)
        judged(out, values, f"{image.shape} to {to}, {matrix}", near)


def test_an_array_is_a_copy_until_it_is_copied_again():
    image = picture(5, 7)
    pixels, out = padded(image), fresh(5, 7, 4)
    texture = Texture(pixels, 7, array=True)
    pixels.fill(9)
    kernel, back = warp.kernel("four", "warp_points"), warp.map_back(IDENTITY, 5, 7)
    for wanted in (image, np.full_like(image, 9)):
        kernel(out, texture.handle, back, 5, 7, grid=(1, 1), block=(16, 16))
        ct.check(out.get()[..., :3], wanted)
        texture.refresh()


def test_a_texture_weighs_with_8_bits():
    two = np.zeros((1, 8, 4), np.uint8)
    two[0, 1] = 255
    texture, found = Texture(ct.to_device(two), 2, filtered=True), ct.empty(65_536, "float32")
    kernel = warp.kernel("four", "between")
    kernel(found, texture.handle, 65_536, grid=256, block=256)
    assert len(np.unique(found.get())) in (256, 257)
    exact = 255 * np.arange(65_536) / 65_536
    assert np.abs(found.get() - exact).max() <= 255 / 256 + 1e-3


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
        (ValueError, lambda: warp.warp(x, out, IDENTITY, way="packed", block=(6, 16))),
        (ValueError, lambda: warp.warp(odd, out, IDENTITY, way="packed")),
        (ValueError, lambda: warp.warp(x, out, [[0.1, 0, 0], [0, 0.1, 0]], way="tile")),
        (ValueError, lambda: warp.by_texture(four, 9, out, IDENTITY)),  # points have four
        (ValueError, lambda: Texture(four, 8, filtered=True, gather=True)),
        (ValueError, lambda: Texture(four, 12)),  # a pitch of 48 bytes
        (ValueError, lambda: Texture(four, 13, array=True)),
        (ValueError, lambda: warp.four(four, 0, fresh(4, 4, 4), IDENTITY)),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
