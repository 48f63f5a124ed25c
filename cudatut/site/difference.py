"""What changed from one kernel file of the examples to the next: a unified diff, folded away, in the page's language.

In a page, a fence ```` ```python exec="on" ```` with `print(difference("gemm/block_tile_2d.cu", "gemm/vectorized.cu"))`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound

from cudatut.paths import examples_dir
from cudatut.site.locale import text

_MARKER = re.compile(r"^\s*(//|#)\s*--8<--")
_RUNG = re.compile(r"^\s*(//|#) @rung ")
_SIGNS = {"+": "ins", "-": "del", " ": "span"}

# What the build reads as its own in a page: references to recordings, formulas, emoji.
_OURS = str.maketrans({"{": "&#123;", "}": "&#125;", "$": "&#36;", ":": "&#58;"})


def difference(old: str, new: str, context: int = 2) -> str:
    """Return `<details>` with the changed lines from file `old` to file `new`, both relative to the examples.

    context: unchanged lines shown around a change. Region markers (`--8<--`) are no lines here, and a place where only
    the `@rung` line differs is left out. The summary counts the lines that are shown.

    Raises FileNotFoundError for a file that is not among the examples, ValueError where nothing has changed.
    """
    before, after = _lines(old), _lines(new)
    hunks = [
        list(_hunk(group, before, after))
        for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(
            context
        )
    ]
    hunks = [hunk for hunk in hunks if not _only_rung(hunk, before, after)]
    if not hunks:
        raise ValueError(f"nothing has changed from {old} to {new}")
    colored = {"-": _colored(old, before), "+": _colored(new, after)}
    colored[" "] = colored["+"]
    gap = '<span class="ct-diff__gap" aria-hidden="true">⋯\n</span>'
    body = gap.join(
        "".join(_row(sign, colored[sign][index]) for sign, index in hunk) for hunk in hunks
    )
    signs = [sign for hunk in hunks for sign, _ in hunk]
    summary = text(
        "difference.summary",
        old=f"<code>{escape(old)}</code>",
        added=signs.count("+"),
        removed=signs.count("-"),
    )
    label = escape(text("difference.label", old=old, new=new), quote=True)
    return (
        f'<details class="ct-diff"><summary>{summary}</summary><div class="highlight">'
        f'<pre class="ct-diff__lines"><code tabindex="0" role="region" aria-label="{label}">{body}</code></pre>'
        "</div></details>"
    )


def _lines(name: str) -> list[str]:
    """Lines of a file of the examples, without region markers."""
    root = examples_dir().resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        raise FileNotFoundError(f"no file {name!r} among the examples ({root})")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not _MARKER.match(line)]


def _hunk(
    group: list[tuple[str, int, int, int, int]], before: list[str], after: list[str]
) -> Iterator[tuple[str, int]]:
    """Signs and line indices (of `before` for '-', else of `after`): what goes stands above what comes."""
    for what, i1, i2, j1, j2 in group:
        if what == "equal":
            yield from ((" ", j) for j in range(j1, j2))
        else:
            yield from (("-", i) for i in range(i1, i2))
            yield from (("+", j) for j in range(j1, j2))


def _only_rung(hunk: list[tuple[str, int]], before: list[str], after: list[str]) -> bool:
    return all(
        sign == " " or _RUNG.match((before if sign == "-" else after)[index])
        for sign, index in hunk
    )


def _colored(name: str, lines: list[str]) -> list[str]:
    """Each line as HTML, its words in the classes that the site's code blocks have."""
    try:
        lexer = get_lexer_for_filename(Path(name).name, stripnl=False)
    except ClassNotFound:
        return [escape(line, quote=False).translate(_OURS) for line in lines]
    # The formatter closes its spans at each end of a line, so that lines can be taken apart.
    html = highlight("\n".join(lines) + "\n", lexer, HtmlFormatter(nowrap=True)).split("\n")
    return [_outside_tags(line) for line in html[: len(lines)]]


def _outside_tags(html: str) -> str:
    parts = re.split(r"(<[^>]*>)", html)
    return "".join(part if part.startswith("<") else part.translate(_OURS) for part in parts)


def _row(sign: str, html: str) -> str:
    tag = _SIGNS[sign]
    shown = "−" if sign == "-" else sign
    return f"<{tag}>{shown} {html}\n</{tag}>"
