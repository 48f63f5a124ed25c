"""A benchmark as a bar chart: accessible inline SVG, drawn from the recorded result.

One bar per row against the measured limit of the GPU (a dashed line). The vendor's rows are hatched
and say so in words, a short line at a bar's end spans p20 to p80, and values that span more than two
decades are drawn on a logarithmic axis, which the axis title says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cudatut.site.locale import text
from cudatut.site.svg import Svg, coordinate, text_width

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


def benchmark_svg(result: dict[str, Any]) -> str:
    """Return the `<svg>` of a schema v1 benchmark in the page's language."""
    rows = result["rows"]
    timed = result["unit"] == "us" or any(row["value"] is None for row in rows)
    unit = symbol("us" if timed else result["unit"])
    bars = [_bar(row, unit, timed) for row in rows]
    peak = None if timed else result["peak"]
    limit = [peak] if peak else []

    notes = [f"{bar.amount}, {bar.share}" if bar.share else bar.amount for bar in bars]
    left = 12 + max(text_width(line) for bar in bars for line in bar.label)
    right = WIDTH - 14 - max(text_width(note, _SMALL) for note in notes)
    values = [bar.value for bar in bars] + limit
    log = max(values) / min(values) > _LOG_FROM
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high)] + limit
    # A logarithmic axis starts a good way below the least value, so that its bar has a length.
    low, most = (10.0 ** math.floor(math.log10(min(ends) * 0.7)) if log else 0.0), max(ends)
    to_x = scale(low, most, left, right, log)

    top = 30 if peak else 8
    bottom = top + _ROW * len(bars)
    s = Svg(WIDTH, bottom + 46 + 18)
    marks = ticks(low, most, log, 4)
    lines = "".join(f"M{coordinate(to_x(tick))} {top}V{bottom}" for tick in marks)
    s.raw(f'<path class="grid" d="{lines}"/>')
    for tick in marks:
        s.text(to_x(tick), bottom + 16, number(tick), "muted", size=12)
    words = text(f"benchmark.{'time_axis' if timed else 'axis'}{'_log' if log else ''}", unit=unit)
    s.text((left + right) / 2, bottom + 34, words, "muted", size=12)

    middles = [top + _ROW * i + _ROW / 2 for i in range(len(bars))]
    # What all words of a column have in common is said once.
    s.raw('<g text-anchor="end">')
    for bar, y in zip(bars, middles):
        for j, line in enumerate(bar.label):
            s.text(left - 10, y + 5 + 15 * (j - (len(bar.label) - 1) / 2), line)
    s.raw(f'</g><g text-anchor="start" font-size="{_SMALL}">')
    for bar, note, y in zip(bars, notes, middles):
        end, x_low, x_high = to_x(bar.value), to_x(bar.low), to_x(bar.high)
        cls = "bar vendor" if bar.vendor else "bar"
        s.rect(left, y - _BAR / 2, max(end - left, 1), _BAR, cls, rx=0)
        if bar.vendor:
            s.raw(_hatch(left, y - _BAR / 2, end - left, _BAR))
        if x_high - x_low >= 1:
            s.raw(
                f'<path class="whisker" d="M{x_low:.1f} {y - 5:.0f}v10m0-5H{x_high:.1f}m0-5v10"/>'
            )
        start = max(end, x_high) + 8
        if peak and start < to_x(peak) + 4 < start + text_width(note, _SMALL) + 8:
            start = to_x(peak) + 8  # the line of the limit would cross the words
        s.text(round(start), y + 4.5, note)
    s.raw("</g>")
    s.line(left, top - 2, left, bottom, "axis")
    if peak:
        x = to_x(peak)
        s.line(x, top - 8, x, bottom, "limit dash")
        words = text("benchmark.peak", value=number(peak), unit=unit)
        half = text_width(words, _SMALL) / 2
        s.text(min(max(x, half + 4), WIDTH - half - 4), 14, words, "limit", size=_SMALL)
    key = [text("benchmark.whisker_key")]
    if any(bar.vendor for bar in bars):
        key.insert(0, text("benchmark.vendor_key"))
    s.text(left, bottom + 56, text("benchmark.joint").join(key), "muted", "start", 12)
    title = text(f"benchmark.{'title_time' if timed else 'title'}", name=result["name"], unit=unit)
    return s.render(title, _description(bars, peak, unit), cls="ct-chart")


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


def ticks(low: float, high: float, log: bool, parts: int) -> list[float]:
    """Values to label from low to high: powers of ten, at most seven, or multiples of a round number, about `parts`."""
    if log:
        decades = range(round(math.log10(low)), math.floor(math.log10(high)) + 1)
        return [10.0**d for d in decades[:: math.ceil(len(decades) / 7)]]
    raw = (high - low) / parts
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(m for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    return [step * i for i in range(math.ceil(low / step), int(high / step * 1.0000001) + 1)]


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
