"""Lines over a common x as an accessible inline SVG: a recorded sweep (kind "series") of schema v1.

The x axis is logarithmic where x spans more than a decade; where all of x are powers of two, and some large, all are written
as such. Over a vendor's line (`divided`) a chart shows how many times as much each of the others has. At most six lines
stand in the foreground: each has a color and a mark of its own, and beside its end its name behind the same mark. The
others are thin and grey, and named only in the table of the numbers. Every point of the foreground tells its values to a
pointer that rests on it (an SVG title: no script).

Each chart is drawn twice, for a wide and for a narrow screen; the style sheet shows one of them. The narrow one has the
names above the lines, and no titles: a finger does not rest on a point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from typing import Any

from cudatut.results import FOREGROUND
from cudatut.site.charts import (
    in_whole_units,
    number,
    round_below,
    scale,
    symbol,
    tick_label,
    ticks,
    with_unit,
)
from cudatut.site.locale import text
from cudatut.site.svg import NARROW, WIDE, Layout, Svg, coordinate, text_width
from cudatut.wrapping import wrapped

_PLOT = {WIDE: 300, NARROW: 216}  # height of the lines
_LABELS = {WIDE: 9, NARROW: 6}  # along x, at most
_POWERS_FROM = 1 << 15  # a largest x from where on powers of two are written as such
_SMALL = 12
_LINE = 15  # from one line of a name to the next
_NAMES = 170  # widest column of names; longer ones go on several lines

Point = tuple[float, float]


def divided(result: dict[str, Any], over: str) -> dict[str, Any]:
    """A series whose y is divided by that of its line `over` at the same x; that line is the limit, one.

    Raises ValueError where there is no such line.
    """
    base = dict(result["lines"].get(over, []))
    if not base:
        there = ", ".join(result["lines"])
        raise ValueError(f"series {result['title']!r} has no line {over!r}; it has {there}")
    lines = {
        name: [(x, y / base[x]) for x, y in line if base.get(x)]
        for name, line in result["lines"].items()
        if name != over
    }
    front = [name for name in result.get("foreground") or [] if name != over]
    y = {"name": text("series.over", name=result["y"]["name"], over=over), "unit": ""}
    return result | {
        "y": y,
        "lines": {name: line for name, line in lines.items() if line},
        "limit": 1.0,
        "unsaid": True,
        **({"foreground": front} if front else {}),
    }


def series_svg(result: dict[str, Any], lang: str, layout: Layout = WIDE) -> str:
    """Return the `<svg>` of a schema v1 series in language `lang`.

    Raises ValueError naming the series where it has no points, or a value that its axis cannot show.
    """
    title, lines, limit = result["title"], result["lines"], result["limit"]
    unit = symbol(result["y"]["unit"])
    points = [point for line in lines.values() for point in line]
    if not points:
        raise ValueError(f"series {title!r} has no points")
    narrow = layout is NARROW
    front = [name for name in result.get("foreground") or list(lines)[:FOREGROUND] if name in lines]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    log_x = min(xs) > 0 and max(xs) / min(xs) > 10
    top_value = max([*ys, limit or 0])
    log_y = min(ys) > 0 and top_value / min(ys) > 100
    low = round_below(min(ys)) if log_y else min(0.0, *ys)
    y_ticks = ticks(low, top_value, log_y, 4 if narrow else 5)
    shown = _notation(xs)
    more = len(lines) - len(front)
    note = text("series.more", lang, count=more)
    logarithmic = text("series.log", lang)
    x_words = with_unit(result["x"], lang) + (logarithmic if log_x else "")
    y_words = with_unit(result["y"], lang) + (logarithmic if log_y else "")

    if narrow:
        left = 8 + math.ceil(max(text_width(tick_label(tick), _SMALL) for tick in y_ticks))
        right = layout.width - 10
        notes = _fit(note, layout.width) if more else []
        y_rows = _fit(y_words, layout.width)
        names, key, used = _key_above(front)
        top = 22 + _KEY * (used + len(y_rows))
        bottom = top + _PLOT[layout]
        x_rows = _fit(x_words, layout.width)
        s = Svg(layout.width, bottom + 28 + _KEY * (len(x_rows) + len(notes)))
    else:
        names = {
            name: wrapped(name, lambda row: text_width(row, _SMALL) <= _NAMES) for name in front
        }
        widest = max(text_width(row, _SMALL) for rows in names.values() for row in rows)
        left, right = 64, layout.width - 34 - widest
        notes, y_rows, x_rows, key = [note] if more else [], [y_words], [x_words], []
        top = 26
        bottom = top + max(_PLOT[layout], _LINE * sum(len(rows) for rows in names.values()))
        s = Svg(layout.width, bottom + (66 if more else 48))
    to_x = scale(min(xs), max(xs), left + 8, right, log_x)
    to_y = scale(low, top_value * (1.3 if log_y else 1.04), bottom, top, log_y)
    if narrow:
        to_x, to_y = in_whole_units(to_x), in_whole_units(to_y)

    for tick in y_ticks:
        s.line(left, to_y(tick), right, to_y(tick), "grid")
        s.text(
            left - (5 if narrow else 8), to_y(tick) + 4, tick_label(tick), "muted", "end", _SMALL
        )
    for tick in _x_ticks(sorted(set(xs)), to_x, shown, _LABELS[layout]):
        s.line(to_x(tick), bottom, to_x(tick), bottom + 4, "axis")
        half = text_width(shown(tick), _SMALL) / 2
        x = min(to_x(tick), layout.width - half) if narrow else to_x(tick)
        s.text(x, bottom + 18, shown(tick), "muted", size=_SMALL)
    s.line(left, bottom, right, bottom, "axis")
    middle = layout.width / 2 if narrow else (left + right) / 2
    for i, words in enumerate(x_rows):
        s.text(middle, bottom + (35 if narrow else 38) + _KEY * i, words, "muted", size=_SMALL)
    for i, words in enumerate(reversed(y_rows)):
        s.text(0 if narrow else left, top - 14 - _KEY * i, words, "muted", "start", _SMALL)
    if limit:
        s.line(left, to_y(limit), right, to_y(limit), "limit dash")
    if limit and not result.get("unsaid"):  # the words of the axis say it
        words = text("series.limit", lang, value=number(limit), unit=unit)
        s.text(right, to_y(limit) - 6, words, "limit", "end", _SMALL)
    for i, words in enumerate(notes):
        y = bottom + (37 + _KEY * (len(x_rows) + i) if narrow else 58)
        s.text(0 if narrow else left, y, words, "muted", "start", _SMALL)

    for name in lines:
        if name not in front:  # first, so that the others cover them
            s.polyline([(to_x(x), to_y(y)) for x, y in lines[name]], "axis")
    for index, name in enumerate(front):
        color = f"c{1 + index}"
        placed = [(to_x(x), to_y(y)) for x, y in lines[name]]
        s.polyline(placed, color)
        if narrow:
            _marks(s, placed, index, f"{color} solid")
            continue
        for (px, py), (x, y) in zip(placed, lines[name]):
            told = f"{name}: {result['x']['name']} = {shown(x)}, {number(y)} {unit}".rstrip()
            s.raw(f'<g class="point"><title>{escape(told, quote=False)}</title>')
            _mark(s, px, py, index, f"{color} solid")
            s.raw("</g>")
    if narrow:
        for index, (name, (row, x)) in enumerate(zip(front, key)):
            y = 12 + _KEY * row
            _mark(s, x + 5, y - 4, index, f"c{1 + index} solid key")
            for i, words in enumerate(names[name]):
                s.text(x + 14, y + _KEY * i, words, f"c{1 + index}", "start", _SMALL)
    else:
        places = _spread(
            [to_y(lines[name][-1][1]) for name in front],
            list(map(len, names.values())),
            top,
            bottom,
        )
        for index, (name, place) in enumerate(zip(front, places)):
            _mark(s, right + 16, place, index, f"c{1 + index} solid key")
            for row, words in enumerate(names[name]):
                s.text(right + 26, place + 4 + row * _LINE, words, f"c{1 + index}", "start", _SMALL)
    desc = ("；" if lang == "zh" else "; ").join(
        f"{name}: " + ", ".join(f"{shown(x)} → {number(y)}" for x, y in _told(line))
        for name, line in lines.items()
    )
    return s.render(
        text("series.title", lang, name=title, unit=unit or result["y"]["name"]),
        desc,
        cls=f"ct-chart {layout.cls}",
    )


_KEY = 16  # from one row of words to the next on a narrow screen


def _fit(words: str, width: float) -> list[str]:
    return wrapped(words, lambda row: text_width(row, _SMALL) <= width)


def _key_above(front: list[str]) -> tuple[dict[str, list[str]], list[tuple[int, float]], int]:
    """A key above the lines: the rows of each name, where it begins as (row, x), and how many rows there are in all.

    As many names stand beside each other as fit.
    """
    names = {name: _fit(name, NARROW.width - 16) for name in front}
    places, row, x, used = [], 0, 0.0, 0
    for rows in names.values():
        wide = 14 + max(text_width(one, _SMALL) for one in rows)
        if x and x + wide > NARROW.width:
            row, x = used, 0.0
        places.append((row, x))
        used = max(used, row + len(rows))
        x += wide + 12
    return names, places, used


def _told(line: list[Point]) -> list[Point]:
    """Where a line begins, its highest point and where it ends: who listens to a drawing wants its shape.

    The table beside it has all of its values.
    """
    highest = max(range(len(line)), key=lambda i: line[i][1])
    return [line[i] for i in sorted({0, highest, len(line) - 1})]


def _x_ticks(
    xs: list[float], to_x: Callable[[float], float], shown: Callable[[float], str], most: int
) -> list[float]:
    """Positions to label: measured ones, thinned evenly, and without any whose label would touch the one before it."""
    kept: list[float] = []
    free = -math.inf
    for x in xs[:: math.ceil(len(xs) / most)]:
        half = text_width(shown(x), _SMALL) / 2
        if to_x(x) - half > free:
            kept.append(x)
            free = to_x(x) + half + 6
    return kept


_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _notation(xs: list[float]) -> Callable[[float], str]:
    """How all of x are written: as powers of two where all are, and the largest is large; or all as numbers."""
    if max(xs) >= _POWERS_FROM and all(_exponent(x) is not None for x in xs):
        return lambda value: "2" + str(_exponent(value)).translate(_SUPERSCRIPT)
    return number


def _exponent(value: float) -> int | None:
    """Of a power of two from two on; None for other numbers."""
    if value < 2 or not float(value).is_integer() or int(value) & (int(value) - 1):
        return None
    return int(value).bit_length() - 1


# The marks around a point, all of about one area, as paths from there: square, diamond, triangles upwards and downwards,
# cross. Relative ones, so that those of all points are alike, and next to nothing once the page is compressed.
_MARKS = (
    "m-3.5-3.5h7v7h-7z",
    "m0-5 5 5-5 5-5-5z",
    "m0-5 5 9h-10z",
    "m0 5 5-9h-10z",
    "m-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
)


def _mark(s: Svg, x: float, y: float, index: int, cls: str) -> None:
    """A circle or one of five other shapes: lines differ by more than their color."""
    if index == 0:
        s.circle(x, y, 4, cls)
    else:
        path = f"M{coordinate(x)} {coordinate(y)}{_MARKS[index - 1]}"
        s.raw(f'<path d="{path}" class="{cls} fill"/>')


def _marks(s: Svg, points: list[Point], index: int, cls: str) -> None:
    """The marks of all points of a line, as one path."""
    shape = _MARKS[index - 1] if index else "m-4 0a4 4 0 1 0 8 0 4 4 0 1 0-8 0z"
    d = "".join(f"M{coordinate(x)},{coordinate(y)}{shape}" for x, y in points)
    s.raw(f'<path d="{d}" class="{cls} fill"/>')


def _spread(wanted: list[float], rows: list[int], top: float, bottom: float) -> list[float]:
    """Heights of the names' first lines: near where they are wanted, in that order, and none over another.

    rows: how many lines each name has.
    """
    places = list(wanted)
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    free = top
    for i in order:
        places[i] = max(wanted[i], free)
        free = places[i] + rows[i] * _LINE
    free = bottom + _LINE
    for i in reversed(order):  # what went too far down moves up again, and what is above it
        free = places[i] = min(places[i], free - rows[i] * _LINE)
    return places
