"""Formulas as MathML, made while the site is built: no script, no font, no other host."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from html import unescape

# What pymdownx.arithmatex leaves in the page in its generic mode.
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
_DOLLARS = re.compile(r"(?<![\\$])(\$\$?)(?=\S)(.+?)(?<=\S)\1(?!\d)", re.DOTALL)


@lru_cache(maxsize=4096)
def convert(latex: str, display: bool = False) -> str:
    """MathML of a LaTeX formula; raises ValueError quoting the formula that latex2mathml refuses."""
    import latex2mathml.converter

    # latex2mathml passes over these two, and shows them as they stand.
    bare = re.sub(r"\\[\\{}]", "", latex)
    if bare.count("{") != bare.count("}"):
        raise ValueError(f"formula ${latex}$ cannot be converted (braces that do not match)")
    try:
        mathml = latex2mathml.converter.convert(latex, display="block" if display else "inline")
    except Exception as error:  # latex2mathml has no base class of its own
        raise ValueError(
            f"formula ${latex}$ cannot be converted ({type(error).__name__}: {error})"
        ) from error
    unknown = re.search(r">(\\[A-Za-z]+)", mathml)
    if unknown:
        raise ValueError(f"formula ${latex}$ cannot be converted (no {unknown[1]} in latex2mathml)")
    return mathml


def replace(html: str, report: Callable[[Exception], None] | None = None) -> str:
    """HTML of a page with its formulas converted; a bad one is passed to `report`, or raised."""
    if "arithmatex" not in html:
        return html

    def one(match: re.Match, display: bool) -> str:
        try:
            return convert(unescape(match[1]).strip(), display)
        except ValueError as error:
            if report is None:
                raise
            report(error)
            return f"<code>{match[1]}</code>"

    html = _BLOCK.sub(lambda m: one(m, True), html)
    return _INLINE.sub(lambda m: one(m, False), html)


def in_markdown(text: str) -> str:
    """Markdown of a notebook cell with `$...$` converted; raises ValueError on a bad formula."""
    return _DOLLARS.sub(lambda m: convert(m[2].strip(), m[1] == "$$"), text)
