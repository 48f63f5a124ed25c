"""The same page in the other language: English lies at the site's root, Chinese under zh/."""

from __future__ import annotations

import posixpath

NAMES = {"en": "English", "zh": "中文"}
_FOLDER = {"en": "", "zh": "zh/"}


def switch(url: str, lang: str, site: str = "") -> list[dict[str, str]]:
    """Both languages of the page at `url`, which is relative to the root of `lang`.

    `link` is relative to the page, so that it holds at any base path; `href` is absolute where the
    address of the site is known (search engines want that).
    """
    url = "" if url in (".", "./") else url
    here = _FOLDER[lang] + url
    found = []
    for other, name in NAMES.items():
        there = _FOLDER[other] + url
        link = posixpath.relpath(there or ".", here or ".") + "/"
        href = site_url(site, other) + url if site else link
        found.append({"name": name, "lang": other, "link": link, "href": href})
    return found


def switch_from_root(root: str, lang: str) -> list[dict[str, str]]:
    """Both landing pages, for pages without an address of their own (404): `root` is that of `lang`."""
    top = (root.rstrip("/") + "/").removesuffix(_FOLDER[lang])
    links = {other: top + folder for other, folder in _FOLDER.items()}
    return [
        {"name": NAMES[other], "lang": other, "link": link, "href": link}
        for other, link in links.items()
    ]


def site_url(base: str, lang: str) -> str:
    """Address of one language, given the address of the whole site."""
    return base.rstrip("/") + "/" + _FOLDER[lang]
