"""The NumPy model of what wgmma reads, and bf16 on the host."""

import numpy as np
import pytest

from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.tensor.wgmma import layouts


def test_the_swizzle_is_its_own_inverse_and_stays_in_the_line():
    address = np.arange(64 << 10)
    once = layouts.swizzled(address)
    np.testing.assert_array_equal(layouts.swizzled(once), address)
    np.testing.assert_array_equal(once // 128, address // 128)
    np.testing.assert_array_equal(once % 16, address % 16)


def test_eight_lines_of_a_piece_lie_in_all_banks():
    for piece in range(8):
        places = layouts.swizzled(np.arange(8) * 128 + piece * 16)
        assert len(set(places % 128)) == 8


@pytest.mark.parametrize("extent", [64, 128, 256])
@pytest.mark.parametrize("along", [True, False])
def test_a_right_descriptor_reads_the_factor(extent, along):
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 1 << 16, (extent, 64), dtype="uint16")
    if along:
        boxes, leading, further = matrix.reshape(-1, 64, 64), 16, 32
    else:
        boxes, leading, further = np.split(matrix.T, extent // 64, 1), 64 * 128, 16 * 128
    memory = layouts.image(boxes)
    read = layouts.factor(memory, along, leading, 1024, extent, further)
    np.testing.assert_array_equal(read, matrix)
    wrong = layouts.factor(memory, along, leading, 2048, extent, further)
    assert (wrong != matrix).any()


def test_bf16_is_rounded_to_the_nearest_ties_to_even():
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-8, 0.0, -0.0])
    expected = [1.0, 1.0, 1 + 2**-6, 1 + 2**-7, -1.0, 0.0, -0.0]
    np.testing.assert_array_equal(to_float(to_bf16(values)), np.array(expected, "float32"))
    special = to_float(to_bf16(np.array([np.inf, -np.inf, np.nan, 3.4e38], "float32")))
    assert special[0] == np.inf and special[1] == -np.inf and np.isnan(special[2])
    assert special[3] == np.inf  # more than the largest bf16, by more than half a step
    assert np.signbit(to_float(to_bf16(np.array([-0.0]))))[0]
