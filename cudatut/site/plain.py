"""A line of Markdown as a reader sees it: without emphasis, links, tags, formulas and references.

What has no words of its own (a reference, code, a formula's symbols) leaves a mark, so that its neighbors do not run
together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

from cudatut.site import measurements, references

MARK, VALUE = " ¤ ", f" {measurements.VALUE} "

_COMMENT = re.compile(r"<!--.*?-->")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?:\s+(\"[^\"]*\"))?\)")
_REFERENCE_LINK = re.compile(r"!?\[([^\]]+)\]\[[^\]]*\]")
_FOOTNOTE = re.compile(r"\[\^[^\]]+\]")
_ADDRESS = re.compile(r"\bhttps?://\S+|<(?:https?|mailto):[^>]*>")
_ATTRIBUTES = re.compile(r"\{:?\s*[#.][^}]*\}")
# Tags that end what stands before them; all others are part of their sentence.
_BLOCK_TAG = re.compile(
    r"</?(?:td|th|tr|table|thead|tbody|p|br|li|ul|ol|div|dt|dd|summary|h\d)\b[^>]*>", re.I
)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_EMPHASIS = re.compile(
    r"(?<!\w)(?:\*{1,3}|_{1,3}|~~)(?=\S)|(?<=\S)(?:\*{1,3}|_{1,3}|~~)(?!\w)", re.A
)
# Blanks of other widths, and digits and signs of full width.
_NARROW = {ord(blank): " " for blank in "\u00a0\u2009\u202f\u2002\u2003\u3000"} | {
    ord(wide): chr(ord(wide) - 0xFEE0) for wide in "０１２３４５６７８９．％／"
}

_TEXT_IN_FORMULA = re.compile(r"\\(?:text|mathrm|textrm|operatorname|mathit)\s*\{([^{}]*)\}")
_MICRO = re.compile(r"\\mu\s*(?:\\(?:text|mathrm)\s*\{\s*(s|J|W)\s*\}|(s|J|W)\b)")
_SPACING = re.compile(r"\\[,;:!> ]|~|\\q?quad\b|\{,\}")
_SIGNS = {r"\times": "*", r"\cdot": "*", r"\%": "%", r"\approx": "=", "^": "^", "{": "", "}": ""}
_IN_FORMULA = re.compile(r"\x00[^\x00]*\x00|\\[A-Za-z]+|\\.|[A-Za-z]+|[{}]")


def formula(latex: str) -> str:
    """A formula as text: numbers, signs and the words in it; a mark for each symbol."""
    latex = _MICRO.sub(lambda unit: f"\x00 µ{unit[1] or unit[2]}\x00", latex)
    latex = _TEXT_IN_FORMULA.sub(lambda text: f"\x00{text[1]}\x00", latex)
    latex = _SPACING.sub(" ", latex)

    def piece(found: re.Match) -> str:
        if found[0].startswith("\x00"):
            return f" {found[0][1:-1]} "
        return _SIGNS.get(found[0], MARK)

    text = _IN_FORMULA.sub(piece, latex).strip()
    return (
        f"{text[:-1]}×" if text.endswith("*") else text
    )  # 18.8 times; within a formula it is a product


def _code(span: re.Match) -> str:
    """Code that is nothing but a number or a measurement is read as one."""
    text = span[2].strip()
    alone = measurements.is_number(text) or measurements.is_measurement(text)
    return text if alone else MARK


def plain(line: str, field: Callable[[re.Match], str] = lambda _: VALUE) -> str:
    """The words and numbers of a line; `field` says what a reader is shown for each `{{ ... }}`."""
    line = references.FIELD.sub(field, line)
    for (
        sign,
        markup,
        shown,
    ) in _MARKUP:  # most lines have little of it, and looking for a sign is quick
        if sign in line:
            line = markup.sub(shown, line)
    if "&" in line:
        line = unescape(line)
    return line if line.isascii() else line.translate(_NARROW)


# In this order: what a sign stands for inside code or a formula is decided first.
_MARKUP = (
    ("<!--", _COMMENT, MARK),
    ("`", references.CODE_SPAN, _code),
    ("$", references.MATH, lambda found: f" {formula(found[2])} "),
    ("](", _IMAGE_OR_LINK, r"\1 \2"),
    ("][", _REFERENCE_LINK, r"\1"),
    ("[^", _FOOTNOTE, ""),
    (":", _ADDRESS, MARK),
    ("{", _ATTRIBUTES, MARK),
    ("<", _BLOCK_TAG, " | "),
    ("<", _TAG, ""),
    ("*", _EMPHASIS, ""),
    ("_", _EMPHASIS, ""),
    ("~~", _EMPHASIS, ""),
)
