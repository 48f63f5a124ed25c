"""Every page of the built site in headless Chromium, each visited once: what it asks for, its width, its contrast, its links.

A visit does all that the tests below want to know of a page; a new question is one more key of a visit. The pages are
visited in two halves, which `make test` gives to two processes.
"""

import gzip
import json
import re
import textwrap
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = [
    f"{part['id']}/{chapter['id']}/"
    for part in yaml.safe_load((ROOT / "docs/contents.yml").read_text(encoding="utf-8"))["parts"]
    for chapter in part["chapters"]
    if chapter["written"] is True  # not "draft"
]
LANGS = {"en": "", "zh": "zh/"}
DESK = {"width": 1280, "height": 900}
NARROW = 320  # pixels: the narrowest telephones, and a desk's window at 400 %
SCHEMES = {"light": "default", "dark": "slate"}  # and how Material calls them
TELEPHONE = {"width": NARROW, "height": 640}
NONE = ("404.html", "zh/404.html")
OTHER_GPU = "/nvidia-h200/"


@pytest.fixture(scope="session")
def pages(built_site):
    """Path of every page below the site, but for those that lead elsewhere: "", "start/hello/", "zh/", ..."""
    found = sorted(
        p.parent.relative_to(built_site).as_posix()
        for p in built_site.rglob("index.html")
        if 'http-equiv="refresh"' not in p.read_text(encoding="utf-8")
    )
    return ["" if path == "." else f"{path}/" for path in found]


# Elements that reach past the right edge and that no scrolling box around them contains.
WIDE = """[...document.querySelectorAll('article *')].filter((e) => {
  if (e.getBoundingClientRect().right <= innerWidth + 1 || !e.checkVisibility()) return false
  for (let p = e.parentElement; p.closest('article'); p = p.parentElement) {
    const c = getComputedStyle(p)
    if (c.overflowX !== 'visible' && p.getBoundingClientRect().right <= innerWidth + 1) return false
  }
  return true
}).slice(0, 3).map((e) => e.outerHTML.slice(0, 120))"""


# Ids that stand on a page more than once.
DOUBLED = """(() => {
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id)
  return [...new Set(ids.filter((id, i) => ids.indexOf(id) !== i))]
})()"""
# Drawings without a text alternative.
MUTE = """[...document.querySelectorAll('.ct-svg')].filter((s) =>
  s.getAttribute('role') !== 'img' || !s.getAttribute('aria-label') || !s.querySelector('title')).length"""
# What is asked of a page in one go, so that it need not be drawn in between.
AT_THE_DESK = """() => {
  const seen = {ground: {}, figures: {}, words: {}}
  for (const [scheme, name] of Object.entries(SCHEMES).reverse()) {  // light stays
    document.body.dataset.mdColorScheme = name  // as Material does (test_browser.py)
    seen.ground[scheme] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)
    seen.figures[scheme] = CONTRAST(true)
    seen.words[scheme] = CONTRAST(false)
  }
  return seen
}"""
ON_THE_TELEPHONE = f"""() => ({{
  width: document.documentElement.scrollWidth, wide: {WIDE}, mute: {MUTE}, doubled: {DOUBLED},
}})"""
# What folds hold may lie on a page beside this one, and comes when they are opened.
OPENED = "document.querySelectorAll('details').forEach((d) => { d.open = true })"
ARRIVED = f"""() => {{
  {OPENED}
  return {{
    url: location.href.split('#')[0], lang: document.documentElement.lang, other: document.querySelector('.ct-language')?.href,
    headings: [...document.querySelectorAll('article :is(h1, h2, h3)[id]')].map((h) => h.id),
  }}
}}"""


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
        text = (ROOT / "docs/en" / f"{chapter[:-1]}.md").read_text(encoding="utf-8")
        for body in re.findall(r"(?ms)^```cuda[^\n]*\n(.*?)^```$", text):
            parts = re.findall(r'--8<-- "([^":]+)(?::([^"]+))?"', body)
            if parts and body.count("\n") == len(parts):
                found.append((chapter, "\n".join(region(*part) for part in parts)))
    return found


KERNELS = kernels()


class Visitor:
    """One page of the browser, which goes from page to page of the site and notes what it sees."""

    def __init__(self, page, contrast, copied):
        self.page, self.copied, self.seen = page, copied, {}
        self.colors = AT_THE_DESK.replace("SCHEMES", json.dumps(SCHEMES)).replace(
            "CONTRAST", f"({contrast})"
        )
        self.asked, self.broken, self.errors = [], [], []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("response", self.answered)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def answered(self, response):
        if response.status >= 400:
            self.broken.append(f"{response.status} {response.url}")

    def arrive(self, path, how):
        for notes in (self.asked, self.broken, self.errors):
            notes.clear()
        how()
        self.page.evaluate(OPENED)
        self.page.wait_for_function("!document.querySelector('details > [data-deferred]')")
        self.visit = self.seen[path] = self.page.evaluate(ARRIVED)

    def desk(self):
        self.page.set_viewport_size(DESK)
        self.visit |= self.page.evaluate(self.colors)

    def copy(self, kernels):
        """Press the copy button of each; those that the page does not show are missing in what is noted."""
        blocks = self.page.locator("article .highlight")
        shown = blocks.evaluate_all(
            "all => all.map((e) => e.querySelector('code').textContent.trimEnd())"
        )
        self.visit["copied"] = {
            kernel: self.copied(self.page, blocks.nth(shown.index(kernel))).rstrip("\n")
            for kernel in kernels
            if kernel in shown
        }

    def telephone(self):
        self.page.set_viewport_size(TELEPHONE)
        self.visit |= self.page.evaluate(ON_THE_TELEPHONE)

    def leave(self, path):
        if not path.removeprefix("zh/").startswith("examples/"):  # those are many, and load alike
            self.page.wait_for_load_state("networkidle")
        names = ("asked", "broken", "errors")
        self.visit |= {name: list(getattr(self, name)) for name in names}

    def switch(self):
        # Not any navigation: what is scrolled to becomes the address's anchor, which counts as one.
        with self.page.expect_navigation(url=re.compile(r"//[^/]*/zh/")):
            self.page.click(".ct-language")


HALVES = [pytest.param(n, marks=pytest.mark.xdist_group(f"pages {n}")) for n in (0, 1)]


@pytest.fixture(scope="session", params=HALVES)
def visits(request, browser, site_url, pages, contrast, copied):
    """What was seen on half of the pages, everything foldable open, on a desk in both schemes, and on a telephone.

    There the switch leads from each English page to the Chinese one, which is looked at on the telephone first.
    """
    allowed = ["clipboard-read", "clipboard-write"]
    context = browser.new_context(
        reduced_motion="reduce", color_scheme="light", viewport=DESK, permissions=allowed
    )
    visitor = Visitor(context.new_page(), contrast, copied)
    english = [path for path in pages if not path.startswith("zh/")]
    # What another GPU has is made like what the chapters show: a few of these pages stand for all.
    others = [path for path in english if path.endswith(OTHER_GPU)]
    english = [path for path in english if path not in others or path in others[::6]]
    for path in english[request.param :: 2]:
        code = [kernel for chapter, kernel in KERNELS if chapter == path]
        visitor.arrive(path, lambda path=path: visitor.page.goto(site_url + path))
        visitor.desk()
        visitor.copy(code)
        visitor.telephone()
        visitor.leave(path)
        visitor.arrive(f"zh/{path}", visitor.switch)
        visitor.telephone()
        visitor.desk()
        visitor.copy(code)
        visitor.leave(path)
    for path in NONE:
        visitor.arrive(path, lambda path=path: visitor.page.goto(site_url + path))
        visitor.desk()
        visitor.telephone()
        visitor.leave(path)
    context.close()
    return visitor.seen


def test_no_page_weighs_more_than_36_kb(pages, built_site):
    """Compressed as hosts do it; what is heavier lies on a page beside it (cudatut/site/deferred.py)."""
    sizes = {
        path: len(gzip.compress((built_site / path / "index.html").read_bytes(), 6))
        for path in pages
    }
    assert not {path: size for path, size in sizes.items() if size > 36 * 1024}


def test_there_are_pages_in_both_languages(pages):
    english = [path for path in pages if not path.startswith("zh/")]
    assert [f"zh/{path}" for path in english] == [p for p in pages if p.startswith("zh/")]
    assert set(CHAPTERS) <= set(english)


def test_the_language_switch_keeps_the_page(visits, site_url):
    """Each Chinese page was reached with it; its own switch leads back."""
    lost = {}
    for path, visit in visits.items():
        if path.startswith("zh/") or path in NONE:
            continue
        other = visits[f"zh/{path}"]
        if (other["url"], other["other"]) != (f"{site_url}zh/{path}", site_url + path):
            lost[path] = f"to {other['url']}, and from there to {other['other']}"
        elif not (visit["lang"] == "en" and other["lang"].startswith("zh")):
            lost[path] = f"lang is {visit['lang']} and {other['lang']}"
        elif visit["headings"] != other["headings"]:
            lost[path] = f"headings {visit['headings']} and {other['headings']}"
    assert not lost


def test_there_are_kernels_to_copy():
    assert len(KERNELS) >= 4


@pytest.mark.parametrize("lang", LANGS)
def test_the_copy_button_copies_the_kernel(visits, lang):
    shown = [(LANGS[lang] + chapter, kernel) for chapter, kernel in KERNELS if chapter in visits]
    assert shown
    for path, kernel in shown:
        found = visits[path]["copied"]
        assert kernel in found, f"no block of {path} is\n{kernel}"
        assert found[kernel] == kernel, path


def test_no_request_leaves_the_site(visits, site_url):
    away = {
        path: [url for url in visit["asked"] if not url.startswith(("data:", "blob:", site_url))]
        for path, visit in visits.items()
    }
    assert not {path: urls for path, urls in away.items() if urls}


def test_nothing_a_page_asks_for_is_missing(visits):
    """A 404.html opened by its own name is an ordinary page."""
    assert not {path: visit["broken"] for path, visit in visits.items() if visit["broken"]}


def test_no_script_fails(visits):
    assert not {path: visit["errors"] for path, visit in visits.items() if visit["errors"]}


def test_no_page_scrolls_sideways_on_a_telephone(visits):
    assert not {path: v["wide"] for path, v in visits.items() if v["width"] > NARROW or v["wide"]}


def test_an_id_stands_on_a_page_once(visits):
    assert not {path: visit["doubled"] for path, visit in visits.items() if visit["doubled"]}


def test_every_drawing_has_a_text_alternative(visits):
    assert not {path: visit["mute"] for path, visit in visits.items() if visit["mute"]}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_dark_is_dark_and_light_is_light(visits, scheme):
    for path, visit in visits.items():
        ground = visit["ground"][scheme]
        assert max(ground) < 60 if scheme == "dark" else min(ground) > 230, path


@pytest.mark.parametrize("scheme", SCHEMES)
def test_figures_are_legible(visits, scheme):
    seen = {path: visit["figures"][scheme] for path, visit in visits.items()}
    chapters = [path for path in seen if path.removeprefix("zh/") in CHAPTERS]
    assert chapters and all(seen[path]["count"] for path in chapters)
    assert not {path: found["found"] for path, found in seen.items() if found["found"]}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_and_code_are_legible(visits, scheme):
    seen = {path: visit["words"][scheme] for path, visit in visits.items()}
    assert all(found["count"] > 5 for found in seen.values())
    assert not {path: found["found"] for path, found in seen.items() if found["found"]}
