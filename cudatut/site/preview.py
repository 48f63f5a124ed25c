"""A few chapters as they would look, before their examples are recorded: `python -m cudatut.site preview start/errors`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cudatut.site import references
from cudatut.site.contents import Part

# Pages that are kept beside the chapters: they are small, and chapters link to them.
_BESIDE = ("index.md", "glossary.md")


def keep(files: Any, parts: tuple[Part, ...], only: list[str]) -> None:
    """Take every page out of MkDocs' files but the chapters named, such as "start/errors"."""
    chapters = {chapter.page for part in parts for chapter in part.chapters}
    wanted = {f"{name}.md" for name in only}
    for file in list(files):
        page = file.src_uri
        if page.endswith(".md") and page not in wanted and page not in _BESIDE:
            files.remove(file)
    unknown = sorted(wanted - chapters)
    if unknown:
        raise SystemExit(f"docs/contents.yml has no chapter {', '.join(unknown)}")


def shown(docs: Path, only: list[str]) -> list[str] | None:
    """Examples that the chapters named show; None where no chapter is named, for all."""
    if not only:
        return None
    pages = [docs / f"{name}.md" for name in only]
    return [
        name
        for page in pages
        if page.is_file()
        for name in references.named(page.read_text(encoding="utf-8"))
    ]
