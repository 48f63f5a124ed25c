"""The prose of a recording as HTML that holds nothing but what prose is made of.

Prose is Markdown, so it may well hold HTML of its own. What nbconvert makes of it is cleaned by bleach: known tags
with known attributes stay, and all else is text that the reader sees.
"""

from __future__ import annotations

from bleach.sanitizer import Cleaner

_HTML = {
    *("br", "hr", "p", "em", "strong", "del", "sub", "sup", "code", "pre", "blockquote"),
    *("ul", "ol", "li"),
    *("a", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
# What latex2mathml makes of a formula.
_MATH = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "mstyle"),
    *("msub", "msup", "msubsup", "munder", "mover", "munderover", "mpadded", "mphantom"),
    *("menclose", "mtable", "mtr", "mtd"),
}
_MATH_ATTRIBUTES = {
    *("display", "mathvariant", "stretchy", "fence", "separator", "form", "lspace", "rspace"),
    *("minsize", "maxsize", "movablelimits", "linethickness", "accent", "accentunder", "notation"),
    *("width", "height", "depth", "columnalign", "columnlines", "columnspacing", "rowlines"),
    *("rowspacing", "displaystyle", "scriptlevel"),
}


def _allowed(tag: str, name: str, value: str) -> bool:
    return (tag == "a" and name == "href") or (tag in _MATH and name in _MATH_ATTRIBUTES)


# Addresses of the web, and those without a scheme.
_CLEANER = Cleaner(tags=_HTML | _MATH, attributes=_allowed, protocols={"http", "https"})


def cleaned(html: str) -> str:
    """`html` with the tags and attributes of prose alone; other tags stand there as text, other attributes are gone."""
    return _CLEANER.clean(html)
