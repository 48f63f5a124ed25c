"""Lines over a common x as an accessible inline SVG: a recorded sweep (kind "series") of schema v1.

The x axis is logarithmic where x spans more than a decade; powers of two are then written as such. At most six lines
stand in the foreground: each has a color and a mark of its own, and beside its end its name behind the same mark. The
others are thin and grey, and named only in the table of the numbers. Every point of the foreground tells its values to a
pointer that rests on it (an SVG title: no script).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from typing import Any

from cudatut.results import FOREGROUND
from cudatut.site.charts import number, scale, symbol, ticks, with_unit
from cudatut.site.locale import text
from cudatut.site.svg import Svg, coordinate, text_width
from cudatut.wrapping import wrapped

WIDTH, _PLOT = 700, 300
_SMALL = 12
_LINE = 15  # from one line of a name to the next
_NAMES = 170  # widest column of names; longer ones go on several lines

Point = tuple[float, float]


def series_svg(result: dict[str, Any], lang: str) -> str:
    """Return the `<svg>` of a schema v1 series in language `lang`.

    Raises ValueError naming the series where it has no points, or a value that its axis cannot show.
    """
    title, lines, limit = result["title"], result["lines"], result["limit"]
    unit = symbol(result["y"]["unit"])
    points = [point for line in lines.values() for point in line]
    if not points:
        raise ValueError(f"series {title!r} has no points")
    front = [name for name in result.get("foreground") or list(lines)[:FOREGROUND] if name in lines]
    names = {name: wrapped(name, lambda row: text_width(row, _SMALL) <= _NAMES) for name in front}
    xs, ys = [x for x, _ in points], [y for _, y in points]
    log_x = min(xs) > 0 and max(xs) / min(xs) > 10
    top_value = max([*ys, limit or 0])
    log_y = min(ys) > 0 and top_value / min(ys) > 100
    widest = max(text_width(row, _SMALL) for rows in names.values() for row in rows)
    left, right = 64, WIDTH - 34 - widest
    top = 26
    bottom = top + max(_PLOT, _LINE * sum(len(rows) for rows in names.values()))
    to_x = scale(min(xs), max(xs), left + 8, right, log_x)
    low = 10.0 ** math.floor(math.log10(min(ys))) if log_y else min(0.0, *ys)
    to_y = scale(low, top_value * (1.3 if log_y else 1.04), bottom, top, log_y)

    more = len(lines) - len(front)
    s = Svg(WIDTH, bottom + (66 if more else 48))
    for tick in ticks(low, top_value, log_y, 5):
        s.line(left, to_y(tick), right, to_y(tick), "grid")
        s.text(left - 8, to_y(tick) + 4, number(tick), "muted", "end", _SMALL)
    for tick in _x_ticks(sorted(set(xs)), to_x):
        s.line(to_x(tick), bottom, to_x(tick), bottom + 4, "axis")
        s.text(to_x(tick), bottom + 18, _power(tick), "muted", size=_SMALL)
    s.line(left, bottom, right, bottom, "axis")
    logarithmic = text("series.log", lang)
    x_words = with_unit(result["x"], lang) + (logarithmic if log_x else "")
    s.text((left + right) / 2, bottom + 38, x_words, "muted", size=_SMALL)
    y_words = with_unit(result["y"], lang) + (logarithmic if log_y else "")
    s.text(left, 12, y_words, "muted", "start", _SMALL)
    if limit:
        words = text("series.limit", lang, value=number(limit), unit=unit)
        s.line(left, to_y(limit), right, to_y(limit), "limit dash")
        s.text(right, to_y(limit) - 6, words, "limit", "end", _SMALL)
    if more:
        note = text("series.more", lang, count=more)
        s.text(left, bottom + 58, note, "muted", "start", _SMALL)

    for name in lines:
        if name not in front:  # first, so that the others cover them
            s.polyline([(to_x(x), to_y(y)) for x, y in lines[name]], "axis")
    places = _spread(
        [to_y(lines[name][-1][1]) for name in front], list(map(len, names.values())), top, bottom
    )
    for index, (name, place) in enumerate(zip(front, places)):
        color = f"c{1 + index}"
        placed = [(to_x(x), to_y(y)) for x, y in lines[name]]
        s.polyline(placed, color)
        for (px, py), (x, y) in zip(placed, lines[name]):
            told = f"{name}: {result['x']['name']} = {_power(x)}, {number(y)} {unit}"
            s.raw(f'<g class="point"><title>{escape(told, quote=False)}</title>')
            _mark(s, px, py, index, f"{color} solid")
            s.raw("</g>")
        _mark(s, right + 16, place, index, f"{color} solid key")
        for row, words in enumerate(names[name]):
            s.text(right + 26, place + 4 + row * _LINE, words, color, "start", _SMALL)
    desc = ("；" if lang == "zh" else "; ").join(
        f"{name}: " + ", ".join(f"{_power(x)} → {number(y)}" for x, y in _told(line))
        for name, line in lines.items()
    )
    return s.render(text("series.title", lang, name=title, unit=unit), desc, cls="ct-chart")


def _told(line: list[Point]) -> list[Point]:
    """Where a line begins, its highest point and where it ends: who listens to a drawing wants its shape.

    The table beside it has all of its values.
    """
    highest = max(range(len(line)), key=lambda i: line[i][1])
    return [line[i] for i in sorted({0, highest, len(line) - 1})]


def _x_ticks(xs: list[float], to_x: Callable[[float], float]) -> list[float]:
    """Positions to label: measured ones, thinned evenly, and without any whose label would touch the one before it."""
    shown: list[float] = []
    free = -math.inf
    for x in xs[:: math.ceil(len(xs) / 9)]:
        half = text_width(_power(x), _SMALL) / 2
        if to_x(x) - half > free:
            shown.append(x)
            free = to_x(x) + half + 6
    return shown


_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _power(value: float) -> str:
    """A power of two from 2¹⁰ on is written as one; other values as numbers."""
    if value >= 1024 and float(value).is_integer() and int(value) & (int(value) - 1) == 0:
        return "2" + str(int(value).bit_length() - 1).translate(_SUPERSCRIPT)
    return number(value)


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
