"""Axes: from values to coordinates, linearly or logarithmically, with a grid, numbers and names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from html import escape
from typing import Self

from cudatut.site.svg import Svg

# Where between the ends of an axis a value lies: 0 at the low one, 1 at the high one.
Scale = Callable[[float], float]


def linear(low: float, high: float) -> Scale:
    """A scale on which equal differences are equally far. Raises ValueError where low is high."""
    if low == high:
        raise ValueError(f"an axis needs two different ends, got {low} and {high}")
    return lambda value: (value - low) / (high - low)


def log(low: float, high: float) -> Scale:
    """A scale on which equal ratios are equally far. Raises ValueError where an end is not above 0, or low is high."""
    if min(low, high) <= 0:
        raise ValueError(f"a logarithmic axis ends above 0, got {low} and {high}")
    ratio = linear(math.log(low), math.log(high))
    return lambda value: ratio(math.log(value))


def decades(low: float, high: float, steps: Iterable[float] = (1,)) -> list[float]:
    """The numbers between low and high that are a power of ten times one of `steps`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = (step * 10.0**power for power in powers for step in steps)
    return [number for number in numbers if low <= number <= high]


def powers_of_two(low: float, high: float, every: int = 1) -> list[float]:
    """The powers of two between low and high whose exponents are multiples of `every`."""
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    return [2.0**power for power in powers if power % every == 0]


class Axes:
    """A field of a drawing, left to right and bottom to top in viewBox units, and the scales of its sides.

    size: of numbers and names. Every method that draws returns the axes.
    """

    def __init__(
        self,
        s: Svg,
        x: Scale,
        y: Scale,
        left: float,
        right: float,
        top: float,
        bottom: float,
        size: float = 12,
    ):
        self.s, self._x, self._y = s, x, y
        self.left, self.right, self.top, self.bottom, self.size = left, right, top, bottom, size

    def px(self, x: float) -> float:
        """The coordinate of a value of the level axis."""
        return self.left + (self.right - self.left) * self._x(x)

    def py(self, y: float) -> float:
        """The coordinate of a value of the upright axis."""
        return self.bottom - (self.bottom - self.top) * self._y(y)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The coordinates of a point."""
        return self.px(x), self.py(y)

    def x_ticks(
        self, values: Iterable[float], spec: str = "g", unit: str = "", cls: str | None = "grid"
    ) -> Self:
        """Write values below the field, each with a line of `cls` through it; no lines for None."""
        for value in values:
            x = self.px(value)
            if cls:
                self.s.line(x, self.top, x, self.bottom, cls)
            words = f"{value:{spec}}{unit}"
            self.s.text(x, self.bottom + 6 + self.size, words, "muted", size=self.size)
        return self

    def y_ticks(
        self, values: Iterable[float], spec: str = "g", unit: str = "", cls: str = "grid"
    ) -> Self:
        """Write values to the left of the field, each with a line of `cls` through it."""
        for value in values:
            y = self.py(value)
            self.s.line(self.left, y, self.right, y, cls)
            words = f"{value:{spec}}{unit}"
            self.s.text(self.left - 7, y + 0.35 * self.size, words, "muted", "end", self.size)
        return self

    def names(self, x: str, y: str = "") -> Self:
        """Name the axes: below the numbers in the middle, and at the top on the left."""
        middle, below = (self.left + self.right) / 2, self.bottom + 14 + 2 * self.size
        self.s.text(middle, below, x, "muted", size=self.size)
        if y:
            self.s.text(4, self.size + 2, y, "muted", "start", self.size)
        return self

    def curve(self, points: Iterable[tuple[float, float]], cls: str = "c1") -> Self:
        """Draw straight lines through points (x, y)."""
        self.s.polyline([self.at(x, y) for x, y in points], cls)
        return self

    def level(self, y: float, cls: str = "accent", text: str = "", up: float = 7) -> Self:
        """Draw a line across the field at y; its name ends at the right, `up` units above."""
        self.s.line(self.left, self.py(y), self.right, self.py(y), cls)
        return self._end(y, cls, text, up)

    def dot(self, x: float, y: float, cls: str = "c2 solid", r: float = 5, tip: str = "") -> Self:
        """Draw a circle at a point; tip: what the pointer tells about it."""
        return self._tipped(tip, lambda: self.s.circle(*self.at(x, y), r, cls))

    def square(
        self, x: float, y: float, cls: str = "c3 solid", r: float = 4, tip: str = ""
    ) -> Self:
        """Draw a square of 2 r x 2 r around a point; tip as for a dot."""
        px, py = self.at(x, y)
        return self._tipped(tip, lambda: self.s.rect(px - r, py - r, 2 * r, 2 * r, cls, rx=0))

    def say(
        self,
        x: float,
        y: float,
        text: object,
        cls: str = "muted",
        right: float = 8,
        down: float = 4,
        size: float | None = None,
    ) -> Self:
        """Write beside a point: `right` units to its right (to its left where negative), `down` units below."""
        anchor = "start" if right > 0 else "end" if right < 0 else "middle"
        size = self.size if size is None else size
        self.s.text(self.px(x) + right, self.py(y) + down, text, cls, anchor, size)
        return self

    def _end(self, y: float, cls: str, text: str, up: float) -> Self:
        if text:
            cls = " ".join(one for one in cls.split() if one != "dash")
            self.s.text(self.right, self.py(y) - up, text, cls, "end", self.size)
        return self

    def _tipped(self, tip: str, draw: Callable[[], object]) -> Self:
        if tip:
            self.s.raw(f"<g><title>{escape(tip, quote=False)}</title>")
        draw()
        if tip:
            self.s.raw("</g>")
        return self
