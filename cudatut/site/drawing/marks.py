"""What explains a drawing: legends, and brackets with a name."""

from __future__ import annotations

from collections.abc import Iterable

from cudatut.site.svg import SIZE, Svg, text_width

_AFTER = 24  # between an entry of a legend and the next


def legend(
    s: Svg,
    x: float,
    y: float,
    entries: Iterable[tuple],
    step: float | None = None,
    size: float = SIZE,
    wide: float = 16,
    high: float = 14,
    cls: str = "",
) -> Svg:
    """Write what colors mean, side by side: a box of `wide` x `high` units for each entry, and its words.

    x, y: top left corner of the first box. entries: (class, words) or (class, words, text in the box). step: from an
    entry to the next; without one each takes the room of its words. cls: class of the words.
    """
    for kind, words, *mark in entries:
        (inside,) = mark or (None,)
        s.rect(x, y, wide, high, kind, inside, rx=2, size=min(size, high - 3))
        s.text(x + wide + 7, y + high / 2 + 0.35 * size, words, cls, "start", size)
        x += step or wide + 7 + text_width(words, size) + _AFTER
    return s


def bracket(
    s: Svg, x1: float, x2: float, y: float, text: object = None, cls: str = "muted", deep: float = 6
) -> Svg:
    """Draw a bracket below x1 to x2 whose ends point up to y, and a name under it; above, with a negative `deep`."""
    s.polyline([(x1, y), (x1, y + deep), (x2, y + deep), (x2, y)], cls)
    if text is not None:
        below = y + deep + (16 if deep >= 0 else -6)
        s.text((x1 + x2) / 2, below, text, cls)
    return s
