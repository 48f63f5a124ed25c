"""examples/measure/spread.py: the median and how wide the middle of the times is."""

import pytest

from cudatut.book.measure import spread


def test_a_summary_has_the_median_and_the_middle_three_fifths():
    found = spread.summary([1.0, 2.0, 3.0, 4.0])
    assert found.median == 2.5 and (found.p20, found.p80) == pytest.approx((1.0, 4.0))
    assert found.middle == pytest.approx(100 * 3.0 / 2.5)


def test_equal_times_have_no_spread():
    assert spread.summary([7.0] * 25).middle == 0
