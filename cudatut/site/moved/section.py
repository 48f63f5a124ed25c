"""A section of the report as Markdown: a heading, lines and a table, cut to a number of characters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

HEAD = ("number", "before → after", "ratio", "where")
ALL = "`python -m cudatut moved` prints all."
ROOM = 100  # characters that a section takes besides its rows


@dataclass
class Section:
    """A heading, lines below it, and rows of a table; folded away where `folded`."""

    title: str
    lines: list[str] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    head: tuple[str, ...] = HEAD
    folded: bool = False

    def markdown(self, most: int | None = None) -> str:
        """As Markdown of at most so many characters, whole rows of it; what is left out is counted."""
        rows, left = [_row(row) for row in self.rows], 0
        if most is not None:
            head = (*self.lines, self.title, _row(self.head), *self.head)
            room = most - ROOM - sum(map(len, head))
            kept = []
            for row in rows:
                room -= len(row) + 1
                if room < 0:
                    break
                kept.append(row)
            rows, left = kept, len(rows) - len(kept)
        table = [_row(self.head), _row(["---"] * len(self.head)), *rows] if rows else []
        if left:
            table += ["", f"{left} more: {ALL}"]
        body = "\n".join([*self.lines, "", *table]).strip("\n")
        if self.folded:
            return f"<details><summary>{self.title}</summary>\n\n{body}\n\n</details>\n"
        return f"## {self.title}\n\n{body}\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
