"""How many of 115 ways to type a measurement the lint finds, each in a small book of its own."""

from pathlib import Path

import pytest
import yaml

from cudatut.site import lint, measurements

PHRASINGS = [
    (family, place, text)
    for family, entries in yaml.safe_load(
        Path(__file__).with_name("typed_phrasings.yml").read_text("utf-8")
    ).items()
    for entry in entries
    for place, text in entry.items()
]

_EXERCISES = """# ---
# jupyter:
#   cudatut:
#     exercises:
#       1:
#         title: {{en: "One", zh: "一"}}
#         task: {{en: {0}, zh: {0}}}
# ---
"""


def book(root: Path, place: str, text: str) -> None:
    """A book below `root` with `text` in one place, and nothing measured elsewhere."""

    def said(here: str) -> str:
        return yaml.safe_dump(text if here == place else "x", allow_unicode=True, width=10**6)[
            :-1
        ].removesuffix("\n...")

    both = "{{en: {0}, zh: {0}}}".format
    files = {
        "docs/en/start/page.md": f"# Top {{ #top }}\n\n{text if place == 'page' else 'x'}\n",
        "docs/contents.yml": (
            f"parts: [{{id: start, title: {both('x')}, level: {both('x')}, about: {both(said('contents'))}, "
            f"chapters: [{{id: page, title: {both('x')}, written: true}}]}}]"
        ),
        "docs/glossary.yml": f"- {{id: x, en: x, zh: x, means: {both(said('glossary'))}}}\n",
        "docs/labels/start_page.yml": f"pattern: {said('label')}\n",
        "examples/start/page_exercises.py": _EXERCISES.format(said("task")),
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")


def found(root: Path) -> list:
    return [*lint.lint_files(lint.pages(root / "docs"), root), *lint.lint_words(root)]


def test_at_least_105_of_115_are_found(tmp_path):
    assert len(PHRASINGS) == 115
    missed = []
    for number, (family, place, text) in enumerate(PHRASINGS):
        book(tmp_path / str(number), place, text)
        if not found(tmp_path / str(number)):
            missed.append(f"{family}, {place}: {text}")
    assert len(missed) <= 10, f"{len(missed)} missed:\n" + "\n".join(missed)


def test_what_was_found_of_thirty_fresh_ones_still_is(tmp_path):
    """Whoever wrote them had not read the lint: 24 of 30 is what it found."""
    text = Path(__file__).with_name("typed_phrasings_later.yml").read_text("utf-8")
    later = yaml.safe_load(text)
    assert (len(later["found"]), len(later["missed"])) == (24, 6)
    for number, entry in enumerate(later["found"]):
        book(tmp_path / str(number), "page", entry["page"])
        assert found(tmp_path / str(number)), entry["page"]


@pytest.mark.parametrize("place", ["page", "contents", "glossary", "task", "label"])
def test_the_book_around_a_phrasing_is_clean(tmp_path, place):
    book(tmp_path, place, "A kernel runs on the GPU.")
    assert found(tmp_path) == []


@pytest.mark.parametrize("text", ["It takes twice as long.", "It takes half as long."])
def test_a_number_word_is_enough(text):
    """No digit, no unit, no other word of the list stands in the sentence."""
    assert list(measurements.found(text)) == [text.removeprefix("It takes ").rstrip(".")]
