"""The reader's own numbers beside the book's."""

import pytest

import cudatut as ct
from cudatut import beside, recording, results

CELL = "a/add#measured"


@pytest.fixture
def recorded(book):
    """A recording of `a/add` whose cell has measured two values."""

    def made(**values):
        book.example("a/add")
        notebook = book.notebook("a/add")
        rows = [{"name": name, "value": value, "unit": "x"} for name, value in values.items()]
        facts = {"kind": "facts", "title": "measured here", "rows": rows}
        output = {"output_type": "display_data", "metadata": {}, "data": {ct.results.MIME: facts}}
        notebook["cells"][2] |= {"id": "measured", "outputs": [output]}
        book.recorded("a/add", notebook)
        assert recording.load("a/add").results("measured") == [facts]

    return made


def test_each_value_beside_the_books(recorded, capsys):
    recorded(turn=11.684, gain=1.0)
    found = ct.yours(
        CELL, {"turn": (9.7831, "x"), "gain": (1, "x"), "other": (2.5, "GB/s"), "n": 3}
    )
    assert capsys.readouterr().out.splitlines() == [
        "turn: yours 9.78x, Test 11.7x",
        "gain: yours 1x, Test 1x",
        "other: yours 2.5 GB/s",
        "n: yours 3",
    ]
    assert found["turn"] == 9.7831 and found["n"] == 3


def test_large_values_are_whole(recorded, capsys):
    recorded(rate=3010.4)
    ct.yours(CELL, {"rate": (2987.6, "GB/s")})
    assert capsys.readouterr().out == "rate: yours 2,988 GB/s, Test 3,010 GB/s\n"


@pytest.mark.parametrize("cell", ["a/add#bench", "a/add#gone", "a/gone#measured"])
def test_without_the_books_the_readers_own_are_told(recorded, capsys, cell):
    recorded(turn=11.7)
    ct.yours(cell, {"turn": (9.7831, "x")})
    assert capsys.readouterr().out == "turn: yours 9.78x\n"


def test_while_the_book_is_recorded_they_are_facts(monkeypatch, capsys):
    """The book's own recording is none of what it is made of."""
    monkeypatch.setenv("CUDATUT_RECORDING", "1")
    monkeypatch.setattr(recording, "load", lambda name: pytest.fail("it was read"))
    found = ct.yours(CELL, {"turn": (9.7831, "x")})
    assert found.json() == {
        "kind": "facts",
        "title": "measured here",
        "rows": [{"name": "turn", "value": 9.7831, "unit": "x"}],
    }
    assert "yours" not in capsys.readouterr().out


def test_no_number(capsys):
    with pytest.raises(TypeError, match="yours: 'turn' is a list"):
        ct.yours(CELL, {"turn": [1]})


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (999.4, "GB/s", "999 GB/s"),
        (1000.0, "GB/s", "1,000 GB/s"),
        (-1234.6, None, "-1,235"),
        (0.012345, "x", "0.0123x"),
        (1_234_567, "B", "1,234,567 B"),
        ("cuBLAS", None, "cuBLAS"),
    ],
)
def test_how_a_value_is_told(value, unit, said):
    assert beside._said(value, unit) == said
    fact = results.Fact("n", value, unit)
    facts, book = results.Facts("t", [fact]), results.Facts("t", [results.Fact("n", 2.0, "y")])
    assert list(beside.lines("NVIDIA H200", results.Facts("t", []), facts)) == [f"n: yours {said}"]
    both = f"n: yours {said}, H200 2{unit if unit == 'x' else f' {unit}' if unit else ''}"
    assert list(beside.lines("NVIDIA H200", book, facts)) == [both]


def test_what_is_returned_has_units_and_a_title(capsys):
    found = ct.yours(CELL, {"turn": (9.7831, "x"), "n": 3})
    assert found.title == "measured here" and [row.unit for row in found.rows] == ["x", None]
