"""Recorded pictures: each a file beside the pages, which a browser fetches when it comes into view.

A browser's own lazy loading begins far below the window, at more than a whole one: docs/theme/js/pictures.js has it wait until
the reader is near. Until then an empty picture of the same size stands there. Without scripts the picture itself does.

A file is named by a hash of what it holds, so that a picture that stands on two pages is one file, and a new one is never
taken for an older one that a browser has kept.
"""

from __future__ import annotations

import hashlib
import re
from html import escape
from typing import Any

from cudatut.results import Picture
from cudatut.schema import reader
from cudatut.site import locale, state

LIMIT = 150 * 1024  # bytes of all pictures of a page
FOLDER = "pictures"
_SVG = "http:%2F%2Fwww.w3.org/2000/svg"  # no address of another host in what a page asks for
# With the space before `src`: of a picture's two elements the one for readers without scripts.
_SHOWN = re.compile(rf'<img\b[^>]*\ssrc="[^"]*\b({FOLDER}/[0-9a-f]{{16}}\.(?:png|webp))"')


def image(result: dict[str, Any]) -> str:
    """The elements of a recorded picture, whose file is noted to be written with the site."""
    picture = reader(Picture)(result)
    file = picture.file
    name = f"{FOLDER}/{hashlib.sha256(file).hexdigest()[:16]}.{picture.format}"
    build = state.current()
    build.pictures[name] = file
    width, height = (side * (picture.scale or 1) for side in (picture.width, picture.height))
    pixels = ' class="ct-picture__pixels"' if picture.scale else ""
    # Of the same shape, so that nothing moves when the picture is there.
    empty = f"data:image/svg+xml,%3Csvg xmlns='{_SVG}' width='{width}' height='{height}'/%3E"
    link, alt = build.link(name), escape(picture.alt[locale.current()])
    rest = f'alt="{alt}" width="{width}" height="{height}" loading="lazy" decoding="async">'
    return (
        f'<img{pixels} src="{empty}" data-src="{link}" {rest}'
        f'<noscript><img{pixels} src="{link}" {rest}</noscript>'
    )


def problem(page: str) -> str | None:
    """What to do about a page (its whole HTML) whose pictures are heavier than `LIMIT`; None for all others."""
    known = state.current().pictures
    size = sum(len(known.get(name, b"")) for name in set(_SHOWN.findall(page)))
    if size <= LIMIT:
        return None
    return (
        f"the pictures of the page weigh {size / 1024:.1f} KB, {LIMIT // 1024} are allowed: show fewer or smaller ones, "
        "or write `??? note deferred` at folds that few open"
    )
