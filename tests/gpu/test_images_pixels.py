"""examples/images/pixels: every kernel on ragged sizes against NumPy, images within others, what is refused."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.pixels import launch

SIZES = [
    (1, 1),
    (1, 2),
    (1, 3),
    (1, 5),
    (7, 1),
    (4, 4),
    (33, 31),
    (9, 65),
    (257, 1023),
    (1080, 1920),
]
SWAPPED = ("swap_channels", "swap_turned", "swap_four", "swap_sixteen")


def picture(height, width, seed=0):
    """No byte is one of the two poisons."""
    return ct.rng(seed).integers(1, 255, (height, width, 3), np.uint8)


def expected(name, image):
    return image[:, :, ::-1] if name in SWAPPED else image.transpose(2, 0, 1)


@pytest.mark.parametrize("name", [*SWAPPED, "to_chw", "to_chw_four"])
def test_every_kernel_on_ragged_sizes(name):
    for size in SIZES:
        image = picture(*size)
        wanted, x = expected(name, image), ct.to_device(image)
        for poison in (0, 255):
            out = ct.empty(wanted.shape, "uint8")
            ct.poison(out, poison)
            getattr(launch, name)(x, out)()
            ct.check(out, wanted, f"{name} {size}", rtol=0, atol=0)
        ct.check(x, image, "what was read", rtol=0, atol=0)


@pytest.mark.parametrize("keep", [True, False])
def test_more_light(keep):
    for size in SIZES:
        image = picture(*size)
        sums = image.astype(int) + 200
        image[sums % 256 == 77] = 0  # no sum is the poison
        sums = image.astype(int) + 200
        out = ct.empty(image.shape, "uint8")
        ct.poison(out, 77)  # 255 is a result
        launch.brighter(ct.to_device(image), out, 200, keep)()
        ct.check(out, np.minimum(sums, 255) if keep else sums % 256, rtol=0, atol=0)


@pytest.mark.parametrize("name", SWAPPED)
def test_twice_is_nothing(name):
    image = picture(130, 77)
    x, out = ct.to_device(image), ct.empty(image.shape, "uint8")
    back = ct.empty(image.shape, "uint8")
    getattr(launch, name)(x, out)()
    getattr(launch, name)(out, back)()
    ct.check(back, image, rtol=0, atol=0)


def test_what_is_refused():
    x, out = ct.to_device(picture(4, 5)), ct.empty((4, 5, 3), "uint8")
    flat = ct.to_device(np.zeros(400, np.uint8))
    odd = flat[1:61].reshape(4, 5, 3)
    refused = [
        (TypeError, lambda: launch.swap_channels(ct.empty((4, 5, 3), "float32"), out)),
        (ValueError, lambda: launch.swap_channels(x, x)),
        (ValueError, lambda: launch.swap_channels(x, ct.empty((5, 4, 3), "uint8"))),
        (ValueError, lambda: launch.to_chw(x, out)),
        (ValueError, lambda: launch.to_chw(ct.empty((4, 5, 4), "uint8"), out)),
        (ValueError, lambda: launch.swap_four(odd, out)),
        (ValueError, lambda: launch.to_chw_four(odd, ct.empty((3, 4, 5), "uint8"))),
        (ValueError, lambda: launch.swap_sixteen(x, flat[4:64].reshape(4, 5, 3))),
        (ValueError, lambda: launch.swap_turned(ct.empty((0, 5, 3), "uint8"), ct.empty((0, 5, 3), "uint8"))),
        (ValueError, lambda: launch.brighter(x, out, 256)),
    ]  # fmt: skip
    for error, call in refused:
        with pytest.raises(error):
            call()
    launch.swap_channels(odd, out)()  # any place will do for bytes
