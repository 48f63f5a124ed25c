"""What a recording has to agree on with its example and with itself; what an honest run can have made passes."""

import copy
import datetime
import json
from types import SimpleNamespace

import pytest

from cudatut import agreement, catalog, instrument, recording, results
from cudatut.results import MIME

NAME = "start/add"
CODE = """# %% [markdown]
# One idea
#
#     indented, # and marked
# %% setup

import os
x = "# %% no cell"
# %% [markdown] with words
# # A heading
#no blank
# %% bench

def bench():
    '''A docstring.'''


bench()  # a comment
"""


@pytest.fixture
def made(book):
    """A recording of CODE as JSON."""
    book.example(NAME, CODE)
    notebook = book.notebook(NAME)
    install, _, setup, bench = notebook["cells"]
    prose = {"cell_type": "markdown", "metadata": {}, "source": ""}
    first = prose | {"id": "md-1", "source": "One idea\n\n    indented, # and marked"}
    second = prose | {"id": "md-2", "source": "# A heading\nno blank"}
    setup["source"] = '\nimport os\nx = "# %% no cell"'
    bench["source"] = "\ndef bench():\n    '''A docstring.'''\n\n\nbench()  # a comment"
    notebook["cells"] = [install, first, setup, second, bench]
    notebook["metadata"]["cudatut"]["meanings"] = recording.meanings([f"{NAME}.py"])
    return notebook


def said(book, notebook, slim=False):
    """What is said of it, once it was signed."""
    path = (
        book.slim(NAME, notebook=notebook) if slim else book.recorded(NAME, notebook, agree=False)
    )
    return recording.parse(NAME, path, path.read_bytes()).disagreements()


@pytest.mark.parametrize("slim", [False, True])
def test_a_good_one(book, made, slim):
    assert said(book, made, slim) == []


def test_the_cells_are_those_that_jupytext_finds(book):
    """In every example of the book, and where it could go wrong."""
    pytest.importorskip("jupytext")
    from cudatut.to_notebook import notebook_of

    book.example(NAME, CODE + "\n\n\n# %% [markdown]\n# x\n\n\n\n\n# %% last\n\n\n\nx\n")
    mine = catalog.get(NAME)
    import os

    del os.environ["CUDATUT_EXAMPLES"]  # set by `book`
    for example in [mine, *catalog.examples(drafts=True)]:
        cells = [(cell.id, cell.cell_type, cell.source) for cell in notebook_of(example).cells]
        assert list(catalog.cells_of(catalog.read_text(example.path))) == cells, example.name


# --- cells --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda c: c[2].update(source="x = 1"), "what stands in the cell 'setup' is not what"),
        (lambda c: c[4].update(source=c[4]["source"] + "\n"), "stands in the cell 'bench'"),
        (lambda c: c[1].update(source="Another idea"), "stands in the cell 'md-1'"),
        (lambda c: c[0].update(source="import evil"), "stands in the cell 'install'"),
        (lambda c: [one.update(source="") for one in c], "cells 'install', 'md-1', 'setup' and 2 more"),
        (lambda c: [one.update(source="") for one in c[:3]], "cells 'install', 'md-1', 'setup' is not what"),
        (lambda c: c.pop(0), "it lacks the cell 'install' of its .py"),
        (lambda c: c.pop(2), "it lacks the cell 'setup' of its .py"),
        (lambda c: c[2].update(id="other"), "it has the cell 'other', which its .py has not"),
        (lambda c: c.append(c[2] | {"id": "more"}), "it has the cell 'more', which its .py has not"),
        (lambda c: c.insert(2, c.pop(4)), "its cells stand in another order than in its .py"),
        (lambda c: c[1].update(cell_type="code", execution_count=1, outputs=[]), "stands in the cell 'md-1'"),
    ],
)  # fmt: skip
def test_cells_that_are_not_those_of_the_file(book, made, edit, says):
    edit(made["cells"])
    found = said(book, made)
    assert any(says in problem for problem in found), found
    # Whether they stand in another order is asked where all are there, and no other is.
    if "lacks" in says or "has the cell" in says:
        assert not any("another order" in problem for problem in found)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda c: c.pop(0), "it lacks the cell 'setup'"),
        (lambda c: c[0].update(id="other"), "it has the cell 'other'"),
        (lambda c: c.reverse(), "another order"),
        (lambda c: c[0].update(source="print('more')"), "what stands in the cell 'setup'"),
        (lambda c: c.append(c[0] | {"id": "md-1", "cell_type": "markdown"}), "it has the cell 'md-1'"),
    ],
)  # fmt: skip
def test_cells_of_a_slim_one(book, made, edit, says):
    path = book.slim(NAME, notebook=made)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    edit(notebook["cells"])
    found = recording.parse(NAME, path, json.dumps(notebook).encode()).disagreements()
    assert any(says in problem for problem in found), found


def test_a_slim_one_has_results_alone(book, made):
    path = book.slim(NAME, notebook=made)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown = notebook["cells"][1]["outputs"]
    shown[0]["data"]["text/html"] = "<b>"
    shown.append({"output_type": "stream", "name": "stdout", "text": "typed"})
    found = recording.parse(NAME, path, json.dumps(notebook).encode()).disagreements()
    assert [problem.rpartition("here is ")[2] for problem in found] == [
        f"{MIME}, text/html",
        "stream",
    ]


def test_a_text_rewritten_without_effect(book, made):
    """Comments, docstrings and formatting; what the recording shows is older, and `restamp` renews it."""
    path = book.root / f"{NAME}.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("One idea", "Another")
        .replace("A docstring", "More")
        .replace("x = ", "x  =  "),
        encoding="utf-8",
    )
    for slim in (False, True):
        assert said(book, copy.deepcopy(made), slim) == []
    recorded = recording.load(NAME)
    assert recorded.rewritten() and not recorded.stale()
    # Its code still has to mean what the file's does.
    made["cells"][2]["source"] = "x = 3"
    assert "the cell 'setup' means something else" in "".join(said(book, made))
    made["cells"][2]["id"] = "other"
    assert "it has the cell 'other'" in "".join(said(book, made))


# --- certificate --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"title": {"en": "Vector add", "zh": "向量減法"}}, "its title is {'en': 'Vector add', 'zh': '向量減法'}, and"),
        ({"requires": "sm_80"}, "its requires is sm_80, and that of the example is sm_75"),
        ({"toolchain": {}}, "its toolchain lacks cuda, nvcc, pycuda, python, numpy"),
        ({"toolchain": {"cuda": "13.0", "nvcc": None, "pycuda": "1", "python": "3", "numpy": "2"}}, "lacks nvcc"),
        ({"recorded_at": "1999-01-01T00:00:00+00:00"}, "before this book began or after today"),
        ({"recorded_at": "2131-01-01T00:00:00+00:00"}, "before this book began or after today"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("slim", [False, True])
def test_a_certificate_that_does_not_fit(book, made, more, says, slim):
    made["metadata"]["cudatut"] |= more
    (problem,) = said(book, made, slim)
    assert says in problem


def test_a_rival_may_be_missing(book, made):
    made["metadata"]["cudatut"]["toolchain"]["cupy"] = None
    assert said(book, made) == []


# --- texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
@pytest.mark.parametrize("text", [None, "", "ten times as fast"])
def test_a_text_that_is_not_that_of_its_numbers(book, made, kind, text):
    path = book.recorded(NAME, made, agree=False)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    data = notebook["cells"][4]["outputs"][1]["data"]
    data.pop(kind) if text is None else data.update({kind: text})
    (problem,) = recording.parse(NAME, path, json.dumps(notebook).encode()).disagreements()
    assert f"cell 'bench': the {kind} of 'benchmark add (median of 5" in problem
    assert "`python -m cudatut restamp` renews" in problem


NAMES = ["b", "a", "value", "b: no row. x", "<c>"]


@pytest.mark.parametrize(
    "result",
    [
        results.Series("s", results.Axis("a", ""), results.Axis("b", "us"), {name: [(1, 2.0)] for name in NAMES}, None),
        results.Profile("k", {name: results.Metric(1.5, "b") for name in NAMES}),
        results.Benchmark(
            "b", "us", None, [results.Row("a", 2.0, 2.0, 2.0, None, None, False, None)], 5,
            missing={name: "a: no row. b" for name in NAMES if ":" not in name},
        ),
    ],
    ids=lambda result: result.kind,
)  # fmt: skip
def test_the_order_in_which_names_were_shown(result):
    """A file sorts names; the texts tell how they stood."""
    data = json.loads(json.dumps(result.json(), sort_keys=True))
    again = results.read(data)
    found = agreement.in_order(again, result.html())
    assert (found.text(), found.html()) == (result.text(), result.html())
    assert results.read(data).json() == again.json(), "the result itself is left as it was"


# --- the instrument -----------------------------------------------------------------------------------


@pytest.fixture
def ledger(monkeypatch):
    """One whose files mean what they are said to."""
    found = {
        "numbers": {"timing": 2, "checking": 1, "profiling": 1},
        "files": {
            "a.py": {"of": ["timing"], "meaning": "a" * 64},
            "b.py": {"of": ["timing", "checking"], "meaning": "b" * 64},
            "new.py": {"of": ["timing"], "meaning": "c" * 64},
        },
        "same": [{"file": "a.py", "meaning": "d" * 64, "why": "renamed"}],
    }
    monkeypatch.setattr(instrument, "ledger", lambda: found)
    return found


KNOWN = {"a.py": "a" * 64, "b.py": "b" * 64}


@pytest.mark.parametrize(
    ("numbers", "files", "says"),
    [
        ({}, {}, None),
        ({"timing": 2}, KNOWN, None),
        ({"timing": 2}, KNOWN | {"a.py": "d" * 64}, None),
        ({"timing": 2, "checking": 1}, KNOWN, None),
        ({"timing": 1}, {}, "measured by another instrument: timing 1, now 2"),
        ({"timing": 2}, KNOWN | {"a.py": "f" * 64}, "measured by another instrument: a.py"),
        ({"timing": 2}, KNOWN | {"a.py": "b" * 64}, "measured by another instrument: a.py"),
        ({"timing": 2}, KNOWN | {"gone.py": "f" * 64}, "measured by another instrument: gone.py"),
        ({"checking": 1}, {"b.py": None}, "measured by another instrument: b.py"),
        ({"timing": 2}, {}, "it does not say which files were behind timing"),
        ({"checking": 1}, {"a.py": "a" * 64}, "does not say which files were behind checking"),
        ({"checking": 1, "profiling": 1}, KNOWN, "which files were behind profiling"),
    ],
)
def test_the_instrument_is_one_that_the_ledger_knows(book, made, ledger, numbers, files, says):
    made["metadata"]["cudatut"]["instrument"] = {"numbers": numbers, "files": files}
    book.recorded(NAME, made, agree=False)
    if says is None:
        assert recording.require_good(NAME)
        return
    with pytest.raises(recording.UnfitRecordingError) as caught:
        recording.require_good(NAME)
    assert says in str(caught.value)


def test_the_first_moment_of_the_book_belongs_to_it(book, made):
    made["metadata"]["cudatut"]["recorded_at"] = agreement._BEGAN.isoformat()
    book.recorded(NAME, made, agree=False)
    assert recording.require_good(NAME)


# --- recordings beside each other ---------------------------------------------------------------------


def beside(*told):
    """What is said of recordings, each (name, GPU, slim) and what else it says of its GPU."""
    known = {"compute_capability": "9.0", "memory_bytes": 80, "sm_count": 132}
    some = [
        SimpleNamespace(
            name=name, gpu=gpu, slim=slim, file=f"{name}@{number}", metadata={"gpu": known | {"name": gpu} | more}
        )
        for number, (name, gpu, slim, more) in enumerate(told)
    ]  # fmt: skip
    return list(agreement.among(some))


@pytest.mark.parametrize(
    ("key", "value"), [("compute_capability", "8.0"), ("memory_bytes", 40), ("sm_count", 114)]
)
@pytest.mark.parametrize("slim", [False, True])
def test_of_a_model_all_say_the_same(key, value, slim):
    usual = ("a/x", "H200", slim, {})
    known = {"compute_capability": "9.0", "memory_bytes": 80, "sm_count": 132}
    assert beside(usual, usual, ("a/y", "H200", slim, {key: value}), usual) == [
        f"a/y@2: the {key} of the H200 is {value}, and in most recordings {known[key]}"
    ]
    assert beside(usual, ("a/y", "H100", True, {key: value})) == []


def test_a_part_is_of_one_gpu_and_slim_ones_are_of_none():
    ours, slim = ("a/x", "H200", False, {}), ("a/x", "T4", True, {})
    assert beside(ours, slim, slim, ("b/x", "T4", False, {})) == []
    assert beside(ours, ("a/y/z", "T4", False, {}), ours) == [
        "a/y/z@1: the GPU of a is T4, and in most recordings H200"
    ]


def test_titles_are_counted():
    def named(count):
        return agreement._named([f"c{number}" for number in range(count)])

    assert [named(count) for count in (1, 2, 3, 4)] == [
        "the cell 'c0'",
        "the cells 'c0', 'c1'",
        "the cells 'c0', 'c1', 'c2'",
        "the cells 'c0', 'c1', 'c2' and 1 more",
    ]


def test_a_recording_is_made_until_tomorrow(book, made):
    """The clocks of two machines may be in other days."""
    now = datetime.datetime.now(datetime.UTC)
    for hours, fits in ((23, True), (25, False)):
        at = (now + datetime.timedelta(hours=hours)).isoformat(timespec="seconds")
        made["metadata"]["cudatut"]["recorded_at"] = at
        assert (said(book, copy.deepcopy(made)) == []) is fits


def test_the_order_of_names_that_were_not_shown_is_their_own():
    """What the text does not have comes last."""
    series = results.Series("s", results.Axis("a", ""), results.Axis("b", "us"), {"x": [(1, 2.0)], "y": [(1, 3.0)]}, None)  # fmt: skip
    assert list(agreement.in_order(series, "").lines) == ["x", "y"]
    row = "<tr><th>a</th><th>y</th></tr><tr><td>1</td></tr>"
    assert list(agreement.in_order(series, row).lines) == ["y", "x"]
    facts = results.Facts("t", [])
    assert agreement.in_order(facts, "") is facts
