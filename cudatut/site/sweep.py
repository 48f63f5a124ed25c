"""Lines over a common x as an accessible inline SVG: a recorded sweep (kind "series") of schema v1.

The x axis is logarithmic where x spans more than a decade; powers of two are then written as such. Each line has a
color and a mark of its own, and its name at its end; every point tells its values to a pointer that rests on it (an SVG
title: no script).
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

from cudatut.site.charts import number
from cudatut.site.locale import text
from cudatut.site.svg import Svg, text_width

WIDTH, _PLOT = 700, 300
_SMALL = 12
_COLORS = 6


def series_svg(result: dict[str, Any], lang: str) -> str:
    """Return the `<svg>` of a schema v1 series in language `lang`.

    Raises ValueError naming the series where it has no points, or a value that its axis cannot show.
    """
    title, lines, limit = result["title"], result["lines"], result["limit"]
    points = [point for line in lines.values() for point in line]
    if not points:
        raise ValueError(f"series {title!r} has no points")
    xs, ys = [x for x, _ in points], [y for _, y in points]
    log_x = min(xs) > 0 and max(xs) / min(xs) > 10
    top_value = max([*ys, limit or 0])
    log_y = min(ys) > 0 and top_value / min(ys) > 100
    left, right = 64, WIDTH - 18 - max(text_width(name, _SMALL) for name in lines)
    top, bottom = 26, 26 + _PLOT
    to_x = _axis(min(xs), max(xs), left + 8, right, log_x)
    low = 10.0 ** math.floor(math.log10(min(ys))) if log_y else min(0.0, *ys)
    to_y = _axis(low, top_value * (1.3 if log_y else 1.04), bottom, top, log_y)

    s = Svg(WIDTH, bottom + 48)
    for tick in _ticks(low, top_value, log_y):
        s.line(left, to_y(tick), right, to_y(tick), "grid")
        s.text(left - 8, to_y(tick) + 4, number(tick), "muted", "end", _SMALL)
    for tick in _x_ticks(sorted(set(xs)), log_x):
        s.line(to_x(tick), bottom, to_x(tick), bottom + 4, "axis")
        s.text(to_x(tick), bottom + 18, _power(tick), "muted", size=_SMALL)
    s.line(left, bottom, right, bottom, "axis")
    logarithmic = text("series.log", lang)
    x_words = _words(result["x"]) + (logarithmic if log_x else "")
    s.text((left + right) / 2, bottom + 38, x_words, "muted", size=_SMALL)
    s.text(left, 12, _words(result["y"]) + (logarithmic if log_y else ""), "muted", "start", _SMALL)
    if limit:
        words = text("series.limit", lang, value=number(limit), unit=result["y"]["unit"])
        s.line(left, to_y(limit), right, to_y(limit), "limit dash")
        s.text(right, to_y(limit) - 6, words, "limit", "end", _SMALL)

    ends = _spread([(to_y(line[-1][1]), name) for name, line in lines.items()], top, bottom)
    for index, (name, line) in enumerate(lines.items()):
        color, dash = f"c{1 + index % _COLORS}", " dash" if index >= _COLORS else ""
        placed = [(to_x(x), to_y(y)) for x, y in line]
        s.polyline(placed, f"{color}{dash}")
        for (px, py), (x, y) in zip(placed, line, strict=True):
            told = f"{name}: {result['x']['name']} = {_power(x)}, {number(y)} {result['y']['unit']}"
            s.raw(f'<g class="point"><title>{escape(told, quote=False)}</title>')
            _mark(s, px, py, index, f"{color} solid")
            s.raw("</g>")
        s.text(right + 8, ends[name] + 4, name, color, "start", _SMALL)
    desc = ("；" if lang == "zh" else "; ").join(
        f"{name}: " + ", ".join(f"{_power(x)} → {number(y)}" for x, y in line)
        for name, line in lines.items()
    )
    return s.render(
        text("series.title", lang, name=title, unit=result["y"]["unit"]), desc, cls="ct-chart"
    )


def _axis(low: float, high: float, start: float, stop: float, log: bool):
    """A function from a value between low and high to a coordinate between start and stop."""
    if log:
        low, high = math.log(low), math.log(high)
    span = (high - low) or 1.0
    return lambda value: start + ((math.log(value) if log else value) - low) / span * (stop - start)


def _ticks(low: float, high: float, log: bool) -> list[float]:
    if log:
        return [10.0**d for d in range(round(math.log10(low)), math.floor(math.log10(high)) + 1)]
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(m for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step)
    return [step * i for i in range(first, math.floor(high / step) + 1)]


def _x_ticks(xs: list[float], log: bool) -> list[float]:
    """Positions to label: measured ones, thinned so that their labels do not touch."""
    if len(xs) <= 9:
        return xs
    return xs[:: math.ceil(len(xs) / 9)]


_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _power(value: float) -> str:
    """A power of two from 2¹⁰ on is written as one; other values as numbers."""
    if value >= 1024 and float(value).is_integer() and int(value) & (int(value) - 1) == 0:
        return "2" + str(int(value).bit_length() - 1).translate(_SUPERSCRIPT)
    return number(value)


def _words(axis: dict[str, str]) -> str:
    return axis["name"] if not axis["unit"] else f"{axis['name']} ({axis['unit']})"


def _mark(s: Svg, x: float, y: float, index: int, cls: str) -> None:
    """A circle, a square, a diamond or a triangle: lines differ by more than their color."""
    if index % 4 == 0:
        s.circle(x, y, 4, cls)
    elif index % 4 == 1:
        s.rect(x - 3.5, y - 3.5, 7, 7, cls, rx=0)
    elif index % 4 == 2:
        s.polygon([(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)], cls)
    else:
        s.polygon([(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)], cls)


def _spread(
    wanted: list[tuple[float, str]], top: float, bottom: float, gap: float = 15
) -> dict[str, float]:
    """Heights for the names at the lines' ends: near where they are wanted, and apart from each other."""
    placed: dict[str, float] = {}
    last = top - gap
    for y, name in sorted(wanted):
        last = max(y, last + gap)
        placed[name] = last
    over = last - bottom
    if over > 0:
        placed = {name: y - over for name, y in placed.items()}
    return placed
