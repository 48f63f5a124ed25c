"""Recorded pictures on pages: files of their own, their words in both languages, and how much a page may show."""

import base64
import json
import re
import time

import numpy as np
import pytest

from cudatut import image_files, overlays, recording
from cudatut.results import MIME
from cudatut.site import labels, locale, pictures, state, weight
from cudatut.site.render import results_html

ALT = {"en": 'a "slope" <b>', "zh": "一道<b>斜坡"}


def picture(seed=0, side=20, **changes):
    array = np.random.default_rng(seed).integers(0, 256, (side, side + 4), np.uint8)
    data = base64.b64encode(image_files.png(array)).decode()
    return {
        "kind": "picture",
        "name": "slope `a`",
        "width": side + 4,
        "height": side,
        "alt": ALT,
        "data": data,
    } | changes


def shown(result):
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {MIME: result, "text/plain": "?"},
    }


@pytest.fixture
def build():
    yield state.begin(state.State(url="images/pixels/"))
    state.begin(state.State())
    locale.use("en")


def test_a_picture_is_a_file_and_a_figure(build):
    html = results_html([shown(picture(scale=3))], "en")
    ((name, file),) = build.pictures.items()
    assert file == base64.b64decode(picture()["data"])
    assert re.fullmatch(r"pictures/[0-9a-f]{16}\.png", name)
    rest = 'alt="a &quot;slope&quot; &lt;b&gt;" width="72" height="60" loading="lazy"'
    waiting, plain = re.findall(r"<img[^>]*>", html)
    assert f'data-src="../../{name}" {rest}' in waiting and 'src="data:image/svg' in waiting
    assert "width='72' height='60'" in waiting  # of the same size, so that nothing moves
    assert f"<noscript>{plain}</noscript>" in html and f' src="../../{name}" {rest}' in plain
    assert html.count('class="ct-picture__pixels"') == 2
    assert '<figcaption>slope <code class="ct-code">a</code></figcaption>' in html
    assert picture()["data"][:40] not in html


def test_in_the_words_of_the_page(build, monkeypatch):
    monkeypatch.setattr("cudatut.site.render.localized", lambda result, lang: result)
    html = results_html([shown(picture())], "zh")
    assert 'alt="一道&lt;b&gt;斜坡" width="24" height="20" loading' in html
    assert "ct-picture__pixels" not in html


def test_pictures_that_follow_each_other_stand_in_a_row(build):
    html = results_html([shown(picture(0)), shown(picture(1)), shown(picture(0))], "en")
    assert html.count('<div class="ct-pictures">') == 1 and html.count("<figure") == 3
    assert len(build.pictures) == 2  # the same twice is one file


def test_a_damaged_picture_is_never_shown(build):
    with pytest.raises(ValueError, match="it is no PNG and no WebP"):
        results_html([shown(picture(data="aaaa"))], "en")
    assert not build.pictures


def test_a_page_of_too_heavy_pictures_is_named_with_the_cure(build):
    html = results_html([shown(picture(seed, side=160)) for seed in range(6)], "en")
    found = pictures.problem(html)
    assert re.match(
        r"the pictures of the page weigh 15\d\.\d KB, 150 are allowed: show fewer", found
    )
    lighter = results_html([shown(picture(seed, side=160)) for seed in range(5)] * 2, "en")
    assert pictures.problem(lighter) is None and pictures.problem("<p>none</p>") is None


def record(project, monkeypatch, cells):
    """Give the example of a small book these cells, each an id and the pictures that it shows."""
    notebook = project.book.notebook("start/add")
    for name, shows in cells.items():
        cell = {"cell_type": "code", "id": name, "metadata": {}, "source": "see()"}
        outputs = [shown(one) for one in shows]
        notebook["cells"].append({**cell, "execution_count": 3, "outputs": outputs})
    raw = json.dumps(notebook).encode()
    own = recording.parse("start/add", project.book.whole("start/add"), raw)
    monkeypatch.setattr(recording, "require_good", lambda name: own)
    monkeypatch.setattr(recording, "on_other_gpus", lambda name: [])
    monkeypatch.setattr(labels, "problems", lambda lang, records: [])
    monkeypatch.setattr(overlays, "chinese", lambda text, file: text)
    monkeypatch.setattr("cudatut.site.render.localized", lambda result, lang: result)


def test_pages_beside_their_files(project, monkeypatch):
    """Both languages, the chapter and the page of the example; the weight of a page is that of its words."""
    heavy = [picture(seed, side=160) for seed in range(5)]
    record(project, monkeypatch, {"seen": heavy})
    for lang in ("en", "zh"):
        project.body("```example\nstart/add#seen\n```\n", lang)
        site = project.build(lang)
        for page in ("start/add/index.html", "examples/start/add/index.html"):
            html = (site / page).read_text(encoding="utf-8")
            found = re.findall(r'<img src="data:[^"]*" data-src="([^"]*)"', html)
            assert len(set(found)) == len(heavy), page
            assert found == re.findall(r'<noscript><img src="([^"]*)"', html)
            files = [(site / page).parent / one for one in found]
            assert all(image_files.seen(file.read_bytes()) == ("png", 164, 160) for file in files)
            # What weighs 130 KB as files adds next to nothing to the page.
            without = re.sub('<div class="ct-pictures">.*?</div>', "", html)
            assert weight.problem(html) is None
            assert weight.compressed(html) - weight.compressed(without) < 1024


# --- in a browser ------------------------------------------------------------------------------------


NAMES = ("top", "far", "folded")


@pytest.fixture
def visit(project, monkeypatch, serve, browser):
    """Call it with options of a browser context: a page that shows a picture, another below its window, a third in a fold.

    Also what it asks for of pictures, from then on, and a function that goes there.
    """
    record(project, monkeypatch, {name: [picture(seed)] for seed, name in enumerate(NAMES)})
    top, far, folded = (f"```example\nstart/add#{name}\n```\n\n" for name in NAMES)
    fold = '??? note deferred "Look deeper"\n\n' + "".join(
        f"    {line}\n" for line in folded.splitlines()
    )
    project.body(top + "Prose.\n\n" * 14 + far + "Prose.\n\n" * 40 + fold)
    site = project.build()
    address = (
        f"{serve(site.parent)}{site.name}/start/add/"  # below the root, as where it is published
    )
    contexts = []

    def go(path="", **options):
        context = browser.new_context(viewport=WINDOW, **options)
        contexts.append(context)
        page, asked = context.new_page(), []
        page.on("request", lambda one: asked.append(one.url) if "/pictures/" in one.url else None)
        page.add_init_script("""window.shifted = 0
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) window.shifted += entry.value
          }).observe({type: 'layout-shift', buffered: true})""")
        context.route("**/pictures/*", slowly)
        page.goto(address + path)
        page.wait_for_load_state("networkidle")
        return page, asked

    yield go
    for context in contexts:
        context.close()


WINDOW = {"width": 1280, "height": 720}
AHEAD = 1250  # px below its window where Chromium fetches a picture by itself
THERE = """() => [...document.querySelectorAll('.ct-picture img')]
  .filter((one) => one.complete && one.naturalWidth === 24 && one.src.includes('/pictures/')).length"""


def slowly(route):
    time.sleep(0.2)
    route.continue_()


def test_a_picture_is_fetched_when_the_reader_is_near_it_and_moves_nothing(visit):
    page, asked = visit()
    images = page.locator(".ct-picture img")
    assert images.count() == 2 and len(asked) == page.evaluate(THERE) == 1
    # One that Chromium would have fetched.
    assert 100 < images.nth(1).bounding_box()["y"] - WINDOW["height"] < AHEAD
    height = "document.documentElement.scrollHeight"
    before = page.evaluate(f"window.shifted = 0, {height}")
    images.nth(1).scroll_into_view_if_needed()
    page.wait_for_function(f"({THERE})() === 2")
    assert page.evaluate(height) == before and page.evaluate("window.shifted") == 0
    # What a fold holds that comes late is watched as well, and its address leads from this page.
    page.locator("details.deferred summary").click()
    page.wait_for_function(f"({THERE})() === 3")
    assert len(asked) == len(set(asked)) == 3
    assert page.locator("noscript img").count() == 0


def test_without_scripts_pictures_are_there_themselves(visit):
    for path, count in {"": 2, "folds/": 1}.items():
        page, _ = visit(path, java_script_enabled=False)
        figures = page.locator(".ct-picture").all()
        assert len(figures) == count
        for figure in figures:
            (one,) = [image for image in figure.locator("img").all() if image.is_visible()]
            assert "/pictures/" in one.get_attribute("src")


def test_paper_has_all_pictures(visit):
    page, asked = visit()
    assert len(asked) == 1
    # Also those that are not here yet when the printing begins.
    assert page.pdf().count(b"/Subtype /Image") == len(asked) == page.evaluate(THERE) == 3
