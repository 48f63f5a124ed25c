"""What the builds of both languages make once: each input by one of them, whoever comes to it first."""

import pytest

from cudatut import recording
from cudatut.site import highlighting, locale, shared


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(shared.FOLDER, str(tmp_path))
    yield tmp_path
    locale.use("en")


def upper(made):
    """`str.upper`, which notes what it was called for."""
    return lambda word: made.append(word) or word.upper()


def test_alone_a_build_makes_everything(monkeypatch):
    monkeypatch.delenv(shared.FOLDER, raising=False)
    for _ in range(2):
        assert shared.each(["a", "b"], upper(made := [])) == {"a": "A", "b": "B"}
        assert made == ["a", "b"]


def test_what_one_language_has_made_the_other_finds(folder):
    assert shared.each(["a", "c", "b"], upper(made := [])) == {"a": "A", "b": "B", "c": "C"}
    assert made == ["a", "b", "c"]
    locale.use("zh")
    # An input that differs by anything is another.
    found = shared.each(["a", "b ", "c", "d"], upper(made := []))
    assert found == {"a": "A", "b ": "B ", "c": "C", "d": "D"}
    assert made == ["d", "b "]  # from the other end


def test_code_is_colored_as_it_is_by_each_alone(folder, project):
    source = 'def f(x):  # "<&>"\n    return f"{x}" + \'线程\''
    notebook = project.book.notebook("start/add")
    notebook["cells"][3]["source"] = source
    project.book.recorded("start/add", notebook)
    alone = highlighting.python_block(source)
    record = recording.load("start/add")
    for lang in ("en", "zh"):
        locale.use(lang)
        highlighting.color_cells([record])
        assert highlighting.python_block(source) == alone
        assert source in highlighting._cells  # as one of the builds has made it
        highlighting._cells.clear()
    assert len(list(folder.glob("*.json"))) == 1
