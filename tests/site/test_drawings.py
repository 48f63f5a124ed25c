"""Drawings and charts are drawn as they lie in tests/site/drawings, to the last coordinate.

`python tests/site/test_drawings.py` draws them anew: look at the difference, and at the files in a browser, before you
commit it.
"""

import sys
from pathlib import Path

import pytest

from cudatut.site import charts, locale, svg, sweep

FOLDER = Path(__file__).parent / "drawings"


def shapes() -> str:
    """Every shape with every kind of words in it."""
    s = svg.Svg(320, 200.5)
    s.rect(10, 10, 60, 30, text="one").rect(
        80, 10, 60.25, 30, "c2 solid bold", "two\nlines", rx=0, size=12
    )
    s.rect(150, 10, 0, 0, "muted mono", "a < b").circle(40, 80, 12, "c3", "r").circle(90, 80, 7.5)
    s.text(10, 120, "start & end\nin\nlines", "muted", "start").text(
        100, 120, "end", anchor="end", size=11
    )
    s.line(0, 0, 320, 200.5, "dash").arrow(10, 150, 110, 150, "c1 dash", "level")
    s.arrow(150, 150, 60, 160, text="back\ntwice", size=12).arrow(
        200, 20, 200, 90, text="down"
    ).arrow(230, 90, 235, 20)
    s.polyline([(1, 2), (3.14159, 4.005)], "c4").polygon([(250, 50), (260, 60), (240, 60)])
    return s.raw("<g/>").render('Shapes "and" more', "What <they> show", "wide")


def framed() -> str:
    s = svg.Svg(100, 50).rect(0, 0, 100, 50)
    return svg.figure(s, alt=" An  empty\nbox ", caption="It calls `f(<x>)`,\n and `g`")


def row(name, median, value=None, of_peak=None, vendor=False, spread=0.1):
    low, high = median * (1 - spread), median * (1 + spread)
    return {
        "name": name, "median_us": median, "p20_us": low, "p80_us": high, "value": value, "of_peak": of_peak,
        "vendor": vendor, "ratio_to_vendor": None,
    }  # fmt: skip


def bars(unit, peak, *rows) -> str:
    return charts.benchmark_svg(
        {"name": "copy <a>", "unit": unit, "peak": peak, "rows": list(rows)}
    )


def rates() -> str:
    return bars(
        "GB/s", 3210.0, row("one thread per element", 10.0, 3100.0, 0.966, spread=0.02),
        row("a name that is far too long for one line of the column of labels", 20.0, 1500.0, 0.467),
        row("cudaMemcpyAsync", 12.0, 2600.0, 0.81, vendor=True), row("none", 900.0, 34.5, 0.0107, spread=0),
    )  # fmt: skip


def rates_of_decades() -> str:
    return bars(
        "TFLOP/s", 60.0, row("naive", 9e5, 0.0031, 5.2e-5), row("tiled", 300.0, 9.34, 0.156)
    )


def durations() -> str:
    return bars("us", None, row("warm", 3.456), row("cold", 34.5, vendor=True), row("first", 99.0))


def durations_of_decades() -> str:
    return bars("us", None, row("kernel", 2.5, spread=0.3), row("process", 1.25e6, spread=0.001))


def lines(foreground=None, limit=None, **named) -> dict:
    return {
        "title": "bandwidth by size", "x": {"name": "n", "unit": "bytes"}, "y": {"name": "rate", "unit": "GB/s"},
        "lines": named, "limit": limit, "foreground": foreground,
    }  # fmt: skip


def few_lines() -> str:
    some = lines(limit=90.0, a=[[1, 10], [2, 40], [3, 85.5]], b=[[1, 11], [3, 84]])
    some["y"]["unit"] = "us"
    return sweep.series_svg(some, locale.current())


def many_lines() -> str:
    """On two logarithmic axes; names that would stand over each other, and one that goes on several lines."""
    sizes = [2**e for e in range(4, 27, 2)]
    named = {f"line {i}": [[n, n / (1 + n / (1000 + i))] for n in sizes] for i in range(9)}
    named["a rung whose name is too long for the column of names beside the lines"] = [
        [16, 2],
        [2**26, 7.5],
    ]
    front = [*list(named)[2:7], list(named)[-1], "none"]
    return sweep.series_svg(lines(front, 1200.0, **named), locale.current())


def below_zero() -> str:
    return sweep.series_svg(lines(a=[[0, -3.5], [10, 4], [100, 0]]), locale.current())


DRAWINGS = (
    *(shapes, framed, rates, rates_of_decades, durations, durations_of_decades),
    *(few_lines, many_lines, below_zero),
)


def drawn(function, lang: str) -> str:
    """With a line for each element, so that a difference can be read."""
    with locale.using(lang):
        return function().replace("><", ">\n<") + "\n"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("function", DRAWINGS, ids=lambda function: function.__name__)
def test_a_drawing_is_drawn_as_before(function, lang):
    kept = (FOLDER / f"{function.__name__}.{lang}.svg").read_text(encoding="utf-8")
    assert drawn(function, lang) == kept, (
        "run `python tests/site/test_drawings.py`, and look at the difference"
    )


def test_no_drawing_is_left_over():
    names = {f"{function.__name__}.{lang}.svg" for function in DRAWINGS for lang in ("en", "zh")}
    assert {path.name for path in FOLDER.iterdir()} == names


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: svg.Svg(0, 5), "positive size, got 0 x 5"),
        (lambda: svg.Svg(5, 0), "positive size, got 5 x 0"),
        (lambda: svg.Svg(9, 9).rect(0, 0, -1, 1), "a box cannot be -1 x 1"),
        (lambda: svg.Svg(9, 9).rect(0, 0, 1, -1), "a box cannot be 1 x -1"),
        (lambda: svg.Svg(9, 9).text(0, 0, "a", anchor="left"), "anchor is"),
        (lambda: svg.Svg(9, 9).arrow(3, 3, 3, 3), "has no direction"),
        (lambda: svg.Svg(9, 9).line(0, 0, float("nan"), 1), "a coordinate of a figure is nan"),
        (lambda: svg.figure(svg.Svg(9, 9), alt=" "), "needs a text alternative"),
        (lambda: sweep.series_svg(lines(a=[]), "en"), "has no points"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for function in DRAWINGS:
        for lang in ("en", "zh"):
            path = FOLDER / f"{function.__name__}.{lang}.svg"
            path.write_text(drawn(function, lang), encoding="utf-8")
            print(path.relative_to(FOLDER.parent), file=sys.stderr)
