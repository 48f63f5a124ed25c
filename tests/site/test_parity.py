"""English and Chinese are one book: same pages, heading ids and directives; only the prose differs."""

import re
from pathlib import Path

import pytest
import yaml

from cudatut import exercises
from cudatut.site import contents, lint, references

ROOT = Path(__file__).resolve().parents[2]
DOCS = {lang: ROOT / "docs" / lang for lang in ("en", "zh")}
PAGES = {
    lang: {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    for lang, root in DOCS.items()
}
BOTH = sorted(name for name in PAGES["en"] & PAGES["zh"] if name.endswith(".md"))


def read(lang, name):
    return (DOCS[lang] / name).read_text(encoding="utf-8")


_QUOTE = re.compile(r'quote "(.*?)" from .*')


def _digits(match):
    return "quote " + " ".join(re.findall(r"[\d.]+", match[1]))


def directives(markdown):
    """Fences, whole where they are executed or quote code, boxes, and references, in page order.

    References inside one paragraph may come in another order: languages order a sentence differently.
    Of a quoted number only the digits count: unit and source are prose. A given one is prose altogether: each
    language may say it in words, or in another place.
    """
    found, numbers = [], []
    for _, line, kind, info in references.scan(markdown):
        text = line.strip()
        if kind == "prose":
            prose = re.sub(r"`[^`]*`", "", line)
            for match in references.FIELD.finditer(prose):
                number = " ".join(match[1].split())
                if number.startswith("given "):
                    continue
                numbers.append(("number", _QUOTE.sub(_digits, number)))
            box = re.match(r"(\?\?\?\+?|!!!)\s+(\w+(?: \w+)*)|===", text)
            if box:
                found.append(("box", box[1], box[2]))
            if text:
                continue
        found += sorted(numbers)
        numbers = []
        if kind == "open":
            found.append(("fence", info))
        elif kind == "code" and (
            info.startswith(("example", "exercise")) or "exec=" in info or "8<" in text
        ):
            found.append((info, text))
    return found + sorted(numbers)


def heading_ids(markdown):
    return [name for _, _, name in lint.headings(markdown)]


def test_same_pages():
    assert PAGES["en"] == PAGES["zh"]


@pytest.mark.parametrize("name", BOTH)
def test_same_headings(name):
    ids = {lang: heading_ids(read(lang, name)) for lang in DOCS}
    assert "" not in ids["en"]
    assert ids["en"] == ids["zh"]


@pytest.mark.parametrize("name", BOTH)
def test_same_directives(name):
    assert directives(read("en", name)) == directives(read("zh", name))


def addresses(markdown):
    """Pages elsewhere that a page links to."""
    return sorted(re.findall(r"\]\((https?://[^)\s]+)\)", markdown))


@pytest.mark.parametrize("name", BOTH)
def test_same_addresses(name):
    """A source that was corrected in one language is the old one in the other."""
    assert addresses(read("en", name)) == addresses(read("zh", name))


def test_addresses_sees_another_tag():
    page = "- a, tag [v1](https://a.org/tree/v1) and [b](b.md)."
    assert addresses(page) == ["https://a.org/tree/v1"] != addresses(page.replace("v1", "v2"))


@pytest.mark.parametrize("name", BOTH)
def test_both_have_title_and_description(name):
    for lang in DOCS:
        lines = references.scan(read(lang, name))
        front = [line for _, line, kind, _ in lines if kind == "front"]
        for key in ("title", "description"):
            assert any(re.match(rf"{key}: \S", line) for line in front), (lang, key)


@pytest.mark.parametrize("name", BOTH)
def test_chinese_is_chinese(name):
    prose = "".join(
        line
        for _, line, in_code in references.lines(read("zh", name))
        if not in_code and not line.startswith(":::") and "options:" not in line
    )
    assert len(re.findall(r"[\u4e00-\u9fff]", prose)) > 0.15 * len(prose)


CHAPTERS = [name for name in BOTH if "/" in name]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_is_whole(name):
    """A figure, an executed cell, a settled misconception, two exercises that can be begun from the page."""
    text = read("en", name)
    ids = heading_ids(text)
    wanted = ["goals", "problem", "predict", "misconception", "exercises", "summary", "sources"]
    assert [name for name in ids if name in wanted] == wanted
    found = directives(text)
    assert any(item[0].startswith('python exec="on"') for item in found if len(item) == 2)
    stem = name.removesuffix(".md")
    shown = [item[1] for item in found if item[0].split(" ")[0] == "example"]
    # Of the example of its name, or of one that goes on from it: a module `cutlass` would hide the package.
    own = re.compile(rf"{stem}(_(?!solutions#|exercises#|claims#)\w+)?#")
    assert any(own.match(cell) for cell in shown)
    begun = [item[1] for item in found if item[0] == "exercise"]
    assert len(begun) >= 2
    assert begun == [f"{stem} {number}" for number in range(1, len(begun) + 1)]
    assert {f"exercise-{number}" for number in range(1, len(begun) + 1)} <= set(ids)
    # All that its file has are on the page.
    assert [exercise.name for exercise in exercises.of_chapter(stem)] == begun


def test_directives_sees_differences():
    page = "# T { #t }\n\nA {{ a/b#c.d }} and {{ e/f#g.h }}.\n\n```example\na/b#c\n```\n"
    other = page.replace("A {{ a/b#c.d }} and {{ e/f#g.h }}", "{{ e/f#g.h }} 与 {{ a/b#c.d }}")
    assert directives(page) == directives(other)
    for changed in (
        page.replace("a/b#c\n", "a/b#d\n"),
        page.replace("c.d }}", "c.e }}"),
        page.replace("```example", '```example source="none"'),
        page + '\n```cuda\n--8<-- "x.cu:y"\n```\n',
        page + "\n??? success\n",
    ):
        assert directives(changed) != directives(page)


def test_a_page_has_the_title_by_which_the_table_of_contents_calls_it_and_no_other_page_has():
    """In `title:`, which becomes <title> and what a preview of a link shows, and in its heading, which the search shows."""
    chapters = {
        one.page: one for one in contents.chapters(contents.load(ROOT / "docs/contents.yml"))
    }
    for lang in DOCS:
        titles = {}
        for name in BOTH:
            if name in chapters and not chapters[name].written:
                continue
            markdown = read(lang, name)
            title = yaml.safe_load(markdown.split("---\n")[1])["title"]
            heading = re.search(r"(?m)^# (.*?) \{", markdown)
            titles.setdefault(title, []).append(name)
            if name in chapters:
                assert title == heading[1] == chapters[name].title[lang], f"docs/{lang}/{name}"
        assert len(titles) > 50
        assert not {title: names for title, names in titles.items() if len(names) > 1}
