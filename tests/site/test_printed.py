"""A part as a PDF and as an EPUB (tools/print_part.py), from a small site: what is in them, and what is not."""

import importlib.util
import re
import shutil
import struct
import sys
import unicodedata
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

pypdf = pytest.importorskip("pypdf")
pytest.importorskip("ebooklib")

ROOT = Path(__file__).resolve().parents[2]
XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
OPF = "{http://www.idpf.org/2007/opf}"
LANGS = {"en": "", "zh": "zh/"}


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("print_part", ROOT / "tools/print_part.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks for the names of its module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def png(width=8, height=8):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + bytes([40, 120, 80]) * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


PAGE = """<!doctype html><html lang="{lang}"><head><meta charset="utf-8"><title>x</title>
<link rel="stylesheet" href="{up}css/cudatut.css"><script src="{up}js/pictures.js"></script></head>
<body data-md-color-scheme="default" data-md-color-primary="indigo"><article class="md-content__inner md-typeset">
<a class="md-content__button" href="edit">Edit</a>
<h1 id="top">{title}<a class="headerlink" href="#top">#</a></h1>
<p>Prose &amp; more of {name}: <a href="../{other}/#late">the other chapter</a>, <a href="#run">below</a>,
<a href="../../basics/timing/">another part</a>, <a href="https://example.org/">elsewhere</a>.</p>
<h2 id="run">Run</h2>
<div class="ct-scroll" tabindex="0"><svg class="ct-svg ct-chart ct-wide" viewBox="0 0 680 100" width="680" height="100"
 role="img" aria-label="w"><rect class="bar" x="1" y="1" width="300" height="20"/><text x="9" y="50">WIDE{name}</text></svg><svg
 class="ct-svg ct-chart ct-narrow" viewBox="0 0 332 100" width="332" height="100" role="img" aria-label="n"><rect class="bar"
 x="1" y="1" width="300" height="20"/><text x="9" y="50">NARROW{name}</text></svg></div>
<math><mi>x</mi><mo>=</mo><mn>1</mn></math>
<p style="height: 5000px"></p><figure class="ct-picture"><img src="data:image/svg+xml,%3Csvg/%3E" data-src="../picture.png" alt="a picture"
 width="8" height="8" loading="lazy"><noscript><img src="../picture.png" alt="AGAIN" width="8" height="8"></noscript></figure>
<details class="note"><summary id="late">Look deeper: {name}<a class="headerlink" href="#late">#</a></summary><p>DEEPER{name}</p>
<details class="ct-numbers"><summary>The numbers</summary><p>INNER{name}</p></details></details>
<details class="success"><summary id="solution">Solution</summary><p>SECRET{name}</p></details>
<div class="ct-gpus"><fieldset class="ct-gpus__choice">CHOICE</fieldset><section class="ct-gpu"><p>OWN{name}</p></section>
<section class="ct-gpu"><p>OTHERS{name}</p></section></div>
<details class="ct-certificate"><summary>Certificate</summary><p>HASHES</p></details>
</article></body></html>"""
CHAPTERS = ("hello", "first_kernel")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site with two chapters of `start`, in both languages."""
    root = tmp_path_factory.mktemp("site")
    (root / "js").mkdir()
    shutil.copy(ROOT / "docs/theme/js/pictures.js", root / "js")
    (root / "css").mkdir()
    css = (ROOT / "docs/theme/css/cudatut.css").read_text(encoding="utf-8")
    (root / "css/cudatut.css").write_text(css, encoding="utf-8")
    for lang, under in LANGS.items():
        for name, other in (CHAPTERS, CHAPTERS[::-1]):
            folder = root / under / "start" / name
            folder.mkdir(parents=True)
            title = {"en": f"Chapter {name}", "zh": f"章节 {name}"}[lang]
            up = "../../" + "../" * bool(under)
            page = PAGE.format(lang=lang, name=name, other=other, title=title, up=up)
            (folder / "index.html").write_text(page, encoding="utf-8")
        (root / under / "start/picture.png").write_bytes(png())
    return root


@pytest.fixture(scope="module")
def made(tool, site, tmp_path_factory, browser, chromium):
    """What was made of the part, by kind and language."""
    out = tmp_path_factory.mktemp("printed")
    # `browser` is here since one process has but one Playwright at work.
    tool.opened = used(browser, tool)
    for kind in ("pdf", "epub"):
        tool.main([kind, "start", "--site", str(site), "--out", str(out), "--chapters", "2"])
    return {
        (kind, lang): out / f"cudatut-start-{lang}.{kind}"
        for kind in ("pdf", "epub")
        for lang in LANGS
    }


def used(browser, tool):
    """`print_part.opened` with the browser of the tests."""

    @contextmanager
    def page(site):
        context = browser.new_context(color_scheme="light", viewport={"width": 1000, "height": 900})
        context.route("**/*", lambda route: tool.answer(route, site))
        yield context.new_page()
        context.close()

    return page


def words(pdf):
    """Of each page, without the ligatures of its font."""
    return [
        unicodedata.normalize("NFKC", page.extract_text()) for page in pypdf.PdfReader(pdf).pages
    ]


@pytest.mark.parametrize("lang", LANGS)
def test_a_pdf_has_the_chapters_and_no_solutions(made, lang):
    pages = words(made["pdf", lang])
    text = "\n".join(pages)
    for name in CHAPTERS:
        for mark in ("WIDE", "DEEPER", "INNER", "OWN"):
            assert f"{mark}{name}" in text
        for mark in ("SECRET", "NARROW", "OTHERS"):
            assert f"{mark}{name}" not in text
    assert "HASHES" not in text and "CHOICE" not in text and "Edit" not in text
    assert {"en": "Contents", "zh": "目录"}[lang] in pages[0]
    assert "H200" in pages[0]
    # Each chapter begins on a page of its own, behind the first one.
    starts = [next(i for i, page in enumerate(pages) if f"WIDE{name}" in page) for name in CHAPTERS]
    assert 0 < starts[0] < starts[1]


def flat(outline):
    for one in outline:
        yield from flat(one) if isinstance(one, list) else [one]


@pytest.mark.parametrize("lang", LANGS)
def test_a_pdf_has_pictures_an_outline_and_links_inside(made, lang):
    reader = pypdf.PdfReader(made["pdf", lang])
    assert sum(len(page.images) for page in reader.pages) == len(CHAPTERS)
    titles = " ".join(one.title for one in flat(reader.outline))
    assert all(name in titles for name in CHAPTERS)
    # What leaves its line at the top of a page is there twice.
    assert all(
        2 * half != one.title
        for one in flat(reader.outline)
        for half in [one.title[: len(one.title) // 2]]
    )
    assert "cudatut" in reader.metadata.title
    width, height = (float(x) for x in reader.pages[0].mediabox[2:])
    assert (round(width), round(height)) in ((595, 842), (596, 842), (595, 841))
    links = [one.get_object() for page in reader.pages for one in page.get("/Annots", [])]
    out = [one["/A"].get("/URI") for one in links if "/A" in one and "/URI" in one["/A"]]
    assert set(out) == {"https://example.org/"}
    assert len(links) - len(out) >= 2 * len(CHAPTERS)  # contents, chapters


@pytest.fixture(params=LANGS)
def epub(made, request):
    with zipfile.ZipFile(made["epub", request.param]) as file:
        yield file


def test_an_epub_is_one(epub):
    first = epub.infolist()[0]
    assert first.filename == "mimetype" and first.compress_type == zipfile.ZIP_STORED
    assert epub.read("mimetype") == b"application/epub+zip"
    container = ElementTree.fromstring(epub.read("META-INF/container.xml"))
    (root,) = [one for one in container.iter() if one.tag.endswith("rootfile")]
    package = ElementTree.fromstring(epub.read(root.get("full-path")))
    items = {one.get("id"): one for one in package.iter(f"{OPF}item")}
    files = {f"EPUB/{one.get('href')}" for one in items.values()}
    assert files <= set(epub.namelist())
    spine = [items[one.get("idref")].get("href") for one in package.iter(f"{OPF}itemref")]
    assert spine == ["front.xhtml", *(f"{name}.xhtml" for name in CHAPTERS)]
    for name in CHAPTERS:
        assert set(items[name].get("properties").split()) == {"mathml", "svg"}
    assert any(one.get("properties") == "nav" for one in items.values())


def documents(epub):
    names = [name for name in epub.namelist() if name.endswith(".xhtml")]
    return {name.removeprefix("EPUB/"): ElementTree.fromstring(epub.read(name)) for name in names}


def test_an_epub_has_the_chapters_and_no_solutions(epub):
    for name in CHAPTERS:
        chapter = documents(epub)[f"{name}.xhtml"]
        text = "".join(chapter.itertext())
        for mark in ("NARROW", "DEEPER", "INNER", "OWN"):
            assert f"{mark}{name}" in text
        for mark in ("SECRET", "WIDE", "OTHERS", "AGAIN"):
            assert mark not in text
        assert not list(chapter.iter(f"{XHTML}details")) and not list(
            chapter.iter(f"{XHTML}script")
        )
        (svg,) = chapter.iter(f"{SVG}svg")
        assert svg.get("viewBox") == "0 0 332 100"  # in its own case
        assert re.fullmatch("#[0-9a-f]{6}", next(svg.iter(f"{SVG}rect")).get("fill"))
        assert [one for one in chapter.iter() if one.tag.endswith("}math")]


def test_addresses_in_an_epub_lead_somewhere(epub):
    files = documents(epub)
    ids = {name: {one.get("id") for one in file.iter()} for name, file in files.items()}
    found = 0
    for name, file in files.items():
        for link in file.iter(f"{XHTML}a"):
            href = link.get("href")
            if href.startswith("https://"):
                continue
            target, _, anchor = href.partition("#")
            assert not anchor or anchor in ids[target or name], f"{name}: {href}"
            found += 1
        images = list(file.iter(f"{XHTML}img"))
        assert len(images) == (name.removesuffix(".xhtml") in CHAPTERS)
        for image in images:
            assert epub.read(f"EPUB/{image.get('src')}") == png()
    assert found >= 8


def test_a_part_that_there_is_not_is_refused(tool):
    with pytest.raises(
        SystemExit, match=r"no part 'begin' with chapters; name one of start, basics"
    ):
        tool.part("begin", "en")


def test_a_site_that_is_not_built_is_refused(tool, tmp_path):
    with pytest.raises(SystemExit, match=r"has no /start/hello/: build the site first"):
        tool.read(None, tool.part("start", "en"), tmp_path, "", "")


@pytest.mark.full
@pytest.mark.parametrize("kind", ["pdf", "epub"])
def test_the_first_part_has_no_solution_in_it(tool, browser, built_site, tmp_path, kind):
    tool.opened = used(browser, tool)
    tool.main([kind, "start", "--site", str(built_site), "--out", str(tmp_path)])
    for lang, under in LANGS.items():
        file = tmp_path / f"cudatut-start-{lang}.{kind}"
        if kind == "pdf":
            text = "".join(words(file))
        else:
            with zipfile.ZipFile(file) as epub:
                text = "".join("".join(one.itertext()) for one in documents(epub).values())
                assert sum(len(list(one.iter(f"{SVG}svg"))) for one in documents(epub).values()) > 5
        page = (built_site / under / "start/errors/index.html").read_text(encoding="utf-8")
        assert page.count('<details class="success"') > 2
        # Files of solutions are named above their code, and no word stands for a link that is not there.
        assert "solutions.py\n" not in text
        assert {"en": "Download the notebook", "zh": "下载 notebook"}[lang] not in text
        if kind == "pdf":
            titles = [one.title for one in flat(pypdf.PdfReader(file).outline)]
            assert [one for one in titles if one[: len(one) // 2] * 2 == one] == []
