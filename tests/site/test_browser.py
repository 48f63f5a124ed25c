"""The built site in headless Chromium: what a reader does, in both languages. test_every_page.py looks at all pages."""

import json
import re
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LANGS = {"en": "", "zh": "zh/"}
CHAPTERS = [
    f"{part['id']}/{chapter['id']}"
    for part in yaml.safe_load((DOCS / "contents.yml").read_text(encoding="utf-8"))["parts"]
    for chapter in part["chapters"]
    if chapter["written"] is True  # not "draft"
]


# --- language --------------------------------------------------------------------------------------


def switch(page):
    with page.expect_navigation():
        page.click(".ct-language")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_language_switch_keeps_the_page(open_page, site_url, chapter):
    page = open_page(f"{chapter}/")
    ids = page.evaluate(HEADING_IDS)
    switch(page)
    assert page.url == f"{site_url}zh/{chapter}/"
    assert page.get_attribute("html", "lang").startswith("zh")
    assert page.evaluate(HEADING_IDS) == ids
    switch(page)
    assert page.url == f"{site_url}{chapter}/"
    assert page.get_attribute("html", "lang") == "en"


HEADING_IDS = "[...document.querySelectorAll('article :is(h1, h2, h3)[id]')].map((h) => h.id)"


@pytest.mark.parametrize("path", ["", "glossary/", "api/", "examples/"])
def test_the_language_switch_keeps_other_pages(open_page, site_url, path):
    page = open_page(path)
    switch(page)
    assert page.url == f"{site_url}zh/{path}"


# --- search ----------------------------------------------------------------------------------------


def search(page, words):
    """Type `words` into the search; return the paths of the pages it finds."""
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.wait_for_selector(".md-search-result__link", timeout=15_000)
    links = page.eval_on_selector_all(".md-search-result__link", "all => all.map((a) => a.href)")
    return [urlsplit(link).path for link in links]


def chinese_sentences(chapter):
    """Runs of Chinese characters in a chapter's prose, without fences."""
    text = (DOCS / "zh" / f"{chapter}.md").read_text(encoding="utf-8")
    return re.findall(r"[\u4e00-\u9fff]+", re.sub(r"(?ms)^ *````?.*?^ *````?$", "", text))


@pytest.mark.parametrize(
    ("word", "chapter"), [("瓶颈", "start/your_gpu"), ("编号", "start/which_thread")]
)
def test_search_finds_a_chinese_word_inside_a_sentence(open_page, word, chapter):
    """Chinese has no spaces: the word is found only where the index has cut the sentence into words."""
    inside = [s for s in chinese_sentences(chapter) if word in s[2:-2] and len(s) >= len(word) + 4]
    assert inside, (
        f"docs/zh/{chapter}.md no longer has {word} inside a sentence: choose another word"
    )
    page = open_page("zh/")
    assert f"/zh/{chapter}/" in search(page, word)
    shown = page.inner_text(".md-search-result__list")
    assert word in re.sub(r"\s", "", shown)


@pytest.mark.parametrize(
    ("words", "chapter"),
    [
        ("sticky", "start/errors"),
        ("threadIdx", "start/which_thread"),
        ("warp", "start/which_thread"),
    ],
)
def test_search_finds_an_english_word(open_page, words, chapter):
    assert f"/{chapter}/" in search(open_page(), words)


def test_search_says_when_it_finds_nothing(open_page):
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("zyzzogeton")
    page.wait_for_function(
        "document.querySelector('.md-search-result__meta').innerText.includes('No match')"
    )


def test_a_search_result_opens_the_page_with_the_word_marked(open_page):
    page = open_page()
    search(page, "asynchronous")
    page.goto(
        page.locator(".md-search-result__link[href*='h=asynchronous']").first.evaluate(
            "a => a.href"
        )
    )
    page.wait_for_selector("article mark[data-md-highlight]", state="attached", timeout=15_000)


def test_the_search_index_waits_for_the_reader(open_page):
    page = open_page()
    page.wait_for_load_state("networkidle")
    loaded = "performance.getEntriesByType('resource').map((e) => e.name)"
    assert not [url for url in page.evaluate(loaded) if "search" in url]
    search(page, "warp")
    assert [url for url in page.evaluate(loaded) if "search_index.json" in url]


# --- copying ---------------------------------------------------------------------------------------


def region(source, name):
    """Lines between `// --8<-- [start:name]` and its end in a file of examples/, without other marks."""
    text = (ROOT / "examples" / source).read_text(encoding="utf-8")
    if name:
        text = re.search(
            rf"^[^\n]*\[start:{re.escape(name)}\][^\n]*\n(.*?)^[^\n]*\[end:{re.escape(name)}\]",
            text,
            re.S | re.M,
        )[1]
    kept = [line for line in text.splitlines() if "--8<--" not in line]
    return textwrap.dedent("\n".join(kept)).strip("\n")


def kernels():
    """(chapter, what is included) of every ```cuda fence that shows regions of .cu files."""
    found = []
    for chapter in CHAPTERS:
        text = (DOCS / "en" / f"{chapter}.md").read_text(encoding="utf-8")
        for body in re.findall(r"(?ms)^```cuda[^\n]*\n(.*?)^```$", text):
            parts = re.findall(r'--8<-- "([^":]+)(?::([^"]+))?"', body)
            if parts and body.count("\n") == len(parts):
                found.append((chapter, "\n".join(region(*part) for part in parts)))
    return found


def copied(page, block):
    """What the clipboard holds after the copy button of `block` was pressed."""
    page.evaluate("navigator.clipboard.writeText('')")
    block.scroll_into_view_if_needed()
    block.locator("[data-md-type=copy], .md-clipboard").first.click()
    page.wait_for_function("navigator.clipboard.readText().then((t) => t.length > 0)")
    return page.evaluate("navigator.clipboard.readText()").replace("\r\n", "\n")


CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}


def test_there_are_kernels_to_copy():
    assert len(kernels()) >= 4


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("chapter", sorted({chapter for chapter, _ in kernels()}))
def test_the_copy_button_copies_the_kernel(open_page, chapter, lang):
    page = open_page(f"{LANGS[lang]}{chapter}/", **CLIPBOARD)
    shown = page.eval_on_selector_all(
        "article .highlight", "all => all.map((e) => e.querySelector('code').textContent.trimEnd())"
    )
    for kernel in (kernel for where, kernel in kernels() if where == chapter):
        assert kernel in shown, f"no block of the page is\n{kernel}"
        block = page.locator("article .highlight").nth(shown.index(kernel))
        assert copied(page, block).rstrip("\n") == kernel


def test_the_copy_button_copies_an_executed_cell(open_page):
    """Without the name of the file above it and the output below it."""
    page = open_page("start/first_kernel/", **CLIPBOARD)
    notebook = json.loads((ROOT / "examples/start/first_kernel.ipynb").read_text(encoding="utf-8"))
    sources = ["".join(c["source"]).strip() for c in notebook["cells"] if c["cell_type"] == "code"]
    block = page.locator(".ct-cell .highlight").first
    assert copied(page, block).strip() in sources


# --- keyboard and paper ------------------------------------------------------------------------------


def test_what_has_the_focus_shows_it(open_page):
    page = open_page("start/first_optimization/")
    unseen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        unseen.append(
            page.evaluate("""() => {
              const e = document.activeElement, c = getComputedStyle(e)
              if (e === document.body || e.matches('input')) return null
              const shown = c.outlineStyle !== 'none' && parseFloat(c.outlineWidth) > 0
              return shown || !e.checkVisibility({visibilityProperty: true}) ? null : e.outerHTML.slice(0, 120)
            }""")
        )
    assert not [found for found in unseen if found]


def test_boxes_that_scroll_can_be_reached_with_the_keyboard(open_page):
    page = open_page("start/first_optimization/", width=390)
    unreachable = page.evaluate("""[...document.querySelectorAll('.ct-scroll, pre.ct-output')]
      .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth && e.tabIndex < 0).length""")
    assert unreachable == 0


def test_escape_closes_the_search(open_page):
    page = open_page()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.matches('.md-search__input')")
    page.keyboard.press("Escape")
    assert not page.evaluate("document.activeElement.matches('.md-search__input')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_gets_the_chapter_and_nothing_around_it(open_page, contrast, scheme):
    page = open_page("start/first_optimization/", scheme=scheme)
    page.emulate_media(media="print")
    for selector in (".md-header", ".md-sidebar", ".md-footer", ".md-code__nav", ".md-clipboard"):
        for element in page.locator(selector).all():
            assert not element.is_visible(), selector
    style = page.evaluate("""() => {
      const css = (s) => getComputedStyle(document.querySelector(s))
      return {ink: css('article p').color, ground: css('body').backgroundColor, wrap: css('pre > code').whiteSpace,
        link: getComputedStyle(document.querySelector('article a[href^="http"]'), '::after').content}
    }""")
    assert style["ink"] == "rgb(0, 0, 0)"
    assert style["ground"] in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert style["wrap"] in ("pre-wrap", "break-spaces")
    assert "http" in style["link"]
    assert page.evaluate(contrast, True)["found"] == []
    # What is folded on the screen is open on paper: solutions, numbers, the birth certificate.
    closed = page.evaluate("""[...document.querySelectorAll('article details:not([open])')]
      .filter((d) => ![...d.children].slice(1).some((e) => e.getBoundingClientRect().height > 0)).length""")
    assert closed == 0


def test_a_page_that_is_none_answers_in_both_languages(open_page, site_url):
    page = open_page("start/no_such_chapter/")
    text = page.inner_text("article, .md-content")
    assert "does not exist" in text
    assert "没有这个页面" in text
    links = page.eval_on_selector_all(".md-content a[href]", "all => all.map((a) => a.href)")
    assert {site_url, f"{site_url}zh/"} <= set(links)
    assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith('"Source Sans 3"')
