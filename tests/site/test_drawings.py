"""Drawings and charts are drawn as they lie in tests/site/drawings, to the last coordinate.

`python tests/site/test_drawings.py` draws them anew: look at the difference, and at the files in a browser, before you
commit it.
"""

import re
import sys
from pathlib import Path

import pytest

from cudatut.site import charts, drawing, locale, svg, sweep

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


def cells() -> str:
    """A grid with heads, names and notes; a row with gaps in it, and boxes over several cells."""
    s = svg.Svg(300, 200)
    grid = drawing.Grid(s, 60, 30, 40, 30, gap=(4, 6), rx=3, size=12)
    grid.fill(2, 3, lambda r, c: (drawing.hue(3 * r + c), f"{r}, {c}") if c else "c0")
    grid.row(2, ["c1", None, ("c2 solid", "x")], first=1).box(
        3, 0.5, "c3", "wide", across=2, size=9
    )
    grid.heads("abc").heads({2: "below"}, "bold", 9, up=-28, row=3)
    grid.name(0, svg.tr("row", "行")).name(1, "two\nlines", "mono", 10, away=4)
    grid.named(2, 4, "from 4").note(0, 3, "note").note(1, 3, "far", "warn", 10, away=20)
    drawing.Grid(s, 200, 160, 15).row(0, [drawing.hue(i) for i in range(5, 8)])
    return s.render("cells")


def lanes() -> str:
    """Bars with words that fit and that do not, runs of equal states, moments, axes."""
    s = svg.Svg(400, 160)
    of = drawing.Lanes(s, 90, 20, 10, 40, gap=(2, 10))
    of.axis(0, svg.tr("host", "主机"), 390).axis(1, "GPU", 390, x=20)
    of.bar(0, 0, 6, "c1", "fits", spare=True).bar(0, 6, 8, "c2", "too long", spare=True)
    of.bar(0, 9, 9, "c3").bar(0, 22, 26, "c4", "stays")
    of.runs(1, "aab ccc", {"a": "c1", "b": "c2", "c": ("c3", "cc")}.get)
    of.moment(8, 0, 1).moment(20.5, 1, 2, "warn", over=0)
    s.text(of.when(8), 12, "8")
    return s.render("lanes")


def banks() -> str:
    s = svg.Svg(720, 120)
    drawing.Banks(s, 58, 26, rows=2).row(0, [("c1", 0), "c2"]).box(1, 4, "c3", "four", across=4)
    drawing.Banks(s, 58, 100, high=16, gap=1, numbers=range(0, drawing.BANKS, 8)).box(0, 31)
    return s.render("banks")


def marks() -> str:
    s = svg.Svg(400, 120)
    entries = [
        ("c1", svg.tr("waits", "等待")),
        ("c2 solid", "×, marked", "×"),
        ("hollow dash", "off"),
    ]
    drawing.legend(s, 10, 10, entries)
    drawing.legend(s, 10, 40, entries[:2], step=150, size=11, wide=20, high=18, cls="muted")
    drawing.bracket(s, 10, 90, 80, "under")
    drawing.bracket(s, 110, 190, 100, svg.tr("over", "上面"), "warn", deep=-5)
    return drawing.bracket(s, 210, 250, 80).render("marks")


def axes() -> str:
    s = svg.Svg(400, 200)
    of = drawing.Axes(s, drawing.linear(0, 10), drawing.log(1, 1000), 50, 390, 20, 160)
    of.x_ticks(range(0, 11, 5), cls=None).x_ticks([2.5], ".1f", " s")
    of.y_ticks(drawing.decades(1, 1000, (1, 5))).names(svg.tr("time", "时间"), "GB/s")
    of.curve([(0, 1), (10, 1000)]).level(200, "accent dash", "limit")
    of.dot(5, 30, tip="a < b").square(6, 30, r=6).say(5, 30, "dot").say(
        6, 30, "left", "warn", -8, 20, 9
    )
    return of.say(8, 5, svg.tr("middle", "中间"), right=0).s.render("axes")


def roofline() -> str:
    """One slope that begins at the left edge, and one that begins at the lower one."""
    of = drawing.Roofline((0.5, 300), (0.5, 120), bottom=200, steps=(1, 2, 5))
    of.slope(3000, 60, text="memory").slope(700, 60, "c3", "slow", right=8, down=12)
    return of.roof(60, 3000, text="60 TFLOP/s").roof(90, 100_000_000, "c2").s.render("roofline")


DRAWINGS = (
    *(shapes, framed, rates, rates_of_decades, durations, durations_of_decades),
    *(few_lines, many_lines, below_zero),
    *(cells, lanes, banks, marks, axes, roofline),
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
        (lambda: drawing.linear(3, 3), "two different ends, got 3 and 3"),
        (lambda: drawing.log(0, 3), "ends above 0, got 0 and 3"),
        (lambda: drawing.table(["a", "b"], [[1]]), "has 1 cells for 2 heads"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_spare_words_stand_in_a_bar_where_there_is_room():
    wide = svg.text_width("kernel") + 2

    def words(text, room, spare):
        bar = drawing.Lanes(svg.Svg(99, 99), 0, 0, 1, 30, gap=0).bar(0, 0, room, "c1", text, spare)
        return bar.s.render("").count("</text>")

    assert words("kernel", wide, spare=True) == 1
    assert words("kernel", wide - 1, spare=True) == 0
    assert words("kernel", wide - 1, spare=False) == 1
    assert words("longer words\nkernel", wide, spare=True) == 0
    assert words("kernel\nkernel", wide, spare=True) == 2


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (drawing.decades(0.5, 200), [1, 10, 100]),
        (drawing.decades(2, 50, (1, 2, 5)), [2, 5, 10, 20, 50]),
        (drawing.powers_of_two(0.3, 20), [0.5, 1, 2, 4, 8, 16]),
        (drawing.powers_of_two(0.2, 20, every=2), [0.25, 1, 4, 16]),
    ],
)
def test_numbers_of_a_logarithmic_axis(numbers, expected):
    assert numbers == pytest.approx(expected)


def test_a_point_lies_where_its_ratios_say():
    of = drawing.Axes(svg.Svg(9, 9), drawing.log(1, 100), drawing.linear(0, 4), 10, 30, 5, 25)
    assert of.at(10, 1) == pytest.approx((20, 20))
    assert of.at(100, 4) == pytest.approx((30, 5))


def test_a_table_in_markdown():
    drawn = drawing.table(["name", "n", "what"], [["a", 1, "b"], ["c", 2.5, "d"]], words=(0, 2))
    assert drawn == "| name | n | what |\n|---|---:|---|\n| a | 1 | b |\n| c | 2.5 | d |"
    assert drawing.table(["a", "b", "c"], []).endswith("|---|---:|---:|")  # names first


def test_a_bracket_without_depth_has_its_name_below():

    def at(deep):
        return drawing.bracket(svg.Svg(100, 100), 10, 90, 50, "n", deep=deep)

    drawn = [re.search(r'<text [^>]*y="([\d.]+)"', at(deep).render("b")) for deep in (6, 0, -1, -6)]
    assert [float(found[1]) for found in drawn] == [72, 66, 43, 38]


def test_what_draws_returns_what_it_drew_on():
    s = svg.Svg(400, 400)
    grid, time = drawing.Grid(s, 0, 0, 20), drawing.Lanes(s, 0, 0, 20, 30)
    assert (
        grid.box(0, 0).fill(1, 1, lambda r, c: "c1").row(0, ["c1"]).heads("a").name(0, "a") is grid
    )
    assert grid.named(0, 1, "a").note(0, 1, "a") is grid
    assert time.axis(0, "a", 90).bar(0, 0, 1).runs(0, "a", lambda one: "c1").moment(1, 0, 0) is time
    of = drawing.Axes(s, drawing.linear(0, 9), drawing.linear(0, 9), 10, 90, 10, 90)
    assert of.x_ticks([1]).y_ticks([1]).names("x").curve([(0, 0), (1, 1)]).level(1) is of
    assert of.level(1, text="a").dot(1, 1).square(1, 1, tip="a").say(1, 1, "a") is of
    roofs = drawing.Roofline((1, 100), (1, 100))
    assert roofs.slope(900, 60).roof(60, 900) is roofs
    assert drawing.legend(s, 0, 0, [("c1", "a")]) is s and drawing.bracket(s, 0, 9, 9) is s


def test_a_square_is_as_large_as_it_is_asked_for_and_eight_units_otherwise():
    of = drawing.Axes(svg.Svg(99, 99), drawing.linear(0, 1), drawing.linear(0, 1), 0, 50, 0, 50)
    drawn = of.square(0.5, 0.5).square(0.5, 0.5, r=6).s.render("")
    assert re.findall(r'<rect [^>]*x="(\d+)" [^>]*width="(\d+)"', drawn) == [
        ("21", "8"),
        ("19", "12"),
    ]


@pytest.mark.parametrize(
    ("right", "anchor"), [(1, "start"), (0.5, "start"), (-0.5, "end"), (-1, "end"), (0, "middle")]
)
def test_words_end_at_the_side_of_a_point_that_they_stand_on(right, anchor):
    of = drawing.Axes(svg.Svg(99, 99), drawing.linear(0, 1), drawing.linear(0, 1), 0, 50, 0, 50)
    drawn = of.say(0.5, 0.5, "words", right=right).s.render("")
    assert re.findall(r'text-anchor="(\w+)"', drawn)[-1] == anchor  # the drawing's own is middle


@pytest.mark.parametrize(
    ("states", "bars"),
    [("", []), ("a", [(0, 10)]), ("abb", [(0, 10), (10, 20)]), ("a a", [(0, 10), (20, 10)])],
)
def test_equal_states_in_a_row_are_one_bar(states, bars):
    of = drawing.Lanes(svg.Svg(99, 99), 0, 0, 10, 30, gap=0)
    drawn = of.runs(0, states, {"a": "c1", "b": "c2"}.get).s.render("")
    found = re.findall(r'<rect [^>]*x="([\d.]+)" [^>]*width="([\d.]+)"', drawn)
    assert [tuple(map(float, one)) for one in found] == bars


def test_the_words_of_a_state_stand_only_where_they_have_room():
    of = drawing.Lanes(svg.Svg(999, 99), 0, 0, svg.text_width("kernel"), 30, gap=0)
    drawn = of.runs(0, "abb", lambda state: ("c1", f"kernel{state}"[:6])).s.render("")
    assert drawn.count("kernel") == 1


def test_a_roofline_has_its_field_and_its_numbers_without_being_asked():
    of = drawing.Roofline((1, 100), (0.1, 10))
    assert (of.s.width, of.s.height) == (712, 410) and of.at(1, 0.1) == (58, 360)
    numbers = re.findall(r">([\d.]+)</text>", of.s.render(""))
    assert numbers == ["1", "4", "16", "64", "0.1", "1", "10"]


def test_a_roof_and_a_slope_begin_inside_the_field():
    """Where the memory reaches them, or at the field's own edges, which differ."""
    of = drawing.Roofline((1, 100), (0.1, 10))
    before = of.s.render("").count("<line")
    of.roof(1, 1e6).slope(1e6, 2e3).roof(1, 100)
    lines = re.findall(r'<line [^>]*x1="([\d.]+)"', of.s.render(""))[before:]
    assert list(map(float, lines)) == [58, 58, 379]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for function in DRAWINGS:
        for lang in ("en", "zh"):
            path = FOLDER / f"{function.__name__}.{lang}.svg"
            path.write_text(drawn(function, lang), encoding="utf-8")
            print(path.relative_to(FOLDER.parent), file=sys.stderr)
