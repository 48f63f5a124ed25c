"""Bytes of a page, of its style sheet and of its scripts that nobody sees."""

from __future__ import annotations

import re
from pathlib import Path

from cudatut.files import write_whole

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


_STYLE_COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)
_SCRIPT_COMMENT = re.compile(r"^[ \t]*//.*\n", re.MULTILINE)  # of whole lines alone


def style(css: str) -> str:
    """A style sheet without its comments."""
    return _STYLE_COMMENT.sub("", css)


def script(js: str) -> str:
    """A script without the comments that have lines of their own."""
    return _SCRIPT_COMMENT.sub("", js)


def theme(site: Path) -> None:
    """Take the comments out of our style sheets and scripts in a built site: every first visit fetches them."""
    for folder, suffix, slim in (("css", ".css", style), ("js", ".js", script)):
        for file in sorted((site / folder).glob(f"*{suffix}")):
            write_whole(file, slim(file.read_text(encoding="utf-8")).encode())
