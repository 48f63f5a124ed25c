"""Old addresses lead on: a small page at each that examples/renamed.yml names, for the example and for its chapter.

start/first_optimisation: start/first_optimization
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from cudatut import catalog
from cudatut.site import locale

_PAGE = """<!doctype html>
<html lang="{lang}">
<meta charset="utf-8">
<title>{name}</title>
<meta name="robots" content="noindex">
<link rel="canonical" href="{canonical}">
<script>location.replace("{link}" + location.search + location.hash)</script>
<meta http-equiv="refresh" content="1; url={link}">
<p>{words} <a href="{link}">{name}</a></p>
"""


def write(site: Path, address: str = "") -> list[str]:
    """Write the pages into the built site of one language; the old addresses, relative to it.

    address: where this language is published, if that is known.
    Nothing is written where a page stands already, nor where there is none to lead to.
    """
    written = []
    for old, new in catalog.renamed().items():
        for source, target in ((f"examples/{old}/", f"examples/{new}/"), (f"{old}/", f"{new}/")):
            page = site / source / "index.html"
            if page.exists() or not (site / target / "index.html").is_file():
                continue
            link = "../" * source.count("/") + target
            values = {
                "lang": locale.current(),
                "name": new,
                "canonical": f"{address.rstrip('/')}/{target}" if address else link,
                "link": link,
                "words": locale.text("page.moved"),
            }
            page.parent.mkdir(parents=True, exist_ok=True)
            filled = _PAGE.format(**{key: escape(value) for key, value in values.items()})
            page.write_text(filled, encoding="utf-8")
            written.append(source)
    return written
