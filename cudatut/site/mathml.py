"""Formulas as MathML, made while the site is built: no script, no font, no other host."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import unescape
from xml.etree import ElementTree

from latex2mathml.converter import convert_to_element

# What pymdownx.arithmatex leaves in the page in its generic mode.
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', re.DOTALL)
_DOLLARS = re.compile(r"(?<![\\$])(\$\$?)(?=\S)(.+?)(?<=\S)\1(?!\d)", re.DOTALL)


@cache
def convert(latex: str, display: bool = False) -> str:
    """MathML of a LaTeX formula; raises ValueError quoting the formula that latex2mathml refuses."""
    try:
        # latex2mathml passes over these two, and shows them as they stand.
        bare = re.sub(r"\\[\\{}]", "", latex)
        if bare.count("{") != bare.count("}"):
            raise ValueError("braces that do not match")
        formula = convert_to_element(latex, display="block" if display else "inline")
        for element in formula.iter():  # its own `convert` writes a "<" of the text as one of a tag
            element.text = unescape(element.text or "")
        mathml = ElementTree.tostring(formula, encoding="unicode")
        if unknown := re.search(r">(\\[A-Za-z]+)", mathml):
            raise ValueError(f"no {unknown[1]} in latex2mathml")
    except Exception as error:  # latex2mathml has no base class of its own
        raise ValueError(f"formula ${latex}$ cannot be converted ({error!r})") from error
    return mathml


def replace(html: str, report: Callable[[Exception], None]) -> str:
    """HTML of a page with its formulas converted; a bad one is passed to `report`, and stands there as code."""

    def one(match: re.Match) -> str:
        try:
            return convert(unescape(match[2]).strip(), display=match[1] == "div")
        except ValueError as error:
            report(error)
            return f"<code>{match[2]}</code>"

    return _FORMULA.sub(one, html)


def in_markdown(text: str) -> str:
    """Markdown of a notebook cell with `$...$` converted; raises ValueError on a bad formula."""
    return _DOLLARS.sub(lambda m: convert(m[2].strip(), m[1] == "$$"), text)
