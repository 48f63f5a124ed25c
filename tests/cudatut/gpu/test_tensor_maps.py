"""Tensor maps, as far as they go without a GPU: what the TMA cannot do is refused before the driver is asked."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.gpu import tensor_maps


class OnGpu:
    """An array that claims to lie on a GPU."""

    def __init__(self, shape, dtype="float32", strides=None, address=0x7000):
        self.dtype = np.dtype(dtype)
        self.__cuda_array_interface__ = {
            "shape": shape,
            "strides": strides,
            "data": (address, False),
        }


@pytest.mark.parametrize(
    ("array", "box", "swizzle", "message"),
    [
        (OnGpu((4, 0)), (4, 4), None, "none of them 0"),
        (OnGpu((2,) * 6), (2,) * 6, None, "one to five extents"),
        (OnGpu((8, 6)), (8, 4), None, "rows at multiples of 16 bytes.*pad the rows"),
        (OnGpu((8, 8), address=0x7004), (8, 4), None, "0x7004"),
        (OnGpu((8, 8), strides=(4, 32)), (8, 4), None, "not contiguous"),
        (OnGpu((8, 8)), (8,), None, "as many extents"),
        (OnGpu((8, 8)), (257, 4), None, "from 1 to 256"),
        (OnGpu((8, 8)), (0, 4), None, "from 1 to 256"),
        (OnGpu((8, 8)), (8, 2), None, "has 8 bytes; it must be a multiple of 16$"),
        (OnGpu((8, 64)), (8, 32), 64, "has 128 bytes; .* with this swizzle, at most 64"),
        (OnGpu((8, 64)), (8, 32), 48, "swizzle 48"),
    ],
)
def test_what_the_tma_cannot_do_is_refused(array, box, swizzle, message):
    with pytest.raises(ValueError, match=message):
        ct.tensor_map(array, box, swizzle)


def test_a_dtype_without_map():
    with pytest.raises(TypeError, match="none for complex64"):
        ct.tensor_map(OnGpu((8, 8), "complex64"), (8, 8))


@pytest.mark.parametrize(
    ("shape", "strides", "box", "expected"),
    [
        ((100, 64), None, (128, 8), ([64, 100], [256])),
        ((100, 62), (256, 4), (128, 8), ([62, 100], [256])),
        ((7, 5, 4), None, (1, 5, 4), ([4, 5, 7], [16, 80])),
        ((1000,), None, (256,), ([1000], [])),
        ((100, 64), None, (16, 32), ([64, 100], [256])),
    ],
)
def test_extents_and_strides_as_the_driver_has_them(shape, strides, box, expected):
    assert tensor_maps._checked(OnGpu(shape, strides=strides), box, None) == expected
