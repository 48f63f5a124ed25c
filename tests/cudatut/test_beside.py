"""The reader's own numbers beside the book's."""

import pytest

import cudatut as ct
from cudatut import recording

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
