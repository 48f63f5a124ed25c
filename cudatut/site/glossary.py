"""The glossary (docs/glossary.yml) as Markdown of the page's language."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from cudatut.errors import CudatutError
from cudatut.site import locale

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class GlossaryError(CudatutError):
    """docs/glossary.yml is wrong; the message names the term."""


def load(path: Path | None = None) -> list[dict[str, Any]]:
    """The terms, checked: unique ids, both languages, sorted by the English term."""
    import yaml

    if path is None:
        from cudatut.site import state

        path = state.current().docs.parent / "glossary.yml"
    try:
        terms = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise GlossaryError(f"{path}: {error}") from error
    seen: set[str] = set()
    for term in terms:
        name = term.get("id")
        if not isinstance(name, str) or not _ID.fullmatch(name) or name in seen:
            raise GlossaryError(f"{path}: id {name!r} must be unique, of a-z, 0-9 and -")
        seen.add(name)
        means = term.get("means") or {}
        for lang in locale.LANGUAGES:
            if not isinstance(term.get(lang), str) or not isinstance(means.get(lang), str):
                raise GlossaryError(f"{path}: '{name}' lacks its term or meaning in {lang}")
    names = [term["id"] for term in terms]
    for before, after in pairwise(names):
        if before > after:
            raise GlossaryError(f"{path}: '{after}' stands after '{before}'; sort by id")
    return terms


def markdown(terms: list[dict[str, Any]] | None = None, lang: str | None = None) -> str:
    """One heading per term, so that each can be linked and searched for."""
    terms = load() if terms is None else terms
    lang = locale.current() if lang is None else lang
    out = []
    for term in terms:
        if lang == "zh":
            title = term["zh"] if term["en"] == term["zh"] else f"{term['zh']} · {term['en']}"
        else:
            title = term["en"] if term["en"] == term["zh"] else f"{term['en']} · {term['zh']}"
        out.append(f"## {title} {{ #{term['id']} }}\n\n{term['means'][lang]}\n")
    return "\n".join(out)
