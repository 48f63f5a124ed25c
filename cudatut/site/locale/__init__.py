"""The words of the interface in the page's language.

`use("zh")` sets the language of the page being built; `text("check.passed")` looks a word up in
`en.yml` or `zh.yml` beside this file. The two files have the same keys (a test compares them).
What examples record is translated by `cudatut.site.labels`.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "zh")
_current = "en"


def use(lang: str) -> None:
    """Set the language of everything drawn or rendered from now on: "en" or "zh"."""
    global _current
    _current = _known(lang)


def current() -> str:
    """Return the language set by the last `use`; "en" before the first one."""
    return _current


@contextmanager
def using(lang: str):
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
    lang = current() if lang is None else _known(lang)
    node: object = words(lang)
    for part in key.split("."):
        if not isinstance(node, dict) or part not in node:
            raise KeyError(f"locale/{lang}.yml has no string {key!r}")
        node = node[part]
    if not isinstance(node, str):
        raise KeyError(f"locale/{lang}.yml: {key!r} is a group of strings, not one")
    return node.format(**values) if values else node


@cache
def words(lang: str) -> dict:
    """Return the whole locale file of `lang` as nested dictionaries."""
    import yaml  # here, so that drawing a figure needs no YAML reader

    path = Path(__file__).with_name(f"{_known(lang)}.yml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _known(lang: str) -> str:
    if lang not in LANGUAGES:
        raise ValueError(f"unknown language {lang!r}; the book has {', '.join(LANGUAGES)}")
    return lang
