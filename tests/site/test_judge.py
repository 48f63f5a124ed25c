"""The rules for pages together: of a chapter, and of the whole book, which is held to them."""

from pathlib import Path

import pytest

from cudatut import catalog, paths
from cudatut.catalog import ChapterFiles
from cudatut.finding import Finding
from cudatut.rules import examples, exercises
from cudatut.site import (
    conditions,
    contents,
    exercise_fence,
    headings,
    judge,
    lint,
    overlaid,
    parity,
    terms,
    whole,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
CHAPTER = "basics/coalescing"
RULES = [
    (lint, "lint_files"),
    (lint, "lint_words"),
    (terms, "findings"),
    (terms, "unintroduced"),
    (parity, "findings"),
    (conditions, "findings"),
    (headings, "findings"),
    (whole, "findings"),
    (exercise_fence, "findings"),
    # and of a chapter's examples
    (examples, "of_example"),
    (examples, "of_kernel_file"),
    (exercises, "of_chapter"),
    (exercises, "of_notebook"),
    (overlaid, "stale"),
    (judge, "left_to_write"),
]
OF_PAGES = 9


def test_the_book():
    """All pages and the words besides, terms and headings, both languages, and that each chapter is whole."""
    found = judge.of_book(DOCS)
    assert not found, "\n".join(map(str, found))


def test_it_sees_what_each_rule_finds(monkeypatch):
    """Of every rule at least one fault of the book is told, and of a chapter its own alone."""
    for number, (module, name) in enumerate(RULES):
        one = Finding(f"docs/en/{CHAPTER}.md", 1, f"fault {number}")
        monkeypatch.setattr(module, name, lambda *_, one=one, **__: [one])
    said = {one.message for one in judge.of_book(DOCS)}
    assert said == {f"fault {number}" for number in range(OF_PAGES)}
    said = {one.message for one in judge.of_chapter(CHAPTER, DOCS)}
    # The words besides are told where they stand, which this page is not.
    assert said == {
        f"fault {number}" for number, (_, rule) in enumerate(RULES) if rule != "lint_words"
    }


def test_words_besides_are_told_where_they_are_the_chapters_own(monkeypatch):
    """Its labels, its Chinese comments, its exercises, its Chinese page."""
    for module, name in RULES:
        monkeypatch.setattr(module, name, lambda *_, **__: [])
    files = ChapterFiles(CHAPTER)
    own = [files.labels, files.overlay, files.script(catalog.EXERCISES), files.page("zh")]
    other = [files.page("en"), files.script(), ChapterFiles("start/errors").labels]
    found = [Finding(paths.shown(path), 3, "x") for path in (*own, *other)]
    monkeypatch.setattr(lint, "lint_words", lambda root: found)
    assert judge.of_chapter(CHAPTER, DOCS) == found[: len(own)]


@pytest.mark.parametrize(
    ("text", "is_module"),
    [
        ('"""What examples share."""\n\nx = 1  # %% no cell\n', True),
        ("# ---\n# jupyter:\n# ---\n", False),
        ("# %% setup\nx = 1\n", False),
        ("import os\n# %% setup\n", False),
    ],
)
def test_a_script_without_header_and_cells_is_shared(tmp_path, monkeypatch, text, is_module):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))
    files = ChapterFiles("start/x")
    for path in (files.script(), files.folder / "shared.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    assert judge._is_module(files.folder / "shared.py", files) is is_module
    assert not judge._is_module(files.script(), files)


@pytest.mark.parametrize("name", ["start/first_kernel", "tensor/cutlass"])
def test_a_chapter_of_the_book(name):
    """One of the part with rules of its own; and one that has no script of its own name."""
    assert judge.of_chapter(name, DOCS) == []


def test_a_chapter_that_is_not_there():
    with pytest.raises(contents.ContentsError, match=r"Did you mean basics/coalescing\?"):
        judge.of_chapter("basics/coalesing", DOCS)


def test_one_that_is_planned_has_nothing_yet():
    found = list(map(str, judge.of_chapter("beyond/scan", DOCS)))
    assert [line.partition(": ")[0] for line in found] == [
        "docs/en/beyond/scan.md",
        "docs/zh/beyond/scan.md",
        *(f"examples/beyond/scan/{file}.py" for file in ("chapter", "exercises", "solutions")),
    ]
    assert all("write" in line for line in found)


def test_what_is_still_to_be_written(tmp_path):
    page = tmp_path / "x.md"
    page.write_text(
        'a\n"(to write: one (or two) things)"\n（待写：一件事）\ndef f(write: int) -> None\n'
        "(to write: an end\n（待写：甲）(to write: b)\n",
        "utf-8",
    )
    found = judge.left_to_write([page, tmp_path / "none.md"])
    assert [(one.line, one.message) for one in found] == [
        (2, "this is still to be written: one (or two) things"),
        (3, "this is still to be written: 一件事"),
        (5, "this is still to be written: an end"),
        (6, "this is still to be written: b"),
    ]
