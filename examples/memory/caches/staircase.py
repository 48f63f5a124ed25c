"""Rings that one thread walks, and the steps in what that takes.

ring(count, rng)       # an order that visits every place once
room = Room(nbytes)
room.link(places)      # a ring through these words of the room
room.walk(CG, warm, count)   # cycles, nanoseconds, last address
steps(points)          # where a curve jumps
"""

import statistics
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct

SOURCE = "memory/caches/caches.cu"
# The ways to load that caches.cu numbers.
PLAIN, CG, CS, NO_ALLOCATE = range(4)
LINE = 128  # bytes between neighbors of a ring, in the plain case


def ring(count: int, rng: Any) -> Any:
    """0 and all other numbers below `count`, in random order."""
    return np.concatenate([[0], 1 + rng.permutation(count - 1)])


class Room:
    """Memory for rings: every place is a word of 8 bytes.

    nbytes: its size; or words: an array of the GPU that it is to be.
    """

    def __init__(self, nbytes: int = 0, words: Any = None):
        self.words = ct.empty(nbytes // 8, "int64") if words is None else words
        self._link = ct.Kernel(SOURCE, "link_ring")
        self._chase: dict[int, Any] = {}
        self._out = ct.empty(3, "int64")

    def link(self, places: Any) -> None:
        """Make a ring of these places, which begins at the first."""
        places = np.ascontiguousarray(places, "int64")
        assert places.min() >= 0 and places.max() < self.words.size
        d_places, grid = ct.to_device(places), ct.cdiv(places.size, 256)
        self._link(self.words, d_places, places.size, grid=grid, block=256)
        ct.synchronize()  # before d_places is gone
        self.places = places

    def address(self, k: int) -> int:
        """Of the place that is number k in the ring."""
        place = self.places[k % self.places.size]
        return int(self.words.gpudata) + 8 * int(place)

    def first(self, start: int = 0) -> Any:
        """The pointer to number `start`."""
        return np.uint64(self.address(start))

    def walk(
        self,
        hint: int,
        warm: int,
        count: int,
        shared: int = 0,
        start: int = 0,
        stream: Any = None,
    ) -> Any:
        """Cycles, nanoseconds and the last address of `count` loads, which
        follow on `warm` others.
        """
        if hint not in self._chase:
            self._chase[hint] = ct.Kernel(SOURCE, f"chase<{hint}>")
        how = {"grid": 1, "block": 1, "shared": shared, "stream": stream}
        self._chase[hint](self.first(start), warm, count, self._out, **how)
        ct.synchronize()
        return self._out.get()


# --8<-- [start:steps]
class Step(NamedTuple):
    """Up to `holds` bytes a load takes `below` cycles, from `ends` bytes on
    `above` cycles.
    """

    holds: float
    ends: float
    below: float
    above: float


def steps(points: list, rise: float = 1.03, least: float = 1.15) -> list[Step]:
    """Where a curve of (bytes, cycles) jumps: it rises by the factor `rise` or
    more from point to point, and by `least` or more in all.
    """
    found, k = [], 0
    while k < len(points) - 1:
        begin = k
        while k < len(points) - 1 and points[k + 1][1] >= rise * points[k][1]:
            k += 1
        if points[k][1] >= least * points[begin][1]:
            (holds, below), (ends, above) = points[begin], points[k]
            found.append(Step(holds, ends, below, above))
        k = max(k, begin + 1)
    return found


# --8<-- [end:steps]


def at(points: list, size: float) -> float:
    """The value at the first size that is at least this, or at the last."""
    return next((y for x, y in points if x >= size), points[-1][1])


def level(points: list, low: float, high: float) -> float:
    """The median of the values from size `low` to size `high`."""
    inside = [y for x, y in points if low <= x <= high]
    return statistics.median(inside or [points[0][1]])


# --8<-- [start:two-groups]
def two_groups(values: Any) -> tuple[float, float]:
    """The limit that splits values best into two groups, and how well: which
    part of their variance lies between the groups. Without groups it is about
    0.64 for a bell curve, with two narrow peaks it is nearly 1.
    """
    x = np.sort(np.asarray(values, "float64").ravel())
    n, total = np.arange(1, x.size), x.var() * x.size
    if total == 0:
        return float(x[0]), 0.0
    low = np.cumsum(x)[:-1]
    means = low / n - (x.sum() - low) / (x.size - n)
    between = means**2 * n * (x.size - n) / x.size
    k = int(np.argmax(between))
    return float((x[k] + x[k + 1]) / 2), float(between[k] / total)


# --8<-- [end:two-groups]
