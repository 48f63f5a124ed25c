"""A benchmark as a bar chart: accessible inline SVG, drawn from the recorded result.

One bar per row against the measured limit of the GPU (a dashed line). The vendor's rows are hatched
and say so in words, a short line at a bar's end spans p20 to p80, and values that span more than two
decades are drawn on a logarithmic axis, which the axis title says.

Each chart is drawn twice, for a wide and for a narrow screen; the style sheet shows one of them (`svg.Layout`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cudatut.site.locale import text
from cudatut.site.svg import NARROW, WIDE, Layout, Svg, coordinate, text_width
from cudatut.wrapping import wrapped

WIDTH = 680
_ROW, _BAR, _SMALL = 34, 18, 13
_LABELS = 220  # widest label column; longer names go on two lines
_LOG_FROM = 100.0  # ratio of the largest value, the limit included, to the smallest


@dataclass(frozen=True)
class _Bar:
    """A row of a benchmark in the unit of the axis: the length of its bar, the ends of its whisker, its words."""

    name: str
    vendor: bool
    value: float
    low: float
    high: float
    label: list[str]
    amount: str  # the value with its unit
    share: str  # of the limit; "" where none is known

    @property
    def note(self) -> str:
        return f"{self.amount}, {self.share}" if self.share else self.amount


def benchmark_svg(result: dict[str, Any], layout: Layout = WIDE) -> str:
    """Return the `<svg>` of a schema v1 benchmark in the page's language."""
    rows = result["rows"]
    timed = result["unit"] == "us" or any(row["value"] is None for row in rows)
    unit = symbol("us" if timed else result["unit"])
    bars = [_bar(row, unit, timed) for row in rows]
    peak = None if timed else result["peak"]
    limit = [peak] if peak else []
    values = [bar.value for bar in bars] + limit
    log = max(values) / min(values) > _LOG_FROM
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high)] + limit
    # A logarithmic axis starts a good way below the least value, so that its bar has a length.
    low, most = (round_below(min(ends) * 0.7) if log else 0.0), max(ends)
    axis = text(f"benchmark.{'time_axis' if timed else 'axis'}{'_log' if log else ''}", unit=unit)
    key = [text("benchmark.whisker_key")]
    if any(bar.vendor for bar in bars):
        key.insert(0, text("benchmark.vendor_key"))
    title = text(f"benchmark.{'title_time' if timed else 'title'}", name=result["name"], unit=unit)
    draw = _narrow if layout is NARROW else _wide
    s = draw(bars, peak, unit, (low, most, log), axis, key)
    return s.render(title, _description(bars, peak, unit), cls=f"ct-chart {layout.cls}")


def _wide(
    bars: list[_Bar],
    peak: float | None,
    unit: str,
    span: tuple[float, float, bool],
    axis: str,
    key: list[str],
) -> Svg:
    """Names to the left of the bars, values in a column to the right of them."""
    notes = [bar.note for bar in bars]
    left = 12 + max(text_width(line) for bar in bars for line in bar.label)
    right = WIDTH - 14 - max(text_width(note, _SMALL) for note in notes)
    low, most, log = span
    to_x = scale(low, most, left, right, log)

    top = 30 if peak else 8
    bottom = top + _ROW * len(bars)
    s = Svg(WIDTH, bottom + 46 + 18)
    marks = ticks(low, most, log, 4)
    lines = "".join(f"M{coordinate(to_x(tick))} {top}V{bottom}" for tick in marks)
    s.raw(f'<path class="grid" d="{lines}"/>')
    for tick in marks:
        s.text(to_x(tick), bottom + 16, tick_label(tick), "muted", size=12)
    s.text((left + right) / 2, bottom + 34, axis, "muted", size=12)

    middles = [top + _ROW * i + _ROW / 2 for i in range(len(bars))]
    # What all words of a column have in common is said once.
    s.raw('<g text-anchor="end">')
    for bar, y in zip(bars, middles):
        for j, line in enumerate(bar.label):
            s.text(left - 10, y + 5 + 15 * (j - (len(bar.label) - 1) / 2), line)
    s.raw(f'</g><g text-anchor="start" font-size="{_SMALL}">')
    for bar, note, y in zip(bars, notes, middles):
        _draw(s, bar, to_x, left, y, _BAR)
        s.text(round(right) + 8, y + 4.5, note)
    s.raw("</g>")
    s.line(left, top - 2, left, bottom, "axis")
    if peak:
        x = to_x(peak)
        s.line(x, top - 8, x, bottom, "limit dash")
        words = text("benchmark.peak", value=number(peak), unit=unit)
        half = text_width(words, _SMALL) / 2
        s.text(min(max(x, half + 4), WIDTH - half - 4), 14, words, "limit", size=_SMALL)
    s.text(left, bottom + 56, text("benchmark.joint").join(key), "muted", "start", 12)
    return s


_NARROW_BAR, _NARROW_LINE, _EDGE = 13, 16, 3


def _narrow(
    bars: list[_Bar],
    peak: float | None,
    unit: str,
    span: tuple[float, float, bool],
    axis: str,
    key: list[str],
) -> Svg:
    """The name and the value of a bar above it, and the bar over the whole width."""
    low, most, log = span
    left, right = _EDGE, NARROW.width - _EDGE
    to_x = in_whole_units(scale(low, most, left, right, log))
    room = [NARROW.width - text_width(bar.note, _SMALL) - 14 for bar in bars]
    labels = [_fitting(" ".join(bar.label), _SMALL, wide) for bar, wide in zip(bars, room)]
    heights = [_NARROW_LINE * len(label) + _NARROW_BAR + 11 for label in labels]
    top = 22 if peak else 2
    bottom = top + sum(heights)
    keys = [line for one in key for line in _fitting(one, 12, NARROW.width)]
    s = Svg(NARROW.width, bottom + 42 + _NARROW_LINE * len(keys))
    s.raw(f'<g text-anchor="start" font-size="{_SMALL}">')
    y, middles = float(top), []
    for label, height in zip(labels, heights):
        for i, line in enumerate(label):
            s.text(left, y + 12 + _NARROW_LINE * i, line)
        middles.append(y + height - 11 - _NARROW_BAR / 2 + 2)
        y += height
    s.raw(f'</g><g text-anchor="end" font-size="{_SMALL}">')
    for bar, middle in zip(bars, middles):
        s.text(right, middle - _NARROW_BAR / 2 - 6, bar.note)
    s.raw("</g>")
    for bar, middle in zip(bars, middles):
        _draw(s, bar, to_x, left, middle, _NARROW_BAR)
    if peak:
        # Beside the bars only: it would cross the words above them.
        d = "".join(f"M{coordinate(to_x(peak))} {coordinate(y - 10)}v20" for y in middles)
        s.raw(f'<path class="limit dash" d="{d}"/>')
        words = text("benchmark.peak", value=number(peak), unit=unit)
        half = text_width(words, _SMALL) / 2
        x = min(max(to_x(peak), half + 4), NARROW.width - half - 4)
        s.text(x, 13, words, "limit", size=_SMALL)
    s.line(left, bottom, right, bottom, "axis")
    free = -math.inf
    for tick in ticks(low, most, log, 3):
        half = text_width(tick_label(tick), 12) / 2
        x = min(max(to_x(tick), half), NARROW.width - half)
        if x - half > free:
            s.line(to_x(tick), bottom, to_x(tick), bottom + 4, "axis")
            s.text(x, bottom + 16, tick_label(tick), "muted", size=12)
            free = x + half + 8
    s.text(NARROW.width / 2, bottom + 32, axis, "muted", size=12)
    for i, line in enumerate(keys):
        s.text(left, bottom + 52 + _NARROW_LINE * i, line, "muted", "start", 12)
    return s


def _fitting(words: str, size: float, width: float) -> list[str]:
    return wrapped(words, lambda line: text_width(line, size) <= width)


def _draw(
    s: Svg, bar: _Bar, to_x: Callable[[float], float], left: float, y: float, height: float
) -> None:
    """A bar around the height y, with what spans p20 to p80."""
    end, x_low, x_high = to_x(bar.value), to_x(bar.low), to_x(bar.high)
    cls = "bar vendor" if bar.vendor else "bar"
    s.rect(left, y - height / 2, max(end - left, 1), height, cls, rx=0)
    if bar.vendor:
        s.raw(_hatch(left, y - height / 2, end - left, height))
    if x_high - x_low >= 1:
        s.raw(f'<path class="whisker" d="M{x_low:.1f} {y - 5:.0f}v10m0-5H{x_high:.1f}m0-5v10"/>')


def _bar(row: dict[str, Any], unit: str, timed: bool) -> _Bar:
    median, p20, p80 = row["median_us"], row["p20_us"], row["p80_us"]
    value, low, high = median, p20, p80
    if not timed:  # a slow call is a low rate
        value = row["value"]
        low, high = value * median / p80, value * median / p20
    share = "" if row["of_peak"] is None else percent(row["of_peak"])
    label = _lines(row_name(row))
    return _Bar(
        row["name"], row["vendor"], value, low, high, label, f"{number(value)} {unit}", share
    )


def _lines(label: str) -> list[str]:
    """A label cut at blanks into lines no wider than its column."""
    lines = [""]
    for word in label.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer) > _LABELS:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _description(bars: list[_Bar], peak: float | None, unit: str) -> str:
    """Every number of the chart, for those who do not see it."""
    rows = []
    for bar in bars:
        key = "desc_row_of_peak" if bar.share else "desc_row"
        rows.append(text(f"benchmark.{key}", name=bar.name, value=bar.amount, percent=bar.share))
    key = "desc_peak" if peak else "desc"
    value = number(peak) if peak else ""
    return text(f"benchmark.{key}", rows=text("benchmark.joint").join(rows), value=value, unit=unit)


def scale(
    low: float, high: float, start: float, stop: float, log: bool
) -> Callable[[float], float]:
    """A function from a value between low and high to a coordinate between start and stop."""
    if log:
        low, high = math.log(low), math.log(high)
    span = (high - low) or 1.0
    return lambda value: start + ((math.log(value) if log else value) - low) / span * (stop - start)


def in_whole_units(to: Callable[[float], float]) -> Callable[[float], float]:
    """A scale that rounds to units of the drawing: a page has hundreds of points, and each digit weighs."""
    return lambda value: round(to(value))


def round_below(value: float) -> float:
    """The largest of ..., 1, 2, 5, 10, 20, ... that is not above a value: where a logarithmic axis begins."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return power * max(m for m in (1, 2, 5) if m * power <= value * 1.0000001 or m == 1)


def ticks(low: float, high: float, log: bool, parts: int) -> list[float]:
    """Values to label from low to high: multiples of a round number, about `parts`.

    On a logarithmic axis powers of ten, at most seven; where there are fewer than three, twice and five times them as well.
    """
    if log:
        first, last = math.log10(low) - 1e-9, math.log10(high) + 1e-9
        decades = range(math.ceil(first), math.floor(last) + 1)
        if len(decades) >= 3:
            return [10.0**d for d in decades[:: math.ceil(len(decades) / 7)]]
        steps = (
            m * 10.0**d for d in range(math.floor(first), math.floor(last) + 1) for m in (1, 2, 5)
        )
        return [step for step in steps if first <= math.log10(step) <= last]
    raw = (high - low) / parts
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(m for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    return [step * i for i in range(math.ceil(low / step), int(high / step * 1.0000001) + 1)]


def tick_label(value: float) -> str:
    """A round number of an axis, without zeros that say nothing: 2,000 · 2.5 · 0.01."""
    shown = f"{value:,.6f}" if abs(value) >= 1e-4 else f"{value:.10f}"
    shown = shown.rstrip("0").rstrip(".")
    return "0" if shown in ("-0", "") else shown


def number(value: float) -> str:
    """Write a measured value with three or four significant digits: 2,713 · 81.4 · 3.02 · 0.00410."""
    size = abs(value)
    whole = size >= 99.95 or size == 0 or (size >= 1 and float(value).is_integer())
    return f"{value:,.0f}" if whole else f"{value:#.3g}"


def percent(fraction: float) -> str:
    """Write a fraction as a percentage, with decimals only where it would round to nothing."""
    points = 100 * fraction
    if points < 0.95:
        return f"{points:.2g}%"
    return f"{points:.1f}%" if points < 9.5 else f"{points:.0f}%"


def with_unit(named: dict[str, Any], lang: str | None = None) -> str:
    """The "name" of a column or an axis, with its "unit" in brackets, unless that is the name."""
    name, unit = named["name"], named["unit"]
    if not unit or unit == name:
        return name
    return text("brackets", lang, label=name, remark=symbol(unit))


def symbol(unit: str) -> str:
    """A unit as a page shows it; programs print the microsecond in ASCII."""
    return "µs" if unit == "us" else unit


def row_name(row: dict[str, Any]) -> str:
    """The name of a benchmark's row; the vendor's says so, unless "vendor" is its name."""
    name, vendor = row["name"], text("benchmark.vendor")
    says = not row["vendor"] or vendor.startswith(name)
    return name if says else text("brackets", label=name, remark=vendor)


def _hatch(x: float, y: float, w: float, h: float, gap: float = 7) -> str:
    """Return slanted lines inside a box, as one path: a pattern would need an id on the page.

    Its steps are relative, so that those of whole lines are all alike, and next to nothing once the page is compressed.
    """
    d, at_x, at_y = [], 0.0, 0.0
    for i in range(1, int((w + h) / gap) + 1):
        at = i * gap  # the line runs from (at, 0) down left to (at - h, h)
        x1, y1 = (at, 0.0) if at <= w else (w, at - w)
        x2, y2 = (at - h, h) if at >= h else (0.0, at)
        d.append(
            f"m{coordinate(x1 - at_x)} {coordinate(y1 - at_y)}l{coordinate(x2 - x1)} {coordinate(y2 - y1)}"
        )
        at_x, at_y = x2, y2
    return f'<path class="hatch" d="M{x:.1f} {y:.1f}{"".join(d)}"/>'
