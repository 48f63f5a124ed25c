"""Recorded pictures on pages: files of their own, their words in both languages, and how much a page may show."""

import base64
import json
import re

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
    assert f'src="../../{name}" alt="a &quot;slope&quot; &lt;b&gt;" width="72" height="60"' in html
    assert 'loading="lazy"' in html and 'class="ct-picture__pixels"' in html
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


def test_pages_beside_their_files(project, monkeypatch):
    """Both languages, the chapter and the page of the example; the weight of a page is that of its words."""
    heavy = [picture(seed, side=160) for seed in range(5)]
    notebook = project.book.notebook("start/add")
    cell = {
        "cell_type": "code",
        "id": "seen",
        "metadata": {},
        "source": "see()",
        "execution_count": 3,
    }
    notebook["cells"].append({**cell, "outputs": [shown(one) for one in heavy]})
    raw = json.dumps(notebook).encode()
    own = recording.parse("start/add", project.book.whole("start/add"), raw)
    monkeypatch.setattr(recording, "require_good", lambda name: own)
    monkeypatch.setattr(recording, "on_other_gpus", lambda name: [])
    monkeypatch.setattr(labels, "problems", lambda lang, records: [])
    monkeypatch.setattr(overlays, "chinese", lambda text, file: text)
    monkeypatch.setattr("cudatut.site.render.localized", lambda result, lang: result)
    for lang in ("en", "zh"):
        project.body("```example\nstart/add#seen\n```\n", lang)
        site = project.build(lang)
        for page in ("start/add/index.html", "examples/start/add/index.html"):
            html = (site / page).read_text(encoding="utf-8")
            found = re.findall(r'<img src="([^"]*)"', html)
            assert len(set(found)) == len(heavy), page
            files = [(site / page).parent / one for one in found]
            assert all(image_files.seen(file.read_bytes()) == ("png", 164, 160) for file in files)
            # What weighs 130 KB as files adds next to nothing to the page.
            without = re.sub('<div class="ct-pictures">.*?</div>', "", html)
            assert weight.problem(html) is None
            assert weight.compressed(html) - weight.compressed(without) < 1024
