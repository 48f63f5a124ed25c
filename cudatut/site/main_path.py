"""The main path of a chapter: what a newcomer reads, without the folds; and how much of it there is.

On a page's Markdown for the lints, on its HTML for the budgets and for the time that the page asks of its reader.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

from cudatut.site import references
from cudatut.site.locale import text

# --- Markdown ------------------------------------------------------------------------------------

_FOLD = re.compile(r"^(?P<indent> *)\?\?\?")
_SECTION = re.compile(r"^##? .*\{:?[^}]*#(?P<id>[\w-]+)")


@dataclass(frozen=True)
class Line:
    """One line outside the folds: its number from 1, `kind` as `references.scan` has it, the fence's header, its section."""

    number: int
    text: str
    kind: str
    info: str
    section: str


def lines(markdown: str) -> Iterator[Line]:
    """The lines of a page that stand in no fold (`??? ...` and what is indented below it)."""
    fold: int | None = None
    section = ""
    for number, line, kind, info in references.scan(markdown):
        indent = len(line) - len(line.lstrip(" "))
        if fold is not None:
            if not line.strip() or indent >= fold + 4:
                continue
            fold = None
        if kind == "prose":
            if match := _FOLD.match(line):
                fold = len(match["indent"])
                continue
            if match := _SECTION.match(line):
                section = match["id"]
        yield Line(number, line, kind, info, section)


# --- HTML ----------------------------------------------------------------------------------------

# Innermost first: a fold holds no other one that is still there.
_DETAILS = re.compile(r"<details\b(?:(?!<details\b).)*?</details>", re.DOTALL)
_PRE = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
_CHART = re.compile(r'<figure class="ct-bench"')
_NO_WORDS = re.compile(
    r"<(?P<tag>pre|script|style|svg|table|math)\b.*?</(?P=tag)>|<!--.*?-->", re.DOTALL
)
_TAG = re.compile(r"<[^>]+>")
_WORD = re.compile(r"[A-Za-z][\w'’-]*")
_HAN = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Amount:
    """How much there is to read outside the folds: words, Chinese characters, lines of code and output, tables, rows."""

    words: int
    characters: int
    code_lines: int
    tables: int
    rows: int


def _open(html: str) -> str:
    """HTML without its folds."""
    while True:
        html, folded = _DETAILS.subn("", html)
        if not folded:
            return html


def amount(html: str) -> Amount:
    """Count what stands outside the folds of a page's content."""
    html = _open(html)
    code = sum(len(_TAG.sub("", block).splitlines()) for block in _PRE.findall(html))
    prose = unescape(_TAG.sub(" ", _NO_WORDS.sub(" ", html)))
    return Amount(
        words=len(_WORD.findall(prose)),
        characters=len(_HAN.findall(prose)),
        code_lines=code,
        tables=html.count("<table") + len(_CHART.findall(html)),
        rows=html.count("<tr"),
    )


# Limits of writing.md: (words, lines of code and output, tables and charts, rows).
BUDGETS = {"start": (1200, 120, 8, 50)}
BUDGET = (1600, 160, 8, 50)


def over_budget(part: str, found: Amount) -> list[str]:
    """What is over the budget of a chapter of this part, in words; empty where all is within it.

    The words are those of the English page; a Chinese one has next to none.
    """
    limits = BUDGETS.get(part, BUDGET)
    counts = (found.words, found.code_lines, found.tables, found.rows)
    names = ("words", "lines of code and output", "tables and charts", "rows of tables")
    return [
        f"{count} {name}, {limit} allowed"
        for name, count, limit in zip(names, counts, limits)
        if count > limit
    ]


# Technical prose read for the first time, and code that one wants to understand.
_WORDS_A_MINUTE, _CHARACTERS_A_MINUTE, _LINES_A_MINUTE, _ROWS_A_MINUTE = 130, 260, 12, 15


def minutes_to_read(found: Amount) -> int:
    """Minutes for the main path, rounded up to the next multiple of five."""
    minutes = (
        found.words / _WORDS_A_MINUTE
        + found.characters / _CHARACTERS_A_MINUTE
        + found.code_lines / _LINES_A_MINUTE
        + found.rows / _ROWS_A_MINUTE
    )
    return 5 * math.ceil(minutes / 5)


_PROGRAM = re.compile(r'<div class="[^"]*\bct-program\b.*?</pre>', re.DOTALL)
_TRY = re.compile(r'<h2[^>]* id="try".*?(?=<h2|\Z)', re.DOTALL)
_ITEM = re.compile(r"<li\b|<h3\b")
_TYPED_LINES_A_MINUTE, _MINUTES_A_WARM_UP = 8, 5


def minutes_to_practice(html: str, exercises: int) -> int:
    """Minutes to type the page's programs, to try what it proposes, and for its exercises (`exercises` minutes).

    Rounded up to the next multiple of five; 0 where there is nothing to do.
    """
    typed = sum(len(_TAG.sub("", program).splitlines()) for program in _PROGRAM.findall(html))
    warm_ups = sum(len(_ITEM.findall(_open(section))) for section in _TRY.findall(html))
    minutes = typed / _TYPED_LINES_A_MINUTE + warm_ups * _MINUTES_A_WARM_UP + exercises
    return 5 * math.ceil(minutes / 5)


def time_html(html: str, exercises: int, lang: str) -> str:
    """The line below a chapter's title: how long it takes, computed from what stands on the page."""
    words = text("time.read", lang, minutes=minutes_to_read(amount(html)))
    practice = minutes_to_practice(html, exercises)
    if practice:
        words += " · " + text("time.practice", lang, minutes=practice)
    return f'<p class="ct-time">{words}</p>'


def with_time(html: str, exercises: int, lang: str) -> str:
    """A chapter's content with that line below its title."""
    title, end, rest = html.partition("</h1>")
    return title + end + time_html(html, exercises, lang) + rest if end else html
