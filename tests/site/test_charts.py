"""The bar chart of a benchmark: what it draws and what it says."""

import re
from xml.etree import ElementTree

import pytest

from cudatut.site import charts, locale
from cudatut.site.charts import WIDTH, number, percent
from cudatut.site.svg import text_width


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
