"""The steps that `memory/caches` finds in a curve, and the groups that it finds in times: on curves whose answer is known."""

import math

import numpy as np
import pytest

from cudatut.book.memory.caches.staircase import at, level, ring, steps, two_groups

SIZES = [1024 * 2 ** (k / 4) for k in range(8, 80)]


def share(r: float) -> float:
    """Hits on a ring of r times a cache that drops random lines."""
    hits = 0.0
    for _ in range(200 if r > 1 else 0):
        hits = math.exp(-r * (1 - hits))
    return hits if r > 1 else 1.0


def curve(*caches: tuple[float, float], last: float, noise: float = 0.0):
    """Latencies over sizes of (capacity, cycles) and of what lies behind them."""
    rng = np.random.default_rng(0)

    def cycles(size: float, rest: tuple[tuple[float, float], ...]) -> float:
        if not rest:
            return last
        (capacity, here), *others = rest
        hits = share(size / capacity)
        return hits * here + (1 - hits) * cycles(size, tuple(others))

    return [(size, cycles(size, caches) * rng.normal(1, noise)) for size in SIZES]


def test_a_ring_visits_every_place_once_and_begins_at_the_first():
    for count in (1, 2, 33, 1000):
        order = ring(count, np.random.default_rng(1))
        assert order[0] == 0
        assert sorted(order) == list(range(count))


@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_two_caches_are_two_steps(noise):
    small, large = 200 << 10, 30 << 20
    first, second = steps(curve((small, 33), (large, 260), last=600, noise=noise))
    assert small / 1.2 <= first.holds <= small * 1.2
    assert large / 1.2 <= second.holds <= large * 1.2
    assert first.below == pytest.approx(33, rel=0.03)
    assert second.below == pytest.approx(260, rel=0.03)
    assert first.ends < second.holds


def test_no_step_in_a_level_curve_or_a_small_rise():
    assert steps(curve(last=260, noise=0.005)) == []
    assert steps(curve((1 << 20, 260), last=280)) == []
    assert steps([]) == steps([(1, 1)]) == []


def test_a_curve_is_read_at_a_size_and_over_a_range():
    points = [(1, 10.0), (2, 20.0), (4, 40.0)]
    assert at(points, 2) == 20.0
    assert at(points, 3) == at(points, 5) == 40.0
    assert level(points, 0, 2) == 15.0
    assert level(points, 5, 9) == 10.0  # nothing there: the first


def test_two_groups_are_told_from_one():
    rng = np.random.default_rng(2)
    near, far = rng.normal(210, 5, 4000), rng.normal(380, 5, 4000)
    limit, explained = two_groups(np.concatenate([near, far]))
    assert 230 < limit < 360
    assert explained > 0.98
    assert 0.6 < two_groups(rng.normal(300, 50, 8000))[1] < 0.7
    assert two_groups([5.0, 5.0, 5.0]) == (5.0, 0.0)


def test_what_rises_from_point_to_point_and_by_little_in_all_is_no_step():
    points = [(1, 100.0), (2, 100.0), (4, 105.0), (8, 110.0), (16, 110.0)]
    assert steps(points) == []
    assert len(steps([*points[:-1], (16, 120.0)])) == 1
