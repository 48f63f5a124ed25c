"""Every page of the built site in headless Chromium, each visited once: what it asks for, its width, its contrast."""

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
NARROW = 320  # pixels: the narrowest telephones, and a desk's window at 400 %
SCHEMES = {"light": "default", "dark": "slate"}  # and how Material calls them
GROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"


@pytest.fixture(scope="session")
def pages(built_site):
    """Path of every page below the site, but for those that lead elsewhere: "", "start/hello/", "zh/", ..."""
    found = sorted(
        p.parent.relative_to(built_site).as_posix()
        for p in built_site.rglob("index.html")
        if 'http-equiv="refresh"' not in p.read_text(encoding="utf-8")
    )
    return ["" if path == "." else f"{path}/" for path in found]


@pytest.fixture(scope="session")
def visits(browser, site_url, pages, contrast):
    """What was seen on every page, everything foldable open: on a desk, light and dark, then on a telephone."""
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    asked, broken, errors = [], [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda r: broken.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    seen = {}
    for path in [*pages, "404.html", "zh/404.html"]:
        for notes in (asked, broken, errors):
            notes.clear()
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(site_url + path)
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        seen[path] = visit = {"ground": {}, "figures": {}, "words": {}}
        for scheme, name in SCHEMES.items():
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function("(n) => document.body.dataset.mdColorScheme === n", arg=name)
            visit["ground"][scheme] = page.evaluate(GROUND)
            visit["figures"][scheme] = page.evaluate(contrast, True)
            visit["words"][scheme] = page.evaluate(contrast, False)
        page.set_viewport_size({"width": NARROW, "height": 640})
        visit["width"] = page.evaluate("document.documentElement.scrollWidth")
        visit["wide"] = page.evaluate(WIDE)
        visit["mute"] = page.evaluate(MUTE)
        visit["doubled"] = page.evaluate(DOUBLED)
        page.wait_for_load_state("networkidle")
        visit |= {"asked": list(asked), "broken": list(broken), "errors": list(errors)}
    context.close()
    return seen


# Elements that reach past the right edge and that no scrolling box around them contains.
WIDE = """() => [...document.querySelectorAll('article *')].filter((e) => {
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


def test_there_are_pages_in_both_languages(pages):
    english = [path for path in pages if not path.startswith("zh/")]
    assert [f"zh/{path}" for path in english] == [p for p in pages if p.startswith("zh/")]
    assert set(CHAPTERS) <= set(english)


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
    assert all(seen[lang + chapter]["count"] for chapter in CHAPTERS for lang in ("", "zh/"))
    assert not {path: found["found"] for path, found in seen.items() if found["found"]}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_and_code_are_legible(visits, scheme):
    seen = {path: visit["words"][scheme] for path, visit in visits.items()}
    assert all(found["count"] > 5 for found in seen.values())
    assert not {path: found["found"] for path, found in seen.items() if found["found"]}
