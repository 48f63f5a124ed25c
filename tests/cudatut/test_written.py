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


def test_a_name_by_default_of_a_call_that_may_have_run():
    code = {"a": CT + 'if able:\n    ct.yours("x#a", {})', "b": "more()"}
    assert said(code, {"a": facts("measured here"), "b": []}) == []
    (found,) = said(code, {"a": [], "b": facts("measured here")})
    assert found == "cell 'b' has the facts 'measured here', which cell 'a' shows"


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


# --- which argument is the name ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "field", "name"),
    [
        ('ct.check("a", "b", "sum")', "check", "name", "sum"),
        ('ct.check("a", "b")', "check", "name", "output"),
        ('ct.bench("a", "b", "c", "copy")', "benchmark", "name", "copy"),
        ('ct.bench("a", "b", "c")', "benchmark", "name", "benchmark"),
        ('ct.facts("t", "u")', "facts", "title", "t"),
        ('ct.yours("a#b", "c", "t")', "facts", "title", "t"),
        ('ct.yours("a#b", "c")', "facts", "title", "measured here"),
        ('ct.table("t", "u")', "table", "title", "t"),
        ('ct.series("t", "u")', "series", "title", "t"),
        ('ct.goals("t", "u")', "goals", "title", "t"),
    ],
)
def test_a_result_of_another_name_is_not_the_one_that_was_shown(call, kind, field, name):
    code = {"a": CT + call}
    assert said(code, {"a": [{"kind": kind, field: name}]}) == []
    wanted = f"cell 'a' shows the {kind} '{name}', and it is not there"
    assert said(code, {"a": [{"kind": kind, field: "else"}]}) == [wanted]
    some = f"cell 'a' shows 1 or more results of the kind {kind}, and there are 0"
    assert said(code, {"a": []}) == [wanted, some]


def test_as_many_as_the_calls_are_there():
    code = {"a": CT + 'ct.facts("t", {})\nct.facts("t", {})\nct.facts(name, {})'}
    assert said(code, {"a": facts("t", "t", "more")}) == []
    assert said(code, {"a": facts("t", "more")}) == [
        "cell 'a' shows the facts 't', and it is not there",
        "cell 'a' shows 3 or more results of the kind facts, and there are 2",
    ]


@pytest.mark.parametrize("given", ["*given", '"t", **given', "name", "3"])
def test_a_name_that_no_literal_tells_may_be_any(given):
    code = {"a": CT + f"ct.facts({given})", "b": CT + 'if x:\n    ct.facts("sizes", {})'}
    assert said(code, {"a": facts("sizes")}) == []


@pytest.mark.parametrize(
    ("pattern", "told"), [('f"abc{n}"', True), ('f"{n} abc"', True), ('f"ab {n}"', False), ("f'{n}'", False)]
)  # fmt: skip
def test_a_pattern_tells_by_three_letters(pattern, told):
    """Less may stand in any name: of such a cell nobody can say that it does not show it."""
    code = {"a": CT + f"if x:\n    ct.facts({pattern}, {{}})", "b": "show()"}
    name = {'f"abc{n}"': "abc 1\n2", 'f"{n} abc"': "1 abc"}.get(pattern, "ab 1")
    assert (said(code, {"b": facts(name)}) != []) is told
    assert said(code, {"b": facts("x abc y")}) == []
    assert said(code, {"a": facts(name)}) == []


def test_the_package_may_have_another_name():
    for line, module in (("import cudatut", "cudatut"), ("import os, cudatut as tut", "tut")):
        code = {"a": line, "b": f'{module}.facts("t", {{}})'}
        assert "is not there" in "".join(said(code, {"b": []})), line
    assert said({"a": "import numpy as tut", "b": 'tut.facts("t", {})'}, {"b": []}) == []


@pytest.mark.parametrize(
    "call",
    ['ct.Kernel(name, "k")', 'ct.Kernel(*x)', 'other("part/file.cu")', 'ct.Kernel(f"{x}.cu")', "ct.Kernel(3)"],
)  # fmt: skip
def test_calls_that_name_no_file(call):
    assert Code({"a": CT + call}).files == set()


@pytest.mark.parametrize("length", [200, 201])
def test_a_long_text_is_no_file(length):
    assert len(Code({"a": CT + f'k = ct.Kernel("{"x" * length}", "k")'}).files) == (length == 200)


def test_a_claim_that_no_cell_states():
    """The last word that code has on it: of two cells the other states it."""
    (found,) = said({"a": CT}, {"a": [CLAIM]})
    assert found == "cell 'a', the claim 'c-1': this cell does not state it"
    (found,) = said({"a": "%pip"}, {"other": [CLAIM]})
    assert found == "cell 'other', the claim 'c-1': this cell does not state it"


def test_of_two_calls_the_one_counts_that_differs_least():
    lines = STATED.splitlines()
    call = "\n".join(["  " + line for line in lines[2:]])
    other = call.replace("2.0", "3.0").replace('"above"', '"below"')
    code = "\n".join([*lines[:2], "if x:", call, "else:", other])
    (problem,) = claimed(CLAIM | {"unit": "s"}, code)
    assert "its unit is 's', and in the code it is '×'" in problem


def test_either_value_of_a_condition_is_told():
    code = STATED.replace("2.0", "2.0 if x else (1, 2)")
    (problem,) = claimed(CLAIM | {"expected": 4.0}, code)
    assert problem.endswith("its expected is 4.0, and in the code it is 2.0 or (1, 2)")
    assert claimed(CLAIM | {"expected": [1, 2]}, code) == []


def test_strings_of_a_module():
    source = 'x = "one"\ny = f"two {x} three"\nz = 4\n'
    assert words_of(source) == {"one", "two ", " three"}
    assert words_of("%magic") == frozenset()


def test_a_claim_that_was_shown_is_there():
    found = said({"a": CT + 'ct.claim("c-1", "x", "y")'}, {"a": []})
    assert found[0] == "cell 'a' shows the claim 'c-1', and it is not there"


def test_a_word_may_be_bound_to_a_name_before_it_is_shown():
    a = CT + 'if able:\n    ct.facts("sizes", {})'
    assert said({"a": a, "b": 'title = "sizes"\nshow(title)'}, {"b": facts("sizes")}) == []


@pytest.mark.parametrize("binding", ["for SOURCE in x:\n    pass", "SOURCE = found()", "with x as SOURCE:\n    pass"])  # fmt: skip
def test_a_name_that_is_bound_by_more_than_a_literal_has_no_value_that_the_text_tells(binding):
    assert claimed(CLAIM | {"source": "x"}) != []
    assert claimed(CLAIM | {"source": "x"}, STATED, b=binding) == []
