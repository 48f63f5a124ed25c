"""What a page leaves to a page beside it, which the reader's browser fetches when it is wanted.

Two things are deferred: the tables and charts of another GPU, which lie at `<chapter>/<gpu>/` beside the page, and what
stands in the folds that an author marks (`??? note deferred "…"`), at `<chapter>/folds/`. Both are pages like others,
complete and readable by themselves. In its place the chapter has a link to there, which is all that a reader without
scripts needs. docs/theme/js/deferred.js fetches the page, takes the parts out of it, and puts them into these places.

A part is known by a hash of what it holds, so that a page never shows what an older page beside it held.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from itertools import groupby
from typing import Any

from markdown.extensions.toc import nest_toc_tokens

from cudatut.site.folds import outermost
from cudatut.site.locale import text

FOLDS = "folds"  # the page beside a chapter that holds its deferred folds
_GPU, _FOLD = (f"<!--{kind} {{}} {{}}-->{{}}<!--/{kind}-->" for kind in ("gpu", "fold"))
# In this order: another GPU's chart may stand in a fold that is deferred itself.
_MARKED = [
    re.compile(mark.format(r"(?P<page>\S+)", "(?P<name>.*?)", "(?P<html>.*?)"), re.DOTALL)
    for mark in (_GPU, _FOLD)
]
_OPEN = re.compile(r"\sopen\b")
_CLASS = re.compile(r'\bclass="(?P<names>[^"]*)"')
_SUMMARY = re.compile(
    r'\s*<summary(?: id="(?P<id>[^"]*)")?>(?P<words>.*?)(?:<a class="headerlink".*?</a>)?</summary>',
    re.DOTALL,
)
_HEADING = re.compile(
    r'<h[23]\b[^>]*?\sid="(?P<id>[^"]+)"[^>]*>(?P<words>.*?)(?:<a class="headerlink".*?</a>)?</h[23]>',
    re.DOTALL,
)
_ID = re.compile(r'(?<=\sid=")[^"]+(?=")')
_TAG = re.compile(r"<[a-z][^>]*>")
_ADDRESS = re.compile(r'(?<=\s)(?P<name>href|(?:data-)?src)="(?P<to>[^"]*)"')
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|/", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """A piece of a page, as HTML whose links are those of the page beside it.

    id: by which the page beside it has it. anchor: its address there. title: HTML; "" for a table or a chart, which has its
    own. section: the heading under which it stands, as (id, HTML).
    """

    id: str
    anchor: str
    title: str
    section: tuple[str, str]
    html: str


@dataclass
class Beside:
    """A page beside another: `name` is its address there, `gpu` (HTML) what its tables and charts are of, "" for folds."""

    name: str
    gpu: str
    parts: list[Part] = field(default_factory=list)

    def content(self, chapter: str, own: Iterable[str] = (), after: str = "") -> tuple[str, str]:
        """Its title and its content, as HTML: what it is, its parts under the chapter's headings, and `after`.

        chapter: the title of the page beside which it lies, as HTML. own: the GPUs that the text of that page is about.
        """
        kind = "gpu" if self.gpu else "folds"
        words = {"gpu": self.gpu, "own": escape(", ".join(own))}
        title = text(f"deferred.{kind}_title", chapter=chapter, **words)
        about = text(f"deferred.{kind}_about", chapter=f'<a href="../">{chapter}</a>', **words)
        return title, f"{self._html(title, about)}\n{after}{status()}"

    def _html(self, title: str, about: str) -> str:
        pieces, section = [f'<h1 id="top">{title}</h1><p>{about}</p>'], None
        for part in self.parts:
            if part.section != section:
                section = part.section
                if section[1]:
                    link = f'<a href="../#{section[0]}">{section[1]}</a>'
                    pieces.append(f'<h2 id="of-{section[0]}">{link}</h2>')
            # The anchor is no ancestor of the part: Material names code after what has an id around it (see `folds`).
            if part.title:
                pieces.append(f'<h3 id="{part.anchor}">{part.title}</h3>')
            else:
                pieces.append(f'<span id="{part.anchor}"></span>')
            pieces.append(f'<div data-part="{part.id}">{part.html}</div>')
        return "\n".join(pieces)

    def toc(self, title: str) -> list[Any]:
        """Its table of contents, as Markdown's extension has it: the chapter's headings, and the folds below them."""
        found = [{"level": 1, "id": "top", "name": title}]
        for (anchor, words), parts in groupby(self.parts, key=lambda part: part.section):
            if words:
                found.append({"level": 2, "id": f"of-{anchor}", "name": words})
            folds = (part for part in parts if part.title)
            found += [{"level": 3, "id": part.anchor, "name": part.title} for part in folds]
        return nest_toc_tokens(found)


@dataclass
class Divided:
    """A page's HTML with links in the place of what is deferred, and the pages beside it that hold that."""

    html: str
    pages: list[Beside] = field(default_factory=list)


def deferred(html: str, page: str, name: str) -> str:
    """HTML marked as deferred to the page `page` beside its own: what `name`, the HTML name of a GPU, has in its place."""
    return _GPU.format(page, name, html)


def divide(html: str) -> Divided:
    """Take out of a page's content what is marked as deferred, and what deferred folds hold."""
    html = _marked_folds(html)
    pages: dict[str, Beside] = {}
    known: Counter[str] = Counter()
    for marked in _MARKED:
        sections = [(at.start(), (at["id"], at["words"])) for at in _HEADING.finditer(html)]
        html = marked.sub(partial(_placed, pages=pages, known=known, sections=sections), html)
    for page in pages.values():
        own = {one for part in page.parts for one in (part.anchor, *_ids(part.html))}
        page.parts = [_deeper(part, own) for part in page.parts]
    return Divided(html + (status() if pages else ""), list(pages.values()))


def _marked_folds(html: str) -> str:
    """A page's content, what deferred folds hold being marked; a fold inside a deferred one goes where that goes."""
    pieces, done = list[str](), 0
    for begin, end in outermost(html):
        inside = html[begin.end() : end.start()]
        if summary := _is_deferred(begin["attributes"]) and _SUMMARY.match(inside):
            name = f"{summary['id'] or ''} {summary['words']}"
            marked = summary[0] + _FOLD.format(FOLDS, name, inside[summary.end() :])
        else:
            marked = _marked_folds(inside)
        pieces += [html[done : begin.end()], marked]
        done = end.start()
    return "".join([*pieces, html[done:]])


def _is_deferred(attributes: str) -> bool:
    """Whether a fold is; whoever sees at once what one holds would wait for it."""
    names = _CLASS.search(attributes)
    wanted = names is not None and "deferred" in names["names"].split()
    return wanted and not _OPEN.search(attributes)


def _placed(
    match: re.Match,
    pages: dict[str, Beside],
    known: Counter,
    sections: list[tuple[int, tuple[str, str]]],
) -> str:
    """Note a part; the HTML that stands in its place."""
    name, told, html = match["page"], match["name"], match["html"]
    key = hashlib.sha256(html.encode()).hexdigest()[:8]
    known[key] += 1
    if known[key] > 1:  # the same twice on a page
        key += f"-{known[key]}"
    section = next((one for at, one in reversed(sections) if at < match.start()), ("top", ""))
    if name == FOLDS:
        anchor, _, title = told.partition(" ")
        gpu, words = "", text("deferred.fold")
    else:
        anchor, title, gpu, words = f"part-{key}", "", told, text("deferred.gpu", gpu=told)
    page = pages.setdefault(name, Beside(name, gpu))
    page.parts.append(Part(key, anchor, title, section, html))
    # Links to what is deferred lead to where it will be.
    inside = "".join(f'<span id="{one}"></span>' for one in _ids(html))
    return (
        f'<div class="ct-deferred" data-deferred="{key}">'
        f'<p><a href="{name}/#{anchor}">{words}</a></p>{inside}</div>'
    )


def _deeper(part: Part, own: set[str]) -> Part:
    """A part whose relative links hold one folder further down; own: the ids that its page has."""

    def address(match: re.Match) -> str:
        to = match["to"]
        if _ABSOLUTE.match(to) or (to.startswith("#") and to[1:] in own):
            return match[0]
        return f'{match["name"]}="../{to}"'

    html = _TAG.sub(lambda tag: _ADDRESS.sub(address, tag[0]), part.html)
    return replace(part, html=html)


def _ids(html: str) -> list[str]:
    return [one for tag in _TAG.findall(html) for one in _ID.findall(tag)]


def status() -> str:
    """An element in which a page says what it fetches, to those who do not see it too; it has the words for that."""
    words = {
        key: text(f"deferred.{key}", name="{name}")
        for key in ("loading", "shown", "failed", "again")
    }
    data = "".join(f' data-{key}="{escape(value)}"' for key, value in words.items())
    return f'<div class="ct-deferred__status" role="status"{data}></div>'
