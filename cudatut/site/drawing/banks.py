"""Shared memory as its banks see it: rows of words, a column for each bank."""

from __future__ import annotations

from cudatut.site.drawing.cells import Grid
from cudatut.site.svg import Svg, tr

BANKS = 32


class Banks(Grid):
    """A grid with a column for each bank, whose numbers stand over every fourth.

    s, x, y: as of a grid; x leaves room for the word 'bank' and, with `rows`, for the number of each row's first word.
    """

    def __init__(
        self,
        s: Svg,
        x: float,
        y: float,
        rows: int = 0,
        high: float = 26,
        gap: float | tuple[float, float] = (2, 3),
        rx: float = 2,
        numbers: range = range(0, BANKS, 4),
    ):
        super().__init__(s, x, y, 20, high, gap, rx)
        s.text_from(4, y - 8, tr("bank", "存储体"), "muted")
        self.heads({bank: bank for bank in numbers}, up=8)
        for row in range(rows):
            self.name(row, BANKS * row, away=8)
