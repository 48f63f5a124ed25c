"""The main path of a chapter: what a newcomer reads, without the folds; and how much of it there is.

On a page's Markdown for the lints, on its HTML for the budgets and for the time that the page asks of its reader.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

from cudatut.site import folds, references
from cudatut.site.locale import text

# --- Markdown ------------------------------------------------------------------------------------

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
        if kind == "prose" and line.startswith("???", indent):
            fold = indent
            continue
        if kind == "prose" and (match := _SECTION.match(line)):
            section = match["id"]
        yield Line(number, line, kind, info, section)


# --- HTML ----------------------------------------------------------------------------------------

# Of one chart or table for several GPUs a reader sees one at a time.
_OTHER_GPUS = re.compile(r'(?<=</section>)<section class="ct-gpu"[^>]*>.*?</section>', re.DOTALL)
_ARTICLE = re.compile(r"<article\b[^>]*>(?P<content>.*?)</article>", re.DOTALL)
_PRE = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
_NO_WORDS = re.compile(
    r"<(?P<tag>pre|script|style|svg|table|math|fieldset)\b.*?</(?P=tag)>|<!--.*?-->"
    # Names of files and of GPUs are looked up, not read.
    r'|<(?P<names>ul|p|span) class="ct-(?:code|needs|begin|quiet)">.*?</(?P=names)>'
    r'|(?<=<figure class="ct-bench">)<figcaption>.*?</figcaption>',  # as the caption of a table
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]+>")
_WORD = re.compile(r"[A-Za-z][\w'’-]*")
_HAN = re.compile(r"[\u3400-\u9fff]")
_PROGRAM = re.compile(r'<div class="[^"]*\bct-program\b.*?</pre>', re.DOTALL)
_TRY = re.compile(r'<h2[^>]* id="try".*?(?=<h2|\Z)', re.DOTALL)
_ITEM = re.compile(r"<li\b|<h3\b")

# Limits of writing.md. The words are those of the English page; a Chinese one has next to none.
BUDGET = {
    "words": 1600,
    "lines of code and output": 160,
    "tables and charts": 8,
    "rows of tables": 50,
}
BUDGETS = {"start": BUDGET | {"words": 1200, "lines of code and output": 120}}
# Technical prose read for the first time, and code that one wants to understand.
_A_MINUTE = {"words": 130, "characters": 260, "lines of code and output": 12, "rows of tables": 15}
_TYPED = 8  # lines of a program in a minute
_PROPOSAL = 5  # minutes for one of what 'Try it' proposes
_STEP = 5  # minutes to whose next multiple a page's time is rounded up


def _open(html: str) -> str:
    """HTML without its folds, and without what other GPUs have in the place of this one's."""
    html = _OTHER_GPUS.sub("", html)
    for begin, end in reversed([*folds.outermost(html)]):
        html = html[: begin.start()] + html[end.end() :]
    return html


def _lines_of(blocks: list[str]) -> int:
    return sum(len(_TAG.sub("", block).splitlines()) for block in blocks)


def amount(html: str) -> dict[str, int]:
    """How much there is to read outside the folds of a page's content."""
    html = _open(html)
    prose = unescape(_TAG.sub(" ", _NO_WORDS.sub(" ", html)))
    return {
        "words": len(_WORD.findall(prose)),
        "characters": len(_HAN.findall(prose)),
        "lines of code and output": _lines_of(_PRE.findall(html)),
        "tables and charts": html.count("<table") + html.count('<figure class="ct-bench"'),
        "rows of tables": html.count("<tr"),
    }


def of_page(html: str) -> dict[str, int]:
    """The same of a chapter's whole page as a reader gets it, without what the theme has around the article."""
    found = _ARTICLE.search(html)
    return amount(found["content"] if found else "")


def over_budget(part: str, found: dict[str, int]) -> list[str]:
    """What is over the budget of a chapter of this part, in words; empty where all is within it."""
    return [
        f"{found[name]} {name}, {limit} allowed"
        for name, limit in BUDGETS.get(part, BUDGET).items()
        if found[name] > limit
    ]


def minutes_to_read(found: dict[str, int]) -> int:
    """Minutes for the main path, rounded up to the next multiple of five."""
    return _rounded(sum(found[name] / each for name, each in _A_MINUTE.items()))


def minutes_to_practice(html: str, exercises: int) -> int:
    """Minutes to type the page's programs, to try what it proposes, and for its exercises (`exercises` minutes).

    Rounded up to the next multiple of five; 0 where there is nothing to do.
    """
    typed = _lines_of(_PROGRAM.findall(html)) / _TYPED
    warm_ups = _PROPOSAL * sum(len(_ITEM.findall(_open(section))) for section in _TRY.findall(html))
    return _rounded(typed + warm_ups + exercises)


def _rounded(minutes: float) -> int:
    return _STEP * math.ceil(minutes / _STEP)


def minutes(html: str, exercises: int) -> tuple[int, int]:
    """Minutes to read a chapter's content, and to practice; computed from what stands on the page."""
    return minutes_to_read(amount(html)), minutes_to_practice(html, exercises)


def with_time(html: str, times: tuple[int, int], lang: str) -> str:
    """A chapter's content with a line below its title: how long it takes (see `minutes`)."""
    read, practice = times
    words = text("time.read", lang, minutes=read)
    if practice:
        words += " · " + text("time.practice", lang, minutes=practice)
    return html.replace("</h1>", f'</h1><p class="ct-time">{words}</p>', 1)


def reckoned() -> str:
    """A sentence that says from what the times are computed."""
    amounts = {name.partition(" ")[0]: each for name, each in _A_MINUTE.items()}
    return text("time.reckoned", **amounts, typed=_TYPED, proposal=_PROPOSAL, step=_STEP)
