"""Old addresses lead on: a small page at each that examples/renamed.yml names, for the example and for its chapter.

start/first_optimisation: start/first_optimization
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from cudatut import catalog
from cudatut.site import locale

_PAGE = """<!doctype html>
<html lang="{lang}">
<meta charset="utf-8">
<title>{title}</title>
<meta name="robots" content="noindex">
<link rel="canonical" href="{canonical}">
<script>location.replace("{link}" + location.search + location.hash)</script>
<meta http-equiv="refresh" content="1; url={link}">
<p>{words} <a href="{link}">{name}</a></p>
"""


def write(site: Path, chapters: Iterable[str], address: str = "") -> list[str]:
    """Write the pages into the built site of one language; the old addresses, relative to it.

    chapters: "part/chapter" of those that the site has. address: where this language is published, if that is known.
    Nothing is written where a page stands already, nor where there is none to lead to.
    """
    there = set(chapters)
    written = []
    for old, new in catalog.renamed().items():
        pairs = [(f"examples/{old}/", f"examples/{new}/")]
        if new in there:
            pairs.append((f"{old}/", f"{new}/"))
        for source, target in pairs:
            page = site / source / "index.html"
            if page.exists() or not (site / target / "index.html").is_file():
                continue
            link = "../" * source.count("/") + target
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(
                _PAGE.format(
                    lang=locale.current(),
                    title=escape(new),
                    canonical=escape(address.rstrip("/") + "/" + target if address else link),
                    link=escape(link),
                    words=locale.text("page.moved"),
                    name=escape(new),
                ),
                encoding="utf-8",
            )
            written.append(source)
    return written
