"""Numbers in prose: what a reference resolves to, where none is replaced, what is refused."""

import re
from contextlib import contextmanager
from pathlib import Path

import pytest

from cudatut.errors import CudatutError
from cudatut.site import locale, missing, references, told

RESULTS = {
    "bench": [
        {
            "kind": "benchmark",
            "name": "add",
            "unit": "GB/s",
            "peak": 3000.0,
            "rows": [
                {"name": "one block", "median_us": 40.0, "value": 75.25, "of_peak": 0.025},
                {"name": "grid-stride", "median_us": 1.0, "value": 3010.0, "of_peak": None},
            ],
        }
    ],
    "facts": [
        {
            "kind": "facts",
            "title": "GPU",
            "rows": [
                {"name": "sm_count", "value": 132, "unit": None},
                {"name": "name", "value": "H100", "unit": None},
            ],
        }
    ],
    "prof": [
        {"kind": "profile", "kernel": "k", "metrics": {"dram.sum": {"value": 12.0, "unit": "byte"}}}
    ],
    "several": [
        {"kind": "check", "name": "a", "n": 31, "max_abs_err": 0.0},
        {"kind": "resources", "kernel": "k", "registers": 16},
        {"kind": "check", "name": "b", "n": 33, "max_abs_err": 0.5},
    ],
    "table": [
        {
            "kind": "table",
            "title": "FMAs at the limit",
            "corner": "threads",
            "columns": [{"name": "FMAs", "unit": None}, {"name": "GB/s, all", "unit": "GB/s"}],
            "rows": [
                {"name": "128", "values": [12, 3.25]},
                {"name": "256: x", "values": [24, None]},
            ],
        }
    ],
    "line": [
        {
            "kind": "series",
            "title": "copies",
            "lines": {"copy": [[1048576, 3.5], [0.25, 1.5]], "read": [[1048576.0, 4]]},
        }
    ],
    "silent": [],
}
RESULTS["tables"] = [*RESULTS["facts"], *RESULTS["table"], *RESULTS["table"]]


class Recording:
    def results(self, cell):
        if cell not in RESULTS:
            raise CudatutError(f"start/x has no cell '{cell}'")
        return RESULTS[cell]


@pytest.fixture(autouse=True)
def recorded(monkeypatch):
    """`start/x` is the only example there is."""

    def load(name):
        if name != "start/x":
            raise CudatutError(f"there is no example '{name}'")
        return Recording()

    monkeypatch.setattr(references, "load", load)


def replaced(markdown):
    """The Markdown, its references resolved; each has to be."""
    seen = []
    done = references.replace(markdown, seen.append)
    assert seen == []
    return done


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('start/x#bench["grid-stride"].value :.0f', "3010"),
        ('start/x#bench["one block"].of_peak', "0.025"),
        ("start/x#bench.unit", "GB/s"),
        ("start/x#bench.peak :,.0f", "3,000"),
        ('start/x#facts["sm_count"].value', "132"),
        ('start/x#facts["name"].value', "H100"),
        ('start/x#prof["dram.sum"].value :d', "12"),
        ('start/x#table["128"]["FMAs"]', "12"),
        ('start/x#table["128"]["GB/s, all"] :.1f', "3.2"),
        ('2 * start/x#table["256: x"]["FMAs"] / start/x#table["128"]["FMAs"] :.0f', "4"),
        ('start/x#line["copy"]["1048576"]', "3.5"),
        ('start/x#line["read"]["1048576"]', "4"),
        ('start/x#line["copy"]["0.25"]', "1.5"),
        ('start/x#tables.1["128"]["FMAs"] :d', "12"),
        ('start/x#tables["sm_count"].value', "132"),  # only the facts have such a row
        ("start/x#table.title", "FMAs at the limit"),
        ("start/x#several.registers", "16"),  # only one of the three has it
        ("start/x#several.2.n", "33"),
        (
            'start/x#bench["one block"].median_us / start/x#bench["grid-stride"].median_us :.0f',
            "40",
        ),
        ('100 * start/x#bench["one block"].value / start/x#bench.peak :.1f', "2.5"),
        ('(start/x#facts["sm_count"].value - 32) * 2', "200"),
        ("3 * 4 * 10**7 / 1e6 :.0f", "120"),
        ("3 * 10**9 / 1e6 :,d", "3,000"),  # a whole number, though it was divided
        ("-2 + 7 // 2", "1"),
        ("1 / 3", "0.3333"),
    ],
)
def test_value(body, text):
    assert references.formatted(body) == text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("start/y#bench.peak", "no example 'start/y'"),
        ("start/x#bnch.peak", "no cell 'bnch'"),
        ('start/x#bench["two"].value', 'the nearest are ["one block"].value'),
        ('start/x#bench["grid-stride"].of_peak', "not measured"),
        ('start/x#bench["grid-stride"]', 'the nearest are ["grid-stride"].'),
        ("start/x#bench.rows", "there is no such value"),
        ("start/x#bench.speed", ".peak"),
        ('start/x#prof["x"].value', 'the nearest are ["dram.sum"].value'),
        (
            "start/x#several.n",
            "2 of the cell's 3 results fit; say which: start/x#several.0 (check)",
        ),
        ("start/x#several.speed", ".registers"),
        ("start/x#several.9.n", "3 result(s), counted from 0"),
        ('start/x#several.0["a"].n', "there is no such value"),
        ("start/x#silent.n", "shows 0 result(s)"),
        ("start/x#table", "there is no such value"),
        ('start/x#table["64"]["FMAs"]', 'the nearest are ["128"]["FMAs"]'),
        ('start/x#table["128"]', '["128"]["FMAs"]'),
        ('start/x#table["128"]["rate"]', '["128"]["FMAs"]'),
        ('start/x#table["128"]["FMAs"].value', 'the nearest are ["128"]["FMAs"]'),
        ('start/x#table["256: x"]["GB/s, all"]', "not measured"),
        ('start/x#tables["128"]["FMAs"]', "2 of the cell's 3 results fit; say which"),
        ('start/x#facts["name"]["x"]', '["name"].value'),
        ('start/x#facts["name"].value * 2', "'H100' is not a number"),
        ('start/x#facts["name"].value :.1f', "Unknown format code"),
        ("1 / 0", "division by zero"),
        ("2 ** 1000", "over 64"),
        ("__import__('os')", "only references, numbers"),
        ("[1][0]", "only references, numbers"),
        ("start/x", "only references, numbers"),
        ("hello there", "neither a reference"),
        ("'a' * 10", "only references, numbers"),
        ("_0", "only references, numbers"),
    ],
)
def test_refused(body, says):
    with pytest.raises(CudatutError) as caught:
        references.formatted(body)
    assert says in str(caught.value)


def test_replaces_outside_code_only():
    page = (
        "It has {{ start/x#several.registers }} registers, `{{ raw }}` and\n"
        "```cuda\nx = {{ 1, 2 }};\n```\n"
        "    ````text\n    {{ a }}\n    ```\n    {{ b }}\n    ````\n"
        "<!-- {{ c }} -->\n{{ 1 + 1 }}\n"
    )
    done = replaced(page.replace("<!-- {{ c }} -->", "<!--\n{{ c }}\n-->"))
    assert (
        "It has <span class='ct-measured' title='start/x#several'>16</span> registers, `{{ raw }}`"
        in done
    )
    assert (
        "x = {{ 1, 2 }};" in done and "{{ a }}" in done and "{{ b }}" in done and "{{ c }}" in done
    )
    assert done.endswith("-->\n2\n")


@pytest.mark.parametrize(
    "line", ["## {{ X }} { #x }", '!!! note "{{ X }}"', "$t = {{ X }}$", '=== "{{ X }}"']
)
def test_no_markup_where_it_would_be_read_as_text(line):
    done = replaced(line.replace("X", "start/x#several.registers"))
    assert "16" in done and "<span" not in done


def test_quotes():
    done = replaced('{{ quote "570 ms" from "CUDATutorial 03, V100" }}')
    assert done == "<span class='ct-quoted' title='CUDATutorial 03, V100'>570 ms</span>"
    seen = []
    assert references.replace('{{ quote "570 ms" }}', seen.append) == '{{ quote "570 ms" }}'
    assert "its source" in str(*seen)


def test_what_is_given_says_what_it_is():
    done = replaced('{{ given "two seconds" as "setting" }}')
    assert (
        done == "<span class='ct-given' title='set by the program, not measured'>two seconds</span>"
    )
    assert replaced('## A {{ given "1 <b> %" as "goal" }} { #a }') == "## A 1 <b> % { #a }"
    with locale.using("zh"):
        assert "程序里的设定" in replaced('{{ given "两秒" as "setting" }}')
    for wrong in ('{{ given "two seconds" }}', '{{ given "two seconds" as "guess" }}'):
        seen = []
        assert references.replace(wrong, seen.append) == wrong
        assert "line 1" in str(*seen) and "prediction" in str(*seen)


def test_errors_name_the_line():
    seen = []
    done = references.replace("a\n\n{{ foo bar }} {{ 2 }}", seen.append, line_offset=10)
    assert done == "a\n\n{{ foo bar }} 2"
    (error,) = seen
    assert isinstance(error, references.BadReferenceError) and str(error).startswith("line 13: ")


def test_what_is_wrong_with_a_recording_is_said_without_a_line():
    seen = []
    references.replace("{{ start/y#bench.peak }}", seen.append)
    assert str(*seen) == "there is no example 'start/y'"


def test_named():
    page = (
        "{{ start/a#b.c / start/d#e.f }} `{{ start/no#x.y }}`\n"
        '```example source="none"\nstart/g#h\nstart/a#b\n```\n'
        "??? success\n    ```example\n    start/i#j\n    ```\n```text\nstart/k#l\n```\n"
    )
    assert references.named(page) == ["start/a", "start/d", "start/g", "start/i"]


def test_an_exercise_names_its_solutions():
    page = "```exercise\nstart/add 1\n```\n\n```exercise\nstart/add 2\n```\n"
    assert references.named(page) == ["start/add_solutions"]


def test_no_chapter_quotes_a_reference_as_code():
    """Between backticks a reference is text, and the page would show its braces."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    bad = [
        f"{page.relative_to(docs)}:{number}"
        for page in docs.glob("*/*/*.md")
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"`\{\{[^`]*\}\}`", line)
    ]
    assert bad == []


def test_figures_get_all_facts_of_a_cell_and_whole_tables():
    assert references.facts("start/x", "facts") == {"sm_count": 132, "name": "H100"}
    rows = {"128": {"FMAs": 12, "GB/s, all": 3.25}, "256: x": {"FMAs": 24, "GB/s, all": None}}
    assert references.table("start/x", "table") == references.table("start/x", "tables", 2) == rows


@pytest.mark.parametrize(
    ("read", "cell", "index", "said"),
    [
        (references.facts, "table", 0, "result 0 is no facts; .* Its results: 0 table"),
        (references.table, "tables", 0, "result 0 is no table; .*: 0 facts, 1 table, 2 table"),
        (references.table, "tables", 3, "result 3 is no table"),
        (references.facts, "silent", 0, "start/x#silent: .* Its results: none"),
    ],
)
def test_what_is_no_such_result_is_refused(read, cell, index, said):
    with pytest.raises(references.BadReferenceError, match=said):
        read("start/x", cell, index)


def test_a_label_is_said_in_the_language_of_the_page(monkeypatch):
    words = {"blocks": "线程块"}
    labels = type("Labels", (), {"chinese": staticmethod(words.get)})
    monkeypatch.setattr(references.localize, "current", lambda: labels)
    assert references.label("blocks") == "blocks"
    with locale.using("zh"):
        assert references.label("blocks") == "线程块"


@pytest.mark.parametrize(
    ("body", "factor"),
    [
        ("start/x#bench.peak", 1),
        ("2 * start/x#bench.peak :.1f", 2),
        ("start/x#bench.peak / 4", 0.25),
        ("0 * start/x#bench.peak", 0),
        ("-start/x#bench.peak", -1),
        ("start/x#bench.peak + 1", None),
        ("start/x#bench.peak ** 2", None),
        ("1 / start/x#bench.peak", None),
        ("start/x#bench.peak / start/x#bench.peak", None),
        ("start/x#bench.unit", None),
        ("2 * 3", None),
        ("2 * (start/x#bench.peak", None),
        ("start/x#bench.peak / 0", None),
    ],
)
def test_what_a_value_is_multiplied_with(body, factor):
    assert references.factor(body, "peak") == factor


def test_what_an_expression_is_made_of():
    body = ' 3 * start/x#b1["7"].c + 1_000.5e-3 - a/y#z.2["r"]["s"] :.2f'
    assert references.parts(body) == (body.removesuffix(" :.2f"), ".2f")
    assert references.literals(body) == ["3", "1_000.5e-3"]
    assert references.literals('quote "570 ms" from "x"') == []
    assert references.origins(body) == ["start/x#b1", "a/y#z"]
    assert references.masked('2 * a/b#c["r"] :.1f') == "2 * ########## :.1f"
    assert references.refers(body) and not references.refers("2 * 3")


def test_powers_end_at_64():
    assert references.value("2 ** 64") == 2**64 and references.value("2 ** -64") == 2**-64
    for exponent in (65, -65, 64.5):
        with pytest.raises(references.BadReferenceError, match=f"exponent {exponent} is over 64"):
            references.value(f"2 ** {exponent}")


@pytest.mark.parametrize(("body", "value"), [("7 % 4", 3), ("7 - 4", 3), ("7 * 4", 28), ("7 / 4", 1.75), ("--7 // 4", 1)])  # fmt: skip
def test_arithmetic(body, value):
    assert references.value(body) == value


def test_eight_values_are_named_that_are_near(monkeypatch):
    rows = [{"name": f"n{k}", "value": k} for k in range(12)]
    monkeypatch.setitem(RESULTS, "many", [{"kind": "facts", "rows": rows}])
    with pytest.raises(CudatutError) as caught:
        references.value('start/x#many["n12"].value')
    assert str(caught.value).count('["n') == 1 + 8


def test_what_has_no_output_here_is_a_dash(monkeypatch):
    def load(name):
        raise missing.MissingOutputError(f"{name} <failed>")

    monkeypatch.setattr(references, "load", load)
    seen = []
    page = "{{ start/x#bench.peak }}\n\n# T {{ start/x#bench.peak }} { #t }\n"
    assert references.replace(page, seen.append) == (
        "<span class='ct-missing' title='start/x &lt;failed&gt;'>–</span>\n\n# T – { #t }\n"
    )
    assert seen == []


def test_a_formula_takes_numbers_and_words_alone():
    assert replaced("$t = {{ start/x#several.registers }}$ {{ 1 + 1 }}") == "$t = 16$ 2"
    seen = []
    page = '${{ start/x#table.title }}$\n\n${{ start/x#facts["name"].value }}$'
    assert references.replace(page, seen.append) == page.replace('{{ start/x#facts["name"].value }}', "H100")  # fmt: skip
    assert "'FMAs at the limit': a formula takes numbers and words" in str(*seen)


def test_lines_of_a_page_by_kind():
    page = (
        "---\ntitle: x\n---\n---\nx: y\n---\n"
        "``` a`b\n~~~~text\n```\n~~~\n~~~~~\n> ```c x\n> code\n> ``` no\n> ```\n"
        "a <!-- b --> c\n<!-- d\n```\ne --> f\ng"
    )
    found = [(number, kind, info) for number, _, kind, info in references.scan(page)]
    kinds = (
        *["front"] * 3, *["prose"] * 4, "open", "code", "code", "close", "open", "code", "code", "close",
        "prose", "comment", "comment", "comment", "prose",
    )  # fmt: skip
    assert [kind for _, kind, _ in found] == list(kinds)
    assert [number for number, _, _ in found] == list(range(1, len(kinds) + 1))
    infos = [info for _, _, info in found]
    assert infos[7:15] == ["text"] * 4 + ["c x"] * 4 and not any(infos[:7] + infos[15:])


def test_words_of_a_recording_are_in_the_language_of_the_page(monkeypatch):
    asked = []

    @contextmanager
    def of(name):
        asked.append(name)
        yield

    labels = type("Labels", (), {"chinese": staticmethod({"H100": "某卡"}.get)})
    monkeypatch.setattr(references.localize, "of", of)
    monkeypatch.setattr(references.localize, "current", lambda: labels)
    body = ' start/x#facts["name"].value '
    assert references.formatted(body) == "H100" and asked == []
    with locale.using("zh"):
        assert references.formatted(body) == "某卡" and asked == ["start/x"]
        assert references.formatted("start/x#bench.peak") == "3000"
        row = {"name": "a#b", "value": "H100"}
        monkeypatch.setitem(RESULTS, "marked", [{"kind": "facts", "rows": [row]}])
        references.formatted('start/x#marked["a#b"].value')
        assert asked[1:] == ["start/x"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (' quote "570 ms" from "x" ', "570 ms"),
        ('given "two" as "goal"', "two"),
        ('given "two"', ""),
        ("start/x#bench.peak", ""),
    ],
)
def test_the_text_of_what_is_told(body, text):
    assert told.text_of(body) == text
