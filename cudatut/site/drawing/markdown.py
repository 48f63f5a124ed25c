"""Tables in Markdown, for what figures compute from recordings and no directive shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], words: Iterable[int] = (0,)
) -> str:
    """A Markdown table; the columns whose numbers are in `words` hold words, all others numbers, aligned to the right.

    Raises ValueError where a row has not as many cells as there are heads.
    """
    words = set(words)
    rules = "|".join("---" if column in words else "---:" for column in range(len(heads)))
    lines = ["| " + " | ".join(heads) + " |", f"|{rules}|"]
    for row in rows:
        if len(row) != len(heads):
            raise ValueError(f"a row of a table has {len(row)} cells for {len(heads)} heads: {row}")
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)
