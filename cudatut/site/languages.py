"""The same page in the other language: English lies at the site's root, Chinese under zh/."""

from __future__ import annotations

NAMES = {"en": "English", "zh": "中文"}
_FOLDER = {"en": "", "zh": "zh/"}


def alternates(url: str, lang: str) -> list[dict[str, str]]:
    """Both languages of the page at `url` (relative to the root of `lang`), as Material wants them.

    Links are relative to the root of `lang`: they hold at any base path.
    """
    url = "" if url in (".", "./") else url
    up = "../" * _FOLDER[lang].count("/")
    return [
        {
            "name": name,
            "lang": other,
            "link": (url or "./") if other == lang else (up + _FOLDER[other] + url or "./"),
        }
        for other, name in NAMES.items()
    ]


def site_url(base: str, lang: str) -> str:
    """Address of one language, given the address of the whole site."""
    return base.rstrip("/") + "/" + _FOLDER[lang]
