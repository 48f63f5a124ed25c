"""Every page of the built site in headless Chromium, each visited once: what it asks for, its width, its contrast, its links.

A visit does all that the tests below want to know of a page; a new question is one more key of a visit. The pages are
visited in two halves, which `make test` gives to two processes. What was seen is kept, and a page is visited again when it
is another, or what it asks for (`Seen`). Pages of notebooks are many and load alike: `make test` visits one of each kind of
each part, `make test-full` all.
"""

import gzip
import hashlib
import json
import re
import textwrap
from pathlib import Path

import kept
import pytest
import yaml

from cudatut import overlays
from cudatut.site import deferred, svg

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
HAND = {"width": 390, "height": 844}  # a usual telephone
NONE = ("404.html", "zh/404.html")
OTHER_GPUS = tuple(f"/{one.name}/" for one in (ROOT / "recordings").iterdir() if one.is_dir())


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
  s.getAttribute('role') !== 'img' || !s.getAttribute('aria-label')).length"""
# What is asked of a page in one go, so that it need not be drawn in between.
AT_THE_DESK = """() => {
  const seen = {ground: {}, figures: {}, words: {}, collisions: COLLISIONS()}
  for (const [scheme, name] of Object.entries(SCHEMES).reverse()) {  // light stays
    document.body.dataset.mdColorScheme = name  // as Material does (test_browser.py)
    seen.ground[scheme] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)
    seen.figures[scheme] = CONTRAST(true)
    seen.words[scheme] = CONTRAST(false)
  }
  return seen
}"""
# Boxes that hide a part of what is in them at their right edge without a sign: it does not fade there.
UNSAID = """[...document.querySelectorAll('article .ct-scroll')].filter((box) => {
  if (!box.checkVisibility() || box.scrollWidth <= box.clientWidth + 1) return false
  const colors = getComputedStyle(box).maskImage.match(/rgba?\\([^)]*\\)/g)
  return !colors || !/, 0\\)$/.test(colors.at(-1))
}).map((box) => box.innerHTML.slice(0, 120))"""
# The smallest word of each drawing that has one below ten pixels.
TINY = """[...document.querySelectorAll('article .ct-svg')].filter((svg) => svg.checkVisibility()).map((svg) => {
  const unit = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width
  const sizes = [...svg.querySelectorAll('text')].map((text) => parseFloat(getComputedStyle(text).fontSize))
  return Math.min(99, ...sizes) * unit
}).filter((size) => size < 9.95)"""
ON_THE_TELEPHONE = f"""() => ({{
  width: document.documentElement.scrollWidth, wide: {WIDE}, mute: {MUTE}, doubled: {DOUBLED},
}})"""
IN_THE_HAND = f"""() => ({{
  unsaid: {UNSAID}, tiny: {TINY},
  cut: [...document.querySelectorAll('article .ct-bench > .ct-scroll')]
    .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1).length,
}})"""
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
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
    """(chapter, what is included in each language) of every ```cuda fence that shows regions of .cu files."""
    found = []
    for chapter in CHAPTERS:
        text = (ROOT / "docs/en" / f"{chapter[:-1]}.md").read_text(encoding="utf-8")
        for body in re.findall(r"(?ms)^```cuda[^\n]*\n(.*?)^```$", text):
            parts = re.findall(r'--8<-- "([^":]+)(?::([^"]+))?"', body)
            if parts and body.count("\n") == len(parts):
                pieces = [(region(*part), part[0]) for part in parts]
                code = {
                    "en": (one for one, _ in pieces),
                    "zh": (overlays.code(*one) for one in pieces),
                }
                found.append((chapter, {lang: "\n".join(said) for lang, said in code.items()}))
    return found


KERNELS = kernels()


class Visitor:
    """One page of the browser, which goes from page to page of the site and notes what it sees."""

    def __init__(self, page, contrast, collisions, copied):
        self.page, self.copied, self.collisions, self.seen = page, copied, collisions, {}
        self.colors = AT_THE_DESK.replace("SCHEMES", json.dumps(SCHEMES))
        for name, code in (("CONTRAST", contrast), ("COLLISIONS", collisions)):
            self.colors = self.colors.replace(name, f"({code})")
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
        self.page.set_viewport_size(HAND)
        self.page.evaluate(
            DRAWN
        )  # what fades follows from what is scrolled, which the next frame knows
        self.visit |= self.page.evaluate(IN_THE_HAND)
        self.visit["crowded"] = self.page.evaluate(self.collisions)

    def leave(self, path):
        if not path.removeprefix("zh/").startswith("examples/"):  # those are many, and load alike
            self.page.wait_for_load_state("networkidle")
        names = ("asked", "broken", "errors")
        self.visit |= {name: list(getattr(self, name)) for name in names}

    def switch(self):
        # Not any navigation: what is scrolled to becomes the address's anchor, which counts as one.
        with self.page.expect_navigation(url=re.compile(r"//[^/]*/zh/")):
            self.page.click(".ct-language")


class Seen:
    """What was seen on the pages of a site before: of two languages of a page together, since a visit goes from one to the other.

    It follows from the two pages, from the files that pages ask for, from what is asked of a page, and from the browser.
    """

    OF_PAGES = (".html", ".ipynb", ".py", ".cu", ".cuh", ".xml", ".gz", ".txt", ".md")

    def __init__(self, folder, site, url, visitor, browser):
        self.kept, self.site, self.url, self.visitor = kept.Kept(folder), site, url, visitor
        here = Path(__file__)
        asking = [here.read_bytes(), here.with_name("conftest.py").read_bytes()]
        for path in sorted(site.rglob("*")):
            if path.is_file() and path.suffix not in self.OF_PAGES:
                asking.append(path.relative_to(site).as_posix().encode())
                # What the search knows changes with every page, and is asked for by those who search.
                asking.append(b"" if path.suffix == ".json" else path.read_bytes())
        digest = hashlib.sha256(b"\0".join(asking)).hexdigest()
        self.shared = [digest, visitor.colors, browser.version]

    def __call__(self, paths, code, visit):
        """Note what is seen on pages: `visit` sees it, or somebody did. Returns whether it had to."""
        pages = [hashlib.sha256((self.site / path).read_bytes()).hexdigest() for path in paths]
        key = self.kept.key(self.shared, paths, pages, code)
        if known := self.kept.read(key):
            self.visitor.seen |= json.loads(known.decode().replace("{site}", self.url))
            return False
        before = set(self.visitor.seen)
        visit()
        new = {name: one for name, one in self.visitor.seen.items() if name not in before}
        self.kept.write(key, json.dumps(new).replace(self.url, "{site}").encode())
        return True


def looked_at(pages, full):
    """The English pages that are visited: unless `full`, of the notebooks' pages one of each kind of each part.

    What another GPU has is made like what the chapters show: a few of these pages stand for all.
    """
    english = [path for path in pages if not path.startswith("zh/")]
    others = [path for path in english if path.endswith(OTHER_GPUS)]
    english = [path for path in english if path not in others or path in others[::6]]
    if full:
        return english
    first = {}
    for path in english:
        place, _, example = path.removesuffix("/").partition("/")
        part, _, example = example.partition("/") if place == "examples" else ("", "", "")
        # What a notebook's page leaves to a page beside it is a kind of its own.
        example, _, beside = example.partition("/")
        kind = example.rpartition("_")[2]
        alike = (part, kind if kind in ("claims", "solutions") else "", beside) if example else path
        first.setdefault(alike, path)
    return list(first.values())


HALVES = [pytest.param(n, marks=pytest.mark.xdist_group(f"pages {n}")) for n in (0, 1)]


@pytest.fixture(scope="session", params=HALVES)
def visits(request, browser, built_site, site_url, pages, contrast, collisions, copied):
    """What was seen on half of the pages, everything foldable open, on a desk in both schemes, and on a telephone.

    There the switch leads from each English page to the Chinese one, which is looked at on the telephone first.
    """
    allowed = ["clipboard-read", "clipboard-write"]
    context = browser.new_context(
        reduced_motion="reduce", color_scheme="light", viewport=DESK, permissions=allowed
    )
    visitor = Visitor(context.new_page(), contrast, collisions, copied)
    seen = Seen(kept.cache_folder() / "pages", built_site, site_url, visitor, browser)

    def both(path, code):
        visitor.arrive(path, lambda: visitor.page.goto(site_url + path))
        visitor.desk()
        visitor.copy([kernel["en"] for kernel in code])
        visitor.telephone()
        visitor.leave(path)
        visitor.arrive(f"zh/{path}", visitor.switch)
        visitor.telephone()
        visitor.desk()
        visitor.copy([kernel["zh"] for kernel in code])
        visitor.leave(path)

    def alone(path):
        visitor.arrive(path, lambda: visitor.page.goto(site_url + path))
        visitor.desk()
        visitor.telephone()
        visitor.leave(path)

    for path in looked_at(pages, request.config.getoption("--full"))[request.param :: 2]:
        code = [kernel for chapter, kernel in KERNELS if chapter == path]
        files = [f"{path}index.html", f"zh/{path}index.html"]
        seen(files, code, lambda path=path, code=code: both(path, code))
    for path in NONE:
        seen([path], [], lambda path=path: alone(path))
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


def in_order(path, headings):
    """The glossary has its terms in each language's own order."""
    return sorted(headings) if path == "glossary/" else headings


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
        elif in_order(path, visit["headings"]) != in_order(path, other["headings"]):
            lost[path] = f"headings {visit['headings']} and {other['headings']}"
    assert not lost


def test_make_test_visits_every_chapter_and_each_kind_of_notebook(pages):
    few, all_of_them = looked_at(pages, full=False), looked_at(pages, full=True)
    assert set(CHAPTERS) <= set(few) < set(all_of_them)
    left = set(all_of_them) - set(few)
    notebook = re.compile(rf"examples/\w+/\w+/({deferred.FOLDS}/)?")
    assert all(map(notebook.fullmatch, left))
    parts = {path.split("/")[1] for path in left}
    assert all(any(path.startswith(f"examples/{part}/") for path in few) for part in parts)
    print(f"{len(few)} of {len(all_of_them)} pages are visited in each language")


class Asked:
    """Stands in for a visitor, whose visits are counted."""

    def __init__(self):
        self.seen, self.colors, self.visits = {}, "", 0

    def visit(self):
        self.visits += 1
        self.seen["a/"] = {"url": "http://x:1/a/", "n": self.visits}


@pytest.mark.parametrize(
    ("file", "text", "again"),
    [("a/index.html", "another", True), ("zh/a/index.html", "another", True), ("style.css", "p {}", True),
     ("new.js", "f()", True), ("b/index.html", "another", False), ("search/search_index.json", "{1}", False)],
)  # fmt: skip
def test_a_page_is_visited_again_where_it_may_look_otherwise(tmp_path, file, text, again):
    site = tmp_path / "site"
    for name in (
        "a/index.html",
        "zh/a/index.html",
        "b/index.html",
        "style.css",
        "search/search_index.json",
    ):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(name)

    class Browser:
        version = "1"

    def looked(port):
        asked = Asked()
        seen = Seen(tmp_path / "kept", site, f"http://x:{port}/", asked, Browser)
        seen(["a/index.html", "zh/a/index.html"], [], asked.visit)
        return asked

    assert looked(1).visits == 1
    again_there = looked(2)
    assert again_there.visits == 0 and again_there.seen == {"a/": {"url": "http://x:2/a/", "n": 1}}
    (site / file).write_text(text)
    assert looked(1).visits == again


def test_there_are_kernels_to_copy():
    assert len(KERNELS) >= 4


@pytest.mark.parametrize("lang", LANGS)
def test_the_copy_button_copies_the_kernel(visits, lang):
    """As the page shows it: on a Chinese one with Chinese comments."""
    shown = [(LANGS[lang] + at, kernel[lang]) for at, kernel in KERNELS if at in visits]
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


def test_what_is_cut_on_a_telephone_fades_there(visits):
    """Of a drawing or a table that is wider than the screen one sees that there is more."""
    assert not {path: visit["unsaid"] for path, visit in visits.items() if visit["unsaid"]}


def test_a_chart_is_no_wider_than_a_telephone(visits):
    assert not {path: visit["cut"] for path, visit in visits.items() if visit["cut"]}


def test_no_word_of_a_drawing_is_tiny_on_a_telephone(visits):
    assert not {path: visit["tiny"] for path, visit in visits.items() if visit["tiny"]}


def test_words_of_figures_have_room_on_a_telephone(visits):
    assert not {path: visit["crowded"] for path, visit in visits.items() if visit["crowded"]}


CUT = """<style>@keyframes cut { from { mask-image: linear-gradient(to right, #000, transparent) } to {} }
  .ct-scroll { overflow: auto; width: 100px } .fades { animation: cut linear; animation-timeline: scroll(self inline) }</style>
<article><div class="ct-scroll"><svg class="ct-svg" viewBox="0 0 400 50" width="300" height="50"><text font-size="12">a</text></svg>
</div><div class="ct-scroll fades"><svg class="ct-svg" viewBox="0 0 300 50" width="300" height="50"><text font-size="12">b</text></svg>
</div><div class="ct-scroll">short</div></article>"""


def test_what_is_cut_or_tiny_is_noticed(browser):
    page = browser.new_page()
    page.set_content(CUT)
    page.evaluate(DRAWN)
    seen = page.evaluate(IN_THE_HAND)
    page.close()
    assert len(seen["unsaid"]) == 1 and 'viewBox="0 0 400 50"' in seen["unsaid"][0]
    assert seen["tiny"] == [9]  # twelve units on three quarters of their size


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


def test_words_of_figures_have_room(visits):
    assert not {path: visit["collisions"] for path, visit in visits.items() if visit["collisions"]}


def test_words_without_room_are_noticed(browser, collisions):
    s = svg.Svg(200, 100).rect(10, 10, 30, 20, text="fits").rect(110, 10, 10, 20, text="too wide")
    s.text(100, 50, "hello").text(104, 52, "there").text(100, 80, "below").text_from(190, 90, "out")
    page = browser.new_page()
    page.set_content(svg.figure(s, alt="planted"))
    found = page.evaluate(collisions)
    page.close()
    assert found == [
        "wider than its box: too wide",
        "over each other: hello | there",
        "outside: out",
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_and_code_are_legible(visits, scheme):
    seen = {path: visit["words"][scheme] for path, visit in visits.items()}
    assert all(found["count"] > 5 for found in seen.values())
    assert not {path: found["found"] for path, found in seen.items() if found["found"]}
