"""How much a page weighs on its way to the reader, and what to do about a page that weighs too much."""

from __future__ import annotations

import gzip
import re
from html import unescape

from cudatut.site.folds import outermost

LIMIT = 36 * 1024  # bytes of a page's HTML, compressed by gzip as hosts do it
_OURS = re.compile(r'<details\b[^>]*\bclass="(?:ct-|[^"]*\bdeferred\b)')
_SUMMARY = re.compile(r"<summary\b[^>]*>(.*?)(?:<a class=\"headerlink\".*?)?</summary>", re.DOTALL)
_NAMED = 4  # folds that a message names


def compressed(html: str) -> int:
    """Bytes of a page as it is sent."""
    return len(gzip.compress(html.encode(), 6, mtime=0))


def problem(page: str) -> str | None:
    """What to do about a page (its whole HTML) that is heavier than `LIMIT`; None for all others."""
    # What is light enough when compressed in haste need not be compressed well: most pages are.
    if len(gzip.compress(page.encode(), 1)) <= LIMIT or (found := compressed(page)) <= LIMIT:
        return None
    folds = sorted(_folds(page), reverse=True)[:_NAMED]
    named = ", ".join(f'"{title}" ({size / 1024:.1f} KB)' for size, title in folds)
    cure = (
        f"write `??? note deferred` at folds that few open; the heaviest are {named}"
        if folds
        else "divide it"
    )
    return f"the page weighs {found / 1024:.1f} KB compressed, {LIMIT // 1024} are allowed: {cure}"


def _folds(page: str) -> list[tuple[int, str]]:
    """The weight and the title of each outermost fold of the author's that is not deferred."""
    found = []
    for begin, end in outermost(page):
        if not _OURS.match(begin[0]):
            html = page[begin.start() : end.end()]
            summary = _SUMMARY.search(html)
            title = unescape(re.sub(r"<[^>]+>", "", summary[1])).strip() if summary else ""
            found.append((compressed(html), title))
    return found
