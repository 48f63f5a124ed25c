"""The rounding to FP8 that tests on a GPU compare with: all 256 codes, and what lies between them."""

import numpy as np
from llm_fp8 import NAN, SIZES, from_fp8, to_fp8

CODES = np.arange(256, dtype="uint8")


def test_every_code_is_its_own():
    numbers = CODES[CODES & NAN != NAN]
    np.testing.assert_array_equal(to_fp8(from_fp8(numbers)), numbers)
    assert np.isnan(from_fp8(CODES[[0x7F, 0xFF]])).all()
    assert (to_fp8([np.nan, -np.nan]) & NAN == NAN).all()


def test_known_numbers():
    known = {
        0x00: 0,
        0x01: 2**-9,
        0x07: 7 * 2**-9,
        0x08: 2**-6,
        0x38: 1,
        0x3C: 1.5,
        0x7E: 448,
        0xC0: -2,
    }
    np.testing.assert_array_equal(from_fp8(list(known)), list(known.values()))


def test_between_two_codes():
    middle = (SIZES[1:] + SIZES[:-1]) / 2
    lower = np.arange(len(middle))
    np.testing.assert_array_equal(to_fp8(middle), lower + lower % 2)
    np.testing.assert_array_equal(to_fp8(np.nextafter(middle, 0)), lower)
    np.testing.assert_array_equal(to_fp8(np.nextafter(middle, 500)), lower + 1)
    np.testing.assert_array_equal(to_fp8(-middle), 128 + lower + lower % 2)


def test_too_large():
    np.testing.assert_array_equal(to_fp8([448, 449, 464, 480, 1e30, np.inf]), [0x7E] * 6)
    np.testing.assert_array_equal(to_fp8([-464, -np.inf]), [0xFE] * 2)
