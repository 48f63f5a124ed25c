"""A roofline: rates over operations per byte, both logarithmic, under slopes of memories and levels of units."""

from __future__ import annotations

import math
from typing import Self

from cudatut.site.drawing.axes import Axes, decades, log, powers_of_two
from cudatut.site.svg import Svg, tr


class Roofline(Axes):
    """The field of a roofline, with its grid and its names drawn: FLOP per byte to the right, TFLOP/s upwards.

    x, y: (low, high) of both. bottom: where the field ends; the drawing is 50 units higher. every: a number at each
    second, fourth ... power of two below the field. steps: numbers of a decade at the side. across, upright: other
    names of the axes.
    """

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        bottom: float = 360,
        every: int = 2,
        steps: tuple[float, ...] = (1,),
        across: str = "",
        upright: str = "",
    ):
        super().__init__(Svg(712, bottom + 50), log(*x), log(*y), 58, 700, 28, bottom)
        self._low = x[0], y[0]
        self.x_ticks(powers_of_two(*x, every)).y_ticks(decades(*y, steps))
        self.names(
            across or tr("FLOP per byte (logarithmic)", "每字节 FLOP（对数）"),
            upright or tr("TFLOP/s (logarithmic)", "TFLOP/s（对数）"),
        )

    def slope(
        self,
        gb_s: float,
        peak: float,
        cls: str = "accent",
        text: str = "",
        right: float = -8,
        down: float = -6,
    ) -> Self:
        """Draw what a memory of `gb_s` GB/s allows, up to a rate of `peak` TFLOP/s.

        text: stands beside the middle of what is seen of it; right, down: as for `say`.
        """
        low, least = self._low
        start, stop = max(low, 1e3 * least / gb_s), 1e3 * peak / gb_s
        self.s.line(*self.at(start, gb_s * start / 1e3), *self.at(stop, peak), cls)
        if text:
            middle = math.sqrt(start * stop)
            self.say(middle, gb_s * middle / 1e3, text, cls, right, down)
        return self

    def roof(
        self, rate: float, gb_s: float, cls: str = "accent", text: str = "", up: float = 8
    ) -> Self:
        """Draw a rate in TFLOP/s that no operation passes, from where a memory of `gb_s` GB/s reaches it."""
        self.s.line(
            *self.at(max(self._low[0], 1e3 * rate / gb_s), rate), self.right, self.py(rate), cls
        )
        self._end(rate, cls, text, up)
        return self
