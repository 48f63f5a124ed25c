"""Tensor maps, as far as they go without a GPU: what the TMA cannot do is refused before the driver is asked."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct
from cudatut.errors import CudatutError
from cudatut.gpu import device, memory, tensor_maps


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


class Driver:
    """Notes what it is asked for, and writes a map whose bytes are 7."""

    status = 0

    def cuTensorMapEncodeTiled(self, place, *asked):
        self.place = place.value
        self.asked = [list(one) if isinstance(one, ctypes.Array) else one.value for one in asked]
        ctypes.memset(place, 7, 1)
        return self.status


@pytest.fixture
def driver(monkeypatch):
    driver, gpu = Driver(), SimpleNamespace(compute_capability=(9, 0), name="Test", arch="sm_90")
    monkeypatch.setattr(device, "device", lambda: gpu)
    monkeypatch.setattr(device, "installed_driver", lambda: driver)
    monkeypatch.setattr(memory, "poison_unwritten", lambda *given: setattr(driver, "reach", given))
    return driver


def test_the_driver_is_asked_for_a_map_of_128_aligned_bytes(driver):
    made = ct.tensor_map(OnGpu((7, 5, 4), strides=(96, 16, 4)), (1, 5, 4))
    assert len(made) == 128 and made[0] == 7 and driver.place % 64 == 0
    # CU_TENSOR_MAP_DATA_TYPE_FLOAT32; CU_TENSOR_MAP_L2_PROMOTION_L2_128B
    assert driver.asked == [7, 3, 0x7000, [4, 5, 7], [16, 96, 0], [4, 5, 1], [1, 1, 1], 0, 0, 2, 0]
    assert driver.reach == (0x7000, 6 * 96 + 4 * 16 + 4 * 4)


def test_a_map_that_the_driver_refuses(driver):
    driver.status = 1
    with pytest.raises(CudatutError, match=r"shape \(8, 4\) with box \(2, 4\) \(error 1\)"):
        ct.tensor_map(OnGpu((8, 4)), (2, 4))


@pytest.mark.parametrize(("swizzle", "number"), [(None, 0), (32, 1), (64, 2), (128, 3)])
def test_a_row_may_be_as_long_as_its_swizzle(driver, swizzle, number):
    """CU_TENSOR_MAP_SWIZZLE_NONE, _32B, _64B and _128B in cuda.h; none of them interleaves."""
    ct.tensor_map(OnGpu((8, 64)), (8, (swizzle or 128) // 4), swizzle)
    assert driver.asked[-4:] == [0, number, 2, 0]
    if swizzle:
        with pytest.raises(ValueError, match=f"has {swizzle + 16} bytes"):
            ct.tensor_map(OnGpu((8, 64)), (8, swizzle // 4 + 4), swizzle)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("uint8", 0), ("uint16", 1), ("uint32", 2), ("int32", 3), ("uint64", 4), ("int64", 5),
        ("float16", 6), ("float32", 7), ("float64", 8),
    ],
)  # fmt: skip
def test_each_type_has_its_number_in_cuda_h(driver, dtype, number):
    ct.tensor_map(OnGpu((8, 64), dtype), (8, 16))
    assert driver.asked[0] == number


def test_before_hopper_there_is_no_tma(driver, monkeypatch):
    gpu = SimpleNamespace(compute_capability=(8, 9), name="NVIDIA Test", arch="sm_89")
    monkeypatch.setattr(device, "device", lambda: gpu)
    with pytest.raises(ct.UnsupportedGpuError, match="NVIDIA Test.*sm_89"):
        ct.tensor_map(OnGpu((8, 64)), (8, 16))
