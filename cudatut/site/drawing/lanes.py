"""Lanes over time: who does what when, time to the right. A host and a GPU, SMs, warps, stages, requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, TypeVar

from cudatut.site.drawing.cells import Grid, Kind
from cudatut.site.svg import text_width

_MARGIN = 2  # beside the words of a bar
_State = TypeVar("_State")


class Lanes(Grid):
    """A grid whose rows are lanes and whose columns are units of time, `wide` viewBox units each; bars last any time."""

    def when(self, time: float) -> float:
        """The coordinate of a time."""
        return self.x + time * self.wide

    def axis(self, lane: float, text: object, right: float, x: float = 12) -> Self:
        """Name a lane from x on, and draw its axis up to `right`; bars that come later cover it."""
        y = self.center(lane, 0)[1]
        self.s.line(self.x - 12, y, right, y, "axis")
        return self.named(lane, x, text, "bold")

    def bar(
        self,
        lane: float,
        start: float,
        stop: float,
        cls: str = "c1",
        text: object = None,
        spare: bool = False,
    ) -> Self:
        """Draw a bar from `start` to `stop`, at least one viewBox unit wide; a spare text only where it has room."""
        wide = max((stop - start) * self.wide - self.gap_across, 1)
        if spare and text is not None:
            needed = max(text_width(line, self.size) for line in str(text).split("\n"))
            text = text if needed + _MARGIN <= wide else None
        return self.box(lane, start, cls, text, across=(wide + self.gap_across) / self.wide)

    def runs(self, lane: float, states: Sequence[_State], kind: Callable[[_State], Kind]) -> Self:
        """Draw a state for each unit of time, equal neighbors as one bar; kind(state) says how, None for nothing.

        Its text is spare: as of `bar`.
        """
        begin = 0
        for at in range(1, len(states) + 1):
            if at < len(states) and states[at] == states[begin]:
                continue
            found = kind(states[begin])
            if found is not None:
                cls, text = found if isinstance(found, tuple) else (found, None)
                self.bar(lane, begin, at, cls, text, spare=True)
            begin = at
        return self

    def moment(
        self, at: float, first: float, last: float, cls: str = "muted dash", over: float = 6
    ) -> Self:
        """Draw an upright line at a time, from lane `first` to lane `last`, `over` units beyond both."""
        x, top = self.corner(first, at)
        bottom = self.corner(last + 1, at)[1] - self.gap_down
        self.s.line(x, top - over, x, bottom + over, cls)
        return self
