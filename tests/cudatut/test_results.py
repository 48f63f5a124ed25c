"""Results as data: each kind is declared once; its JSON is read back, and what cannot be is refused. No GPU is needed."""

import base64
import copy
import json
import math

import numpy as np
import pytest

import cudatut as ct
from cudatut import image_files, results
from cudatut.results import MIME, read, validate, verdict

BOTH = {"en": "says", "zh": "说"}
# Black and white, as a PNG.
PICTURE = base64.b64encode(image_files.png(np.array([[0, 255]], np.uint8))).decode()
# One of each kind, with every field.
EACH = [
    results.Check("c", True, 3, 0.0, 0.0, 0.0, 1e-5),
    results.Benchmark(
        "copy",
        "GB/s",
        3300.0,
        [
            results.Row(
                "ours",
                *(10.0, 8.8, 11.2, 3000.0, 3000 / 3300, False, None),
                bytes=30_000_000,
                times="9 10 11",
                host_us=60.0,
                waits=True,
                mhz=1500.0,
                cycles=15000.0,
                kernels=["copy"],
            )
        ],
        rounds=3,
        missing={"theirs": "not installed"},
        most_mhz=1980.0,
    ),
    results.Goals("g", [results.Goal("n = 9", 1.0, 1.05, 1.04, 1.06, "reached")]),
    results.Resources("k", 32, 1024, 0, 1.0, block=256, blocks_per_sm=8),
    results.Profile("k", {"dram__bytes.sum": {"value": 1.5, "unit": "byte"}}),
    results.Sanitizer("memcheck", 0, "log"),
    results.Facts("t", [results.Fact("n", 3, None), results.Fact("fits", True, None)]),
    results.Claim(
        "c-1",
        "a book",
        BOTH,
        "said",
        BOTH,
        [32, "rows"],
        [32, "rows"],
        "conflicts",
        "equal",
        results.Control(BOTH, [0, "columns"], known=[0, "columns"]),
        "depends",
        depends=BOTH,
        found="counted",
        sides=[results.Side(BOTH, [32, "rows"]), results.Side(BOTH, [32, "columns"])],
    ),
    results.Table(
        "t",
        "n",
        [results.Column("a", "GB/s"), results.Column("b", None)],
        [results.TableRow("first", [1.5, None]), results.TableRow("second", [True, "x"])],
    ),
    results.Series(
        "s",
        results.Axis("n", ""),
        results.Axis("rate", "GB/s"),
        {"ours": [(1, 2.0), (2, 3.5)]},
        4.0,
        ["ours"],
    ),
    results.Picture("p", 2, 1, {"en": "two", "zh": "两个"}, PICTURE, 8),
]
kinds = pytest.mark.parametrize("result", EACH, ids=lambda result: result.kind)


def test_every_kind_is_here():
    assert [result.kind for result in EACH] == list(results.KINDS)


def through_json(result):
    return json.loads(json.dumps(result.json(), allow_nan=False))


@kinds
def test_a_result_has_three_representations(result):
    bundle = result._repr_mimebundle_()
    assert through_json(result)["kind"] == result.kind
    assert bundle["text/plain"].strip() and bundle["text/html"].startswith(("<table", "<figure"))
    assert len({len(row) for row in result.table()}) == 1
    assert "log" not in bundle[MIME]


@kinds
def test_a_result_is_read_back_from_its_json(result):
    data = through_json(result)
    again = read(data)
    assert type(again) is type(result)
    assert through_json(again) == data
    assert list(again.problems()) == []
    validate(data)
    assert again.text() == result.text() and again.html() == result.html()


def fields_of(data, path=()):
    """Addresses of all values in a result's JSON, itself not."""
    parts = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in parts:
        yield (*path, key)
        yield from fields_of(value, (*path, key))


OPTIONAL = {
    "times",
    "ratio_low",
    "ratio_high",
    "host_us",
    "waits",
    "mhz",
    "cycles",
    "kernels",
    "most_mhz",
    "missing",
    "rounds",
    "block",
    "blocks_per_sm",
    "bytes",
    "flops",
    "depends",
    "found",
    "sides",
    "seeds",
    "elsewhere",
    "known",
    "within",
    "foreground",
    "scale",
}


def put(data, path, value):
    """The JSON with another value at an address; without it, for None."""
    data = copy.deepcopy(data)
    *way, last = path
    inner = data
    for key in way:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return data


@kinds
def test_no_field_may_be_missing(result):
    data = through_json(result)
    for path in fields_of(data):
        # Not what may be left out, and not the names that a reader gives.
        theirs = len(path) == 2 and path[0] in ("metrics", "lines", "missing")
        if isinstance(path[-1], str) and path[-1] not in OPTIONAL and not theirs:
            with pytest.raises(ValueError) as caught:
                validate(put(data, path, None))
            told = (path[-1], path[0], "'en' and 'zh'")  # an optional part is told as a whole
            assert any(word in str(caught.value) for word in told), path


@kinds
@pytest.mark.parametrize("value", [math.nan, math.inf, [[1]], {"x": 1}], ids=repr)
def test_no_field_may_be_of_another_type(result, value):
    data = through_json(result)
    for path in fields_of(data):
        try:
            validate(put(data, path, value))
        except ValueError:
            continue
        pytest.fail(f"{path} may be {value}")


@pytest.mark.parametrize(
    ("kind", "path", "value", "says"),
    [
        ("check", ("n",), 3.5, "check c: n is 3.5"),
        ("check", ("n",), True, "check c: n is True"),
        ("check", ("passed",), 1, "check c: passed is 1"),
        ("check", ("passed",), False, "the check 'c' failed"),
        ("check", ("kind",), "chekc", "schema v1 has no kind 'chekc'; it has check, benchmark"),
        ("benchmark", ("rows", 0, "vendor"), 0, "benchmark copy: rows['ours'].vendor is 0"),
        ("benchmark", ("rows", 0, "median_us"), 0, "has median_us = 0 for 'ours'"),
        ("benchmark", ("rows", 0, "value"), -1.0, "has value = -1.0 for 'ours'"),
        ("benchmark", ("rows",), [], "the benchmark 'copy' has no rows"),
        ("benchmark", ("peak",), 0, "the benchmark 'copy' has peak = 0"),
        ("profile", ("metrics", "x"), 3, "profile k: metrics['x'] is 3"),
        (
            "claim",
            ("verdict",),
            "true",
            "the claim 'c-1' has the verdict 'true', none of confirmed",
        ),
        ("claim", ("form",), "thought", "has the form 'thought', none of said, printed, code"),
        ("claim", ("rule",), "near", "has the rule 'near', none of equal, gain, above, below"),
        ("claim", ("depends",), {"en": "if"}, "needs 'en' and 'zh', and has ['en']"),
        ("claim", ("control", "value"), [None], "claim c-1: control.value is [None]"),
        ("table", ("columns",), [], "table 't': it has no columns"),
        ("table", ("rows",), [], "table 't': it has no rows"),
        ("table", ("rows", 0, "values"), [1], "table 't', row 'first': 1 values for 2 columns"),
        ("table", ("rows", 0, "name"), 3, "table t: rows[3].name is 3"),
        ("series", ("lines", "ours"), [], "series 's': the line 'ours' is empty"),
        ("series", ("lines", "ours"), [[1]], "series s: lines['ours'][0] is [1]"),
        (
            "series",
            ("foreground",),
            ["x"],
            "foreground is ['x']; name 1 to 6 of the lines ['ours']",
        ),
    ],
)
def test_what_is_refused_and_how_it_is_said(kind, path, value, says):
    (result,) = (one for one in EACH if one.kind == kind)
    with pytest.raises(ValueError) as caught:
        validate(put(through_json(result), path, value))
    assert says in str(caught.value)


@pytest.mark.parametrize("data", [None, [], "check", 3, {}, {"kind": 3}, {"kind": None}])
def test_what_is_no_result(data):
    with pytest.raises(ValueError, match="a result is an object with a kind|has no kind"):
        read(data)


def test_fields_that_are_not_declared_are_left_alone():
    """A recording of an older version may hold more; its digest tells whether it was edited."""
    data = through_json(EACH[0]) | {"more": 1}
    assert read(data).json() == EACH[0].json()


# --- benchmarks and facts --------------------------------------------------------------------------


def test_rows_of_a_benchmark_by_name():
    benchmark = EACH[1]
    assert benchmark["ours"].median_us == 10.0 and benchmark.rows[0] is benchmark["ours"]
    with pytest.raises(KeyError, match=r"no row 'nobody' in benchmark 'copy': it has \['ours'\]"):
        benchmark["nobody"]
    with pytest.raises(KeyError, match="no row 'theirs' in benchmark 'copy': not installed"):
        benchmark["theirs"]


def test_facts_take_numbers_with_units(capsys):
    facts = ct.facts(
        "sizes",
        {"n": np.int64(3), "bandwidth": (np.float32(1.5), "GB/s"), "ok": True, "name": "H100"},
    )
    assert facts.json()["rows"][1] == {"name": "bandwidth", "value": 1.5, "unit": "GB/s"}
    assert "bandwidth" in capsys.readouterr().out
    with pytest.raises(TypeError, match="'list' is a list"):
        ct.facts("bad", {"list": [1]})


def test_html_is_escaped():
    assert "<b>" not in results.Facts("<b>", [results.Fact("<b>", "<b>", "<b>")]).html()


def test_results_are_silent_while_a_tool_watches(monkeypatch, capsys):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    ct.facts("t", {"n": 1})
    assert ct.size(1000, 10) == 10 and capsys.readouterr().out == ""
    monkeypatch.delenv("CUDATUT_TOOL")
    assert ct.size(1000, 10) == 1000


# --- tables and series -----------------------------------------------------------------------------


ROWS = {
    "128": {"FMAs": 12, "rate": 3.14159, "right": True},
    256: {"FMAs": np.int32(24), "what": "`add`", "rate": None},
}


def test_a_table(capsys):
    table = ct.table(
        "FMAs at the limit",
        ROWS,
        corner="threads per block",
        units={"rate": "GB/s", "FMAs": "FMAs"},
    )
    assert capsys.readouterr().out.splitlines() == [
        "FMAs at the limit",
        "  threads per block  FMAs  rate (GB/s)  right   what",
        "  128                  12        3.142   True",
        "  256                  24                      `add`",
    ]
    data = table.json()
    validate(json.loads(json.dumps(data, allow_nan=False)))
    assert data == {
        "kind": "table",
        "title": "FMAs at the limit",
        "corner": "threads per block",
        "columns": [
            {"name": "FMAs", "unit": "FMAs"},
            {"name": "rate", "unit": "GB/s"},
            {"name": "right", "unit": None},
            {"name": "what", "unit": None},
        ],
        "rows": [
            {"name": "128", "values": [12, 3.14159, True, None]},
            {"name": "256", "values": [24, None, None, "`add`"]},
        ],
    }
    bundle = table._repr_mimebundle_()
    assert bundle[MIME] == data
    assert "<th>rate (GB/s)</th>" in bundle["text/html"]
    assert table["256"]["FMAs"] == 24
    with pytest.raises(KeyError, match="no row '64' in table 'FMAs at the limit'.*'128', '256'"):
        table["64"]


@pytest.mark.parametrize(
    ("rows", "options", "error", "says"),
    [
        ({}, {}, ValueError, "table 't': it has no columns"),
        ({"a": {}}, {}, ValueError, "table 't': it has no columns"),
        ({"1": {"x": 1}, 1: {"x": 2}}, {}, ValueError, "two of its rows have one name"),
        ({"a": {"x": 1}}, {"units": {"y": "B"}}, ValueError, r"units has \['y'\]"),
        ({"a": {"x": [1]}}, {}, TypeError, "'a', 'x' is a list; give a number, string or bool"),
        ({"a": {"x": (1, "B")}}, {}, TypeError, "'a', 'x' is a tuple"),
    ],
)
def test_what_is_no_table_is_refused(rows, options, error, says):
    with pytest.raises(error, match=says):
        ct.table("t", rows, **options)


LINES = {f"line {k}": [(1, 2.0), (2, 3.0)] for k in range(8)}


def test_a_series_has_a_foreground(capsys):
    axes = ("n", "elements"), ("bandwidth", "GB/s")
    chosen = ct.series("by n", *axes, LINES, foreground=["line 7", "line 1"])
    assert chosen.json()["foreground"] == ["line 7", "line 1"]
    validate(json.loads(json.dumps(chosen.json())))
    first = ct.series("by n", *axes, LINES, foreground=None).json()["foreground"]
    assert first == list(LINES)[:6]  # the page draws what the text shows
    for wrong in ([], ["line 8"], list(LINES)):
        with pytest.raises(ValueError, match=r"foreground is .*; name 1 to 6 of the lines"):
            ct.series("by n", *axes, LINES, foreground=wrong)


def test_a_series_over_a_common_x():
    lines = {"ours": [(1, 2.0), (2, np.float32(3.0))], "theirs": [(2, 1.0)]}
    shown = ct.series("by size", ("n", "elements"), ("value", "GB/s"), lines, limit=3)
    assert (
        shown.table()[1:] == [["1", "2", ""], ["2", "3", "1"]]
        and shown.json()["y"]["unit"] == "GB/s"
    )
    assert through_json(shown)["lines"]["ours"] == [[1, 2.0], [2, 3.0]]
    with pytest.raises(ValueError, match="the line 'ours' holds a value that is not finite"):
        ct.series("by size", ("n", "elements"), ("value", "GB/s"), {"ours": [(1, math.nan)]})
    with pytest.raises(ValueError, match="the line 'ours' is empty"):
        ct.series("by size", ("n", "elements"), ("value", "GB/s"), {"ours": []})


# --- claims ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected", "measured", "says"),
    [
        ("equal", 32, 32, "confirmed"),
        ("equal", 32, 32.0, "confirmed"),
        ("equal", 32, 31, "refuted"),
        ("equal", "rows", "columns", "refuted"),
        ("equal", [1, "a"], [1, "a"], "confirmed"),
        ("equal", [1, 2], [2, 1], "refuted"),
        # 1.8 is a gain of 0.8: from 0.6 to 1.0 it is the same.
        ("gain", 1.8, 1.8, "confirmed"),
        ("gain", 1.8, 1.61, "confirmed"),
        ("gain", 1.8, 1.59, "refuted"),
        ("gain", 1.8, 1.99, "confirmed"),
        ("gain", 1.8, 2.01, "refuted"),
        ("gain", 0.5, 0.61, "confirmed"),
        ("gain", 0.5, 0.64, "refuted"),
        ("gain", 1.0, 1.0, "confirmed"),
        # At least 2 % of the ratio: nothing is measured more exactly.
        ("gain", 1.0, 1.019, "confirmed"),
        ("gain", 1.0, 1.021, "refuted"),
        ("equal", 1 / 3, 0.333333333, "confirmed"),  # counts that were divided
        ("equal", 1 / 3, 0.3333, "refuted"),
        ("equal", True, 1.0, "confirmed"),
        ("above", 100, 103, "confirmed"),
        ("above", 100, 101, "open"),
        ("above", 100, 99, "open"),
        ("above", 100, 97, "refuted"),
        ("below", 100, 97, "confirmed"),
        ("below", 100, 99, "open"),
        ("below", 100, 101, "open"),
        ("below", 100, 103, "refuted"),
        ("above", 0, 1, "confirmed"),  # counts
        ("above", 0, 0, "open"),
        ("below", 0, 0, "open"),
        ("below", 0, 1, "refuted"),
        ("above", 0.0, 0.019, "open"),  # shares
        ("above", -10, -9, "confirmed"),
        ("below", -10, -9, "refuted"),
    ],
)
def test_the_one_rule(rule, expected, measured, says):
    assert verdict(rule, expected, measured) == says


def claim(**changes):
    values = {
        "place": BOTH,
        "form": "said",
        "statement": BOTH,
        "expected": np.int64(35),
        "measured": 35.0,
        "rule": "equal",
        "control": ({"en": "without padding", "zh": "不填充"}, np.int64(0), 0),
        "unit": "conflicts",
    }
    if changes.keys() & {"sides", "seeds"}:
        del values["measured"]
    return ct.claim("c-1", "a book", **(values | changes))


def test_a_claim(capsys):
    made = claim()
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["claim", "(a", "book):", "says"],
        ["value", "unit"],
        ["expected", "35", "conflicts"],
        ["measured", "35", "conflicts"],
        ["control:", "without", "padding", "0", "conflicts"],
        ["verdict", "confirmed"],
    ]
    data = through_json(made)
    validate(data)
    assert data == {
        "kind": "claim",
        "id": "c-1",
        "source": "a book",
        "place": BOTH,
        "form": "said",
        "statement": BOTH,
        "expected": 35,
        "measured": 35.0,
        "unit": "conflicts",
        "rule": "equal",
        "control": {"what": {"en": "without padding", "zh": "不填充"}, "value": 0, "known": 0},
        "verdict": "confirmed",
        "found": "measured",
        "elsewhere": False,
    }


def test_a_claim_with_several_values(capsys):
    made = claim(
        expected=(np.float32(1.5), "a"), measured=[1.5, "b"], control=(BOTH, (0, "c"), (0, "c"))
    )
    assert (made.expected, made.measured, made.control.value) == ([1.5, "a"], [1.5, "b"], [0, "c"])
    assert made.verdict == "refuted"
    assert "1.5, a" in capsys.readouterr().out
    validate(through_json(made))


def test_a_verdict_that_its_rule_does_not_give_is_refused():
    data = through_json(claim(measured=3))
    assert data["verdict"] == "refuted"
    with pytest.raises(ValueError, match="'c-1' says confirmed, and by its rule it is refuted"):
        validate(data | {"verdict": "confirmed"})
    with pytest.raises(ValueError, match="says depends"):
        validate(data | {"verdict": "depends"})
    with pytest.raises(ValueError, match="'gain' compares numbers, not"):
        claim(rule="gain", measured="fast")


SMALL, LARGE = {"en": "small n", "zh": "n 小"}, {"en": "large n", "zh": "n 大"}
IF = {"en": "how large n is", "zh": "n 有多大"}


@pytest.mark.parametrize(
    ("rule", "small", "large", "says"),
    [
        ("above", 1.5, 0.8, "depends"),
        ("above", 0.8, 1.5, "depends"),
        ("above", 1.5, 1.4, "confirmed"),
        ("above", 0.9, 0.8, "refuted"),
        ("above", 1.5, 1.0, "open"),
        ("above", 1.0, 1.5, "open"),
    ],
)
def test_both_sides_of_a_condition_are_measured(rule, small, large, says, capsys):
    made = claim(expected=1.0, rule=rule, depends=IF, sides=((SMALL, small), (LARGE, large)))
    assert (made.verdict, made.measured) == (says, small)
    out = capsys.readouterr().out
    assert (": how large n is" in out) == (says == "depends") and "measured: small n" in out
    validate(through_json(made))


def test_seeds_have_to_agree():
    nearly, few = [1.5] * 18 + [0.5] * 2, [1.5] * 17 + [0.5] * 3
    made = claim(expected=1.0, rule="above", seeds=nearly)
    assert (made.verdict, made.measured, made.agreeing()) == ("confirmed", 1.5, 18)
    assert claim(expected=1.0, rule="above", seeds=few).verdict == "open"
    with pytest.raises(ValueError, match="19 seeds; chance needs at least 20"):
        claim(expected=1.0, rule="above", seeds=few[1:])


def test_a_ratio_printed_for_another_gpu_is_not_refuted_by_this_one():
    def printed(measured, **more):
        return claim(expected=2.0, rule="gain", form="printed", measured=measured, **more).verdict

    assert (printed(2.1), printed(3.0)) == ("same here", "other here")
    assert printed(3.0, elsewhere=False) == "refuted"
    assert claim(measured=3, elsewhere=True).verdict == "other here"


@pytest.mark.parametrize(
    ("value", "known"),
    [(1, 0), (1.04, (0.97, 1.03)), ([1, 2], [1, 3]), ("columns", "rows"), ("rows", (0, 1))],
)
def test_a_control_that_is_missed_leaves_it_open(value, known):
    made = claim(control=(BOTH, value, known))
    assert made.control.missed() and made.verdict == "open"
    validate(through_json(made))
    with pytest.raises(ValueError, match="says confirmed, and by its rule it is open"):
        validate(through_json(made) | {"verdict": "confirmed"})


def test_a_condition_needs_its_two_sides():
    data = through_json(claim())
    with pytest.raises(ValueError, match="what was measured on its two sides"):
        validate(data | {"depends": BOTH})
    one = {"what": BOTH, "value": 35}
    with pytest.raises(ValueError, match="has 1 sides"):
        validate(data | {"depends": BOTH, "sides": [one]})
    another = [{"what": BOTH, "value": 36}, one]
    with pytest.raises(ValueError, match="measured is not what its first side has"):
        validate(data | {"depends": BOTH, "sides": another})
    for many in ({"measured": 1, "sides": ((SMALL, 1), (LARGE, 1))}, {"measured": None}):
        with pytest.raises(ValueError, match="give one of measured, sides and seeds"):
            ct.claim("c-1", "a book", place=BOTH, form="said", statement=BOTH, expected=1,
                     rule="equal", control=(BOTH, 0, 0), **many)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"rule": "near"}, ValueError, "claim 'c-1': rule 'near' is none of equal, gain"),
        ({"form": "thought"}, ValueError, "the form 'thought', none of said, printed, code"),
        ({"statement": {"en": "says"}}, ValueError, r"needs 'en' and 'zh', and has \['en'\]"),
        ({"place": {"zh": "说"}}, ValueError, r"needs 'en' and 'zh', and has \['zh'\]"),
        ({"control": ({"en": "x"}, 0, 0)}, ValueError, r"needs 'en' and 'zh', and has \['en'\]"),
        ({"found": "guessed"}, ValueError, "the found 'guessed', none of measured, counted"),
        ({"measured": [None]}, TypeError, "claim 'c-1': a value is a NoneType"),
    ],
)
def test_what_is_no_claim(changes, error, says, capsys):
    with pytest.raises(error, match=says):
        claim(**changes)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("left_out", ["place", "form", "control", "rule", "expected"])
def test_a_claim_has_no_defaults_where_fairness_is_at_stake(left_out):
    values = {"place": BOTH, "form": "said", "statement": BOTH, "expected": 1, "measured": 1}
    values |= {"rule": "equal", "control": (BOTH, 0, 0)}
    del values[left_out]
    with pytest.raises(TypeError, match=left_out):
        ct.claim("c-1", "a book", **values)


# --- what cannot be -------------------------------------------------------------------------------------


def problems(result, **change):
    """What is said of a result with some of its fields changed, after it was read back."""
    return list(read(through_json(result) | change).problems())


CHECK = results.Check("c", True, 9, 0.5, 0.1, 0.5, 0.25)
EXACT = results.Check("c", True, 9, 0.0, 0.0, 0.0, 0.0)
ONE = results.Check("c", True, 1, 0.5, 0.05, 0.2, 0.1)  # the reference is 10

WORST = results.Check("c", True, 9, 0.5, 0.25, 0.0, 0.25)  # as far off as it may be

MOST = results.Check(
    "c", True, 9, 1e6 + 0.5e12, 0.6, 1e6, 0.5
)  # the largest reference there may be


@pytest.mark.parametrize("check", [CHECK, EXACT, ONE, WORST, MOST])
def test_checks_that_can_be(check):
    assert problems(check) == []


@pytest.mark.parametrize(
    ("check", "change", "says"),
    [
        (CHECK, {"passed": False}, "the check 'c' failed"),
        (CHECK, {"n": -5}, "has n = -5"),
        (CHECK, {"max_abs_err": -1.0}, "has max_abs_err = -1.0"),
        (CHECK, {"atol": -1.0}, "has atol = -1.0"),
        (CHECK, {"rtol": 1.0}, "tolerates what it likes: atol 0.5, rtol 1"),
        (CHECK, {"atol": 1e300}, "tolerates what it likes: atol 1e+300"),
        (CHECK, {"n": 0}, "within atol 0.5, rtol 0.25: there is no element"),
        (CHECK, {"max_abs_err": 0.0}, "max_abs_err 0, max_rel_err 0.1 within atol 0.5, rtol 0.25: no element differs"),
        (CHECK, {"rtol": 0.0, "max_abs_err": 0.6}, "an element lies outside"),
        (CHECK, {"atol": 0.0, "max_rel_err": 0.3}, "an element lies outside"),
        (CHECK, {"max_abs_err": 0.6, "max_rel_err": 0.0}, "an element lies outside"),
        (CHECK, {"max_abs_err": 1e13}, "the reference would be 1e+14 or more"),
        (CHECK, {"max_abs_err": 0.6, "max_rel_err": 1e-14}, "the reference would be 6e+13 or more"),
        (EXACT, {"max_abs_err": 1.0, "max_rel_err": 0.1}, "an element lies outside"),
        (ONE, {"atol": 0.0, "rtol": 0.01}, "an element lies outside"),
        (ONE, {"max_abs_err": 2.0, "max_rel_err": 0.2}, "the reference is 10"),
        (ONE, {"atol": 9.5}, "the reference is 10, and 0 would have passed"),
        (ONE, {"atol": 9.0}, "the reference is 10, and 0 would have passed"),
    ],
)  # fmt: skip
def test_checks_that_cannot_be(check, change, says):
    assert says in problems(check, **change)[0], problems(check, **change)


def benchmark(**more):
    """Three contestants, as the older instrument told of them."""
    rows = [
        results.Row("ours", 10.0, 9.0, 12.0, 3.0, 1.5, False, 0.75, bytes=30_000),
        results.Row("theirs", 10.0, 9.0, 12.0, 4.0, 2.0, True, 1.0, bytes=40_000),
        results.Row("other", 20.0, 20.0, 20.0, 1.0, 0.5, True, 0.25, bytes=20_000),
    ]
    return results.Benchmark("b", "GB/s", 2.0, rows, 5, **more)


def of_row(number=0, **change):
    data = through_json(benchmark())
    data["rows"][number] |= change
    return list(read(data).problems())


def test_benchmarks_that_can_be():
    assert problems(benchmark()) == []
    rates = {"value": None, "of_peak": None, "bytes": None}
    times = [
        results.Row("a", 10.0, 10.0, 10.0, None, None, True, 1.0),
        results.Row("b", 5.0, 5.0, 5.0, None, None, False, 2.0),
    ]
    assert problems(results.Benchmark("b", "us", None, times, 3)) == []
    # Of a contestant whose work is not known, the time alone.
    assert "ratio_to_vendor" in of_row(**rates)[0]
    assert of_row(**rates, ratio_to_vendor=0.1 / 4.0) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rows": []}, "has no rows"),
        ({"unit": "GFLOP/s"}, "has the unit 'GFLOP/s', none of GB/s, TFLOP/s, us"),
        ({"peak": 0.0}, "has peak = 0.0"),
        ({"peak": -1.0}, "has peak = -1.0"),
        ({"peak": None}, "has of_peak = 1.5 for 'ours', and its other fields give None"),
        ({"peak": 0.1}, "of_peak = 1.5 for 'ours', and its other fields give 30"),
        ({"rounds": 2}, "has 2 rounds: fewer than 3 show no spread"),
        ({"rounds": -1}, "has -1 rounds"),
        ({"unit": "TFLOP/s"}, "has bytes for 'ours', and the unit TFLOP/s"),
    ],
)
def test_benchmarks_that_cannot_be(change, says):
    assert any(says in problem for problem in problems(benchmark(), **change))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"median_us": 0.0}, "has median_us = 0.0 for 'ours'"),
        ({"median_us": 0.01, "p20_us": 0.01}, "has median_us = 0.01 for 'ours', which no clock here tells"),
        ({"median_us": 1e11, "p80_us": 1e11}, "which no clock here tells"),
        ({"median_us": 11.0}, "has value = 3.0 for 'ours', and its other fields give 2.7272"),
        ({"value": 3.1}, "has value = 3.1 for 'ours', and its other fields give 3.0"),
        ({"value": 3.0 * (1 + 1e-8)}, "its other fields give 3.0"),
        ({"value": None}, "has value = None for 'ours'"),
        ({"bytes": 60_000}, "its other fields give 6.0"),
        ({"bytes": None}, "has value = 3.0 for 'ours', and its other fields give None"),
        ({"flops": 3}, "has flops for 'ours', and the unit GB/s"),
        ({"of_peak": 5.0}, "has of_peak = 5.0 for 'ours', and its other fields give 1.5"),
        ({"of_peak": None}, "has of_peak = None"),
        ({"p20_us": 11.0}, "has p20 11.0, median 10.0, p80 12.0 for 'ours', which is not their order"),
        ({"p80_us": 9.5}, "which is not their order"),
        ({"ratio_to_vendor": 3.0}, "has ratio_to_vendor = 3.0 for 'ours', and its other fields give 0.75"),
        ({"ratio_to_vendor": None}, "has ratio_to_vendor = None"),
        ({"vendor": True, "value": 6.0, "bytes": 60_000, "of_peak": 3.0}, "ratio_to_vendor = 1.0 for 'theirs'"),
        ({"name": "theirs"}, "has two rows 'theirs'"),
        ({"ratio_low": 0.7}, "has ratio_low = 0.7"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be(change, says):
    assert any(says in problem for problem in of_row(**change)), of_row(**change)


@pytest.mark.parametrize(("host_us", "told"), [(None, False), (49.9, False), (50.0, True)])
def test_a_launch_that_takes_the_host_long_is_told(host_us, told):
    made = benchmark()
    made.rows[1].host_us = host_us
    assert made.dear() == ("host us" in made.table()[0]) == told


def test_intervals_have_a_column_where_a_row_has_one():
    made = benchmark()
    assert "interval" not in made.table()[0]
    made.rows[1].ratio_low, made.rows[1].ratio_high = 0.9, 1.1
    head, *rows = made.table()
    assert [row[head.index("interval")] for row in rows] == ["", "0.900 to 1.100", ""]


def test_what_is_computed_again_may_be_rounded():
    assert of_row(value=3.0 * (1 + 1e-12)) == []


def test_what_lies_in_the_cache_is_read_ten_times_as_fast_as_the_memory_at_most():
    for share, count in ((10.0, 0), (10.5, 1)):
        row = results.Row(
            "a", 10.0, 9.0, 12.0, 2 * share, share, False, None, bytes=int(20_000 * share)
        )
        found = problems(results.Benchmark("b", "GB/s", 2.0, [row], 5))
        assert len(found) == count, found


def test_tensor_cores_are_not_below_the_limit_of_fmas():
    row = results.Row("a", 10.0, 9.0, 12.0, 3.0, 1.5, False, None, flops=30_000_000)
    (problem,) = problems(results.Benchmark("b", "TFLOP/s", 2.0, [row], 5))
    assert "of_peak = 1.5 for 'a', beyond what the limit is a limit of" in problem
    row = results.Row("a", 10.0, 9.0, 12.0, 3.0, None, False, None, flops=30_000_000)
    assert problems(results.Benchmark("b", "TFLOP/s", None, [row], 5)) == []


def paired_benchmark():
    """Two contestants whose runs are known: ours has two turns in each round."""
    ours, theirs = "9 10 11 10 9 10", "20 22 20"
    rows = [
        results.Row(
            "ours", 10.0, 9.0, 10.4, None, None, False, 2.0, times=ours, mhz=1500.0, cycles=15000.0
        ),
        results.Row("theirs", 20.0, 19.6, 22.4, None, None, True, 1.0, times=theirs),
    ]
    made = results.Benchmark("b", "us", None, rows, 3, most_mhz=1980.0)
    for row in rows:
        found = made.ratio(row.name, "theirs")
        row.ratio_to_vendor, row.ratio_low, row.ratio_high = found.median, found.low, found.high
        for what, value in results._of_runs(row).items():
            setattr(row, what, value)
    return made  # fmt: skip


def test_the_interval_of_a_ratio_is_as_wide_as_the_shorter_time_makes_it():
    """Whichever of the two it is: another recording's 0.2 us are a tenth of 2 us, and nothing of 200."""
    short = results.Row("short", 2.0, 2.0, 2.0, None, None, False, None, times="2 2 2")
    long = results.Row("long", 200.0, 200.0, 200.0, None, None, False, None, times="200 200 200")
    made = results.Benchmark("b", "us", None, [short, long], 3)
    for found, median in ((made.ratio("short", "long"), 100), (made.ratio("long", "short"), 0.01)):
        assert found.median == median
        assert (found.high - median) / median == pytest.approx(0.1, rel=0.01)  # 0.2 us of 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"times": "9 10 11 10 9 9"},
            "has median_us = 10.0 for 'ours', and its other fields give 9.5",
        ),
        ({"median_us": 9.9}, "has median_us = 9.9 for 'ours', and its other fields give 10.0"),
        ({"p20_us": 8.0}, "has p20_us = 8.0"),
        ({"p80_us": 10.9}, "has p80_us = 10.9"),
        ({"ratio_to_vendor": 2.1}, "has ratio_to_vendor = 2.1"),
        ({"ratio_low": 1.0}, "has ratio_low = 1.0"),
        ({"ratio_high": 9.0}, "has ratio_high = 9.0"),
        ({"times": "9 10 11 10"}, "has 4 runs in 3 rounds for 'ours'"),
        ({"times": "9 10 eleven"}, "has times = '9 10 eleven' for 'ours'"),
        ({"times": "9 10 -11"}, "has times = '9 10 -11' for 'ours'"),
        ({"times": "9 10 0"}, "has times = '9 10 0' for 'ours'"),
        ({"times": "9 10 inf"}, "has times = '9 10 inf' for 'ours'"),
        ({"times": None}, "has no runs, and others have for 'ours'"),
        ({"host_us": 0.0}, "has host_us = 0.0 for 'ours'"),
        ({"mhz": -1.0}, "has mhz = -1.0 for 'ours'"),
        ({"mhz": 2500.0}, "has mhz = 2500.0, and most_mhz = 1980.0 for 'ours'"),
        ({"cycles": 7500.0}, "has cycles = 7500.0"),
        ({"cycles": 30000.0}, "has cycles = 30000.0"),
        ({"cycles": 99.0}, "has cycles = 99.0 for 'ours', and its time and clock are of others"),
    ],
)
def test_runs_that_do_not_fit(change, says):
    data = through_json(paired_benchmark())
    assert list(read(data).problems()) == []
    data["rows"][0] |= change
    found = list(read(data).problems())
    assert any(says in problem for problem in found), found


RESOURCES = results.Resources("k", 32, 1024, 0, 1.0, block=256, blocks_per_sm=8)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"occupancy": 0.75, "blocks_per_sm": 6},
        {"occupancy": 16 * 2 / 48, "block": 500, "blocks_per_sm": 2},  # of compute capability 8.6
        {"block": 0, "blocks_per_sm": 0},  # how it is launched was not said
        {"occupancy": 0.0, "block": 1024, "blocks_per_sm": 0, "registers": 255},  # it does not fit
    ],
)
def test_resources_that_can_be(change):
    assert problems(RESOURCES, **change) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"occupancy": 7.0}, "has occupancy = 7.0, which no GPU has"),
        ({"occupancy": -0.1}, "has occupancy = -0.1, which no GPU has"),
        ({"registers": -4}, "has registers = -4"),
        ({"registers": 256}, "has registers = 256"),
        ({"shared_bytes": -1}, "has shared_bytes = -1"),
        ({"shared_bytes": 2**21}, "has shared_bytes"),
        ({"spill_bytes": -8}, "has spill_bytes = -8"),
        ({"block": 2048}, "has block = 2048"),
        ({"blocks_per_sm": 100}, "has blocks_per_sm = 100"),
        ({"occupancy": 0.9}, "has occupancy = 0.9, and 8 blocks of 256 threads are 64 warps"),
        ({"registers": 64}, "would need 131072 registers per SM"),
    ],
)
def test_resources_that_cannot_be(change, says):
    assert any(says in problem for problem in problems(RESOURCES, **change))


def test_others_that_cannot_be():
    profile = results.Profile("k", {"a": {"value": 1.5, "unit": "byte"}})
    counted = {"a": {"value": -1.5, "unit": "byte"}}
    assert problems(profile) == []
    assert problems(profile, metrics=counted) == ["the profile of 'k' has a = -1.5"]
    sanitizer = results.Sanitizer("memcheck", 3)
    assert problems(sanitizer) == []
    assert problems(sanitizer, errors=-3) == ["memcheck found -3 errors"]
    assert problems(sanitizer, tool="valgrind") == ["there is no sanitizer 'valgrind'"]
    two = [{"name": "n", "value": 3, "unit": None}, {"name": "n", "value": 4, "unit": None}]
    assert problems(results.Facts("t", []), rows=two) == ["facts 't': two rows 'n'"]
    assert problems(results.Facts("t", []), rows=two[:1]) == []


@pytest.mark.parametrize(
    ("low", "measured", "high", "wanted", "can_be"),
    [
        (1.0, 1.0, 1.0, 0.5, True),
        (1.0, 1.1, 1.2, 0.0, False),
        (0.0, 1.1, 1.2, 0.5, False),
        (1.1, 1.0, 1.2, 0.5, False),
        (1.0, 1.3, 1.2, 0.5, False),
    ],
)
def test_goals_that_can_be(low, measured, high, wanted, can_be):
    verdict = "reached" if low >= wanted else "undecided"
    made = results.Goals("g", [results.Goal("n", wanted, measured, low, high, verdict)])
    found = problems(made)
    assert (found == []) is can_be
    assert can_be or f"goals 'g', 'n': {measured} is not from {low} to {high}" in found[0]


def test_of_what_is_held_back_the_clock_is_told_and_the_cycles_in_millions():
    head, ours, theirs = paired_benchmark().table()
    told = [dict(zip(head, row)) for row in (ours, theirs)]
    assert [(row["Mcycles"], row["MHz"]) for row in told] == [("0.015", "1500"), ("", "")]


def test_goals_by_name():
    one, other = (results.Goal(name, 1.0, 1.2, 1.1, 1.3, "reached") for name in ("n = 1", "n = 2"))
    goals = results.Goals("g", [one, other])
    assert goals["n = 2"] is other
    with pytest.raises(KeyError, match="n = 3"):
        goals["n = 3"]


@pytest.mark.parametrize(("mhz", "held_back"), [(0.98 * 1980, False), (1940, True), (None, False)])
def test_a_clock_two_percent_below_the_highest_is_not_held_back(mhz, held_back):
    made = paired_benchmark()
    made.rows[0].mhz = mhz
    assert made.held_back() is held_back
    made.rows[1].mhz = 1980.0  # one is enough
    assert made.held_back() is held_back


@pytest.mark.parametrize("number", [2**64, -(2**64), 10**400, -(10**400)])
def test_integers_have_an_end(number):
    with pytest.raises(ValueError, match=r"check c: n is -?1\d{19}"):
        read(through_json(EXACT) | {"n": number})
    with pytest.raises(ValueError, match=r"check c: atol is -?1\d{19}"):
        read(through_json(EXACT) | {"atol": number})
    assert read(through_json(EXACT) | {"n": 2**64 - 1}).n == 2**64 - 1


# --- on either side of a limit --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "at", "beyond", "says"),
    [
        (EXACT, {"atol": 1e6}, {"atol": 1.01e6}, "tolerates what it likes"),
        (CHECK, {"rtol": 0.99}, {"rtol": 1.0}, "tolerates what it likes"),
        (MOST, {}, {"max_abs_err": 0.51e12 + 1e6}, "the reference would be 1e+12 or more"),
        (WORST, {"max_rel_err": 0.25 * (1 + 0.9e-9)}, {"max_rel_err": 0.25 * (1 + 1.1e-9)}, "lies outside"),
        (CHECK, {"rtol": 0.0, "max_abs_err": 0.5}, {"rtol": 0.0, "max_abs_err": 0.5 * (1 + 1.1e-9)}, "lies outside"),
        (ONE, {"max_abs_err": 1.2 * (1 - 1e-12), "max_rel_err": 0.12}, {"max_abs_err": 1.21, "max_rel_err": 0.121}, "reference is 10"),
        (RESOURCES, {"block": 0, "registers": 255}, {"block": 0, "registers": 256}, "has registers"),
        (RESOURCES, {"shared_bytes": 2**20}, {"shared_bytes": 2**20 + 1}, "has shared_bytes"),
        (RESOURCES, {"spill_bytes": 2**19}, {"spill_bytes": 2**19 + 1}, "has spill_bytes"),
        (RESOURCES, {"block": 0, "occupancy": 1}, {"block": 0, "occupancy": 1.01}, "has occupancy"),
        (RESOURCES, {"block": 1024, "blocks_per_sm": 2}, {"block": 1025, "blocks_per_sm": 2}, "has block = 1025"),
        (RESOURCES, {"block": 32, "blocks_per_sm": 64}, {"block": 32, "blocks_per_sm": 65}, "has blocks_per_sm"),
        # Registers of an SM: 65536.
        (RESOURCES, {}, {"registers": 33}, "would need 67584 registers per SM"),
    ],
)  # fmt: skip
def test_what_can_be_ends_here(result, at, beyond, says):
    assert problems(result, **at) == []
    assert any(says in problem for problem in problems(result, **beyond)), problems(
        result, **beyond
    )


@pytest.mark.parametrize(
    ("warps", "of", "can_be"), [(16, 32, True), (16, 48, True), (16, 64, True), (16, 47, False)]
)
def test_an_sm_holds_32_48_or_64_warps(warps, of, can_be):
    """A block of 33 threads takes two of them."""
    change = {"block": 33, "blocks_per_sm": warps // 2, "occupancy": warps / of}
    assert (problems(RESOURCES, **change) == []) is can_be


@pytest.mark.parametrize("us", [0.1, 1e10])
def test_the_shortest_and_the_longest_time(us):
    def said(us):
        row = results.Row("a", us, us, us, None, None, False, None)
        return problems(results.Benchmark("b", "us", None, [row], 3))

    assert said(us) == []
    beyond = us * 0.99 if us < 1 else us * 1.01
    assert said(beyond) == [
        f"the benchmark 'b' has median_us = {beyond} for 'a', which no clock here tells"
    ]


@pytest.mark.parametrize(
    ("change", "can_be"),
    [
        ({"cycles": 7501.0}, True),
        ({"cycles": 29999.0}, True),
        ({"cycles": 7499.0}, False),
        ({"cycles": 30001.0}, False),
        ({"host_us": 0.1}, True),
    ],
)
def test_a_clock_and_its_cycles_are_of_one_run(change, can_be):
    data = through_json(paired_benchmark())
    data["rows"][0] |= change
    assert (list(read(data).problems()) == []) is can_be


@pytest.mark.parametrize(("mhz", "told"), [(1.09 * 1980, False), (1.11 * 1980, True)])
def test_a_clock_is_a_tenth_above_the_highest_at_most(mhz, told):
    data = through_json(paired_benchmark())
    data["rows"][0] |= {"mhz": mhz, "cycles": 10 * mhz}
    assert any(f"mhz = {mhz}" in problem for problem in read(data).problems()) is told


def test_what_is_computed_again_agrees_to_nine_digits():
    assert of_row(value=3.0 * (1 + 0.9e-9)) == []
    assert "its other fields give 3.0" in of_row(value=3.0 * (1 + 1.1e-9))[0]


def test_a_rate_of_flops_is_that_of_the_work():
    row = results.Row("a", 10.0, 9.0, 12.0, 3.0, None, False, None, flops=30_000_000)
    assert problems(results.Benchmark("b", "TFLOP/s", None, [row], 5)) == []
    assert "give 6.0" in "".join(
        problems(
            results.Benchmark("b", "TFLOP/s", None, [results.replace(row, flops=60_000_000)], 5)
        )
    )


# --- what is read ---------------------------------------------------------------------------------------


def test_a_check_is_told_with_each_number_in_its_place():
    made = results.Check("sum", True, 9, 0.5, 0.125, 0.25, 0.0625)
    said = "(9 elements, max abs err 0.5, max rel err 0.125, atol 0.25, rtol 0.0625)"
    assert made.text() == f"check sum: passed {said}"
    assert results.replace(made, passed=False).text() == f"check sum: FAILED {said}"
    assert made.text("zh").startswith("检查 sum：通过（9 个元素，最大绝对误差 0.5，")
    head, row = made.table()
    assert dict(zip(head, row)) == {
        "check": "sum", "result": "passed", "elements": "9", "max abs err": "0.5", "max rel err": "0.125",
    }  # fmt: skip
    assert made.table("zh")[1][1] == "通过"


def test_a_table_stands_in_columns():
    """The first to the left, the others to the right; a Chinese character is two columns wide."""
    made = results.Facts("t", [results.Fact("a", 1234, None), results.Fact("longer", 5, "GB/s")])
    assert made.text().splitlines() == [
        "t",
        "  name    value  unit",
        "  a       1,234",
        "  longer      5  GB/s",
    ]
    _, head, row = results.Resources("带宽", 32, 0, 0, 1.0, 256, 8).text("zh").splitlines()
    assert head.startswith("  kernel  线程块  寄存器") and row.startswith(
        "  带宽       256      32"
    )


def test_html_has_the_heads_above_the_rows():
    made = results.Facts("t & u", [results.Fact("a<b", 1, "x")])
    assert made.html() == (
        "<table><caption>t &amp; u</caption><thead><tr><th>name</th><th>value</th><th>unit</th></tr></thead>"
        "<tbody><tr><td>a&lt;b</td><td>1</td><td>x</td></tr></tbody></table>"
    )


def test_a_benchmark_is_told_with_its_limit_its_order_and_who_is_missing():
    made = benchmark(missing={"<rival>": "no wheel"})
    assert made.heading() == "benchmark b (median of 5 interleaved rounds, measured limit 2 GB/s)"
    assert paired_benchmark().heading() == "benchmark b (median of 3 rounds, in random order)"
    assert made.text().splitlines()[-1] == "  <rival> *  no row: no wheel"
    assert made.html().endswith("</table><p>&lt;rival&gt;: no row. no wheel</p>")
    assert made.text("zh").endswith("没有这一行：no wheel")
    head, ours, theirs, _ = made.table()
    assert head == ["", "median us", "p20", "p80", "GB/s", "of limit", "vs vendor"]
    assert ours == ["ours", "10.00", "9.00", "12.00", "3", "150.0%", "0.750x"]
    assert theirs[0] == "theirs *"
    head, ours, _ = paired_benchmark().table()
    assert head[4] == "" and ours[4:6] == ["", ""]


def test_ratios_are_to_the_fastest_of_the_vendors_rows():
    assert benchmark().fastest_vendor().name == "theirs"
    assert paired_benchmark().fastest_vendor().name == "theirs"
    assert results.Benchmark("b", "us", None, benchmark().rows[:1], 3).fastest_vendor() is None


def test_a_ratio_needs_the_runs_of_both():
    with pytest.raises(ValueError, match="'b': the runs of 'ours' and 'theirs' are not recorded"):
        benchmark().ratio("ours", "theirs")
    made = paired_benchmark()
    same = made.ratio("ours", "ours")
    assert (same.median, same.low, same.high, same.pairs) == (1.0, 1.0, 1.0, 6)
    made.rows[1].times = None
    for pair in (("ours", "theirs"), ("theirs", "ours")):
        with pytest.raises(ValueError, match="are not recorded"):
            made.ratio(*pair)


def test_a_ratio_of_rows_of_different_work_is_that_of_their_rates():
    one = results.Row(
        "one", 10.0, 10.0, 10.0, 3.0, None, False, None, bytes=30_000, times="10 10 10"
    )
    two = results.Row(
        "two", 20.0, 20.0, 20.0, 1.0, None, False, None, bytes=20_000, times="20 20 20"
    )
    made = results.Benchmark("b", "GB/s", None, [one, two], 3)
    assert made.ratio("one", "two").median == pytest.approx(3.0)
    goal = made.goal("one", "two", 2.5)
    assert (goal.wanted, goal.measured, goal.verdict) == (2.5, pytest.approx(3.0), "reached")
    assert goal.low < goal.measured < goal.high
    assert made.goal("one", "two", 3.5).verdict == "missed"


def test_an_interval_is_wider_where_either_was_held_back():
    def width(clocks):
        made = paired_benchmark()
        for row, mhz in zip(made.rows, clocks):
            row.mhz = mhz
        found = made.ratio("ours", "theirs")
        return found.high - found.low

    assert width((1500.0, 1980.0)) == width((1980.0, 1500.0)) > width((1980.0, 1980.0))


def test_the_spread_of_runs_is_from_their_20th_to_their_80th_percentile():
    row = results.Row("a", 0, 0, 0, None, None, False, None, times="5 4 3 2 1 6")
    assert results._of_runs(row) == {"median_us": 3.5, "p20_us": 1.4, "p80_us": 5.6}
    row.times = "7"
    assert results._of_runs(row) == {"median_us": 7.0, "p20_us": 7.0, "p80_us": 7.0}
    row.times = None
    assert results._of_runs(row) == {} and row.runs == []


def test_percentiles_of_equal_runs_are_in_their_order():
    # (3.52 * 2 + 3.52 * 3) / 5, as statistics.quantiles computes it, is more than 3.52.
    p20, median, p80 = results.spread([3.52] * 400)
    assert p20 <= median <= p80
    assert p20 == median == 3.52
    assert p80 == pytest.approx(3.52)


def test_goals_and_resources_in_columns():
    goals = results.Goals("g", [results.Goal("n = 9", 1.0, 1.05, 1.04, 1.06, "reached")])
    assert goals.heading() == "g"
    assert goals.table() == [
        ["goal", "wanted", "measured", "interval", "verdict"],
        ["n = 9", "1", "1.050", "1.040 to 1.060", "reached"],
    ]
    assert goals.table("zh")[1][3] == "1.040 到 1.060"
    head, row = results.Resources("k", 32, 1024, 16, 0.75, 192, 8).table()
    assert dict(zip(head, row)) == {
        "kernel": "k", "block": "192", "registers": "32", "shared B": "1024", "local B": "16",
        "blocks/SM": "8", "occupancy": "75%",
    }  # fmt: skip


def test_a_profile_by_the_names_of_its_counters():
    made = results.Profile(
        "k", {"a": {"value": 1234.5, "unit": "byte"}, "b": {"value": "x", "unit": None}}
    )
    assert made["a"] == 1234.5 and made["b"] == "x"
    assert made.heading() == "ncu: k"
    assert made.table() == [["metric", "value", "unit"], ["a", "1234", "byte"], ["b", "x", ""]]
    assert problems(made) == []


def test_a_limit_stands_in_the_heading_of_a_series():
    made = results.Series(
        "s",
        results.Axis("n", ""),
        results.Axis("rate", "GB/s"),
        {"a": [(2, 1.0)], "b": [(1, 2.0)]},
        4.0,
    )
    assert made.heading() == "s (GB/s over n, limit 4 GB/s)"
    assert results.replace(made, limit=None).heading() == "s (GB/s over n)"
    assert made.table() == [["n", "a", "b"], ["1", "", "2"], ["2", "1", ""]]
    front = [f"line {k}" for k in range(7)]
    lines = {name: [(1, 2.0)] for name in front}
    assert problems(results.replace(made, lines=lines, foreground=front[:6])) == []
    assert "foreground" in problems(results.replace(made, lines=lines, foreground=front))[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234567, "1,234,567"),
        (1234.0, "1,234"),
        (0.123456, "0.1235"),
        (123456.7, "1.235e+05"),
        (True, "True"),
        (math.inf, "inf"),
        ("x", "x"),
        ([1, (2.5, "a")], "1, 2.5, a"),
    ],
)
def test_a_value_as_it_is_written(value, shown):
    assert results.format_value(value) == shown


def test_a_measured_value_has_five_digits():
    assert results.rounded(123.456789) == 123.46 and results.rounded(0.000123456) == 0.00012346


def test_a_result_is_shown_once(capsys):
    """By what made it, and not again where it is the last expression of a cell."""
    made = ct.facts("t", {"n": 1})
    assert capsys.readouterr().out
    made._ipython_display_()
    assert capsys.readouterr().out == ""
    results.Facts("t", [])._ipython_display_()
    assert capsys.readouterr().out == "t\n  name  value  unit\n"


def test_what_is_shown_speaks_the_readers_language(monkeypatch, capsys):
    monkeypatch.setenv("CUDATUT_LANG", "zh")
    results.show(EXACT)
    assert capsys.readouterr().out.startswith("检查 c：通过")
    assert "通过" in EXACT._repr_mimebundle_()["text/html"]
    results.show("as it is")
    assert capsys.readouterr().out == "as it is\n"
