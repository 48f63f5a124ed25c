"""A benchmark as a bar chart: accessible inline SVG, drawn from the recorded result.

One bar per row against the measured limit of the GPU (a dashed line). The vendor's rows are hatched
and say so in words, a short line at a bar's end spans p20 to p80, and values that span more than two
decades are drawn on a logarithmic axis, which the axis title says.
"""

from __future__ import annotations

import math
from typing import Any

from cudatut.site.locale import text
from cudatut.site.svg import Svg, text_width

WIDTH = 680
_ROW, _BAR, _SMALL = 34, 18, 13
_LABELS = 220  # widest label column; longer names go on two lines
_LOG_FROM = 100.0  # ratio of the largest value, the limit included, to the smallest


def benchmark_svg(result: dict[str, Any], lang: str) -> str:
    """Return the `<svg>` of a schema v1 benchmark in language `lang` ("en" or "zh").

    Raises ValueError naming the benchmark where it has no rows, or a row has no positive time.
    """
    name = result.get("name") or text("benchmark.unnamed", lang)
    unit, rows = result["unit"], result["rows"]
    if not rows:
        raise ValueError(f"benchmark {name!r} has no rows")
    timed = unit == "us" or any(row["value"] is None for row in rows)
    shown_unit = "µs" if timed else unit
    bars = [_bar(name, row, timed) for row in rows]
    peak = None if timed else result["peak"]

    limit = [peak] if peak else []
    values = [value for value, _, _ in bars] + limit
    logarithmic = max(values) / min(values) > _LOG_FROM
    lengths = [v for bar in bars for v in bar] + limit
    scale = _Scale(min(lengths), max(lengths), logarithmic)
    labels = [_label(row, lang) for row in rows]
    notes = [_note(value, row, shown_unit) for (value, _, _), row in zip(bars, rows, strict=True)]
    left = 12 + max(text_width(line) for label in labels for line in label)
    right = WIDTH - 14 - max(text_width(note, _SMALL) for note in notes)
    scale.span(left, right)

    top = 30 if peak else 8
    bottom = top + _ROW * len(rows)
    s = Svg(WIDTH, bottom + 46 + 18)
    for tick in scale.ticks:
        x = scale.x(tick)
        s.line(x, top, x, bottom, "grid")
        s.text(x, bottom + 16, number(tick), "muted", size=12)
    log = "_log" if scale.log else ""
    axis = text(f"benchmark.{'time_axis' if timed else 'axis'}{log}", lang, unit=shown_unit)
    s.text((left + right) / 2, bottom + 34, axis, "muted", size=12)

    for i, ((value, low, high), label, note, row) in enumerate(
        zip(bars, labels, notes, rows, strict=True)
    ):
        y = top + _ROW * i + _ROW / 2
        for j, line in enumerate(label):
            s.text(left - 10, y + 5 + 15 * (j - (len(label) - 1) / 2), line, "", "end")
        end = scale.x(value)
        s.rect(left, y - _BAR / 2, max(end - left, 1), _BAR, _cls(row), rx=0)
        if row["vendor"]:
            s.raw(_hatch(left, y - _BAR / 2, end - left, _BAR))
        x_low, x_high = scale.x(low), scale.x(high)
        if x_high - x_low >= 1:
            s.raw(
                f'<path class="whisker" d="M{x_low:.1f} {y - 5:.0f}v10m0-5H{x_high:.1f}m0-5v10"/>'
            )
        start = max(end, x_high) + 8
        if peak and start < scale.x(peak) + 4 < start + text_width(note, _SMALL) + 8:
            start = scale.x(peak) + 8  # the line of the limit would cross the words
        s.text(start, y + 4.5, note, "", "start", _SMALL)
    s.line(left, top - 2, left, bottom, "axis")
    if peak:
        x = scale.x(peak)
        s.line(x, top - 8, x, bottom, "limit dash")
        words = text("benchmark.peak", lang, value=number(peak), unit=unit)
        half = text_width(words, _SMALL) / 2
        s.text(min(max(x, half + 4), WIDTH - half - 4), 14, words, "limit", size=_SMALL)
    key = [text("benchmark.whisker_key", lang)]
    if any(row["vendor"] for row in rows):
        key.insert(0, text("benchmark.vendor_key", lang))
    s.text(left, bottom + 56, ("；" if lang == "zh" else "; ").join(key), "muted", "start", 12)
    return s.render(*_alternative(name, result, bars, shown_unit, timed, lang), cls="ct-chart")


def number(value: float) -> str:
    """Write a measured value with three or four significant digits: 2,713 · 81.4 · 3.02 · 0.0041."""
    size = abs(value)
    if size == 0 or (float(value).is_integer() and size >= 1):
        return f"{value:,.0f}"
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else None
    return f"{value:#.3g}" if digits is None else f"{value:,.{digits}f}"


def in_brackets(label: str, remark: str, lang: str) -> str:
    """A label with a remark or unit behind it, in the brackets of the language."""
    return f"{label}（{remark}）" if lang == "zh" else f"{label} ({remark})"


def symbol(unit: str) -> str:
    """A unit as a page shows it; programs print the microsecond in ASCII."""
    return "µs" if unit == "us" else unit


def row_name(row: dict[str, Any], lang: str) -> str:
    """The name of a benchmark's row; the vendor's says so, unless "vendor" is its name."""
    name, vendor = row["name"], text("benchmark.vendor", lang)
    says = not row["vendor"] or vendor.startswith(name)
    return name if says else in_brackets(name, vendor, lang)


def percent(fraction: float) -> str:
    """Write a fraction as a percentage, with decimals only where it would round to nothing."""
    points = 100 * fraction
    return (
        f"{points:.0f}%"
        if points >= 9.5
        else f"{points:.1f}%"
        if points >= 0.95
        else f"{points:.2g}%"
    )


class _Scale:
    """Maps values between `least` and `most` to x, linearly from 0 or logarithmically."""

    def __init__(self, least: float, most: float, log: bool):
        self.log = log
        if self.log:
            # Start a good way below the least value, so that its bar has a length.
            self.start = 10.0 ** math.floor(math.log10(least * 0.7))
            self.stop = most
            decades = range(round(math.log10(self.start)), math.floor(math.log10(most)) + 1)
            step = math.ceil(len(decades) / 7)
            self.ticks = [10.0**d for d in decades[::step]]
        else:
            self.start, self.stop = 0.0, most
            step = _nice(most / 4)
            self.ticks = [step * i for i in range(int(most / step * 1.0000001) + 1)]

    def span(self, left: float, right: float) -> None:
        self.left, self.right = left, right

    def x(self, value: float) -> float:
        if self.log:
            part = math.log(value / self.start) / math.log(self.stop / self.start)
        else:
            part = value / self.stop
        return self.left + part * (self.right - self.left)


def _nice(step: float) -> float:
    """Round a tick distance up to 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(m for m in (1, 2, 2.5, 5, 10) if m * power >= step * 0.999)


def _bar(name: str, row: dict[str, Any], timed: bool) -> tuple[float, float, float]:
    """Return (value, low, high): the bar's length and its whisker, in the unit of the axis."""
    median, p20, p80 = row["median_us"], row["p20_us"], row["p80_us"]
    value = median if timed else row["value"]
    for number_ in (median, p20, p80, value):
        if not math.isfinite(number_) or number_ <= 0:
            raise ValueError(
                f"benchmark {name!r}, row {row['name']!r}: {number_} is no measurement"
            )
    if timed:
        return value, p20, p80
    return value, value * median / p80, value * median / p20  # a slow call is a low rate


def _label(row: dict[str, Any], lang: str) -> list[str]:
    label = row_name(row, lang)
    lines = [""]
    for word in label.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer) > _LABELS:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _note(value: float, row: dict[str, Any], unit: str) -> str:
    share = "" if row["of_peak"] is None else f", {percent(row['of_peak'])}"
    return f"{number(value)} {unit}{share}"


def _cls(row: dict[str, Any]) -> str:
    return "bar vendor" if row["vendor"] else "bar"


def _hatch(x: float, y: float, w: float, h: float, gap: float = 7) -> str:
    """Return slanted lines inside a box, as one path: a pattern would need an id on the page."""
    d = []
    for i in range(1, int((w + h) / gap) + 1):
        at = i * gap  # the line runs from (x + at, y) down left to (x + at - h, y + h)
        x1, y1 = (at, 0) if at <= w else (w, at - w)
        x2, y2 = (at - h, h) if at >= h else (0, at)
        d.append(f"M{x + x1:.1f} {y + y1:.1f}L{x + x2:.1f} {y + y2:.1f}")
    return f'<path class="hatch" d="{"".join(d)}"/>'


def _alternative(name, result, bars, unit, timed, lang) -> tuple[str, str]:
    key = "benchmark.title_time" if timed else "benchmark.title"
    title = text(key, lang, name=name, unit=unit)
    parts = []
    for (value, _, _), row in zip(bars, result["rows"], strict=True):
        shown = f"{number(value)} {unit}"
        if row["of_peak"] is not None:
            share = percent(row["of_peak"])
            shown = text("benchmark.desc_of_peak", lang, value=shown, percent=share)
        parts.append(text("benchmark.desc_row", lang, name=row["name"], value=shown))
    desc = ("；" if lang == "zh" else "; ").join(parts) + ("。" if lang == "zh" else ".")
    if result["peak"] and not timed:
        peak = text("benchmark.desc_peak", lang, value=number(result["peak"]), unit=result["unit"])
        desc += ("" if lang == "zh" else " ") + peak
    return title, desc
