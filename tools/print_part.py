"""A part of the book as a PDF and as an EPUB, in both languages, from the site as it was built.

    python tools/print_part.py pdf|epub PART [--site site] [--out build/print] [--lang en|zh] [--chapters 2] [--url URL]

`make pdf PART=start` and `make epub PART=start` build the site first. The pages are those of the site: Chromium opens each,
tools/print_part.js takes out what only a screen can use, and answers and solutions. A PDF is what Chromium prints of all
chapters one behind the other, by the site's own style sheet for paper; an EPUB is put together by EbookLib. Links to
chapters of the part stay links; --url (or $SITE_URL) says where the book is published, for the other ones.
"""

from __future__ import annotations

import argparse
import datetime
import mimetypes
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

ROOT = Path(__file__).resolve().parent.parent
HOST = "http://book.invalid"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Nothing but the files of the site is asked for.
ARGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
WORDS = {
    "en": {
        "solution": "{title}: on the page of this chapter in the book online.",
        "about": "The chapters of the part '{part}' of the book cudatut, without answers and solutions: these are on "
        "the pages of the book online. All outputs were recorded on one GPU, {gpu}.",
        "contents": "Contents",
        "license": "Code: MIT. Text and figures: CC BY 4.0.",
    },
    "zh": {
        "solution": "{title}：见本书网页版的这一章。",
        "about": "这里是 cudatut 一书“{part}”部分的各章，不含答案与参考解答，它们在本书的网页版里。"
        "所有输出都是在同一块 GPU（{gpu}）上录制的。",
        "contents": "目录",
        "license": "代码：MIT。文字与图：CC BY 4.0。",
    },
}
# Where the GPU's name in a sentence comes from: the folder of the recordings that the pages show.
HOME = ROOT / "recordings" / "home.txt"


@dataclass(frozen=True)
class Chapter:
    """A chapter as the browser gave it; `name` is its id in the part."""

    name: str
    title: str
    xhtml: str
    images: list[str]
    properties: list[str]  # of an EPUB's item: what is in it


@dataclass(frozen=True)
class Part:
    id: str
    lang: str
    title: str
    level: str
    about: str
    chapters: list[str]

    @property
    def path(self) -> str:
        """Of its chapters on the site, with slashes around it."""
        return f"/{'zh/' if self.lang == 'zh' else ''}{self.id}/"

    def words(self, key: str) -> str:
        gpu = HOME.read_text(encoding="utf-8").strip().replace("nvidia-", "NVIDIA ").upper()
        return WORDS[self.lang][key].format(part=self.title, gpu=gpu, title="{title}")


def part(name: str, lang: str, most: int | None = None) -> Part:
    """A part of docs/contents.yml with its published chapters. Exits with what there is where it has no such part."""
    parts = yaml.safe_load((ROOT / "docs/contents.yml").read_text(encoding="utf-8"))["parts"]
    written = {
        one["id"]: [c["id"] for c in one["chapters"] if c["written"] is True] for one in parts
    }
    if not written.get(name):
        there = ", ".join(one for one, chapters in written.items() if chapters)
        sys.exit(f"no part {name!r} with chapters; name one of {there}, as in: make pdf PART=start")
    (found,) = [one for one in parts if one["id"] == name]
    title, level, about = (found[key][lang] for key in ("title", "level", "about"))
    return Part(name, lang, title, level, about, written[name][:most])


def answer(route: Any, site: Path) -> None:
    """Give the browser a file of the site."""
    url = urlsplit(route.request.url)
    file = site / unquote(url.path).lstrip("/")
    file = file / "index.html" if file.is_dir() else file
    if url.netloc != urlsplit(HOST).netloc or not file.is_file():
        return route.abort()
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return route.fulfill(status=200, content_type=kind, body=file.read_bytes())


@contextmanager
def opened(site: Path) -> Iterator[Any]:
    """A page of Chromium that finds the files of the site under `HOST`, and nothing else anywhere."""
    from playwright.sync_api import sync_playwright

    named = os.environ.get("CHROMIUM")
    program = next(filter(None, map(shutil.which, [named] if named else CHROMIUM)), None)
    if program is None:
        sys.exit("no Chromium (Debian: apt-get install chromium; or set CHROMIUM to its path)")

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGS)
        context = browser.new_context(
            color_scheme="light", reduced_motion="reduce", viewport={"width": 1000, "height": 900}
        )
        context.set_default_timeout(120_000)
        context.route("**/*", lambda route: answer(route, site))
        yield context.new_page()
        browser.close()


def read(page: Any, of: Part, site: Path, file: str, base: str) -> list[Chapter]:
    """The chapters of a part. file: see print_part.js."""
    script = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    script = script[script.index("async (options)") :]
    inside = {f"{of.path}{name}/": name for name in of.chapters}
    found = []
    for path, name in inside.items():
        if not (site / path.lstrip("/") / "index.html").is_file():
            sys.exit(f"{site} has no {path}: build the site first (make build)")
        page.goto(HOST + path)
        options = {
            "chapter": name,
            "inside": inside,
            "file": file,
            "narrow": bool(file),
            "solution": WORDS[of.lang]["solution"],
            "base": base,
        }
        made = page.evaluate(script, options)
        has = [kind for kind in ("mathml", "svg") if made[kind]]
        found.append(Chapter(name, made["title"], made["xhtml"], made["images"], has))
    return found


# --- PDF ----------------------------------------------------------------------------------------------

PAPER = """
  @page { size: A4; margin: 18mm 17mm 20mm; }
  body { background: #fff; }
  .ct-chapter { break-before: page; padding-top: 3mm; }
  /* Chinese words are taller than Material's lines of headings: at the top of a page Chromium would have them in its outline twice. */
  .md-typeset :is(h1, h2, h3, h4):lang(zh) { line-height: 1.6; }
  .ct-front { padding-top: 45mm; }
  .ct-front h1 { font-size: 30pt !important; }
  .ct-fold { border-left: 3px solid var(--ct-rule); padding-left: .8em; margin: 1em 0; }
  .ct-fold__title { font-weight: 650; break-after: avoid; margin: .3em 0; }
  .ct-elsewhere { color: var(--ct-quiet); font-size: .9em; }
  .md-typeset .ct-fold.ct-numbers { border: 0; padding: 0; }
  .md-typeset .highlight > pre > code { font-size: 8.2pt; }
  .md-typeset table { page-break-inside: auto; }
"""


def front(of: Part, chapters: list[Chapter], href: str) -> str:
    """The first page: what this is, and its contents."""
    rows = "".join(
        f'<li><a href="{href.format(name=one.name)}">{escape(one.title)}</a></li>'
        for one in chapters
    )
    return (
        f"<p>{escape(of.level)}</p><h1>{escape(of.title)}</h1><p>{escape(of.about)}</p>"
        f"<h2>{of.words('contents')}</h2><ol>{rows}</ol>"
        f"<p>{escape(of.words('about'))}</p><p>{of.words('license')}</p>"
    )


def pdf(page: Any, of: Part, site: Path, out: Path, base: str) -> None:
    chapters = read(page, of, site, "", base)
    sheets = page.evaluate(
        "[...document.querySelectorAll('link[rel=stylesheet]')].map((one) => one.href)"
    )
    links = "".join(f'<link rel="stylesheet" href="{escape(one)}">' for one in sheets)
    body = "".join(
        f'<section class="ct-chapter" id="{one.name}--top-of-chapter">{one.xhtml}</section>'
        for one in chapters
    )
    language = {"en": "en", "zh": "zh-Hans"}[of.lang]
    html = (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>{escape(f"cudatut: {of.title}")}</title>'
        f'{links}<style>{PAPER}</style></head><body data-md-color-scheme="default" data-md-color-primary="indigo">'
        f'<article class="md-content__inner md-typeset"><section class="ct-front">{front(of, chapters, "#{name}--top-of-chapter")}</section>'
        f"{body}</article></body></html>"
    )
    page.route(
        f"{HOST}/print.html",
        lambda route: route.fulfill(status=200, content_type="text/html; charset=utf-8", body=html),
    )
    page.goto(f"{HOST}/print.html", wait_until="networkidle")
    page.evaluate("document.fonts.ready.then(() => true)")
    number = (
        '<div style="width: 100%; font-size: 8px; padding: 0 17mm; display: flex; justify-content: space-between">'
        f'<span>cudatut · {escape(of.title)}</span><span class="pageNumber"></span></div>'
    )
    page.pdf(
        path=out,
        prefer_css_page_size=True,
        print_background=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=number,
        outline=True,
        tagged=True,
    )


# --- EPUB ---------------------------------------------------------------------------------------------

BOOK = """
body { line-height: 1.5; }
h1, h2, h3, h4 { line-height: 1.25; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8em; line-height: 1.4; background: #f5f3ec; padding: .6em; }
code { font-family: monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: .8em; }
th, td { text-align: left; vertical-align: baseline; padding: .2em .7em .2em 0; border-top: 1px solid #dedacd; }
.n, .ct-amounts td { text-align: right; }
figure { margin: 1em 0; }
figcaption, .ct-time, .ct-needs, .ct-elsewhere, .filename { color: #5b605c; font-size: .85em; }
svg.ct-svg, img { max-width: 100%; height: auto; }
.ct-fold, .admonition { border-left: 3px solid #dedacd; padding-left: .8em; margin: 1em 0; }
.ct-fold__title, .admonition-title { font-weight: bold; }
.ct-cell { border-left: 3px solid #0a6b4b; padding-left: .6em; margin: 1em 0; }
.ct-output { background: none; border: 1px solid #dedacd; }
.k, .kt, .kd, .kn, .kr, .kc, .nb { color: #0a6b4b; }
.c, .c1, .cm, .cp { color: #5b605c; }
.s, .s1, .s2, .sd { color: #7a5c00; }
.mi, .mf, .mh { color: #a5480d; }
.nf, .fm { color: #1f5fa8; }
"""


def document(title: str, lang: str, body: str) -> bytes:
    code = {"en": "en", "zh": "zh-Hans"}[lang]
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
        f'<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="{code}" lang="{code}"><head><title>{escape(title)}</title>'
        f'<link rel="stylesheet" type="text/css" href="book.css"/></head><body>{body}</body></html>'
    ).encode()


def epub(page: Any, of: Part, site: Path, out: Path, base: str) -> None:
    from ebooklib import epub as library

    class Document(library.EpubItem):
        """A document that is written as it is: EbookLib's own class parses it as HTML, which loses the case of SVG's names."""

        def __init__(self, name: str, title: str, content: bytes, properties: list[str]):
            super().__init__(name, f"{name}.xhtml", "application/xhtml+xml", content)
            self.title, self.properties, self.is_linear = title, properties, True

    chapters = read(page, of, site, "{name}.xhtml", base)
    book = library.EpubBook()
    book.set_identifier(f"cudatut-{of.id}-{of.lang}")
    book.set_title(f"cudatut: {of.title}")
    book.set_language({"en": "en", "zh": "zh-Hans"}[of.lang])
    book.add_author("The cudatut authors")
    book.add_metadata("DC", "rights", of.words("license"))
    book.add_item(library.EpubItem("css", "book.css", "text/css", BOOK.encode()))
    first = front(of, chapters, "{name}.xhtml")
    documents = [Document("front", of.title, document(of.title, of.lang, first), [])]
    for one in chapters:
        content = document(one.title, of.lang, one.xhtml)
        documents.append(Document(one.name, one.title, content, one.properties))
    for number, path in enumerate(sorted({image for one in chapters for image in one.images})):
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        data = (site / path.lstrip("/")).read_bytes()
        book.add_item(library.EpubItem(f"image-{number}", path.lstrip("/"), kind, data))
    for one in documents:
        book.add_item(one)
    book.toc = [library.Link(one.file_name, one.title, one.id) for one in documents]
    book.spine = list(documents)
    book.add_item(library.EpubNcx())
    book.add_item(library.EpubNav(title=of.words("contents")))
    now = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp())), datetime.UTC
    )
    library.write_epub(str(out), book, {"mtime": now, "raise_exceptions": True})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="a part of the book as a PDF or an EPUB")
    parser.add_argument("kind", choices=("pdf", "epub"))
    parser.add_argument("part", help="its id in docs/contents.yml, such as start")
    parser.add_argument("--site", type=Path, default=ROOT / "site")
    parser.add_argument("--out", type=Path, default=ROOT / "build/print")
    parser.add_argument("--lang", choices=tuple(WORDS), action="append")
    parser.add_argument("--chapters", type=int, help="only so many, from the first one on")
    parser.add_argument("--url", default=os.environ.get("SITE_URL", ""))
    asked = parser.parse_args(arguments)
    parts = [part(asked.part, lang, asked.chapters) for lang in asked.lang or WORDS]
    asked.out.mkdir(parents=True, exist_ok=True)
    make = {"pdf": pdf, "epub": epub}[asked.kind]
    with opened(asked.site.resolve()) as page:
        for one in parts:
            out = asked.out / f"cudatut-{one.id}-{one.lang}.{asked.kind}"
            make(page, one, asked.site.resolve(), out, asked.url)
            print(f"{out} ({out.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
