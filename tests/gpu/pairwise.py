"""Not every combination of parameters, but every pair of values of two of them, in at least one test.

Where a kernel's instance is one parameter (an element type and a tile together, say), each of its instances still meets
each value of every other parameter. What a third parameter adds to a fault that shows for a pair is little: a thousand
tests that all fail or all pass together prove what two hundred prove.
"""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest


def pairs(
    *axes: Sequence[Any], fits: Callable[..., bool] = lambda *values: True
) -> list[tuple[Any, ...]]:
    """Combinations, one value of each axis, in which every pair of values of two axes occurs; the same ones every time.

    fits: whether a combination is possible; a pair that is in none that is does not occur.
    """

    def values(way):
        return [axis[i] for axis, i in zip(axes, way)]

    every = itertools.product(*(range(len(axis)) for axis in axes))
    ways = [way for way in every if fits(*values(way))]
    random.Random(len(ways)).shuffle(ways)
    couples = list(itertools.combinations(range(len(axes)), 2))

    def of(way):
        return {(i, j, way[i], way[j]) for i, j in couples}

    missing, chosen = set().union(*map(of, ways)), []
    while missing:
        most = max(ways, key=lambda way: len(of(way) & missing))
        chosen.append(most)
        missing -= of(most)
    return [tuple(values(way)) for way in sorted(chosen)]


def pairwise(
    name: Callable[[Any], str | None] = lambda value: None,
    fits: Callable[..., bool] = lambda *values: True,
    **axes: Sequence[Any],
) -> pytest.MarkDecorator:
    """Parametrize a test with `pairs` of these axes. name: of a value, for the test's id; None: pytest's own.

    The values of an axis `a__b` are pairs of values for the parameters `a` and `b`.
    """
    names = [part for axis in axes for part in axis.split("__")]
    rows = []
    for way in pairs(*axes.values(), fits=fits):
        values = [
            part for axis, value in zip(axes, way) for part in (value if "__" in axis else (value,))
        ]
        rows.append(tuple(values))
    return pytest.mark.parametrize(names, rows, ids=name)
