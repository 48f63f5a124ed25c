"""English and Chinese are one book: same pages, heading ids and directives; only the prose differs."""

import re
from pathlib import Path

import pytest
import yaml

from cudatut.site import contents, parity, whole

ROOT = Path(__file__).resolve().parents[2]
DOCS = {lang: ROOT / "docs" / lang for lang in ("en", "zh")}
PAGES = {
    lang: {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    for lang, root in DOCS.items()
}
BOTH = sorted(name for name in PAGES["en"] & PAGES["zh"] if name.endswith(".md"))
CHAPTERS = {one.page: one for one in contents.chapters(contents.load(ROOT / "docs/contents.yml"))}


def read(lang, name):
    return (DOCS[lang] / name).read_text(encoding="utf-8")


def test_same_pages():
    assert PAGES["en"] == PAGES["zh"]


OTHERS = [name for name in BOTH if name not in CHAPTERS or not CHAPTERS[name].written]


@pytest.mark.parametrize("name", OTHERS)
def test_the_two_pages_are_one(name):
    """Those of no chapter, and of chapters in progress; test_judge.py has the others."""
    found = parity.findings(name, ROOT / "docs")
    assert not found, "\n".join(map(str, found))


# --- faults ----------------------------------------------------------------------------------------

PAGE = """---
title: {title}
description: {words}
---

# {title} {{ #top }}

{words}, {{{{ a/b#c.d }}}}, [source](https://a.org/tree/v1).

## {title} {{ #goals }}

```python exec="on"
print(1)
```

??? example "{title}"

    {words}

```example
a/b#program
```

```exercise
a/b 1
```
"""


def two(folder, change=lambda page: page, lang="zh"):
    """Findings of two pages that fit, one of them changed."""
    words = {"en": ("Title", "Words"), "zh": ("标题", "文字文字文字文字文字文字文字文字")}
    for one, (title, said) in words.items():
        page = PAGE.format(title=title, words=said)
        (folder / one / "a").mkdir(parents=True, exist_ok=True)
        (folder / one / "a/b.md").write_text(change(page) if one == lang else page, "utf-8")
    return list(map(str, parity.findings("a/b.md", folder)))


def swap(old, new):
    def change(page):
        assert old in page
        return page.replace(old, new)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (swap("#goals", "#aims"), "docs/zh/a/b.md:10: the heading here is 'aims', and line 10 of docs/en/a/b.md has 'goals'"),
        (swap("## 标题 { #goals }", ""), "docs/zh/a/b.md: the heading 'goals' of line 10 of docs/en/a/b.md is missing here"),
        (lambda page: page + "\n## 更多 { #more }\n", "docs/zh/a/b.md:28: the heading here is 'more', and docs/en/a/b.md has none"),
        (swap("a/b#program", "a/b#check"), "docs/zh/a/b.md:21: the directive here is 'example a/b#check', and line 21"),
        (swap('```python exec="on"', "```python"), "docs/zh/a/b.md:12: the directive here is 'fence python'"),
        (swap("???", "!!!"), "docs/zh/a/b.md:16: the directive here is 'box !!! example'"),
        (swap("a/b#c.d", "a/b#c.e"), "docs/zh/a/b.md:8: the directive here is 'number a/b#c.e'"),
        (swap("tree/v1", "tree/v2"), "docs/zh/a/b.md: it has no link to https://a.org/tree/v1, which docs/en/a/b.md has"),
        (swap("description", "about"), "docs/zh/a/b.md:1: the front matter has no 'description: ...'"),
        (swap("文字", "words "), "docs/zh/a/b.md: its prose is not Chinese"),
    ],
)  # fmt: skip
def test_a_difference_is_found_with_its_place_and_the_cure(tmp_path, change, said):
    assert two(tmp_path) == []
    found = two(tmp_path, change)
    assert any(one.startswith(said) for one in found), found
    assert all(re.search(r": (give both|write it)|, which docs", one) for one in found)


def test_a_page_in_one_language_alone(tmp_path):
    two(tmp_path)
    (tmp_path / "zh/a/b.md").unlink()
    (found,) = parity.findings("a/b.md", tmp_path)
    assert str(found).startswith("docs/zh/a/b.md: this page is not there")


def directives(markdown):
    return [item for _, item in parity.directives(markdown)]


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


def test_of_what_is_told_the_digits_of_a_quote_count_and_nothing_of_a_given():
    page = '{{ quote "570.5 ms" from "Book 3" }}\n\n{{  given "two" as "goal" }} `{{ a/b#c.d }}`\n'
    assert parity.directives(page) == [(1, ("number", "quote 570.5"))]
    assert directives('{{ quote "570.5 毫秒" from "第四本" }}') == directives(page)
    assert directives('{{ quote "571 ms" from "Book 3" }}') != directives(page)


def test_directives_have_their_lines_and_numbers_are_sorted_within_a_paragraph():
    page = "{{ b }}\n??? note deferred\n{{ a }}\n\n{{ 0 }}\n```exercise once\na/b 1\n```\n=== x\n!!! tip\n"
    assert parity.directives(page) == [
        (2, ("box", "???", "note deferred")),
        (3, ("number", "a")),
        (1, ("number", "b")),
        (5, ("number", "0")),
        (6, ("fence", "exercise once")),
        (7, ("exercise once", "a/b 1")),
        (9, ("box", None, None)),
        (10, ("box", "!!!", "tip")),
    ]


@pytest.mark.parametrize(
    "others", ["", "```\ncode\n```\n", "::: cudatut.bench\n", "    options: x\n"]
)
def test_a_chinese_page_has_more_than_15_chinese_characters_of_100(others):
    assert parity.is_chinese("字" * 16 + "x" * 84 + "\n" + others)
    assert not parity.is_chinese("字" * 15 + "x" * 85 + "\n" + others)


def test_a_link_is_given_as_often_in_both(tmp_path):
    once = "[source](https://a.org/tree/v1)"
    for lang, lacks in (("en", "zh"), ("zh", "en")):
        found = two(tmp_path, swap(once, f"{once} {once}"), lang)
        said = f"it has no link to https://a.org/tree/v1, which docs/{lang}/a/b.md has"
        assert [one.partition(":")[0] for one in found if said in one] == [f"docs/{lacks}/a/b.md"]


COALESCING = CHAPTERS["basics/coalescing.md"]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('exec="on"', "", 0, "there is no figure: draw one in docs/figures/basics/coalescing.py"),
        ("basics/coalescing#", "basics/timing#", 0, "no cell of examples/basics/coalescing/chapter.py is shown"),
        ("```exercise\nbasics/coalescing 2\n```", "", 0, "at least two exercises, and this page begins 1"),
        ("```exercise\nbasics/coalescing 2\n```", "", 0, "it does not show basics/coalescing 2"),
        ("basics/coalescing 2", "basics/coalescing 3", 0, "number them from 'basics/coalescing 1' on"),
        ("#exercise-2", "#second", 0, "no heading has the id of exercise 2"),
        ("title: Coalesced access", "title: Access", 2, "calls this chapter 'Coalesced access', and the front matter 'Access'"),
        ("# Coalesced access {", "# Access {", 6, "calls this chapter 'Coalesced access', and this heading 'Access'"),
        ("# Coalesced access {", "Coalesced access {", 0, "the page has no heading of its own"),
    ],
)  # fmt: skip
def test_what_a_chapter_lacks_is_found(old, new, line, said):
    page = read("en", "basics/coalescing.md")
    assert old in page
    found = whole.findings(page.replace(old, new), "x.md", "en", COALESCING)
    assert any(said in one.message and one.line == line for one in found), found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda page: page.replace("{ #try }", "{ #play }"), "no section with the id 'try'"),
        (lambda page: re.sub(r"(?s)(\{ #try \}\n).*?(?=^## )", r"\1\n1. One\n\n", page, flags=re.M), "there are two tasks"),
        (lambda page: page.replace('??? success "', '??? note "'), "no task to try has its answer"),
    ],
)  # fmt: skip
def test_start_has_two_tasks_to_try(change, said):
    chapter = CHAPTERS["start/first_kernel.md"]
    page = read("en", chapter.page)
    assert not whole.findings(page, "x.md", "en", chapter)
    found = whole.findings(change(page), "x.md", "en", chapter)
    assert any(said in one.message for one in found), found


def test_no_two_pages_have_one_title():
    for lang in DOCS:
        titles = {}
        for name in BOTH:
            if name in CHAPTERS and not CHAPTERS[name].written:
                continue
            title = yaml.safe_load(read(lang, name).split("---\n")[1])["title"]
            titles.setdefault(title, []).append(name)
        assert len(titles) > 50
        assert not {title: names for title, names in titles.items() if len(names) > 1}
