"""The bar chart of a benchmark: what it draws and what it says."""

import re
from xml.etree import ElementTree

import pytest

from cudatut.site import charts, locale
from cudatut.site.charts import WIDTH, number, percent
from cudatut.site.svg import NARROW, text_width


def row(name, value, *, median=100.0, vendor=False, peak=3000.0, spread=0.1):
    return {
        "name": name,
        "median_us": median,
        "p20_us": median * (1 - spread),
        "p80_us": median * (1 + spread),
        "value": value,
        "of_peak": None if value is None or peak is None else value / peak,
        "vendor": vendor,
        "ratio_to_vendor": None,
    }


def bench(rows, unit="GB/s", peak=3000.0, name="add"):
    return {"kind": "benchmark", "name": name, "unit": unit, "peak": peak, "rows": rows}


def benchmark_svg(result, lang):
    with locale.using(lang):
        return charts.benchmark_svg(result)


def parse(svg):
    return ElementTree.fromstring(svg)


def words(svg):
    return [element.text for element in parse(svg).iter("text")]


def bars(svg):
    return [r for r in parse(svg).iter("rect") if "bar" in r.get("class", "").split()]


def test_bars_are_proportional_on_a_linear_axis():
    svg = benchmark_svg(bench([row("half", 1000.0), row("whole", 2000.0)]), "en")
    half, whole = (float(bar.get("width")) for bar in bars(svg))
    assert whole == pytest.approx(2 * half, rel=0.01)
    assert "logarithmic" not in svg


def test_the_limit_is_a_labeled_line_right_of_a_smaller_bar():
    svg = benchmark_svg(bench([row("a", 1500.0)]), "en")
    limit = next(x for x in parse(svg).iter("line") if "limit" in x.get("class", ""))
    bar = bars(svg)[0]
    left = float(bar.get("x"))
    span = float(limit.get("x1")) - left
    assert float(bar.get("width")) == pytest.approx(span / 2, rel=0.01)
    assert "measured limit 3,000 GB/s" in words(svg)
    assert "1,500 GB/s, 50%" in words(svg)


@pytest.mark.parametrize("value", range(100, 3000, 100))
def test_the_line_of_the_limit_crosses_no_value(value):
    root = parse(benchmark_svg(bench([row("a", float(value))]), "en"))
    limit = next(x for x in root.iter("line") if "limit" in x.get("class", ""))
    note = next(x for x in root.iter("text") if x.text.startswith(f"{value:,} GB/s"))
    start = float(note.get("x"))
    assert not start < float(limit.get("x1")) < start + text_width(note.text, 13)


def test_more_than_two_decades_are_logarithmic_and_say_so():
    near = bench([row("a", 10.0), row("b", 999.0)], peak=1000.0)
    far = bench([row("a", 9.0), row("b", 999.0)], peak=1000.0)
    assert "logarithmic" not in benchmark_svg(near, "en")
    svg = benchmark_svg(far, "en")
    assert "GB/s, logarithmic axis" in words(svg)
    assert "GB/s，对数坐标" in words(benchmark_svg(far, "zh"))
    low, high = (float(bar.get("width")) for bar in bars(svg))
    assert 0 < low < high


def test_the_whisker_of_a_rate_runs_from_p80_to_p20():
    svg = benchmark_svg(bench([row("a", 1500.0, spread=0.5)], peak=None), "en")
    start, end = map(float, re.search(r'"M([\d.]+) \d+v10m0-5H([\d.]+)', svg).groups())
    bar = bars(svg)[0]
    left, right = float(bar.get("x")), float(bar.get("x")) + float(bar.get("width"))
    # The value is median/time: 1/1.5 of it at p80, twice it at p20.
    assert start - left == pytest.approx((right - left) / 1.5, rel=0.01)
    assert end - left == pytest.approx(2 * (right - left), rel=0.01)


def test_a_vendor_differs_by_more_than_color():
    rows = [row("mine", 1000.0), row("CUB", 1200.0, vendor=True)]
    svg = benchmark_svg(bench(rows), "en")
    assert svg.count('class="hatch"') == 1
    assert "CUB (vendor)" in words(svg)
    assert "CUB（厂商库）" in words(benchmark_svg(bench(rows), "zh"))


def test_the_text_alternative_has_every_number():
    rows = [row("a <b>", 1000.0), row("CUB", 1200.0, vendor=True)]
    root = parse(benchmark_svg(bench(rows, name="x & y"), "en"))
    assert root.get("role") == "img"
    label, title = root.get("aria-label"), "Bar chart: x & y, in GB/s"
    assert label.startswith(f"{title} ")
    assert root.find("title") is None and root.find("desc") is None  # which would say it again
    desc = label.removeprefix(f"{title} ")
    assert desc.startswith(
        "a <b>: 1,000 GB/s, 33% of the limit; CUB: 1,200 GB/s, 40% of the limit."
    )
    assert "3,000 GB/s" in desc


def test_times_are_drawn_where_there_is_no_rate():
    timed = bench([row("a", None, median=2.0), row("b", None, median=8.0)], unit="us", peak=None)
    svg = benchmark_svg(timed, "en")
    assert "µs per call, shorter is faster" in words(svg)
    assert "8 µs" in words(svg)
    first, second = (float(bar.get("width")) for bar in bars(svg))
    assert second == pytest.approx(4 * first, rel=0.01)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("count", [1, 12])
def test_nothing_leaves_the_drawing(lang, count):
    name = "a rung with quite a long name, unrolled eight times over"
    rows = [row(f"{name} {i}", 10.0 ** (i % 5) / 3, vendor=i % 2 == 1) for i in range(count)]
    root = parse(benchmark_svg(bench(rows, peak=3333.3), lang))
    height = float(root.get("height"))
    for element in root.iter():
        for key in ("x", "x1", "x2"):
            assert 0 <= float(element.get(key, 0)) <= WIDTH
        for key in ("y", "y1", "y2"):
            assert 0 <= float(element.get(key, 0)) <= height


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (2713.4, "2,713"),
        (81.44, "81.4"),
        (3.017, "3.02"),
        (0.00412, "0.00412"),
        (0.21, "0.210"),
        (8.0, "8"),
    ],
)
def test_number(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [(1.0, "100%"), (0.9549, "95%"), (0.0123, "1.2%"), (0.0024, "0.24%"), (0.000029, "0.0029%")],
)
def test_percent(fraction, shown):
    assert percent(fraction) == shown


# --- small drawings, to a tenth of a pixel -------------------------------------------------------


def drawn(svg):
    """Each element of a chart: its kind, its attributes' values, its words."""
    found = []
    for element in parse(svg).iter():
        kind = element.tag.rpartition("}")[2]
        if kind in ("path", "text", "rect", "line"):
            words = [element.text] if element.text else []
            found.append(" ".join([kind, *element.attrib.values(), *words]))
    return found


def test_a_chart_of_rates():
    rows = [row("grid-stride", 1500.0), row("CUB", 2400.0, vendor=True, spread=0)]
    svg = benchmark_svg(bench(rows), "en")
    assert [one for one in drawn(svg) if not one.startswith("path hatch")] == [
        "path grid M99.4 30V98M253.4 30V98M407.4 30V98M561.5 30V98",
        "text 99.4 114 muted 12 0",
        "text 253.4 114 muted 12 1,000",
        "text 407.4 114 muted 12 2,000",
        "text 561.5 114 muted 12 3,000",
        "text 330.4 132 muted 12 GB/s",
        "text 89.4 52 grid-stride",
        "text 89.4 86 CUB (vendor)",
        "rect 99.4 38 231.1 18 bar",
        "path whisker M309.4 42v10m0-5H356.1m0-5v10",
        "text 569 51.5 1,500 GB/s, 50%",
        "rect 99.4 72 369.7 18 bar vendor",  # p20 and p80 are one: no whisker
        "text 569 85.5 2,400 GB/s, 80%",
        "line 99.4 28 99.4 98 axis",
        "line 561.5 22 561.5 98 limit dash",
        "text 561.5 14 limit 13 measured limit 3,000 GB/s",
        "text 99.4 154 muted start 12 hatched bar = the vendor's library; line at a bar's end = p20 to p80",
    ]
    root = parse(svg)
    assert (root.get("width"), root.get("height")) == ("680", "162")
    groups = [one.attrib for one in root.iter("g")]
    assert groups == [{"text-anchor": "end"}, {"text-anchor": "start", "font-size": "13"}]


def test_a_chart_of_times():
    long = "a rung with quite a long name, unrolled eight times"
    timed = [row("a", None, median=2.0), row(long, None, median=900.0)]
    assert drawn(benchmark_svg(bench(timed, unit="us", peak=3.0), "en")) == [
        "path grid M223.7 8V76M357.3 8V76M490.9 8V76",
        "text 223.7 92 muted 12 1",
        "text 357.3 92 muted 12 10",
        "text 490.9 92 muted 12 100",
        "text 423.8 110 muted 12 µs per call, logarithmic axis, shorter is faster",
        "text 213.7 30 a",
        "text 213.7 56.5 a rung with quite a long name,",
        "text 213.7 71.5 unrolled eight times",
        "rect 223.7 16 40.2 18 bar",
        "path whisker M257.8 20v10m0-5H269.4m0-5v10",
        "text 632 29.5 2 µs",
        "rect 223.7 50 394.7 18 bar",
        "path whisker M612.2 54v10m0-5H623.9m0-5v10",
        "text 632 63.5 900 µs",
        "line 223.7 6 223.7 76 axis",
        "text 223.7 132 muted start 12 line at a bar's end = p20 to p80",
    ]


def test_a_name_as_wide_as_its_column_stays_on_one_line(monkeypatch):
    monkeypatch.setattr(charts, "text_width", len)
    first, second, third = "a" * 109, "b" * 110, "c" * 111
    assert charts._lines(f"{first} {second} {third}") == [f"{first} {second}", third]
    assert charts._lines(f"{second} {second}") == [second, second]


def test_a_logarithmic_axis_begins_well_below_the_least_value():
    rows = [row("a", 12.0, spread=0), row("b", 9000.0, spread=0)]
    assert words(benchmark_svg(bench(rows, peak=None), "en"))[:3] == ["10", "100", "1,000"]
    assert round(charts.round_below(12.0 * 0.7), 9) == 5.0  # the axis begins between two labels


@pytest.mark.parametrize(
    ("value", "below"),
    [
        (1, 1),
        (1.9, 1),
        (2, 2),
        (4.99, 2),
        (5, 5),
        (9.9, 5),
        (0.0991, 0.05),
        (0.1, 0.1),
        (3100, 2000),
    ],
)
def test_an_axis_begins_at_a_round_number(value, below):
    assert charts.round_below(value) == pytest.approx(below)


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1, 1000, ["1", "10", "100", "1,000"]),
        (0.05, 12, ["0.1", "1", "10"]),
        (5, 60, ["5", "10", "20", "50"]),  # two decades at most: what lies between them too
        (2, 90, ["2", "5", "10", "20", "50"]),
    ],
)
def test_a_logarithmic_axis_has_labels_enough_and_no_empty_decade(low, high, shown):
    assert [charts.tick_label(tick) for tick in charts.ticks(low, high, True, 5)] == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.01, "0.01"), (0.1, "0.1"), (2.5, "2.5"), (1000, "1,000"), (1e-7, "0.0000001")],
)
def test_the_label_of_a_tick_has_no_zeros_that_say_nothing(value, shown):
    assert charts.tick_label(value) == shown


@pytest.fixture
def a_pixel_a_unit(monkeypatch):
    """Words of such widths that 0 to 512 is 512 pixels, from 128 on."""
    monkeypatch.setattr(charts, "text_width", lambda words, size=14: 26 if size == 13 else 116)


@pytest.mark.parametrize("value", [4, 474, 508])
def test_values_stand_in_a_column_behind_all_bars(a_pixel_a_unit, value):
    svg = benchmark_svg(bench([row("a", float(value), spread=0)], peak=512.0), "en")
    (note,) = [one for one in parse(svg).iter("text") if f"{value} GB/s" in one.text]
    assert note.get("x") == "648"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("peak", [3000.0, None])
def test_a_narrow_chart_has_all_words_inside_and_values_above_the_bars(lang, peak):
    long = "a rung with quite a long name that goes on, unrolled eight times"
    rows = [row("a", 1500.0), row(long, 20.0), row("CUB", 2400.0, vendor=True)]
    with locale.using(lang):
        svg = charts.benchmark_svg(bench(rows, peak=peak), NARROW)
    root = parse(svg)
    assert float(root.get("width")) <= 340 and "ct-narrow" in root.get("class")
    anchors = {"end": 1.0, "start": 0.0, None: 0.5, "middle": 0.5}
    for group in root.iter():
        for text in [one for one in group if one.tag.endswith("text")]:
            size = float(text.get("font-size") or group.get("font-size") or 14)
            wide = text_width(text.text, size)
            left = (
                float(text.get("x"))
                - wide * anchors[text.get("text-anchor") or group.get("text-anchor")]
            )
            assert size >= 12 and left >= -0.1 and left + wide <= float(root.get("width")) + 0.1
            assert float(text.get("y")) < float(root.get("height"))
    assert len(bars(svg)) == 3
    (note,) = [one for one in root.iter("text") if (one.text or "").startswith("2,400")]
    assert float(note.get("y")) < float(bars(svg)[2].get("y"))


def test_a_spread_of_a_pixel_is_drawn_and_no_less(a_pixel_a_unit):
    rows = [row(name, None, median=256.0) for name in "ab"] + [
        row("c", None, median=512.0, spread=0)
    ]
    for one, high in zip(rows, (257.0, 256.5)):
        one |= {"p20_us": 256.0, "p80_us": high}
    svg = benchmark_svg(bench(rows, unit="us", peak=None), "en")
    assert re.findall('class="whisker" d="([^"]*)"', svg) == ["M384.0 20v10m0-5H385.0m0-5v10"]


def test_one_row_without_a_rate_makes_it_a_chart_of_times():
    svg = benchmark_svg(bench([row("a", 1500.0, median=2.0), row("b", None, median=4.0)]), "en")
    assert "µs per call, shorter is faster" in words(svg) and "limit" not in svg.partition(">")[2]


@pytest.mark.parametrize(
    ("value", "peak", "x"),
    [(3000.0, 40.0, "68.6"), (9.0, 3e6, "588.1")],
)
def test_the_words_of_a_limit_near_an_edge_stay_inside(value, peak, x):
    svg = benchmark_svg(bench([row("a", value, peak=None)], unit="x", peak=peak), "en")
    (text,) = [one for one in parse(svg).iter("text") if "limit" in (one.text or "")]
    assert text.get("x") == x


@pytest.mark.parametrize(
    ("box", "path"),
    [
        # wider than high, as most bars are; narrower; and too small for a line
        ((2, 3, 12, 6), "M2.0 3.0m5 0l-5 5m10 -5l-6 6m8 -3l-3 3"),
        ((0, 0, 4, 11), "M0.0 0.0m4 1l-4 4m4 1l-4 4m4 1l0 0"),
        ((0, 0, 2, 2), "M0.0 0.0"),
    ],
)
def test_slanted_lines_fill_a_box_and_do_not_leave_it(box, path):
    assert charts._hatch(*box, gap=5) == f'<path class="hatch" d="{path}"/>'


@pytest.mark.parametrize(
    ("low", "high", "log", "parts", "found"),
    [
        (0.0, 3000.0, False, 4, [0, 1000, 2000, 3000]),
        (0.0, 4.0, False, 4, [0, 1, 2, 3, 4]),
        (0.0, 8.0, False, 4, [0, 2, 4, 6, 8]),
        (0.0, 10.0, False, 4, [0, 2.5, 5, 7.5, 10]),
        (0.0, 20.0, False, 4, [0, 5, 10, 15, 20]),
        (3.0, 4.1, False, 4, [3.0, 3.5, 4.0]),
        (0.0, 36.0, False, 4, [0, 10, 20, 30]),
        (1.0, 900.0, True, 4, [1, 10, 100]),
        (0.1, 1e6, True, 4, [0.1, 10, 1000, 1e5]),  # eight decades: every other one
        (1.0, 1e6, True, 4, [1, 10, 100, 1e3, 1e4, 1e5, 1e6]),
    ],
)
def test_ticks(low, high, log, parts, found):
    assert charts.ticks(low, high, log, parts) == pytest.approx(found)


def test_a_scale_of_one_value_only():
    assert charts.scale(5.0, 5.0, 10.0, 20.0, log=False)(5.0) == 10.0
    assert charts.scale(1.0, 100.0, 10.0, 30.0, log=True)(10.0) == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(99.94, "99.9"), (99.95, "100"), (-2713.4, "-2,713"), (1.0, "1"), (0.5, "0.500"), (12, "12")],
)
def test_whole_numbers_and_three_digits(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("fraction", "shown"), [(0.00949, "0.95%"), (0.0095, "0.9%"), (0.0949, "9.5%"), (0.095, "10%")]
)
def test_where_a_percentage_gets_and_loses_its_decimals(fraction, shown):
    assert percent(fraction) == shown


@pytest.mark.parametrize(
    ("name", "unit", "shown"),
    [("time", "us", "time (µs)"), ("GB/s", "GB/s", "GB/s"), ("n", None, "n"), ("n", "", "n")],
)
def test_a_column_says_its_unit_unless_that_is_its_name(name, unit, shown):
    assert charts.with_unit({"name": name, "unit": unit}, "en") == shown


@pytest.mark.parametrize(
    ("name", "vendor", "lang", "shown"),
    [
        ("CUB", True, "en", "CUB (vendor)"),
        ("CUB", False, "en", "CUB"),
        ("vendor", True, "en", "vendor"),
        ("厂商", True, "zh", "厂商"),
        ("库", True, "zh", "库（厂商库）"),
    ],
)
def test_a_row_of_the_vendor_says_so_once(name, vendor, lang, shown):
    with locale.using(lang):
        assert charts.row_name({"name": name, "vendor": vendor}) == shown
