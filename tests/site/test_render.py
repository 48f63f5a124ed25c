"""Recorded outputs as HTML: every kind of schema v1, both languages, and what is refused."""

import copy
import re
from statistics import quantiles

import pytest

from cudatut.results import MIME, read
from cudatut.site import locale
from cudatut.site.render import results_html
from cudatut.site.svg import Svg, figure, tr

CHECK = {
    "kind": "check",
    "name": "add, n=33",
    "passed": True,
    "n": 33,
    "max_abs_err": 1.2e-7,
    "max_rel_err": 2e-7,
    "atol": 3e-5,
    "rtol": 1e-5,
}
BENCH = {
    "kind": "benchmark",
    "name": "add",
    "unit": "GB/s",
    "peak": 3000.0,
    "rows": [
        {
            "name": "mine",
            "median_us": 280.5,
            "p20_us": 279.0,
            "p80_us": 283.0,
            "value": 2800.0,
            "of_peak": 2800 / 3000,
            "vendor": False,
            "ratio_to_vendor": 2800 / 2830,
            "bytes": 785_400_000,
        },
        {
            "name": "CuPy",
            "median_us": 277.0,
            "p20_us": 276.0,
            "p80_us": 279.0,
            "value": 2830.0,
            "of_peak": 2830 / 3000,
            "vendor": True,
            "ratio_to_vendor": 1.0,
            "bytes": 783_910_000,
        },
    ],
    "rounds": 5,
}
RESOURCES = {
    "kind": "resources",
    "kernel": "add",
    "registers": 16,
    "shared_bytes": 1024,
    "spill_bytes": 0,
    "occupancy": 0.75,
    "block": 256,
    "blocks_per_sm": 6,
}
PROFILE = {
    "kind": "profile",
    "kernel": "add",
    "metrics": {"dram__bytes.sum": {"value": 805.31, "unit": "Mbyte"}},
}
SANITIZER = {"kind": "sanitizer", "tool": "memcheck", "errors": 0}
FACTS = {
    "kind": "facts",
    "title": "Device",
    "rows": [
        {"name": "sm_count", "value": 132, "unit": None},
        {"name": "memory", "value": 85029158912, "unit": "B"},
        {"name": "ecc", "value": True, "unit": None},
    ],
}
TABLE = {
    "kind": "table",
    "title": "FMAs at the limit",
    "corner": "threads per block",
    "columns": [
        {"name": "FMAs", "unit": None},
        {"name": "GB/s", "unit": "GB/s"},
        {"name": "time", "unit": "us"},
        {"name": "right", "unit": None},
        {"name": "tile", "unit": None},
    ],
    "rows": [
        {"name": "128", "values": [1200, 3.14159, None, True, "32 x 8"]},
        {"name": "256", "values": [24, None, 0.5, False, None]},
    ],
}
GOALS = {
    "kind": "goals",
    "title": "beside cuBLAS",
    "rows": [
        {"name": f"n = {n}", "wanted": 1.0, "measured": m, "low": m - 0.01, "high": m + 0.01, "verdict": v}
        for n, m, v in ((1024, 0.98, "missed"), (4096, 1.02, "reached"), (8192, 1.0, "undecided"))
    ],
}  # fmt: skip
SERIES = {
    "kind": "series",
    "title": "rate by size",
    "x": {"name": "n", "unit": ""},
    "y": {"name": "rate", "unit": "GB/s"},
    "lines": {"one": [[1, 2.0], [3, 4.0]], "two": [[1, 3.0], [3, 5.0]]},
    "limit": 6.0,
    "foreground": None,
}
ALL = [CHECK, BENCH, GOALS, RESOURCES, PROFILE, SANITIZER, FACTS, TABLE]


def shown(result):
    return {"output_type": "display_data", "data": {MIME: result, "text/plain": "?"}}


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def plain(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_consecutive_checks_share_a_table():
    other = {**CHECK, "name": "add, n=31", "n": 31}
    html = results_html([shown(CHECK), shown(other), stream("x\n"), shown(CHECK)], "en")
    assert html.count("<table") == 2
    assert html.index("add, n=33") < html.index("add, n=31") < html.index("<pre")
    assert plain(html).count("passed") == 3


def test_of_a_check_the_name_and_the_result_are_words():
    """Numbers stand at the right, below each other."""
    html = results_html([shown(CHECK)], "en")
    row = html[html.index("<tbody") :]
    kinds = re.findall(r"<t[dh](?: scope=\"row\")?( class=\"w\")?>", row)
    assert [bool(kind) for kind in kinds[1:]] == [True, False, False, False]


def test_a_check_names_error_and_tolerance():
    text = plain(results_html([shown(CHECK)], "en"))
    assert "add, n=33 ✓ passed 33 1.2e-07 atol 3e-05, rtol 1e-05" in text
    exact = {**CHECK, "atol": 0, "rtol": 0, "max_abs_err": 0.0, "max_rel_err": 0.0}
    assert "逐位相等" in results_html([shown(exact)], "zh")


def test_many_checks_that_passed_are_folded_into_a_line():
    many = [{**CHECK, "name": f"n={i}", "max_abs_err": i * 1e-8} for i in range(1, 13)]
    html = results_html([shown(check) for check in many], "en")
    assert "✓ 12 checks passed; largest absolute error 1.2e-07</span></summary>" in html
    assert "n=11" in html


def test_a_failed_check_is_never_rendered():
    """A recording with one is refused before; nothing else may show one either."""
    with pytest.raises(ValueError, match="the check 'add, n=33' failed"):
        results_html([shown(CHECK), shown({**CHECK, "passed": False})], "en")


def test_a_benchmark_that_cannot_be_is_never_rendered():
    bench = copy.deepcopy(BENCH)
    bench["rows"][0]["median_us"] = 0
    with pytest.raises(ValueError, match="has median_us = 0 for 'mine'"):
        results_html([shown(bench)], "en")


def test_a_chart_offers_each_gpu_and_says_whose_the_text_is():
    there = copy.deepcopy(BENCH)
    there["rows"][0] |= {
        "value": 4000.0,
        "bytes": 1_122_000_000,
        "of_peak": 4000 / 3000,
        "ratio_to_vendor": 4000 / 2830,
    }
    gpus = [("NVIDIA H100", [BENCH]), ("NVIDIA H200", [CHECK, there])]
    html = results_html([shown(BENCH), shown(FACTS)], "en", gpus)
    first, second = re.findall(r'<section class="ct-gpu"[^>]*>(.*?)</section>', html)
    assert "2,800" in first and "4,000" in second
    assert "is about the H100." in second and "is about" not in first
    assert second.startswith("<!--gpu nvidia-h200 H200--><figure")
    assert html.count('value="NVIDIA H100" checked') == 1 and html.count("checked") == 1
    assert "H100 的" not in html and "H100。" in results_html([shown(BENCH)], "zh", gpus)
    # Nothing to choose where the other GPU has no such chart.
    assert "ct-gpu" not in results_html([shown(BENCH)], "en", [gpus[0], ("NVIDIA H200", [CHECK])])


SECTION = re.compile(r'<section class="ct-gpu" role="group" aria-label="([^"]*)">(.*?)</section>')


def elsewhere(result):
    """What another GPU measured: one number is another."""
    there = copy.deepcopy(result)
    if result["kind"] == "series":
        there["lines"]["one"][0][1] = 2.5
        return there
    row = there["rows"][-1 if result["kind"] == "facts" else 0]
    row |= {
        "benchmark": {"value": 2600.0, "bytes": 729_300_000},
        "goals": {"measured": 0.975},
        "table": {"values": [4321, *row.get("values", [])[1:]]},
        "facts": {"value": 4321},
    }[result["kind"]]
    return there


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("own", [BENCH, SERIES, GOALS, TABLE, FACTS], ids=lambda one: one["kind"])
def test_each_gpu_is_named_where_all_stand_below_each_other(own, lang):
    """On paper, in a reader's mode, for a screen reader: in the label, in the title and in the drawing's label."""
    gpus = [("NVIDIA H100", [own]), ("NVIDIA H200", [elsewhere(own)])]
    html = results_html([shown(own)], lang, gpus)
    found = SECTION.findall(html)
    assert [name for name, _ in found] == ["H100", "H200"]
    for name, section in found:
        other = {"H100": "H200", "H200": "H100"}[name]
        title = re.findall(r"<(?:caption|figcaption)>(.*?)</", section)
        title += re.findall(r'<svg[^>]* aria-label="([^"]*)"', section)
        named = [one for one in title if name in one]
        assert len(named) == 1 + section.count("<svg") and other not in "".join(title)
    # Where there is nothing to choose, there is nothing to tell apart.
    assert "H100" not in results_html([shown(own)], lang, [("NVIDIA H100", [own])])


def test_a_result_without_a_title_is_named_by_its_gpu():
    own = FACTS | {"title": None}
    gpus = [("NVIDIA H100", [own]), ("NVIDIA H200", [elsewhere(own)])]
    html = results_html([shown(own)], "en", gpus)
    assert re.findall("<caption>(.*?)</caption>", html) == ["H100", "H200"]


@pytest.mark.parametrize("own", [TABLE, FACTS], ids=lambda result: result["kind"])
def test_a_table_offers_each_gpu_whose_numbers_are_others(own):
    there = elsewhere(own)
    html = results_html([shown(own)], "en", [("NVIDIA H100", [own]), ("NVIDIA H200", [there])])
    first, second = re.findall(r'<section class="ct-gpu"[^>]*>(.*?)</section>', html)
    assert first.startswith('<div class="ct-scroll"') and "4,321" not in first and "4,321" in second
    # A prediction, say, which is the same on each.
    assert "ct-gpu" not in results_html(
        [shown(own)], "en", [("NVIDIA H100", [own]), ("NVIDIA H200", [own])]
    )


def test_of_several_tables_each_has_its_own_beside_it():
    """By its place among those of its kind, whatever stands between them."""
    own = [TABLE | {"title": f"T{k}"} for k in range(3)]
    there = [elsewhere(one) | {"title": f"U{k}"} for k, one in enumerate(own)]
    gpus = [("NVIDIA H100", own), ("NVIDIA H200", [FACTS, *there])]
    html = results_html(
        [shown(own[0]), stream("x"), shown(CHECK), *map(shown, own[1:])], "en", gpus
    )
    titles = [re.findall("[TU][0-9]", section) for _, section in SECTION.findall(html)]
    assert titles == [["T0"], ["U0"], ["T1"], ["U1"], ["T2"], ["U2"]]


def test_more_than_eight_checks_are_folded_into_a_line_with_the_largest_error():
    checks = [CHECK | {"name": f"c{k}", "max_abs_err": k * 1e-6} for k in (1, 9, *range(2, 9))]
    few, many = (results_html(list(map(shown, checks[:count])), "en") for count in (8, 9))
    assert "<details" not in few and "<caption>" in few
    summary = re.search("<details[^>]*><summary>(.*?)</summary>", many)[1]
    assert plain(summary).strip() == "✓ 9 checks passed; largest absolute error 9e-06"
    assert "<caption>" not in many and many.count("<tr>") == 1 + 9


def test_a_benchmark_is_a_chart_and_its_numbers():
    html = results_html([shown(BENCH)], "en")
    assert html.count("<svg") == 2  # for a wide and for a narrow screen
    text = plain(html.split("<details")[1])
    assert "mine 281 279 – 283 2,800 93% 99%" in text.replace("280 ", "281 ")
    assert "CuPy (vendor)" in text


def test_columns_without_values_are_left_out():
    alone = copy.deepcopy(BENCH)
    for row in alone["rows"]:
        row |= {"vendor": False, "ratio_to_vendor": None, "of_peak": None}
    alone["peak"] = None
    html = results_html([shown(alone)], "en")
    assert "Of vendor" not in html
    assert "Of limit" not in html


RUNS = {"mine": "283 280.5 277.5", "CuPy": "277.1 277 276.4"}


def paired(most_mhz=None, **more):
    """A benchmark of the instrument that takes ratios within turns."""
    bench = copy.deepcopy(BENCH) | {"rounds": 3, "most_mhz": most_mhz}
    for row in bench["rows"]:
        times = RUNS[row["name"]]
        p20, *_, p80 = quantiles(map(float, times.split()), n=5)
        row |= {"times": times, "p20_us": p20, "p80_us": p80, "host_us": 4.0, **more}
    for row in bench["rows"]:
        found = read(bench).ratio(row["name"], "CuPy")
        row |= {"ratio_to_vendor": found.median, "ratio_low": found.low, "ratio_high": found.high}
    return bench


def test_a_ratio_stands_beside_its_interval():
    bench = paired()
    low, high = (f"{bench['rows'][0][end]:.1%}" for end in ("ratio_low", "ratio_high"))
    text = plain(results_html([shown(bench)], "en"))
    assert "Its interval, 95%" in text and f"98.9% {low} – {high}" in text
    assert "100.0% – " in text and "100.0% 100.0%" not in text  # CuPy beside itself has none
    for absent in ("cycles", "MHz", "Host"):
        assert absent not in text
    assert "interval" not in plain(results_html([shown(BENCH)], "en"))


def test_cycles_and_clock_stand_there_where_the_gpu_is_held_back():
    held = paired(1980.0, mhz=1500.0, cycles=4.2e5)
    text = plain(results_html([shown(held)], "en"))
    assert "SM cycles, millions SM clock (MHz)" in text and "0.420 1,500" in text
    free = paired(1980.0, mhz=1975.0, cycles=4.2e5)
    assert "cycles" not in results_html([shown(free)], "en")


def test_what_a_launch_costs_the_host_is_told_where_it_is_much():
    assert "Host" not in results_html([shown(paired())], "en")
    text = plain(results_html([shown(paired(host_us=81.4))], "en"))
    assert "Host, per launch (µs)" in text and "% 81.4" in text


def test_goals_are_reached_missed_or_undecided():
    html = results_html([shown(GOALS)], "en")
    text = plain(html)
    assert "n = 1024 1× 0.980× 0.970× – 0.990× ✗ missed" in text
    assert "n = 4096 1× 1.020× 1.010× – 1.030× ✓ reached" in text
    assert "n = 8192 1× 1.000× 0.990× – 1.010× = undecided" in text
    assert html.count('<td class="w"><span') == 3  # a verdict is no number
    assert "未能判定" in results_html([shown(GOALS)], "zh")
    wrong = copy.deepcopy(GOALS)
    wrong["rows"][0]["verdict"] = "reached"
    with pytest.raises(ValueError, match="says reached, and by its interval it is missed"):
        results_html([shown(wrong)], "en")


def test_a_launch_that_waits_for_the_gpu_is_told():
    first, second = BENCH["rows"]
    waits = BENCH | {"rows": [first | {"waits": True}, second]}
    assert "mine: the launch waits for the GPU itself" in plain(results_html([shown(waits)], "en"))
    assert "mine：启动本身要等待 GPU" in plain(results_html([shown(waits)], "zh"))
    assert "waits for the GPU" not in plain(results_html([shown(BENCH)], "en"))


def test_every_kind_is_rendered():
    from cudatut.results import KINDS
    from cudatut.site import render

    assert set(KINDS) == {*render._EACH, *render._TOGETHER} - {"stream"}


def test_resources_profile_sanitizer_facts():
    text = plain(results_html([shown(r) for r in (RESOURCES, PROFILE, SANITIZER, FACTS)], "en"))
    for words in (
        "Registers per thread 16",
        "Shared memory per block 1,024 B",
        "Local memory per thread none",
        "Occupancy (theoretical) 75%",
        "Threads per block 256",
        "dram__bytes.sum 805 Mbyte",
        "memcheck ✓ no errors",
        "sm_count 132",
        "memory 85,029,158,912 B",
        "ecc yes",
    ):
        assert words in text


def test_a_table_has_heads_of_rows_and_columns():
    html = results_html([shown(TABLE)], "en")
    heads = re.findall(r'<th([^>]*) scope="(row|col)">(.*?)</th>', html)
    assert [(scope, text) for _, scope, text in heads] == [
        ("col", "threads per block"),
        ("col", "FMAs"),
        ("col", "GB/s"),  # its unit is its name
        ("col", "time (µs)"),
        ("col", "right"),
        ("col", "tile"),
        ("row", "128"),
        ("row", "256"),
    ]
    text = plain(html)
    assert "128 1,200 3.14 – yes 32 x 8" in text
    assert "256 24 – 0.500 no –" in text
    assert "<caption>FMAs at the limit</caption>" in html
    assert "<td>1,200</td>" in html and '<td class="w">32 x 8</td>' in html  # words stand left
    chinese = results_html([shown(TABLE)], "zh")
    assert "（µs）" in chinese and ">是<" in chinese


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ({"rows": []}, "table 'FMAs at the limit': it has no rows"),
        ({"columns": []}, "table 'FMAs at the limit': it has no columns"),
        ({"columns": [{"name": "x"}]}, "columns['x'].unit is missing"),
        ({"rows": [{"name": "a", "values": [1]}]}, "row 'a': 1 values for 5 columns"),
        (
            {"rows": [{"name": "a", "values": [float("nan")] * 5}]},
            "rows['a'].values[0] is nan",
        ),
        ({"rows": [{"name": "a", "values": [[1]] * 5}]}, "rows['a'].values[0] is [1]"),
        ({"rows": [{"name": 3, "values": []}]}, "rows[3].name is 3"),
        ({"corner": None}, "corner is None"),
    ],
)
def test_a_damaged_table_is_refused(damage, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        results_html([shown({**TABLE, **damage})], "en")


def test_a_sanitizer_with_errors_says_how_many():
    assert "✗ 3" in results_html([shown({**SANITIZER, "errors": 3})], "en")


@pytest.mark.parametrize("result", ALL, ids=lambda r: r["kind"])
def test_every_kind_in_chinese(result):
    html = results_html([shown(result)], "zh")
    assert re.search(r"[\u4e00-\u9fff]", html)
    assert "{" not in html


def test_the_language_of_the_call_wins_over_the_current_one():
    with locale.using("zh"):
        assert "passed" in results_html([shown(CHECK)], "en")


def test_everything_recorded_is_escaped():
    evil = "<script>alert(1)</script>\"'&"
    results = [
        {**CHECK, "name": evil},
        {**RESOURCES, "kernel": evil},
        {**PROFILE, "metrics": {evil: {"value": evil, "unit": evil}}},
        {**FACTS, "title": evil, "rows": [{"name": evil, "value": evil, "unit": evil}]},
    ]
    table = {
        **TABLE,
        "title": evil,
        "corner": evil,
        "columns": [{"name": evil, "unit": evil + "x"}],
    }
    results.append({**table, "rows": [{"name": evil, "values": [evil]}]})
    bench = copy.deepcopy(BENCH)
    bench["name"] = bench["rows"][0]["name"] = evil
    html = results_html([stream(evil), *map(shown, [*results, bench])], "en")
    assert "<script" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize("result", [{**SANITIZER, "tool": "<b>"}, {**BENCH, "unit": "<b>"}])
def test_what_is_one_of_a_few_words_is_nothing_else(result):
    with pytest.raises(ValueError, match="'<b>'"):
        results_html([shown(result)], "en")


def test_streams_keep_their_text_and_lose_only_trailing_space():
    html = results_html([stream("a < b\n  c\n\n")], "en")
    assert '<pre class="ct-output" tabindex="0">a &lt; b\n  c</pre>' in html


def test_streams_that_follow_each_other_are_joined():
    html = results_html([stream("a\n"), stream("b\n")], "en")
    assert html.count("<pre") == 1


def test_what_is_shown_as_text_alone_is_as_if_it_were_printed():
    output = {"output_type": "display_data", "data": {"text/plain": "a <b>"}}
    shown = results_html([output, stream("c\n")], "en")
    assert '<pre class="ct-output" tabindex="0">a &lt;b&gt;\nc</pre>' in shown


def test_times_of_a_benchmark_are_in_microseconds():
    heads = re.findall('<th[^>]* scope="col">(.*?)</th>', results_html([shown(BENCH)], "en"))
    assert [one for one in heads if one.endswith("(µs)")] == heads[1:3]


def test_a_cell_without_output_renders_to_nothing():
    assert results_html([], "en") == ""
    assert results_html([stream(" \n")], "en") == ""


def test_the_value_of_an_expression_is_not_shown():
    """A script does not print it, and most often it is what a call gave back besides the table that it showed."""
    echo = {"output_type": "execute_result", "execution_count": 1, "data": {"text/plain": "{}"}}
    assert results_html([echo], "en") == ""
    said = {"output_type": "stream", "name": "stdout", "text": "said\n"}
    assert "{}" not in results_html([said, echo], "en")


def test_a_claim_is_words_and_wraps():
    claim = {
        "kind": "claim",
        "id": "a-book",
        "statement": {"en": "A long sentence.", "zh": "一个长句。"},
        "source": "a book",
        "place": {"en": "page 3", "zh": "第 3 页"},
        "form": "said",
        "expected": 2.0,
        "measured": 2.0,
        "unit": "",
        "rule": "gain",
        "control": {"what": {"en": "against itself", "zh": "与自身相比"}, "value": 1.0},
        "verdict": "confirmed",
    }
    html = results_html([shown(claim)], "en")
    assert 'class="n"' not in html and "<td>" not in html
    for words in ("A long sentence.", "page 3 (said)", "against itself", "✓ confirmed"):
        assert words in plain(html)
    chinese = plain(results_html([shown(claim)], "zh"))
    assert "一个长句。" in chinese and "第 3 页" in chinese and "与自身相比" in chinese
    assert "said" not in chinese and "page" not in chinese
    dry, wet = {"en": "dry", "zh": "干"}, {"en": "wet", "zh": "湿"}
    condition = {
        "verdict": "depends",
        "depends": {"en": "if it rains", "zh": "下雨时"},
        "sides": [{"what": dry, "value": 2.0}, {"what": wet, "value": 9.0}],
    }
    assert "≈ depends : if it rains" in plain(results_html([shown(claim | condition)], "en"))


def test_a_row_called_vendor_does_not_say_so_twice():
    bench = copy.deepcopy(BENCH)
    bench["rows"][1]["name"] = "vendor"
    html = results_html([shown(bench)], "en")
    assert "vendor (vendor)" not in html and ">vendor<" in html


def test_no_blank_line_ends_the_html_block():
    """Markdown would take what follows a blank line for text of its own; streams keep theirs."""
    html = results_html([shown(r) for r in ALL], "en")
    assert "\n\n" not in html


def test_an_error_is_never_rendered():
    error = {"output_type": "error", "ename": "LaunchError", "evalue": "grid is 0", "traceback": []}
    with pytest.raises(ValueError, match="LaunchError: grid is 0"):
        results_html([error], "en")


def test_an_unknown_kind_is_named():
    with pytest.raises(ValueError, match="no kind 'roofline'"):
        results_html([shown({"kind": "roofline"})], "en")


def test_an_image_is_refused():
    with pytest.raises(ValueError, match="image/png"):
        results_html([{"output_type": "display_data", "data": {"image/png": ""}}], "en")


# --- the words, and the drawing tools that share them ---------------------------------------------


def _keys(node, prefix=""):
    for key, value in node.items():
        yield from _keys(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]


def test_both_languages_have_the_same_strings_with_the_same_fields():
    en, zh = locale.words("en"), locale.words("zh")
    assert sorted(_keys(en)) == sorted(_keys(zh))
    for key in _keys(en):
        fields = [sorted(re.findall(r"{\w+}", locale.text(key, lang))) for lang in ("en", "zh")]
        # Chinese is reckoned by its characters as well.
        assert [one for one in fields[1] if one != "{characters}"] == fields[0], key


def test_an_unknown_string_or_language_is_named():
    with pytest.raises(KeyError, match=r"check\.color"):
        locale.text("check.color")
    with pytest.raises(ValueError, match="'fr'"):
        locale.use("fr")


def test_tr_follows_the_language():
    with locale.using("zh"):
        assert tr("thread", "线程") == "线程"
    assert tr("thread", "线程") == "thread"


def test_a_figure_escapes_and_has_an_alternative():
    drawing = Svg(100, 50).rect(0, 0, 50, 20, text="a < b").arrow(0, 40, 90, 40, text="x")
    html = figure(drawing, alt='say "hi"', caption="uses `a<b>`")
    assert 'aria-label="say &quot;hi&quot;"' in html
    assert "<code>a&lt;b&gt;</code>" in html
    assert "a &lt; b" in html
    assert "\n" not in html
    with pytest.raises(ValueError, match="text alternative"):
        figure(drawing, alt=" ")


def test_a_drawing_refuses_what_cannot_be_drawn():
    s = Svg(10, 10)
    with pytest.raises(ValueError, match="coordinate"):
        s.line(0, 0, float("nan"), 1)
    with pytest.raises(ValueError, match="direction"):
        s.arrow(1, 1, 1, 1)
    with pytest.raises(ValueError, match="anchor"):
        s.text(0, 0, "x", anchor="left")
    with pytest.raises(ValueError, match="positive"):
        Svg(0, 5)
    with pytest.raises(ValueError, match="positive"):
        Svg(5, 0)
    for w, h in ((-1, 5), (5, -1)):
        with pytest.raises(ValueError, match=f"a box cannot be {w} x {h}"):
            s.rect(0, 0, w, h)


def test_words_from_a_place_on_and_up_to_it():
    s = Svg(90, 90).text_from(1, 2, "a", "c1", 11).text_to(3, 4, "b", "c2", 12)
    assert (
        '<text x="1" y="2" class="c1" text-anchor="start" font-size="11">a</text>'
        '<text x="3" y="4" class="c2" text-anchor="end" font-size="12">b</text>'
    ) in s.render("t")


def test_the_words_of_an_arrow_at_45_degrees_stand_above_it():
    drawn = Svg(90, 90).arrow(0, 20, 20, 40, text="x").render("t")
    assert '<text x="10" y="23">x</text>' in drawn
