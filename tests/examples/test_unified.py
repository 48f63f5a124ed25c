"""examples/memory/unified, as far as it goes without a GPU: which touches fault, and how much memory may be asked for."""

import random
from pathlib import Path

import pytest

from cudatut.book.memory.unified import managed, prefetcher, touches

FIGURES = Path(__file__).resolve().parents[2] / "docs"
BLOCK, BIG = prefetcher.BLOCK, prefetcher.BIG


def count(pages):
    return sum(prefetcher.faults(pages))


def test_a_walk_through_a_block_doubles_what_is_there_with_each_fault():
    upwards = list(range(BLOCK))
    assert [page for page, slow in zip(upwards, prefetcher.faults(upwards)) if slow] == [
        0, 16, 32, 64, 128, 256,
    ]  # fmt: skip
    assert count(upwards[::-1]) == 6
    assert count(upwards * 2) == 6, "what is there stays there"


def test_no_decision_looks_beyond_a_block():
    rng = random.Random(0)
    one, other = ([rng.randrange(BLOCK) for _ in range(200)] for _ in range(2))
    mixed = [page + BLOCK * side for pair in zip(one, other) for side, page in enumerate(pair)]
    assert count(mixed) == count(one) + count(other)


def test_exactly_half_is_not_enough_and_one_more_brings_the_rest():
    evens, odds = range(0, BLOCK, 2 * BIG), range(BIG, BLOCK, 2 * BIG)
    assert count(evens) == 16
    assert count([*evens, *odds]) == 17


def test_no_order_of_a_block_has_more_than_seventeen_faults_or_fewer_than_six():
    rng, pieces = random.Random(1), list(range(0, BLOCK, BIG))
    for _ in range(300):
        rng.shuffle(pieces)
        assert 6 <= count(pieces) <= 17


@pytest.mark.parametrize("order", ["upwards", "downwards", "shuffled"])
def test_the_drawing_follows_the_rule(order, monkeypatch):
    monkeypatch.syspath_prepend(str(FIGURES))
    from figures.memory import unified

    pieces = list(range(32))
    if order == "downwards":
        pieces.reverse()
    elif order == "shuffled":
        random.Random(2).shuffle(pieces)
    steps = unified.moved(pieces)
    slow = prefetcher.faults([BIG * piece for piece in pieces])
    assert [piece for piece, _ in steps] == [p for p, one in zip(pieces, slow) if one]
    assert sorted(one for _, came in steps for one in came) == list(range(32))


def test_patterns_touch_what_their_names_say():
    class Order:
        def permutation(self, every):
            import numpy as np

            return np.array(every[::-1])

    found = prefetcher.patterns(2, Order())
    assert {name: len(pages) for name, pages in found.items()} == {
        "every page, upwards": 1024,
        "every page, downwards": 1024,
        "every page, in random order": 1024,
        "every other 64 KB": 32,
        "one page of each 2 MB": 2,
    }


def test_managed_memory_is_never_more_than_is_free():
    assert managed.room(free=1000, held=0) == 500
    assert managed.room(free=1000, held=400) == 100
    assert managed.room(free=1000, held=600) == 0
    assert managed.room(free=0, held=0) == 0
    for free in range(50):
        for held in range(60):
            left = managed.room(free, held)
            assert left >= 0 and (left == 0 or held + left <= free)


def test_a_touch_counts_where_it_is_slow_in_every_walk():
    """One that an interrupt held up is fast in the other walk."""
    quick, late = touches.SLOW_US / 2, 2 * touches.SLOW_US
    walks = [quick, late, late, quick], [quick, late, quick, late]
    assert [touches.slow(walk) for walk in walks] == [2, 2]
    assert touches.slow_each_time(walks) == 1
