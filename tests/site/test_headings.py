"""The sections of a chapter: what is told of other words, of another order, and of one that is missing."""

from pathlib import Path

import pytest

from cudatut.site import headings

AT = {"en": 0, "zh": 1}


def page(*names, lang="en", **changes):
    """A chapter's page with these sections, each on two lines; changes: by section other words."""
    words = {name: both[AT[lang]] for name, both in headings.SECTIONS.items()} | changes
    return "".join(f"## {words.get(name, name)} {{ #{name} }}\n\n" for name in names)


def told(markdown, lang="en"):
    return [str(one) for one in headings.findings(markdown, "x.md", lang)]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_chapter_with_all_sections_and_one_with_those_that_it_needs(lang):
    assert told(page(*headings.SECTIONS, lang=lang), lang) == []
    assert told(page(*headings.REQUIRED, "more", lang=lang), lang) == []
    other = {"en": "zh", "zh": "en"}[lang]
    found = told(page(*headings.REQUIRED, lang=other), lang)
    assert len(found) == len(headings.REQUIRED)
    words = headings.SECTIONS["goals"][AT[lang]]
    assert found[0] == f"x.md:1: the section 'goals' is called '{words}': write that"


def test_other_words_are_told_with_their_line():
    found = told(page(*headings.REQUIRED, problem="A problem"))
    assert found == ["x.md:3: the section 'problem' is called 'The problem': write that"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        # A prediction may need the kernel, or come before it.
        (("goals", "problem", "predict", "kernel", "program", "misconception"), []),
        (("goals", "problem", "program", "kernel", "predict", "misconception"), []),
        (("goals", "goals", "problem", "predict", "misconception"), []),  # of which the lint tells
        (
            ("problem", "goals", "predict", "misconception"),
            ["x.md:3: the section 'goals' stands before 'problem': move it up"],
        ),
        (
            ("goals", "problem", "run", "kernel", "predict", "misconception"),
            [
                "x.md:7: the section 'kernel' stands before 'run': move it up",
                # of the kernel it is free, and what stood before that is not
                "x.md:9: the section 'predict' stands before 'run': move it up",
            ],
        ),
    ],
)
def test_sections_stand_in_one_order(names, said):
    assert told(page(*names, "exercises", "summary", "sources")) == said


def test_a_section_that_is_missing_or_stands_in_a_fold_or_in_code():
    whole = page(*headings.REQUIRED)
    missing = "x.md:1: there is no section '## Sources { #sources }': write it"
    alone = "## Sources { #sources }\n"
    assert told(whole.replace(alone, "")) == [missing]
    assert told(whole.replace(alone, f"??? note\n\n    {alone}")) == [missing]
    assert told(whole.replace(alone, f"```\n{alone}```\n")) == [missing]
    chinese = page(*headings.REQUIRED[:-1], lang="zh")
    assert told(chinese, "zh") == [
        "x.md:1: there is no section '## 参考资料 { #sources }': write it"
    ]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_chapter_of_the_book_has_all_of_them(lang):
    path = Path(__file__).resolve().parents[2] / "docs" / lang / "start/which_thread.md"
    markdown = path.read_text("utf-8")
    assert told(markdown, lang) == []
    for name in headings.SECTIONS:
        assert f"{{ #{name} }}" in markdown
