"""Bytes of a page that nobody sees."""

from __future__ import annotations

import re

# Pygments marks every blank, name, operator and bracket; the style sheet gives them the color of plain text. The marks of
# the last two were a tenth of a page of code.
_PLAIN_TOKENS = re.compile(r'<span class="[nwop]">([^<]*)</span>')
_INDENT = re.compile(r"\n\s*\n*(?=\s*<|\s*\n)")


def tokens(html: str) -> str:
    """Highlighted code without the spans that change nothing."""
    return _PLAIN_TOKENS.sub(r"\1", html)


def frame(page: str) -> str:
    """A whole page without the indentation of the theme's templates; the article stays as it is."""
    before, start, rest = page.partition("<article")
    article, end, after = rest.rpartition("</article>")
    if not start or not end:
        return page
    return _INDENT.sub("\n", before) + start + article + end + _INDENT.sub("\n", after)
