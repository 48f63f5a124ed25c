"""Ratios of contestants that took turns: the median over pairs of runs, and the interval that another measurement hits.

A clock that falls, or a neighbor on the machine, slows down both runs of a turn. So the ratio is taken within each turn,
and only then the median. The interval has two parts. One is what the turns tell: between which two of the sorted ratios
the median of all possible ones lies, a binomial distribution says, whatever theirs is. The other is what no turn of one
process can tell, since it stays the same for all of them: where in memory the arrays lie, and how warm the GPU is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, hypot
from statistics import median

CONFIDENCE = 0.95
# By how much another recording differs beyond what the turns tell: 1.96 standard deviations. Measured by recording the four
# scoreboards of sums and products six times, twice in each of three sessions on H200s.
AGAIN = 0.006  # of the ratio
AGAIN_HELD_BACK = 0.02  # of the ratio, where the GPU has lowered its clock
AGAIN_US = 0.2  # of the shorter time


def again(shorter_us: float, held_back: bool) -> float:
    """By what part of itself a ratio may differ in another recording, were the turns without any spread."""
    return hypot(AGAIN_HELD_BACK if held_back else AGAIN, AGAIN_US / shorter_us)


VERDICTS = ("reached", "missed", "undecided")


@dataclass(frozen=True)
class Ratio:
    """The median of `pairs` paired ratios; with a probability of CONFIDENCE another recording's is from low to high.

    Less than six pairs cannot tell so much: low and high are then at least the least and the largest.
    """

    median: float
    low: float
    high: float
    pairs: int

    def verdict(self, wanted: float) -> str:
        """Whether a goal is 'reached' (all of the interval is at or above `wanted`), 'missed' (all of it below), or 'undecided'."""
        if self.low >= wanted:
            return "reached"
        return "missed" if self.high < wanted else "undecided"


def ratio(values: Sequence[float], beyond: float = 0.0) -> Ratio:
    """The median of paired ratios, with its interval; beyond: see `again`. Raises ValueError for none."""
    if not values:
        raise ValueError("there are no pairs: the two never ran in one turn")
    ordered, count, middle = sorted(values), len(values), median(values)
    outside = _outside(count)
    below, above = middle - ordered[outside], ordered[count - 1 - outside] - middle
    low, high = middle - hypot(below, beyond * middle), middle + hypot(above, beyond * middle)
    return Ratio(middle, low, high, count)


def _outside(count: int) -> int:
    """How many of the sorted values on each side lie outside of the interval: as many as leave it CONFIDENCE."""
    below, chance = 0, 0.5**count  # that the median lies below all values
    while 2 * (chance + comb(count, below + 1) * 0.5**count) <= 1 - CONFIDENCE:
        below += 1
        chance += comb(count, below) * 0.5**count
    return below


def paired(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """theirs / ours for each turn in which both ran: above 1 where we were faster.

    Both are times in the order of the turns; the shorter one holds every second, fourth ... turn of the longer one.
    Raises ValueError where one length is no multiple of the other.
    """
    if not ours or not theirs:
        return []
    most = max(len(ours), len(theirs))
    if most % len(ours) or most % len(theirs):
        raise ValueError(f"{len(ours)} and {len(theirs)} runs have not taken turns")
    step = most // min(len(ours), len(theirs))
    a, b = ours, theirs
    if len(a) > len(b):
        a = a[::step]
    elif len(b) > len(a):
        b = b[::step]
    return [other / own for own, other in zip(a, b, strict=True)]
