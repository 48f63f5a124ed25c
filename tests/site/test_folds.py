"""Addresses of folds. test_browser.py opens them."""

import re

import pytest

from cudatut.site.folds import addressed, outermost

PAGE = (
    '<h1 id="top">T</h1><details class="note"><summary>x</summary><p>a</p></details>'
    '<h2 id="run">R</h2><details class="example" open="open">\n<summary>Output</summary>b'
    '<details class="ct-numbers"><summary>c</summary></details></details>'
    '<details class="note inline"><summary>d <b>e</b></summary></details>'
    '<details class="note"><summary>f</summary></details>'
    '<h3 id="try">T</h3><details class="success"><summary>g</summary></details>'
    "<details><summary>h</summary></details>"
)
IDS = [
    "top-deeper",
    "run-output",
    "run-numbers",
    "run-deeper",
    "run-deeper-2",
    "try-answer",
    "try-fold",
]


def ids(html):
    return re.findall(r'<details[^>]*>\s*<summary id="([^"]+)"', html)


def test_a_fold_is_known_by_its_section_by_what_it_holds_and_by_its_number():
    assert ids(addressed(PAGE, "en")) == IDS
    # The id of a fold around code would be that of each of its blocks, to Material's copy buttons.
    assert "<details id" not in addressed(PAGE, "en")


def test_nothing_else_of_a_page_changes():
    html = re.sub(r' id="\w+-[\w-]+"|<a class="headerlink".*?</a>', "", addressed(PAGE, "en"))
    assert html == PAGE


def test_folds_that_stand_in_no_other_one():
    html = "</details>a<details>b<details class='x'>c</details></details>d<details>e</details><details>"
    found = [html[begin.start() : end.end()] for begin, end in outermost(html)]
    assert found == ["<details>b<details class='x'>c</details></details>", "<details>e</details>"]


def test_the_address_is_the_same_whatever_the_language_and_the_title():
    other = re.sub(r"<summary>[^<]*", "<summary>输出", PAGE)
    assert ids(addressed(other, "zh")) == IDS


def test_what_other_sections_hold_does_not_change_it():
    more = PAGE.replace(
        '<h2 id="run"', 2 * '<details class="note"><summary>x</summary></details>' + '<h2 id="run"'
    )
    assert ids(addressed(more, "en"))[3:] == IDS[1:]


@pytest.mark.parametrize(("lang", "words"), [("en", "Link to this fold"), ("zh", "此折叠栏的链接")])
def test_a_fold_of_the_author_links_to_itself(lang, words):
    html = addressed(PAGE, lang)
    links = re.findall(
        r'<a class="headerlink" href="#([\w-]+)" title="([^"]+)">&para;</a></summary>', html
    )
    assert links == [(one, words) for one in IDS if one != "run-numbers"]


def test_the_cells_of_an_example_are_sections():
    page = '<div class="ct-cell" id="cell-id=check"><details class="ct-numbers"><summary>x</summary></details></div>'
    assert ids(addressed(page, "en")) == ["check-numbers"]


def test_every_fold_of_the_book_has_an_address_the_same_in_both_languages(built_site):
    looked_at = 0
    for page in sorted(built_site.rglob("index.html")):
        name = page.relative_to(built_site)
        other = built_site / "zh" / name
        if name.parts[0] == "zh" or not other.exists():
            continue
        html, chinese = (
            path.read_text("utf-8").partition("<article")[2].partition("</article>")[0]
            for path in (page, other)
        )
        found = ids(html)
        assert len(found) == html.count("<details"), name
        assert found == ids(chinese), name
        looked_at += len(found)
    assert looked_at > 1000
