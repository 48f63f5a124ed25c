"""The words of the interface in the page's language.

`use("zh")` sets the language of the page being built; `text("check.passed")` looks a word up in
`en.yml` or `zh.yml` beside this file. The two files have the same keys (a test compares them).
What examples record is translated by `cudatut.site.labels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from cudatut import yaml_text
from cudatut.catalog import LANGUAGES

_current = "en"


def use(lang: str) -> None:
    """Set the language of everything drawn or rendered from now on: "en" or "zh"."""
    global _current
    if lang not in LANGUAGES:
        raise ValueError(f"unknown language {lang!r}; the book has {', '.join(LANGUAGES)}")
    _current = lang


def current() -> str:
    """Return the language set by the last `use`; "en" before the first one."""
    return _current


@contextmanager
def using(lang: str) -> Iterator[None]:
    """Use `lang` inside a with block, then the language before it again."""
    before = current()
    use(lang)
    try:
        yield
    finally:
        use(before)


def text(key: str, lang: str | None = None, /, **values: object) -> str:
    """Return the string at the dotted `key`, its `{fields}` replaced by `values`.

    Raises KeyError naming the key and the language where the locale file lacks it.
    """
    lang = lang or _current
    found: Any = words(lang)
    try:
        for part in key.split("."):
            found = found[part]
    except (KeyError, TypeError):
        raise KeyError(f"locale/{lang}.yml has no string {key!r}") from None
    return found.format(**values) if values else found


@cache
def words(lang: str) -> dict[str, Any]:
    """Return the whole locale file of `lang` as nested dictionaries."""
    return yaml_text.load(Path(__file__).with_name(f"{lang}.yml").read_text(encoding="utf-8"))
