"""Cells in rows and columns: a strip of memory, a matrix, lanes by banks, the steps of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Self

from cudatut.site.svg import SIZE, Svg

# What is drawn in a cell: its class, or its class and its text; nothing for None.
Kind = str | tuple[str, object] | None

_HUES = 6


def hue(number: int) -> str:
    """The class of the color of a block, a warp, a request: c1 to c6, and again."""
    return f"c{1 + number % _HUES}"


class Grid:
    """Cells of equal size whose first has its top left corner at (x, y); rows and columns count from 0.

    wide, high: from a cell to the next, in viewBox units (high as wide by default). gap: what stays free of that
    between two cells, a number or (across, down). rx, size: of each box and of its text. Places may be broken numbers,
    so that something stands between cells. Every method that draws returns the grid.
    """

    def __init__(
        self,
        s: Svg,
        x: float,
        y: float,
        wide: float,
        high: float | None = None,
        gap: float | tuple[float, float] = 3,
        rx: float = 2,
        size: float = SIZE,
    ):
        self.s, self.x, self.y = s, x, y
        self.wide, self.high = wide, wide if high is None else high
        self.gap_across, self.gap_down = gap if isinstance(gap, tuple) else (gap, gap)
        self.rx, self.size = rx, size

    def corner(self, row: float, column: float) -> tuple[float, float]:
        """The top left corner of a cell."""
        return self.x + column * self.wide, self.y + row * self.high

    def center(self, row: float, column: float) -> tuple[float, float]:
        """The middle of a cell's box."""
        x, y = self.corner(row, column)
        return x + (self.wide - self.gap_across) / 2, y + (self.high - self.gap_down) / 2

    def box(
        self,
        row: float,
        column: float,
        cls: str = "c1",
        text: object = None,
        across: float = 1,
        down: float = 1,
        size: float | None = None,
    ) -> Self:
        """Draw one box, `across` cells wide and `down` cells high."""
        wide, high = across * self.wide - self.gap_across, down * self.high - self.gap_down
        size = self.size if size is None else size
        self.s.rect(*self.corner(row, column), wide, high, cls, text, self.rx, size)
        return self

    def fill(self, rows: int, columns: int, kind: Callable[[int, int], Kind]) -> Self:
        """Draw `rows` x `columns` cells, row by row; kind(row, column) says what each is."""
        for row in range(rows):
            self.row(row, (kind(row, column) for column in range(columns)))
        return self

    def row(self, row: float, kinds: Iterable[Kind], first: int = 0) -> Self:
        """Draw cells side by side, from column `first` on."""
        for column, kind in enumerate(kinds, first):
            if kind is not None:
                cls, text = kind if isinstance(kind, tuple) else (kind, None)
                self.box(row, column, cls, text)
        return self

    def heads(
        self,
        names: Iterable[object] | Mapping[int, object],
        cls: str = "muted",
        size: float | None = None,
        up: float = 10,
        row: float = 0,
    ) -> Self:
        """Write a name over each column, `up` units above `row`; or over those that a mapping names, by their number."""
        named = names if isinstance(names, Mapping) else dict(enumerate(names))
        for column, name in named.items():
            x, size = self.center(row, column)[0], self.size if size is None else size
            self.s.text(x, self.corner(row, column)[1] - up, name, cls, size=size)
        return self

    def name(
        self,
        row: float,
        text: object,
        cls: str = "muted",
        size: float | None = None,
        away: float = 10,
    ) -> Self:
        """Write the name of a row, ending `away` units to its left. Lines by \\n."""
        return self._beside(self.x - away, row, text, cls, "end", size)

    def named(self, row: float, x: float, text: object, cls: str = "muted") -> Self:
        """Write the name of a row from x on. Lines by \\n."""
        return self._beside(x, row, text, cls, "start", None)

    def note(
        self,
        row: float,
        column: float,
        text: object,
        cls: str = "muted",
        size: float | None = None,
        away: float = 8,
    ) -> Self:
        """Write something behind the cells of a row, `away` units after the beginning of `column`."""
        return self._beside(self.corner(0, column)[0] + away, row, text, cls, "start", size)

    def _beside(
        self, x: float, row: float, text: object, cls: str, anchor: str, size: float | None
    ) -> Self:
        size = self.size if size is None else size
        lines = str(text).count("\n")
        y = self.center(row, 0)[1] + 0.35 * size - lines * 0.65 * size
        self.s.text(x, y, text, cls, anchor, size)
        return self
