"""The prose of a recording as HTML that holds nothing but what prose is made of.

Prose is Markdown, so it may well hold HTML of its own. What nbconvert makes of it is written anew, tag by tag: known tags
with known attributes, and all else as text that the reader sees.
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

_VOID = {"br", "hr"}
_HTML = {
    *_VOID,
    *("p", "em", "strong", "del", "sub", "sup", "code", "pre", "blockquote", "ul", "ol", "li"),
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
# An address of the web, or one without a scheme: no colon comes before its first slash, question mark or hash.
_ADDRESS = re.compile(r"https?://|[^:/?#]*(?:[/?#]|\Z)")


def cleaned(html: str) -> str:
    """`html` with the tags and attributes of prose alone; other tags stand there as text, other attributes are gone.

    Every element that it opens it closes, and no other one.
    """
    writer = _Writer()
    writer.feed(html)
    writer.close()
    return writer.written()


class _Writer(HTMLParser):
    """Reads HTML as a browser does, and writes what is allowed of it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._out: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _HTML | _MATH:
            self.handle_data(self.get_starttag_text() or "")
            return
        kept = "".join(
            f' {name}="{escape(value or "")}"'
            for name, value in attrs
            if _allowed(tag, name, value or "")
        )
        self._out.append(f"<{tag}{kept}>")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag in _MATH:  # in HTML, the slash means nothing
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._open:
            return
        while self._open[-1] != tag:
            self._out.append(f"</{self._open.pop()}>")
        self._out.append(f"</{self._open.pop()}>")

    def handle_data(self, data: str) -> None:
        self._out.append(escape(data, quote=False))

    def written(self) -> str:
        while self._open:
            self._out.append(f"</{self._open.pop()}>")
        return "".join(self._out)


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "a":
        return name == "href" and _ADDRESS.match(value) is not None
    return tag in _MATH and name in _MATH_ATTRIBUTES
