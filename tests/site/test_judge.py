"""The rules for pages together: of a chapter, and of the whole book, which is held to them."""

from pathlib import Path

import pytest

from cudatut.site import contents, judge

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_book():
    found = judge.of_book(DOCS)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("name", ["start/first_kernel", "tensor/cutlass"])
def test_a_chapter_of_the_book(name):
    """One of the part with rules of its own; and one that has no script of its own name."""
    assert judge.of_chapter(name, DOCS) == []


def test_a_chapter_that_is_not_there():
    with pytest.raises(contents.ContentsError, match=r"Did you mean basics/coalescing\?"):
        judge.of_chapter("basics/coalesing", DOCS)


def test_one_that_is_planned_has_nothing_yet():
    found = list(map(str, judge.of_chapter("memory/pinned", DOCS)))
    assert [line.partition(": ")[0] for line in found] == [
        "docs/en/memory/pinned.md",
        "docs/zh/memory/pinned.md",
        *(f"examples/memory/pinned{ending}.py" for ending in ("", "_exercises", "_solutions")),
    ]
    assert all("write" in line for line in found)


def test_what_is_still_to_be_written(tmp_path):
    page = tmp_path / "x.md"
    page.write_text(
        'a\n"(to write: one (or two) things)"\n（待写：一件事）\ndef f(write: int) -> None\n',
        "utf-8",
    )
    found = judge.left_to_write([page, tmp_path / "none.md"])
    assert [(one.line, one.message) for one in found] == [
        (2, "this is still to be written: one (or two) things"),
        (3, "this is still to be written: 一件事"),
    ]
