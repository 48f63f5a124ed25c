"""Conditions of sentences: what is read, what a page says where one does not hold, and which sentences need one."""

import copy
import dataclasses
from pathlib import Path

import pytest

from cudatut import recording
from cudatut.errors import CudatutError
from cudatut.site import comparing, conditions, contents, references, state
from cudatut.site.conditions import BadConditionError, Condition
from cudatut.site.missing import MissingOutputError

ROOT = Path(__file__).resolve().parents[2]
FAST = 'start/x#bench["fast"].median_us'
SLOW = 'start/x#bench["slow"].median_us'


class Recording:
    def __init__(self, gpu, fast, slow):
        self.gpu, self.times = gpu, {"fast": fast, "slow": slow}

    def results(self, cell):
        rows = [{"name": name, "median_us": time} for name, time in self.times.items()]
        return [{"kind": "benchmark", "name": cell, "unit": "us", "peak": None, "rows": rows}]


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Call it with conditions, a page's text and by GPU the times of `fast` and `slow`: its text, and what is reported."""

    def made(said, markdown, *, mode="strict", lang="en", **times):
        file = tmp_path / "docs" / "conditions" / "start" / "one.yml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(said, encoding="utf-8")
        build = state.State(lang, tmp_path / "docs" / lang, page="start/one.md", mode=mode)
        there = [Recording(gpu, *both) for gpu, both in times.items()]
        monkeypatch.setattr(build, "recordings", lambda name: there)
        state.begin(build)
        problems = []
        return conditions.replace(markdown, problems.append), [str(one) for one in problems]

    yield made
    state.begin(state.State())


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "bounds"),
    [
        (f"{SLOW} / {FAST} > 1", ((">", 1),)),
        (f"{SLOW} / {FAST} >= 1.9", ((">=", 1.9),)),
        (f"0.5 < {FAST}", ((">", 0.5),)),
        (f"0.95 <= {SLOW} / {FAST} <= 1.05", ((">=", 0.95), ("<=", 1.05))),
        (f"1.05 >= {SLOW} / {FAST} > 0.95", (("<=", 1.05), (">", 0.95))),
        ('start/x#bench["a < b"].median_us < 3', (("<", 3),)),
    ],
)
def test_a_condition_is_an_expression_within_bounds(said, bounds):
    found = conditions.read(said)
    assert found.bounds == bounds
    assert references.refers(found.expression) and "#" in found.expression


@pytest.mark.parametrize(
    "said",
    [
        FAST,  # compares nothing
        "1 < 2",
        f"{FAST} < {SLOW}",  # of a ratio is known how far it is off
        f"0.5 < {FAST} > 0.1",
        f"{FAST} < 3 < 4",
        f"1 < 2 < {FAST}",
        f"1 < {FAST} < 2 < 3",
        f"0.5 < {FAST} < x",
        f"x < {FAST} < 0.5",
        f"{FAST} == 1",
        f"{FAST} < 1e3",
        "",
    ],
)
def test_anything_else_is_refused(said):
    with pytest.raises(BadConditionError, match="is no condition: write"):
        conditions.read(said)


def test_bounds_include_what_their_sign_says():
    within = Condition("", ((">=", 1.0), ("<", 2.0)))
    assert [within.holds(value) for value in (0.99, 1.0, 1.99, 2.0)] == [False, True, True, False]
    beyond = Condition("", ((">", 1.0), ("<=", 2.0)))
    assert [beyond.holds(value) for value in (1.0, 1.01, 2.0, 2.01)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("bounds", "value", "trivial"),
    [
        (((">", 1.0),), 1.3, False),  # the sides exchanged
        (((">", 1.0),), 13, False),
        (((">=", 0.95), ("<=", 1.05)), 1, False),  # half of it
        (((">", 0.5),), 0.8, False),
        (((">", 0.5),), 1.2, True),  # half of it, and no less
        (((">", 0.9),), 1.9, False),  # the sides exchanged, and exactly so
        ((("<", 2.5),), 1.3, False),  # twice of it
        ((("<", 2.5),), 1.2, True),
        (((">", 0.01),), 1.2, True),
        (((">=", 0.1), ("<=", 10)), 1.2, True),
        (((">=", 0.0),), 0, True),
    ],
)
def test_a_condition_that_other_numbers_cannot_make_false_is_trivial(bounds, value, trivial):
    assert Condition("", bounds).is_trivial(value) is trivial


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("a: [", "cannot be read"),
        ("- a", "no list of"),
        (f"A: {FAST} > 1", "'A': use a-z and - only"),
        ("a: >", "a: '' is no condition"),
        (f"a:\n- {FAST} > 1\n- 3", "a: '3' is no condition"),
    ],
)
def test_a_file_that_says_something_else_is_told_where_it_is_used(page, said, why):
    text, (problem,) = page(said, "It is fast{{ holds a }}.")
    assert text == "It is fast."
    assert problem.startswith("line 1: docs/conditions/start/one.yml: ") and why in problem


# --- on a page -----------------------------------------------------------------------------------


def test_a_sentence_that_holds_says_nothing_besides(page):
    said = f"ahead: {SLOW} / {FAST} > 1\nfar: no\n".replace(
        "far: no", f"far: '{SLOW} / {FAST} > 1.5'"
    )
    text, problems = page(said, "Ahead{{ holds ahead }}, far{{holds far}}.", H200=(1.0, 2.0))
    assert (text, problems) == ("Ahead, far.", [])


def test_the_books_own_numbers_stop_a_strict_build(page):
    said = f"ahead: {SLOW} / {FAST} > 1"
    text, (problem,) = page(said, "\nIt is ahead{{ holds ahead }}.", H200=(2.0, 1.0))
    assert text == "\nIt is ahead."
    assert problem.startswith("line 2: this sentence says 'ahead', which is > 1")
    assert "and it is 0.5: change the sentence in both languages, or its condition" in problem


@pytest.mark.parametrize("mode", ["live", "preview"])
def test_a_readers_own_numbers_mark_it(page, mode):
    said = f"ahead: {SLOW} / {FAST} > 1"
    text, problems = page(said, "It is ahead{{ holds ahead }}.", mode=mode, H200=(2.0, 1.0))
    assert text == "It is ahead<span class='ct-not-so'> (not so on this GPU: 0.5)</span>."
    assert problems == []
    text, _ = page(said, "领先{{ holds ahead }}。", mode=mode, lang="zh", H200=(2.0, 1.0))
    assert text == "领先<span class='ct-not-so'>（在这块 GPU 上不成立：0.5）</span>。"


def test_another_gpu_that_contradicts_it_marks_it_for_whoever_chooses_that(page):
    said = f"ahead: {SLOW} / {FAST} > 1"
    text, problems = page(
        said, "Ahead{{ holds ahead }}.", H200=(1.0, 2.0), A10=(4.0, 2.0), L4=(1.0, 3.0)
    )
    assert problems == []
    assert text.count("ct-not-so") == 1
    assert "data-gpu='A10' title='A10' hidden> (not so on this GPU: 0.5)</span>" in text


def test_of_several_conditions_each_value_is_said_that_does_not_fit(page):
    said = f"all: ['{SLOW} / {FAST} > 1', '{SLOW} / {FAST} > 3', '{SLOW} > 1', '{FAST} > 7']"
    text, _ = page(said, "All{{ holds all }}.", mode="live", H200=(1.0, 2.0))
    assert text == "All<span class='ct-not-so'> (not so on this GPU: 2, 1)</span>."


def test_large_values_are_told_whole():
    shown = {0.9349: "0.935", 12.34: "12.3", 999.4: "999", 999.5: "1,000", -12345.6: "-12,346"}
    assert {value: conditions.said(value) for value in shown} == shown


def test_what_compares_nothing_that_was_measured_says_why(page):
    said = 'near: "no measurement: a register belongs to the SM"'
    assert page(said, "Registers are faster{{ holds near }}.") == ("Registers are faster.", [])


def test_a_name_that_is_not_there_is_reported(page):
    _, (problem,) = page(f"a: {FAST} > 1", "Far{{ holds b }}.", H200=(2.0, 1.0))
    assert (
        problem
        == "line 1: {{ holds b }}: docs/conditions/start/one.yml has no condition of this name"
    )


def test_a_word_is_nothing_to_compare(page):
    _, (problem,) = page(
        "a: start/x#bench.unit > 1", "Fast{{ holds a }}.", H200=(1.0, 2.0), A10=(1.0, 2.0)
    )
    assert problem == "line 1: start/x#bench.unit is 'us', and no number"


def test_what_is_wrong_with_a_recording_is_reported_as_it_is(page, monkeypatch):
    """Once for the page: it has no line."""

    def damaged(expression, record=None):
        raise recording.UnfitRecordingError("start/x is damaged")

    monkeypatch.setattr(references, "value", damaged)
    found = page(f"a: {FAST} > 1", "\nFast{{ holds a }}.", H200=(1.0, 2.0))
    assert found == ("\nFast.", ["start/x is damaged"])


def test_an_output_that_this_machine_could_not_make_costs_its_condition_alone(page, monkeypatch):
    """Of several conditions the others are looked at."""
    given = references.value

    def lacking(expression, record=None):
        if expression == SLOW:
            raise MissingOutputError("it raised here")
        return given(expression, record)

    monkeypatch.setattr(references, "value", lacking)
    said = f"all: ['{SLOW} > 9', '{FAST} > 7']"
    text, problems = page(said, "All{{ holds all }}.", mode="live", H200=(1.0, 2.0))
    assert text == "All<span class='ct-not-so'> (not so on this GPU: 1)</span>." and not problems


def test_code_stays_as_it_is(page):
    markdown = "`{{ holds a }}`\n\n```\n{{ holds a }}\n```\n"
    assert page(f"a: {FAST} > 1", markdown, H200=(2.0, 1.0)) == (markdown, [])


# --- which sentences -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lang", "sentence", "words"),
    [
        ("en", "It is about as fast as the copy.", "about as fast"),
        ("en", "The mask is faster than the modulo.", "faster"),
        ("en", "It takes ◆ µs, less than the bytes alone need.", "… µs, less than"),
        ("en", "Clusters gain nothing here.", "gain nothing"),
        ("en", "Most of the time goes to the copies.", "Most of the time"),
        ("en", "It takes twice the time.", "twice the time"),
        ("en", "At 8192 it beats cuBLAS.", "beats cuBLAS"),
        ("en", "As predicted, it is clearly ahead.", "is clearly ahead"),
        ("en", "The mask is ◆ times as fast as the modulo.", ""),  # its number compares
        ("en", "It has ◆ % of the peak.", ""),
        ("en", "Which of them is faster?", ""),
        ("en", "With more registers it would be slower.", ""),
        ("en", "Each block has twice the threads.", ""),
        ("en", "Both run at the same time.", ""),
        ("en", "A table says how much faster it is.", ""),
        ("en", "'More threads are faster.'", ""),
        ("zh", "它与复制不相上下。", "不相上下"),
        ("zh", "掩码比取模更快。", "比取模更快"),
        ("zh", "大部分时间花在复制上。", "大部分时间"),
        ("zh", "线程块集群没有任何收益。", "没有任何收益"),
        ("zh", "掩码的速度是取模的 ◆ 倍。", ""),
        ("zh", "哪一个更快？", ""),
        ("zh", "寄存器再多，它应该更慢。", ""),
        ("zh", "这些块差不多大。", ""),
        ("zh", "“线程越多越快，而且更快。”", ""),
    ],
)
def test_words_that_compare(lang, sentence, words):
    assert comparing.compares(sentence, lang) == words


def test_sentences_are_those_of_the_main_path_with_their_lines():
    markdown = """---
title: faster
---
# Faster { #faster }

One sentence that goes on
here. It is faster. A third one
is faster too{{ holds it }}.

- an item that is slower
- another one

| faster | slower |

```
it is faster
```

??? note "Fold"

    It is faster in here.

## Predict { #predict }

It is faster.
"""
    assert [*comparing.without_condition(markdown, "en")] == [(7, "faster"), (10, "slower")]


def test_a_sentence_goes_on_across_lines_and_no_further():
    markdown = "It is\nfast. Is\nit?\n\nB{{ x }}\n- c\n- d\n| e |\nf. g\n"
    assert [*comparing.sentences(markdown, "en")] == [
        *((1, "It is fast."), (2, "Is it?"), (5, "B ◆"), (6, "- c"), (7, "- d")),
        *((9, "f."), (9, "g")),
    ]


def test_both_pages_use_all_conditions_and_no_other(tmp_path):
    docs = tmp_path / "docs"
    for lang, text in {
        "en": "Fast{{ holds a }}, it is slower.",
        "zh": "快{{ holds a }}{{ holds b }}。",
    }.items():
        (docs / lang).mkdir(parents=True)
        (docs / lang / "x.md").write_text(text, encoding="utf-8")
    (docs / "conditions").mkdir()
    (docs / "conditions" / "x.yml").write_text(f"a: {FAST} > 1\nc: {FAST} > 1\n", encoding="utf-8")
    found = [str(one) for one in conditions.findings("x.md", docs)]
    how = "write {{ holds NAME }} at the end of its sentence, or take it out"
    assert found == [
        f"docs/conditions/x.yml: docs/en/x.md does not use 'c': {how}",
        f"docs/conditions/x.yml: docs/zh/x.md does not use 'c': {how}",
        "docs/zh/x.md:1: 'b' is no condition of docs/conditions/x.yml: add it",
    ]
    (docs / "zh" / "x.md").unlink()  # which `check` tells
    assert [str(one) for one in conditions.findings("x.md", docs)] == found[:1]


def test_a_page_whose_conditions_cannot_be_read_and_one_that_has_none(tmp_path):
    docs = tmp_path / "docs"
    for name in ("en/x.md", "conditions/x.yml"):
        (docs / name).parent.mkdir(parents=True)
    (docs / "conditions/x.yml").write_text("- a\n", "utf-8")
    assert [str(one) for one in conditions.findings("x.md", docs)] == [
        "docs/conditions/x.yml: it is no list of `name: condition`"
    ]
    (docs / "conditions/x.yml").unlink()
    (docs / "en/x.md").write_text("It is.\n\n`{{ holds a }}`\n\nIt is faster.\n", "utf-8")
    code = "It is.\n\n```\n{{ holds b }}\n```\n"
    (docs / "zh").mkdir()
    (docs / "zh/x.md").write_text(code, "utf-8")
    (found,) = [str(one) for one in conditions.findings("x.md", docs)[1:]]
    assert found == (
        "docs/en/x.md:5: this sentence compares ('faster') and has no condition: "
        "write {{ holds NAME }} before its full stop and NAME into docs/conditions/x.yml"
    )


# --- the book ------------------------------------------------------------------------------------

FILES = sorted((ROOT / "docs" / "conditions").rglob("*.yml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_no_condition_of_the_book_is_trivial_and_the_books_numbers_satisfy_each(file):
    for name, named in conditions.of_file(file).items():
        for one in named.conditions:
            try:
                value = references.value(one.expression)
            except CudatutError as error:
                pytest.fail(f"{file.name}, {name}: {error}")
            assert one.holds(value), f"{file.name}, {name}: {one}, and it is {value}"
            assert not one.is_trivial(value), f"{file.name}, {name}: nothing makes it false"


def test_no_file_of_conditions_belongs_to_no_page():
    pages = {one.page for one in contents.chapters(contents.load())}
    own = {
        path.relative_to(ROOT / "docs" / "en").as_posix()
        for path in (ROOT / "docs" / "en").glob("*.md")
    }
    named = {
        path.relative_to(ROOT / "docs" / "conditions").with_suffix(".md").as_posix()
        for path in FILES
    }
    assert named <= pages | own


# Benchmarks, and what is slower there.
SLOWER = [
    ("reduction/interleaved", "bench", "mask"),
    ("llm/attention", "parts", "softmax"),
    ("llm/paged_attention", "bench", "KV blocks of 256"),
    ("tensor/grouped", "bench", "one launch"),
]


def _on_a_slower_gpu(own, cell, name):
    """The recording as another GPU's, on which one kernel takes three times as long."""
    cells = copy.deepcopy(own.cells)
    rows = [
        row
        for one in cells
        if one.title == cell
        for result in one.results()
        for row in result.get("rows", ())
        if row["name"] == name and "median_us" in row
    ]
    assert rows
    for row in rows:
        row["median_us"] *= 3
    metadata = own.metadata | {"gpu": own.metadata["gpu"] | {"name": "NVIDIA Slow"}}
    return dataclasses.replace(own, cells=cells, metadata=metadata)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("example", "cell", "row"), SLOWER)
def test_slower_numbers_mark_the_sentences_that_they_make_false_and_no_other(
    example, cell, row, lang, monkeypatch
):
    """On every page: numbers of a GPU on which one row of one result is slower."""
    own = recording.require_good(example)
    slow = _on_a_slower_gpu(own, cell, row)

    def there(name):
        return [own, slow] if name == example else [recording.require_good(name)]

    wrong, marked = set(), set()
    for file in FILES:
        page = file.relative_to(ROOT / "docs" / "conditions").with_suffix(".md").as_posix()
        build = state.State(lang, ROOT / "docs" / lang, page=page)
        monkeypatch.setattr(build, "recordings", there)
        state.begin(build)
        for name, named in conditions.of_file(file).items():
            if any(f"{example}#" in one.expression for one in named.conditions):
                problems = []
                if "ct-not-so" in conditions.replace(f"{{{{ holds {name} }}}}", problems.append):
                    marked.add((page, name))
                assert problems == []
            for one in named.conditions:
                if references.named(f"{{{{ {one.expression} }}}}") == [example] and not one.holds(
                    references.value(one.expression, lambda _: slow)
                ):
                    wrong.add((page, name))
    state.begin(state.State())
    assert marked == wrong and wrong
