"""What the code of cells says of their results: told where it stands in plain words, and nothing is told elsewhere."""

import pytest

from cudatut import written
from cudatut.written import Code, words_of

BOTH = {"en": "a", "zh": "b"}
CLAIM = {
    "kind": "claim", "id": "c-1", "source": "a book", "place": BOTH, "form": "said", "statement": BOTH,
    "expected": 2.0, "measured": 2.5, "unit": "×", "rule": "above", "verdict": "confirmed",
    "control": {"what": BOTH, "value": 1.0}, "depends": None,
}  # fmt: skip
STATED = f"""import cudatut as ct
SOURCE = "a book"
ct.claim(id="c-1", source=SOURCE, place={BOTH}, form="said", statement={BOTH}, expected=2.0,
         measured=found(), unit="×", rule="above", control=({BOTH}, one()))
"""


def facts(*names):
    return [{"kind": "facts", "title": name} for name in names]


def checks(*names):
    return [{"kind": "check", "name": name} for name in names]


def said(code, shown, elsewhere=set):
    return list(Code(code).problems(shown, elsewhere))


# --- names --------------------------------------------------------------------------------------------

CT = "import cudatut as ct\n"


@pytest.mark.parametrize(
    "call",
    [
        'ct.facts("sizes", {})',
        'found = ct.facts("sizes", {})',
        'ct.facts(title="sizes", values={})',
        'ct.facts("sizes", values(*x, **y))',
    ],
)
def test_what_a_call_has_shown_is_there(call):
    assert said({"a": CT + call}, {"a": facts("sizes")}) == []
    assert said({"a": CT + call}, {"a": facts("sizes", "more")}) == []
    for shown in ([], facts("else"), [{"kind": "table", "title": "sizes"}]):
        first, *_ = said({"a": CT + call}, {"a": shown})
        assert first == "cell 'a' shows the facts 'sizes', and it is not there"


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ('ct.check(out, x, "sum")', {"kind": "check", "name": "sum"}),
        ('ct.check(out, x, name="sum")', {"kind": "check", "name": "sum"}),
        ("ct.check(out, x)", {"kind": "check", "name": "output"}),
        ("ct.check(out, x, None)", {"kind": "check", "name": "output"}),
        ('ct.bench(runs, 3, None, "copy")', {"kind": "benchmark", "name": "copy"}),
        ('ct.bench(runs, name="copy")', {"kind": "benchmark", "name": "copy"}),
        ("ct.bench(runs)", {"kind": "benchmark", "name": "benchmark"}),
        ('ct.table("t", {})', {"kind": "table", "title": "t"}),
        ('ct.series("s", x, y, z)', {"kind": "series", "title": "s"}),
        ('ct.goals("g", {})', {"kind": "goals", "title": "g"}),
        ('ct.check(out, x, f"n = {n}")', {"kind": "check", "name": "n = 3"}),
    ],
)
def test_every_kind(call, result):
    assert said({"a": CT + call}, {"a": [result]}) == []
    assert said({"a": CT + call}, {"a": [result | {"kind": "facts"}]}) != []
    assert len(said({"a": CT + f"{call}\n{call}"}, {"a": [result]})) >= 1


@pytest.mark.parametrize(
    "code",
    [
        'if able:\n    ct.facts("sizes", {})',
        'for n in lengths:\n    ct.facts("sizes", {})',
        'with ct.isolated():\n    ct.facts("sizes", {})',
        'def show():\n    ct.facts("sizes", {})',
        'other.facts("sizes", {})',
        'able and ct.facts("sizes", {})',
        "%pip install x",
    ],
)
def test_what_may_not_have_run_need_not_be_there(code):
    assert said({"a": CT, "b": code}, {"a": [], "b": []}) == []


def test_a_cell_that_has_anothers_results():
    code = {"a": CT + 'ct.facts("sizes", {})', "b": 'ct.facts("times", {})'}
    assert said(code, {"a": facts("sizes"), "b": facts("times")}) == []
    assert said(code, {"a": facts("times"), "b": facts("sizes")}) == [
        "cell 'a' shows the facts 'sizes', and it is not there",
        "cell 'a' has the facts 'times', which cell 'b' shows",
        "cell 'b' shows the facts 'times', and it is not there",
        "cell 'b' has the facts 'sizes', which cell 'a' shows",
    ]
    (more,) = said(code, {"a": facts("sizes", "times"), "b": facts("times")})
    assert more == "cell 'a' has the facts 'times', which cell 'b' shows"


def test_names_that_a_loop_makes():
    code = {"a": CT + 'for n in 1, 2:\n    ct.check(out, x, f"length {n}")', "b": "more()"}
    assert said(code, {"a": checks("length 1", "length 2"), "b": checks("mine")}) == []
    (found,) = said(code, {"a": [], "b": checks("length 1")})
    assert found == "cell 'b' has the check 'length 1', which cell 'a' shows"


@pytest.mark.parametrize(
    "b",
    [
        'show("sizes of ")',
        'title = "sizes"\nct.facts(title, {})',
        'ct.facts("siz" + "es", {})',
        'for title in ("sizes", "times"):\n    ct.facts(title, {})',
        'ct.facts(f"{what} of {n}", {})',
    ],
)
def test_a_cell_that_has_a_word_of_the_name_may_show_it(b):
    code = {
        "a": CT + 'if able:\n    ct.facts("sizes of all", {})\n    ct.facts("sizes", {})',
        "b": b,
    }
    name = "sizes of all" if " of " in b else "sizes"
    assert said(code, {"a": [], "b": facts(name)}) == []
    assert said(code | {"b": "show()"}, {"a": [], "b": facts(name)}) != []


def test_a_function_that_is_given_the_name():
    a = CT + 'if able:\n    ct.facts("sizes", {})'
    shared = "def show(name, value):\n    ct.facts(name, value)"
    assert said({"a": a, "c": shared, "b": "show(*given)"}, {"b": facts("sizes")}) == []
    assert said({"a": a, "c": shared, "b": "show(*given)"}, {"b": checks("sizes")}) == []


def test_functions_and_modules_may_show_it():
    a = CT + 'if able:\n    ct.facts("sizes", {})'
    shared = "def show():\n    ct.facts('sizes', {})"
    assert said({"a": a, "b": "show()"}, {"b": facts("sizes")}) != []
    assert said({"a": a, "c": shared, "b": "show()"}, {"b": facts("sizes")}) == []
    assert said({"a": a, "b": "show()"}, {"b": facts("sizes")}, lambda: words_of(shared)) == []
    assert said({"a": a, "b": "show()"}, {"b": facts("sizes")}, lambda: {"a", "times"}) != []


def test_a_name_of_no_cell_is_left_alone():
    """Most are made of parts that no literal tells."""
    assert said({"a": CT, "b": "show()"}, {"b": facts("anything")}) == []


def test_files_that_are_named():
    code = {
        "a": CT + 'k = ct.Kernel("part/file.cu", "k")',
        "b": 'ct.Kernel("extern { int x; }", "k")\nfor f in x:\n    ct.Kernel("part/other.cu", "k")',
    }
    assert Code(code).files == {"part/file.cu"}


# --- claims -------------------------------------------------------------------------------------------


def claimed(claim, code=STATED, **more):
    return said({"a": code} | more, {"a": [claim]})


def test_a_claim_as_it_is_stated():
    assert claimed(CLAIM) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"source": "another"}, "its source is 'another', and in the code it is 'a book'"),
        ({"place": {"en": "x", "zh": "y"}}, "its place is"),
        ({"form": "code"}, "its form is 'code', and in the code it is 'said'"),
        ({"statement": {"en": "x", "zh": "b"}}, "its statement is"),
        ({"expected": 3.0}, "its expected is 3.0, and in the code it is 2.0"),
        ({"rule": "below"}, "its rule is 'below'"),
        ({"unit": None}, "its unit is None"),
        ({"depends": BOTH}, "its depends is {'en': 'a', 'zh': 'b'}, and in the code it is None"),
        (
            {"control": {"what": {"en": "x", "zh": "y"}, "value": 1.0}},
            "its control has other words",
        ),
    ],
)
def test_a_claim_that_says_something_else(change, says):
    (problem,) = claimed(CLAIM | change)
    assert problem.startswith(f"cell 'a', the claim 'c-1': {says}")


@pytest.mark.parametrize("change", [{"measured": 9.0}, {"control": {"what": BOTH, "value": 9.0}}])
def test_what_was_measured_stands_in_no_code(change):
    assert claimed(CLAIM | change) == []


def test_a_condition_that_the_measurement_decides():
    code = STATED.replace('rule="above"', f'rule="above", depends={BOTH} if found() else None')
    assert claimed(CLAIM, code) == claimed(CLAIM | {"depends": BOTH}, code) == []
    assert claimed(CLAIM | {"depends": {"en": "x", "zh": "y"}}, code) != []


def test_values_that_are_computed():
    code = STATED.replace("2.0", "2 * half")
    assert claimed(CLAIM | {"expected": 7.0}, code) == []
    code = STATED.replace("2.0", '(32, "rows")')
    assert claimed(CLAIM | {"expected": [32, "rows"]}, code) == []
    # A name that is bound twice has no value that the text tells.
    assert claimed(CLAIM | {"source": "x"}, STATED, b='SOURCE = "x"') == []


def test_a_claim_that_its_cell_does_not_state():
    code = {"a": STATED, "b": "more()"}
    found = said(code, {"a": [CLAIM], "b": [CLAIM]})
    assert "cell 'b' has the claim 'c-1', which cell 'a' shows" in found
    assert "cell 'b', the claim 'c-1': this cell does not state it" in found
    assert "c-2" in claimed(CLAIM | {"id": "c-2"})[-1]
    # Where an id is computed, nobody can tell.
    loop = STATED + 'for n in x:\n    ct.claim(id=f"c-{n}")\n'
    assert claimed(CLAIM, loop) == said({"a": loop}, {"a": [CLAIM, CLAIM | {"id": "c-2"}]}) == []


def test_two_branches_that_state_one_claim():
    lines = STATED.splitlines()
    call = "\n".join(["  " + line for line in lines[2:]])
    code = "\n".join([*lines[:2], "if x:", call, "else:", call.replace("2.0", "3.0")])
    assert claimed(CLAIM, code) == claimed(CLAIM | {"expected": 3.0}, code) == []
    assert claimed(CLAIM | {"expected": 4.0}, code) != []


def test_words_of_two_letters_tell_nothing():
    """A name may be made of a longer one, or be a short one itself."""
    assert not written._could_say(["ab", " b "], "cabd")
    assert written._could_say(["ab"], "ab")
    assert written._could_say(["x", "abd"], "cabd")
