"""Paired ratios: their interval holds the median as often as it says, and a goal is reached, missed or undecided."""

import random
import statistics

import pytest

from cudatut.pairs import AGAIN, AGAIN_HELD_BACK, AGAIN_US, Ratio, again, paired, ratio


@pytest.mark.parametrize(
    ("count", "outside"),
    # David and Nagaraja, Order Statistics: of n values, those between the (outside + 1)th from either end.
    [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (10, 1), (12, 2), (15, 3), (20, 5), (25, 7), (50, 17), (100, 39)],
)  # fmt: skip
def test_the_interval_lies_between_two_of_the_sorted_values(count, outside):
    values = [float(i) for i in range(count)]
    random.Random(count).shuffle(values)
    found = ratio(values)
    assert (found.low, found.high) == (outside, count - 1 - outside)
    assert found.median == statistics.median(values) and found.pairs == count


@pytest.mark.parametrize("count", [6, 12, 25, 60])
def test_the_interval_holds_the_median_at_least_as_often_as_it_says(count):
    chance, held, tries = random.Random(count), 0, 4000
    for _ in range(tries):
        found = ratio([chance.lognormvariate(0, 0.02) for _ in range(count)])  # its median is 1
        held += found.low <= 1 <= found.high
    assert held / tries > 0.94  # 0.95, less three standard deviations of 4000 tries


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(1.0, 1.1, "reached"), (0.9, 0.99, "missed"), (0.99, 1.01, "undecided"), (0.9, 1.0, "undecided")],
)  # fmt: skip
def test_a_goal(low, high, verdict):
    assert Ratio((low + high) / 2, low, high, 9).verdict(1.0) == verdict


def test_pairs_are_of_one_turn():
    assert paired([2.0, 4.0], [6.0, 4.0]) == [3.0, 1.0]
    # The slow one took part in every second turn only.
    assert paired([1.0, 9.0, 2.0, 9.0], [10.0, 20.0]) == [10.0, 10.0]
    assert paired([10.0, 20.0], [1.0, 9.0, 2.0, 9.0]) == [0.1, 0.1]
    assert paired([], [1.0]) == []
    with pytest.raises(ValueError, match="3 and 2 runs have not taken turns"):
        paired([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="no pairs"):
        ratio([])


def test_an_interval_holds_what_another_recording_may_differ_by():
    """Two spreads that have nothing to do with each other: their squares add up."""
    found = ratio([2.0] * 20, beyond=0.01)
    assert (found.low, found.median, found.high) == pytest.approx((1.98, 2.0, 2.02))
    values = [2.0 + (i - 9.5) * 0.01 for i in range(20)]
    alone, wider = ratio(values), ratio(values, beyond=0.01)
    assert wider.high - 2 == pytest.approx(((alone.high - 2) ** 2 + 0.02**2) ** 0.5)


def test_what_another_recording_may_differ_by():
    """Long runs by a part of their ratio, more where the GPU lowers its clock; short ones by a part of a microsecond."""
    assert again(1e6, False) == pytest.approx(AGAIN, rel=1e-4)
    assert again(1e6, True) == pytest.approx(AGAIN_HELD_BACK, rel=1e-4)
    assert again(1.0, False) == pytest.approx(AGAIN_US, rel=1e-3)
    assert again(5.0, True) > again(5.0, False) > again(50.0, False)


def test_a_drift_that_slows_both_down_leaves_their_ratio():
    """What pairs are for: the clock falls by a third over the rounds, and the two are 2 % apart."""
    slower = [1 + i / 100 for i in range(50)]
    ours, theirs = [100 * one for one in slower], [102 * one for one in slower]
    found = ratio(paired(ours, theirs))
    assert found.median == pytest.approx(1.02) and found.high - found.low < 1e-9
    assert statistics.quantiles(ours, n=5)[-1] > 1.2 * statistics.quantiles(ours, n=5)[0]


def test_the_measured_spread_of_recordings():
    """Of 20 us 0.2 are a hundredth; 0.6 % of the ratio beside it, or 2 % where the clock was lowered."""
    assert again(20.0, False) == pytest.approx((0.006**2 + 0.01**2) ** 0.5)
    assert again(20.0, True) == pytest.approx((0.02**2 + 0.01**2) ** 0.5)


def test_every_second_turn_begins_with_the_first():
    assert paired([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [10.0, 20.0]) == [10.0, 5.0]
    assert paired([3.0], [6.0]) == [2.0]
    assert paired([1.0], []) == []
    for ours, theirs in ((2, 3), (4, 6)):
        with pytest.raises(ValueError, match=f"{ours} and {theirs} runs have not taken turns"):
            paired([1.0] * ours, [1.0] * theirs)


def test_an_interval_reaches_as_far_as_its_values_on_each_side():
    found = ratio([1.0, 2.0, 5.0], beyond=0.5)
    assert found.median == 2.0 and found.pairs == 3
    assert found.low == pytest.approx(2 - (1 + 1) ** 0.5)
    assert found.high == pytest.approx(2 + (9 + 1) ** 0.5)
