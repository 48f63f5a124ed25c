"""Bytes of a page, of its style sheet and of its scripts that nobody sees."""

from __future__ import annotations

import re
from pathlib import Path

from cudatut.files import write_whole

# Pygments marks every blank, name, operator and bracket; the style sheet gives them the color of plain text. The marks of
# the last two were a tenth of a page of code.
_PLAIN_TOKENS = re.compile(r'<span class="[nwop]">([^<]*)</span>')
_INDENT = re.compile(r"\n\s*\n*(?=\s*<|\s*\n)")

# mkdocstrings gives its style sheet to every page; what it is for stands on one.
_OF_DOCSTRINGS = re.compile(r'<link rel="stylesheet" href="[^"]*/_mkdocstrings\.css">\s*')

# What is said to the formatter of this checkout means nothing to a reader; the files that are offered have it.
_TO_THE_FORMATTER = re.compile(r' *<span class="c1"># fmt: skip</span>')


def tokens(html: str) -> str:
    """Highlighted code without the spans that change nothing, and without what is said to a formatter."""
    return _TO_THE_FORMATTER.sub("", _PLAIN_TOKENS.sub(r"\1", html))


def frame(page: str) -> str:
    """A whole page without the indentation of the theme's templates, and without a style sheet that it has no use for; the article stays as it is."""
    if '<div class="doc ' not in page:
        page = _OF_DOCSTRINGS.sub("", page)
    before, start, rest = page.partition("<article")
    article, end, after = rest.rpartition("</article>")
    if not start or not end:
        return page
    return _INDENT.sub("\n", before) + start + article + end + _INDENT.sub("\n", after)


# Of scripts those that have lines of their own alone.
_COMMENTS = {
    ".css": re.compile(r"/\*.*?\*/\s*", re.DOTALL),
    ".js": re.compile(r"^[ \t]*//.*\n", re.MULTILINE),
}


def without_comments(code: str, suffix: str) -> str:
    """A style sheet or a script without its comments."""
    return _COMMENTS[suffix].sub("", code)


# The scripts that every page asks for, in the order in which they run: one file is one request, and a third lighter. Folds look
# for words in what is deferred, whose pictures are to be printed, too; the search waits for what folds found, and the last three
# need the two before them.
TOGETHER = (
    "deferred",
    "pictures",
    "folds",
    "search",
    "cudatut",
    "words",
    "kept",
    "progress",
    "predictions",
)


def theme(site: Path) -> None:
    """Take the comments out of our style sheets and scripts in a built site, and join the scripts of every page: every first visit fetches them."""
    for file in sorted([*site.glob("css/*.css"), *site.glob("js/*.js")]):
        write_whole(file, without_comments(file.read_text(encoding="utf-8"), file.suffix).encode())
    parts = [site / "js" / f"{name}.js" for name in TOGETHER]
    joined = "".join(part.read_text(encoding="utf-8") for part in parts)
    write_whole(site / "js" / "site.js", joined.encode())
    for part in parts:
        part.unlink()
