"""The chart of a recorded sweep (kind "series"): points, axes, names, limit, and what is refused."""

import copy
import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from cudatut.site import locale
from cudatut.site.render import MIME, results_html
from cudatut.site.svg import NARROW, text_width
from cudatut.site.sweep import divided, series_svg

SIZES = [1 << e for e in range(10, 26, 3)]
SERIES = {
    "kind": "series",
    "title": "sums by length",
    "x": {"name": "n", "unit": "elements"},
    "y": {"name": "bandwidth", "unit": "GB/s"},
    "lines": {
        "mine": [[n, n / (2 + n / 3000)] for n in SIZES],
        "CUB <1>": [[n, n / (4 + n / 2900)] for n in SIZES],
    },
    "limit": 3100.0,
}


def series(**changes):
    return {**copy.deepcopy(SERIES), **changes}


def parts(result, lang="en"):
    """The chart as XML, with the namespace-free tags that inline SVG has."""
    return ET.fromstring(series_svg(result, lang))


def polylines(svg):
    return [
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
        for line in svg.iter("polyline")
    ]


def points(svg):
    return [g.find("title").text for g in svg.iter("g") if g.get("class") == "point"]


def test_every_point_is_there_and_tells_its_values():
    svg = parts(SERIES)
    assert [len(line) for line in polylines(svg)] == [len(SIZES)] * 2
    told = points(svg)
    assert len(told) == 2 * len(SIZES)
    assert told[0].startswith("mine: n = 2¹⁰, ") and told[0].endswith(" GB/s")
    assert told[-1].startswith("CUB <1>: n = 2²⁵, ")  # escaped in the file, itself when read
    assert len(set(told)) == len(told)


def test_chart_has_a_text_alternative_in_the_pages_language():
    for lang, joint in (("en", "; "), ("zh", "；")):
        svg = parts(SERIES, lang)
        assert svg.get("role") == "img"
        desc = svg.get("aria-label")
        assert SERIES["title"] in desc.partition("2¹⁰")[0]
        assert joint in desc
    assert series_svg(SERIES, "en") != series_svg(SERIES, "zh")


def test_the_text_alternative_says_where_a_line_begins_and_ends_and_its_highest_point():
    hill, rise = [[1, 2.0], [2, 3.0], [3, 9.0], [4, 5.0], [5, 1.0]], [[1, 4.0], [2, 4.0], [5, 6.0]]
    desc = parts(series(lines={"hill": hill, "rise": rise, "one": [[3, 8.0]]})).get("aria-label")
    assert "hill: 1 → 2, 3 → 9, 5 → 1; rise: 1 → 4, 5 → 6; one: 3 → 8" in desc


def test_x_is_logarithmic_over_more_than_a_decade():
    (xs, _), _ = (list(zip(*line)) for line in polylines(parts(SERIES)))
    steps = [b - a for a, b in pairwise(xs)]  # equal ratios: equal distances
    assert max(steps) - min(steps) < 0.21  # coordinates have one decimal

    near = series(lines={"mine": [[1, 5.0], [2, 6.0], [4, 7.0]]}, limit=None)
    ((xs, _),) = (list(zip(*line)) for line in polylines(parts(near)))
    assert xs[2] - xs[1] == pytest.approx(2 * (xs[1] - xs[0]), abs=0.2)


def test_y_is_logarithmic_over_two_decades():
    values = (1.0, 10.0, 100.0, 1000.0)
    wide = series(lines={"mine": [[k, y] for k, y in enumerate(values, 1)]}, limit=None)
    ((_, ys),) = (list(zip(*line)) for line in polylines(parts(wide)))
    steps = [a - b for a, b in pairwise(ys)]
    assert max(steps) - min(steps) < 0.21 and min(steps) > 0  # up is more
    labels = {text.text for text in parts(wide).iter("text")}
    assert {"1", "10", "100"} <= {label.replace(",", "") for label in labels if label}


def test_higher_values_stand_higher_and_all_stay_inside():
    svg = parts(SERIES)
    width, height = float(svg.get("width")), float(svg.get("height"))
    for line, drawn in zip(SERIES["lines"].values(), polylines(svg)):
        for (_, a), (_, b), (_, at), (_, bt) in zip(line, line[1:], drawn, drawn[1:]):
            assert math.copysign(1, b - a) == math.copysign(1, at - bt)
        assert all(0 <= x <= width and 0 <= y <= height for x, y in drawn)


def test_limit_is_a_line_with_its_value():
    (limit,) = [line for line in parts(SERIES).iter("line") if "limit" in (line.get("class") or "")]
    assert limit.get("y1") == limit.get("y2")
    (words,) = [t.text for t in parts(SERIES).iter("text") if (t.get("class") or "") == "limit"]
    assert "GB/s" in words and re.search(r"3,?100", words)
    assert not [
        line for line in parts(series(limit=None)).iter("line") if "limit" in line.get("class", "")
    ]


@pytest.mark.parametrize("count", [1, 2, 6])
@pytest.mark.parametrize("value", [0.0, 1500.0, 3000.0])
def test_names_at_the_ends_do_not_overlap(count, value):
    """Lines that end at nearly the same value still have names that can be read."""
    lines = {f"rung {k}": [[n, value + k] for n in SIZES] for k in range(count)}
    svg = parts(series(lines=lines))
    at = sorted(float(t.get("y")) for t in svg.iter("text") if t.text in lines)
    assert len(at) == count
    assert all(b - a >= 12 for a, b in pairwise(at))  # the type is 12 units high
    assert at[0] > 0 and at[-1] < float(svg.get("height"))


def test_a_long_name_is_broken_and_stays_beside_its_own_mark():
    long = "a block per tile, the rest of the tiles split over as many blocks as there are"
    lines = {f"{k}: {long}": [[n, 3000.0 + k] for n in SIZES] for k in range(6)}
    for lang, named in (
        ("en", lines),
        ("zh", {f"每个分块一个线程块，余下的再切分{name}": line for name, line in lines.items()}),
    ):
        svg = parts(series(lines=named), lang)
        words = [t for t in svg.iter("text") if re.fullmatch(r"c\d", t.get("class") or "")]
        at = sorted(float(t.get("y")) for t in words)
        assert len(at) > 6 and all(b - a >= 12 for a, b in pairwise(at))
        assert at[0] > 0 and at[-1] < float(svg.get("height"))
        right = max(float(t.get("x")) + text_width(t.text, 12) for t in words)
        assert right <= float(svg.get("width"))


def _colored(svg):
    return {m for e in svg.iter() for m in re.findall(r"\bc[1-6]\b", e.get("class") or "")}


def _key(svg):
    """The marks beside the names: their kinds of shape, and their colors."""
    found = [e for e in svg.iter() if "key" in (e.get("class") or "").split()]
    shapes = [(e.tag, (e.get("d") or "").partition("m")[2]) for e in found]
    return shapes, [e.get("class").split()[0] for e in found]


@pytest.mark.parametrize("count", [1, 6, 7, 13])
def test_at_most_six_lines_have_a_color(count):
    lines = {f"rung {k}": [[n, 100.0 * k + 5] for n in SIZES] for k in range(count)}
    for lang in ("en", "zh"):
        svg = parts(series(lines=lines), lang)
        front = min(count, 6)
        assert len(_colored(svg)) == front
        shapes, colors = _key(svg)
        assert len(set(shapes)) == len(set(colors)) == front
        assert len(points(svg)) == front * len(SIZES)
        classes = [line.get("class") for line in svg.iter("polyline")]
        assert classes.count("axis") == count - front == len(classes) - front
        named = {t.text for t in svg.iter("text")}
        assert len(named & set(lines)) == front
        said = [
            t for t in named if t and (f"{count - front} more" in t or f"{count - front} 条" in t)
        ]
        assert bool(said) == (count > 6)
    assert "rung 12" in parts(series(lines={**lines, "rung 12": [[1, 1.0]]})).get("aria-label")


def test_the_foreground_is_chosen():
    lines = {f"rung {k}": [[n, 100.0 * k + 5] for n in SIZES] for k in range(9)}
    svg = parts(series(lines=lines, foreground=["rung 8", "rung 2"]))
    assert {t.text for t in svg.iter("text")} & set(lines) == {"rung 8", "rung 2"}
    assert _key(svg)[1] == ["c1", "c2"]


def test_x_labels_close_together_do_not_touch():
    xs = [1000, 1001, 1023, 1024, 1025, 2000]
    svg = parts(series(lines={"mine": [[n, float(n)] for n in xs]}, limit=None))
    drawn = {"1,000", "1,001", "1,023", "2¹⁰", "1,025", "2,000"}
    labels = [t for t in svg.iter("text") if t.text in drawn and t.get("text-anchor") is None]
    ends = [(float(t.get("x")), text_width(t.text, 12) / 2) for t in labels]
    assert len(ends) >= 2 and all(a + w < b - v for (a, w), (b, v) in pairwise(ends))


def test_x_labels_do_not_touch():
    xs = [1 << e for e in range(10, 31)]
    svg = parts(series(lines={"mine": [[n, float(n)] for n in xs]}, limit=None))
    labels = [t for t in svg.iter("text") if re.fullmatch("2[⁰¹²³⁴⁵⁶⁷⁸⁹]+", t.text or "")]
    at = [float(t.get("x")) for t in labels]
    assert 2 <= len(at) <= 11 and min(b - a for a, b in pairwise(at)) >= 30


def test_figure_with_the_numbers_folded_away():
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: SERIES}}
    html = results_html([output], "en")
    assert html.count("<svg") == 2 and "<details" in html and "<script" not in html
    table = html[html.index("<table") :]
    assert table.count("<tr>") == 1 + len(SIZES)
    assert "CUB &lt;1&gt;" in table and f"{SIZES[-1]:,}" in table


def test_lines_of_different_lengths_share_a_table():
    lines = {"mine": [[1, 2.0], [2, 3.0]], "short": [[2, 5.0]]}
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: series(lines=lines)}}
    html = results_html([output], "zh")
    assert html.count("–</td>") == 1  # what the second line has no value for


@pytest.mark.parametrize("lines", [{}, {"mine": []}])
def test_no_points(lines):
    with pytest.raises(ValueError, match="sums by length.*no points"):
        series_svg(series(lines=lines), "en")


@pytest.mark.parametrize(
    "damaged",
    [
        {"lines": {"mine": [[1024, math.nan]]}},
        {"lines": {"mine": [[1024, math.inf], [2048, 1.0]]}},
        {"lines": {"mine": [[1024, "fast"]]}},
        {"lines": {"mine": [[1024]]}},
        {"lines": {"mine": [[1024, 1.0]], "empty": []}},
        {"lines": [[1024, 1.0]]},
        {"limit": math.nan},
        {"limit": "3100"},
        {"x": None},
        {"y": {"name": "bandwidth"}},
        {"title": 3},
        {"foreground": []},
        {"foreground": "mine"},
        {"foreground": ["none such"]},
        {"foreground": ["mine"] * 7},
    ],
    ids=str,
)
def test_damaged_data_is_refused(damaged):
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: series(**damaged)}}
    with pytest.raises(ValueError):
        results_html([output], "en")


@pytest.mark.parametrize("field", ["title", "x", "y", "lines", "limit"])
def test_missing_field_is_refused(field):
    damaged = series()
    del damaged[field]
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: damaged}}
    with pytest.raises(ValueError, match=field):
        results_html([output], "en")


def test_the_numbers_have_units_and_as_many_digits_as_the_axis():
    odd = series(lines={"mine": [[39.321600000000004, 5.0], [16384, 6.0]]}, limit=None)
    html = results_html([{"output_type": "display_data", "data": {MIME: odd}}], "en")
    numbers = html[html.index("<table") :]
    assert "39.3<" in numbers and "39.32" not in numbers and "16,384<" in numbers
    assert "n (elements)" in numbers and "bandwidth (GB/s)" in numbers


def elements(result, lang="en"):
    """What is drawn, in its order: of each element its tag, its attributes and its words."""
    return [
        " ".join([e.tag, *map("=".join, e.items()), *([e.text] if e.text else [])])
        for e in parts(result, lang).iter()
        if e.tag not in ("svg", "g")
    ]


SMALL = {
    "kind": "series",
    "title": "t",
    "x": {"name": "n", "unit": ""},
    "y": {"name": "time", "unit": "us"},
    "lines": {
        "a": [[1, 50.0], [2, 100.0], [4, 80.0]],
        "far": [[1, 10.0], [4, 20.0]],
        "b": [[1, 70.0], [4, 80.0]],
    },
    "foreground": ["a", "b"],
    "limit": 90.0,
}


@pytest.mark.parametrize(
    ("line", "limit", "logarithmic"),
    [
        ([[1, 1.0], [10, 100.0]], None, []),  # more than ten and a hundred times, not as much
        ([[1, 1.0], [10.1, 101.0]], None, ["n", "time"]),
        ([[1, 1.0], [2, 2.0]], 101.0, ["time"]),  # the limit is shown too
        ([[0, 1.0], [100, 2.0]], None, []),  # there is no logarithm of zero
        ([[1, 0.0], [2, 500.0]], None, []),
        ([[1, 0.5], [2, 0.6]], None, []),
    ],
)
def test_an_axis_is_logarithmic_from_where_on(line, limit, logarithmic):
    words = [t.text for t in parts(SMALL | {"lines": {"a": line}, "limit": limit}).iter("text")]
    assert [re.split(r"\W", one)[0] for one in words if "log" in one] == logarithmic


def test_values_below_zero_are_on_the_axis():
    """Of all values the least is where it begins, and zero where all are above it."""
    (line,) = polylines(parts(SMALL | {"lines": {"a": [[1, -10.0], [2, 50.0]]}, "limit": None}))
    assert line[0][1] == 326 > line[1][1] > 26
    (line,) = polylines(parts(SMALL | {"lines": {"a": [[1, -10.0], [2, -5.0]]}, "limit": None}))
    assert line[0][1] == 326 and line[1][1] == 176  # the top is zero: half of it


@pytest.mark.parametrize(("end", "rows"), [("ab", 1), ("mi", 2)])
def test_a_name_has_a_column_of_170(end, rows):
    """13 Chinese characters are 156 wide; behind them there is room for 13.9, and not for 14.6."""
    name = "一" * 13 + end
    drawn = parts(SMALL | {"lines": {name: [[1, 5.0]]}, "foreground": [name]})
    assert sum(t.get("class") == "c1" for t in drawn.iter("text")) == rows


@pytest.mark.parametrize(
    ("xs", "shown"),
    [
        ([512, 1024, 1 << 30], ["2⁹", "2¹⁰", "2³⁰"]),
        ([128, 1024, 16384], ["128", "1,024", "16,384"]),  # short enough as numbers
        ([16384, 32768], ["2¹⁴", "2¹⁵"]),
        ([512, 1000, 1 << 16], ["512", "1,000", "65,536"]),  # not all of them are powers
        ([1, 2, 1 << 16], ["1", "2", "65,536"]),
    ],
)
def test_all_of_x_are_written_in_one_notation(xs, shown):
    told = points(parts(SMALL | {"lines": {"a": [[x, 1.0] for x in xs]}, "foreground": ["a"]}))
    assert [one.split(" = ")[1].rpartition(", ")[0] for one in told] == shown


RATES = {
    "kind": "series",
    "title": "rate by size",
    "x": {"name": "n", "unit": ""},
    "y": {"name": "rate", "unit": "TFLOP/s"},
    "lines": {
        "first": [[1, 1.0], [2, 4.0]],
        "final": [[1, 3.0], [2, 6.0], [4, 9.0]],
        "cuBLAS": [[1, 2.0], [2, 8.0]],
    },
    "foreground": ["first", "final", "cuBLAS"],
    "limit": 60.0,
}


def test_a_chart_divided_by_a_line_shows_the_ratios():
    shown = divided(RATES, "cuBLAS")
    assert shown["lines"] == {"first": [(1, 0.5), (2, 0.5)], "final": [(1, 1.5), (2, 0.75)]}
    assert shown["foreground"] == ["first", "final"] and shown["limit"] == 1.0
    svg = parts(shown)
    words = [t.text for t in svg.iter("text")]
    assert any("divided by that of cuBLAS" in one for one in words)
    assert not any("60" in one or "limit" in one for one in words)
    assert [c.get("class") for c in svg.iter("line") if "limit" in (c.get("class") or "")]


def test_a_chart_is_divided_by_a_line_that_there_is():
    with pytest.raises(ValueError, match=r"no line 'CUB'; it has first, final, cuBLAS"):
        divided(RATES, "CUB")


def test_the_numbers_of_a_divided_chart_stay_as_they_are():
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: RATES}}
    html = results_html([output], "en", over="cuBLAS")
    assert "divided by that of cuBLAS" in html.partition("<table")[0]
    table = html[html.index("<table") :]
    assert "cuBLAS" in table and "9<" in table and "rate (TFLOP/s)" in table
    assert "divided" not in results_html([output], "en")  # the option ends with the cell


def narrow(result, lang="en"):
    with locale.using(lang):
        return ET.fromstring(series_svg(result, lang, NARROW))


@pytest.mark.parametrize("count", [1, 3, 6, 13])
@pytest.mark.parametrize(
    "name", ["rung", "a block per tile, the rest of the tiles split over as many blocks"]
)
def test_a_narrow_chart_has_its_names_above_the_lines_and_all_words_inside(count, name):
    lines = {f"{name} {k}": [[n, 100.0 * k + 5] for n in SIZES] for k in range(count)}
    svg = narrow(series(lines=lines))
    width, height = float(svg.get("width")), float(svg.get("height"))
    assert width <= 340 and not list(svg.iter("title"))
    highest = min(y for line in polylines(svg) for _, y in line)
    shapes, colors = _key(svg)
    assert len(set(shapes)) == len(set(colors)) == min(count, 6)
    key = [t for t in svg.iter("text") if re.fullmatch(r"c\d", t.get("class") or "")]
    assert "".join(t.text for t in key).replace(" ", "").count(name[:8].replace(" ", "")) == min(
        count, 6
    )
    assert all(float(t.get("y")) < highest for t in key)
    taken = sorted((float(t.get("y")), float(t.get("x")), text_width(t.text, 12)) for t in key)
    assert all(y < b or x + w < u for (y, x, w), (b, u, _) in pairwise(taken))
    anchors = {"start": 0.0, None: 0.5, "end": 1.0}
    for t in svg.iter("text"):
        wide = text_width(t.text, float(t.get("font-size") or 14))
        left = float(t.get("x")) - wide * anchors[t.get("text-anchor")]
        assert left >= -0.1 and left + wide <= width + 0.1, t.text
        assert 0 < float(t.get("y")) <= height


def test_the_height_has_some_five_ticks():
    drawn = parts(SMALL | {"lines": {"a": [[1, 30.0], [2, 60.0]]}, "limit": None}).iter("text")
    assert [t.text for t in drawn if t.get("text-anchor") == "end"] == ["0", "20", "40", "60"]


def test_of_many_sizes_nine_at_most_have_a_label():
    for count, labels in ((9, 9), (10, 5), (18, 9), (19, 7)):
        line = [[x, 1.0] for x in range(1, count + 1)]
        drawn = elements(SMALL | {"lines": {"a": line}, "foreground": ["a"]})
        assert sum("y1=326" in one and "y2=330" in one for one in drawn) == labels


def test_a_label_needs_six_units_beside_the_one_before_it():
    """Half of "0" is 3.5 wide, half of two digits are 7: of their middles one is 16.4 behind the other."""

    def shown(x):
        line = [[0, 1.0], [x, 1.0], [587, 1.0]]
        drawn = elements(SMALL | {"lines": {"a": line}, "foreground": ["a"]})
        return sum("y2=330" in one for one in drawn)

    assert (shown(16), shown(17)) == (2, 3)
