"""The table of contents (docs/contents.yml): navigation of both languages and the landing page's list."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from cudatut.errors import CudatutError
from cudatut.site import locale, references

_ID = re.compile(r"[a-z0-9_]+")
# Pages that belong to no part, in the order of the navigation; the same files in both languages.
REFERENCE = ("claims.md", "glossary.md", "examples.md", "api.md", "contributing.md")
NAMES = {
    "home": {"en": "Home", "zh": "首页"},
    "reference": {"en": "Reference", "zh": "参考"},
    "claims.md": {"en": "Claims we ran", "zh": "我们验证过的说法"},
    "glossary.md": {"en": "Glossary", "zh": "术语表"},
    "examples.md": {"en": "Examples", "zh": "示例"},
    "api.md": {"en": "The cudatut package", "zh": "cudatut 包"},
    "contributing.md": {"en": "Writing a chapter", "zh": "如何撰写章节"},
}
_UNWRITTEN = {"en": "not yet written", "zh": "尚未撰写"}
_DRAFT = {"en": "in progress", "zh": "撰写中"}


class ContentsError(CudatutError):
    """docs/contents.yml is wrong, or disagrees with the pages that are there."""


@dataclass(frozen=True)
class Chapter:
    """One chapter; `page` is its Markdown file relative to docs/<language>.

    draft: the page is there, but not yet fit to be published: the site leaves it out.
    """

    part: str
    id: str
    title: dict[str, str]
    written: bool
    draft: bool = False

    @property
    def page(self) -> str:
        return f"{self.part}/{self.id}.md"


@dataclass(frozen=True)
class Part:
    """One part of the book: chapters in learning order."""

    id: str
    title: dict[str, str]
    level: dict[str, str]
    about: dict[str, str]
    chapters: tuple[Chapter, ...]


def load(path: Path) -> tuple[Part, ...]:
    """Read docs/contents.yml. Raises ContentsError naming what is missing or doubled in it."""
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ContentsError(f"{path}: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("parts"), list):
        raise ContentsError(f"{path}: must be a mapping with a list 'parts'")
    parts = tuple(_part(entry, path) for entry in data["parts"])
    pages = [part.id for part in parts] + [c.page for part in parts for c in part.chapters]
    doubled = sorted({page for page in pages if pages.count(page) > 1})
    if doubled:
        raise ContentsError(f"{path}: stands there twice: {', '.join(doubled)}")
    return parts


def check_pages(parts: tuple[Part, ...], docs_dir: Path) -> list[str]:
    """What the table of contents and the pages under `docs_dir` disagree about, one line each."""
    problems = []
    for part in parts:
        chapters = {chapter.page: chapter for chapter in part.chapters}
        there = {f"{part.id}/{path.name}" for path in (docs_dir / part.id).glob("*.md")}
        for page in sorted(there - chapters.keys()):
            problems.append(
                f"{docs_dir.name}/{page} is missing from docs/contents.yml: add it there"
            )
        for page, chapter in chapters.items():
            if chapter.written and page not in there:
                problems.append(
                    f"docs/contents.yml says that {page} is written, "
                    f"but docs/{docs_dir.name}/{page} does not exist"
                )
            if not chapter.written and not chapter.draft and page in there:
                problems.append(
                    f"docs/{docs_dir.name}/{page} exists: say 'written: true' in docs/contents.yml, "
                    "or 'written: draft' to leave it out of the site for now"
                )
    return problems


_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+\.md)(?:#[^)\s]*)?\)")


def unlink_drafts(markdown: str, page: str, parts: tuple[Part, ...]) -> str:
    """Turn links to chapters that the site leaves out into their plain text; `page` is relative to docs/<language>."""
    drafts = {chapter.page for part in parts for chapter in part.chapters if chapter.draft}

    def plain(link: re.Match) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[2]))
        return link[1] if target in drafts else link[0]

    return _LINK.sub(plain, markdown)


def chapters_by_example(
    parts: tuple[Part, ...], docs_dir: Path
) -> dict[str, list[tuple[Chapter, str]]]:
    """For each example the chapters that show or cite it, with their URL from the language's root."""
    found: dict[str, list[tuple[Chapter, str]]] = {}
    for part in parts:
        for chapter in part.chapters:
            path = docs_dir / chapter.page
            if not chapter.written or not path.is_file():
                continue
            for name in references.named(path.read_text(encoding="utf-8", errors="replace")):
                found.setdefault(name, []).append((chapter, f"{chapter.part}/{chapter.id}/"))
    return found


def nav(parts: tuple[Part, ...], lang: str) -> list:
    """The `nav` of mkdocs.yml: written chapters by part, then the reference pages."""
    entries: list = [{NAMES["home"][lang]: "index.md"}]
    for part in parts:
        chapters = [{c.title[lang]: c.page} for c in part.chapters if c.written]
        if chapters:
            entries.append({part.title[lang]: chapters})
    entries.append({NAMES["reference"][lang]: [{NAMES[page][lang]: page} for page in REFERENCE]})
    return entries


def landing_html(parts: tuple[Part, ...] | None = None, lang: str | None = None) -> str:
    """The whole book as a list for the landing page; chapters not yet written are marked, not linked."""
    parts = load(default_path()) if parts is None else parts
    lang = locale.current() if lang is None else lang
    out = ['<div class="ct-contents">']
    for part in parts:
        out.append(
            f'<section class="ct-part" aria-labelledby="part-{part.id}">'
            f'<p class="ct-part__level">{escape(part.level[lang])}</p>'
            f'<h3 class="ct-part__title" id="part-{part.id}">{escape(part.title[lang])}</h3>'
            f'<p class="ct-part__about">{escape(part.about[lang])}</p><ol>'
        )
        for chapter in part.chapters:
            title = escape(chapter.title[lang])
            if chapter.written:
                out.append(f'<li><a href="{chapter.part}/{chapter.id}/">{title}</a></li>')
            else:
                out.append(
                    f'<li class="ct-unwritten">{title} '
                    f'<span class="ct-unwritten__mark">{(_DRAFT if chapter.draft else _UNWRITTEN)[lang]}</span></li>'
                )
        out.append("</ol></section>")
    return "".join([*out, "</div>"])


def default_path() -> Path:
    """docs/contents.yml of the checkout."""
    from cudatut.site import state

    return state.current().docs.parent / "contents.yml"


def _part(entry: object, path: Path) -> Part:
    if not isinstance(entry, dict) or not isinstance(entry.get("chapters"), list):
        raise ContentsError(f"{path}: each part needs an id, level, title, about and chapters")
    part = _id(entry, path)
    words = [_both(entry, key, f"part '{part}'", path) for key in ("title", "level", "about")]
    chapters = []
    for item in entry["chapters"]:
        if not isinstance(item, dict) or item.get("written") not in (True, False, "draft"):
            raise ContentsError(
                f"{path}: part '{part}': each chapter needs id, title and written (true, false, draft)"
            )
        name = _id(item, path)
        title = _both(item, "title", f"chapter '{part}/{name}'", path)
        draft = item["written"] == "draft"
        chapters.append(Chapter(part, name, title, written=item["written"] is True, draft=draft))
    return Part(part, *words, tuple(chapters))


def _id(entry: dict, path: Path) -> str:
    value = entry.get("id")
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ContentsError(f"{path}: id {value!r} must be a-z, 0-9 and _ only")
    return value


def _both(entry: dict, key: str, what: str, path: Path) -> dict[str, str]:
    value = entry.get(key)
    if not isinstance(value, dict) or not all(
        isinstance(value.get(x), str) for x in locale.LANGUAGES
    ):
        raise ContentsError(f"{path}: {what} needs '{key}' with 'en' and 'zh'")
    return value
