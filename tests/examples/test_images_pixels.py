"""examples/images/pixels without a GPU: the words of swap_four, by what `__byte_perm` does."""

import re
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parents[2] / "examples/images/pixels/pixels.cu"


def byte_perm(x, y, selector):
    """CUDA's: each of the four digits of the selector names one of the eight bytes of x and y."""
    both = (int(y) << 32) | int(x)
    digits = (selector >> (4 * i) & 7 for i in range(4))
    return sum((both >> (8 * digit) & 255) << (8 * i) for i, digit in enumerate(digits))


def test_four_pixels_as_three_words_are_swapped():
    text = SOURCE.read_text(encoding="utf-8")
    told = dict(re.findall(r"out\[3 \* i(?: \+ (\d))?\] =\s*(__byte_perm.*?);", text, re.S))
    assert set(told) == {"", "1", "2"}
    pixels = np.arange(1, 13, dtype=np.uint8).reshape(4, 3)
    words = dict(zip("abc", pixels.reshape(-1).view("<u4")))
    out = [eval(told[key], {"__byte_perm": byte_perm, **words}) for key in ("", "1", "2")]
    assert np.array_equal(np.array(out, "<u4").view(np.uint8).reshape(4, 3), pixels[:, ::-1])
