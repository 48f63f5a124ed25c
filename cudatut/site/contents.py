"""The table of contents (docs/contents.yml), which the navigation of both languages and the landing page follow."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from cudatut import catalog, yaml_text
from cudatut.errors import CudatutError
from cudatut.site import locale, references, state
from cudatut.site.locale import text

# Pages that belong to no part, in the order of the navigation; the same files in both languages.
REFERENCE = ("book", "claims", "glossary", "examples", "api", "contributing")


class ContentsError(CudatutError):
    """docs/contents.yml is wrong, or disagrees with the pages that are there."""


@dataclass(frozen=True)
class Chapter:
    """One chapter of the part `part`.

    draft: the page is there, but not yet fit to be published: the site leaves it out.
    """

    part: str
    id: str
    title: dict[str, str]
    written: bool
    draft: bool = False

    @property
    def name(self) -> str:
        """Such as "start/errors"."""
        return f"{self.part}/{self.id}"

    @property
    def page(self) -> str:
        """Its Markdown file, relative to docs/<language>."""
        return f"{self.name}.md"


@dataclass(frozen=True)
class Part:
    """One part of the book: chapters in learning order."""

    id: str
    title: dict[str, str]
    level: dict[str, str]
    about: dict[str, str]
    chapters: tuple[Chapter, ...]


def load(path: Path | None = None) -> tuple[Part, ...]:
    """The table of contents in `path`, or that of the running build.

    A preview has written the chapters that it shows, and all others in progress.
    Raises ContentsError naming what is missing or doubled in it.
    """
    path, shown = path or state.current().docs.parent / "contents.yml", state.current().only
    try:
        data = yaml_text.load(path.read_text(encoding="utf-8"))
        parts = tuple(_part(entry) for entry in _value(data, "the", "parts"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, catalog.BadHeaderError) as error:
        raise ContentsError(f"{path}: {error}") from error
    names = [part.id for part in parts] + [chapter.name for chapter in chapters(parts)]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ContentsError(f"{path}: stands there twice: {', '.join(doubled)}")
    # In a list of tabs, of bookmarks or of what a search found, the part is not named.
    for lang in locale.LANGUAGES:
        titled: dict[str, str] = {}
        for chapter in chapters(parts):
            title, name = chapter.title[lang], chapter.name
            if titled.setdefault(title.casefold(), name) != name:
                raise ContentsError(
                    f"{path}: '{title}' is the title of {titled[title.casefold()]} and of {name}: "
                    "say in one of them what sets it apart"
                )
    if unknown := sorted(set(shown) - {chapter.name for chapter in chapters(parts)}):
        raise ContentsError(f"{path}: there is no chapter {', '.join(unknown)}")
    return parts


def _part(entry: Any) -> Part:
    value = partial(_value, entry, "a part's")
    listed, part = value("chapters"), value("id")
    title, level, about = (value(key) for key in ("title", "level", "about"))
    return Part(part, title, level, about, tuple(_chapter(part, one) for one in listed))


def _chapter(part: str, entry: Any) -> Chapter:
    value = partial(_value, entry, f"part '{part}': a chapter's")
    name, title, written = value("id"), value("title"), value("written")
    if shown := state.current().only:
        written = True if f"{part}/{name}" in shown else "draft"
    return Chapter(part, name, title, written=written is True, draft=written == "draft")


def _value(entry: Any, where: str, key: str) -> Any:
    return catalog.value_of(entry if isinstance(entry, dict) else {}, where, key, *_RULES[key])


# By key, which values fit, and how that is said.
_IS_LIST = (lambda value: isinstance(value, list), "write a list")
_RULES = {
    "parts": _IS_LIST,
    "chapters": _IS_LIST,
    "id": (lambda value: re.fullmatch("[a-z0-9_]+", str(value)), "it must be a-z, 0-9 and _ only"),
    **dict.fromkeys(("title", "level", "about"), (catalog.bilingual, "it must have 'en' and 'zh'")),
    "written": (lambda value: value in (True, False, "draft"), "write true, false or draft"),
}


def chapters(parts: Iterable[Part]) -> Iterator[Chapter]:
    """All chapters, in learning order."""
    return (chapter for part in parts for chapter in part.chapters)


def as_written(parts: Iterable[Part], name: str) -> tuple[Part, ...]:
    """The table of contents as it is once the chapter `name` is written. Raises ContentsError where there is none."""
    parts = tuple(parts)
    known = [chapter.name for chapter in chapters(parts)]
    if name not in known:
        raise ContentsError(
            f"docs/contents.yml has no chapter '{name}'.{catalog.did_you_mean(name, known)} "
            f"`python -m cudatut new {name}` begins one."
        )
    return tuple(
        replace(
            part,
            chapters=tuple(
                replace(one, written=True, draft=False) if one.name == name else one
                for one in part.chapters
            ),
        )
        for part in parts
    )


def chapter_of(example: str, parts: Iterable[Part]) -> Chapter | None:
    """The chapter of an example by its name: `start/errors_solutions` is of `start/errors`, or of a longer name that fits."""
    fitting = [one for one in chapters(parts) if f"{example}_".startswith(f"{one.name}_")]
    return max(fitting, key=lambda chapter: len(chapter.id), default=None)


def left_out(parts: tuple[Part, ...]) -> set[str]:
    """Pages that are there and not on the site: chapters in progress; what a preview need not have."""
    pages = {chapter.page for chapter in chapters(parts) if chapter.draft}
    if state.current().only:  # the glossary is small, and chapters link to it
        # Every chapter leads to these two: its terms, and its certificate.
        pages |= {f"{page}.md" for page in REFERENCE if page not in ("book", "glossary")}
    return pages


_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+\.md)(?:#[^)\s]*)?\)")


def unlink_drafts(markdown: str, page: str, parts: tuple[Part, ...]) -> str:
    """Turn links to pages that the site leaves out into their plain text; `page` is relative to docs/<language>."""
    missing = left_out(parts)

    def plain(link: re.Match) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[2]))
        return link[1] if target in missing else link[0]

    return _LINK.sub(plain, markdown)


def chapters_by_example(parts: tuple[Part, ...], docs_dir: Path) -> dict[str, list[Chapter]]:
    """For each example the chapters that show or cite it, in learning order."""
    found: dict[str, list[Chapter]] = {}
    for chapter in chapters(parts):
        path = docs_dir / chapter.page
        if chapter.written and path.is_file():
            for name in references.named(path.read_text(encoding="utf-8", errors="replace")):
                found.setdefault(name, []).append(chapter)
    return found


def nav(parts: tuple[Part, ...], lang: str) -> list:
    """The `nav` of mkdocs.yml: written chapters by part, then the reference pages."""
    entries: list = [{text("contents.home", lang): "index.md"}]
    for part in parts:
        if written := [{c.title[lang]: c.page} for c in part.chapters if c.written]:
            entries.append({part.title[lang]: written})
    pages = [page for page in REFERENCE if f"{page}.md" not in left_out(parts)]
    reference = [{text(f"contents.{page}", lang): f"{page}.md"} for page in pages]
    return [*entries, {text("contents.reference", lang): reference}]
