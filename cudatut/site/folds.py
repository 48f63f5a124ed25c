"""Folds have addresses: each `<summary>` of a page gets an id, and that of an author's fold a link to itself.

An id is the section's, what the fold holds, and from the second of its kind in that section on its number:
`#refused-output`, `#waits-deeper-2`. So it is the same in both languages, whatever the fold's title is, and what is
written into other sections does not change it. docs/theme/js/folds.js opens what such an address leads to.

The id is the summary's, not the fold's: Material names a block of code after the element with an id around it, and its
copy buttons would copy the first block of a fold for all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from cudatut.site.locale import text

# A heading or a cell's element, by which a section is known; or the start of a fold and its summary.
_PIECE = re.compile(
    r'<h[1-6]\b[^>]*?\sid="(?P<heading>[^"]+)"'
    r'|<div\b[^>]*?\sid="cell-id=(?P<cell>[^"]+)"'
    r"|(?P<start><details(?P<attributes>(?:\s[^>]*)?)>\s*<summary)>(?P<words>.*?)</summary>",
    re.DOTALL,
)
_CLASS = re.compile(r'class="([^"\s]+)')
_TAG = re.compile(r"<details\b(?P<attributes>[^>]*)>|</details>")
_HOLDS = {"success": "answer", "example": "output", "note": "deeper", "info": "checked"}


def addressed(html: str, lang: str) -> str:
    """A page's content with an id at each fold's summary, and a link in the summaries of those that are not ours."""
    section, so_far = "top", Counter[str]()

    def piece(found: re.Match) -> str:
        nonlocal section
        if here := found["heading"] or found["cell"]:
            section = here
            return found[0]
        kind = _CLASS.search(found["attributes"])
        name = kind[1] if kind else "fold"
        made = f"{section}-{_HOLDS.get(name, name.removeprefix('ct-'))}"
        so_far[made] += 1
        if so_far[made] > 1:
            made += f"-{so_far[made]}"
        link = ""
        if not name.startswith("ct-"):
            words = text("page.fold", lang)
            link = f'<a class="headerlink" href="#{made}" title="{words}">&para;</a>'
        return f'{found["start"]} id="{made}">{found["words"]}{link}</summary>'

    return _PIECE.sub(piece, html)


def outermost(html: str) -> Iterator[tuple[re.Match, re.Match]]:
    """The tags with which each fold begins and ends that stands in no other one."""
    begun: list[re.Match] = []
    for tag in _TAG.finditer(html):
        if tag[0] != "</details>":
            begun.append(tag)
        elif begun:
            begin = begun.pop()
            if not begun:
                yield begin, tag
