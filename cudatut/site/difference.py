"""What changed from one kernel file of the examples to the next: a unified diff, folded away, in the page's language.

In a page, a fence ```` ```python exec="on" ```` with `print(difference("gemm/ladder/block_tile_2d.cu", "gemm/ladder/vectorized.cu"))`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from html import escape

from pygments.lexers import get_lexer_for_filename

from cudatut.paths import examples_dir
from cudatut.site.highlighting import colored
from cudatut.site.locale import text

_MARKER = re.compile(r"^\s*(//|#)\s*--8<--")
_RUNG = re.compile(r"^\s*(//|#) @rung ")
_SIGNS = {"ins": "+", "del": "−", "span": " "}

# What the build reads as its own in a page: references to recordings, formulas, emoji.
_OURS = str.maketrans({"{": "&#123;", "}": "&#125;", "$": "&#36;", ":": "&#58;"})


def difference(old: str, new: str, context: int = 2) -> str:
    """Return `<details>` with the changed lines from file `old` to file `new`, both relative to the examples.

    context: unchanged lines shown around a change. Region markers (`--8<--`) are no lines here, and a place where only
    the `@rung` line differs is left out. The summary counts the lines that are shown.

    Raises FileNotFoundError for a file that is not among the examples, ValueError where nothing has changed.
    """
    before, after = _lines(old), _lines(new)
    matcher = SequenceMatcher(
        None, [line for line, _ in before], [line for line, _ in after], autojunk=False
    )
    hunks = [list(_hunk(group, before, after)) for group in matcher.get_grouped_opcodes(context)]
    hunks = [
        hunk
        for hunk in hunks
        if any(tag != "span" and not _RUNG.match(line) for tag, line, _ in hunk)
    ]
    if not hunks:
        raise ValueError(f"nothing has changed from {old} to {new}")
    gap = '<span class="ct-diff__gap" aria-hidden="true">⋯\n</span>'
    body = gap.join(
        "".join(f"<{tag}>{_SIGNS[tag]} {html}\n</{tag}>" for tag, _, html in hunk) for hunk in hunks
    )
    tags = [tag for hunk in hunks for tag, _, _ in hunk]
    summary = text(
        "difference.summary",
        old=f"<code>{escape(old)}</code>",
        added=tags.count("ins"),
        removed=tags.count("del"),
    )
    label = escape(text("difference.label", old=old, new=new), quote=True)
    return (
        f'<details class="ct-diff"><summary>{summary}</summary><div class="highlight">'
        f'<pre class="ct-diff__lines"><code tabindex="0" role="region" aria-label="{label}">{body}</code></pre>'
        "</div></details>"
    )


def _lines(name: str) -> list[tuple[str, str]]:
    """Lines of a file of the examples, without region markers: as they stand, and as HTML in the classes of code blocks."""
    root = examples_dir().resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        raise FileNotFoundError(f"no file {name!r} among the examples ({root})")
    code = path.read_text(encoding="utf-8")
    lines = [line for line in code.splitlines() if not _MARKER.match(line)]
    lexer = get_lexer_for_filename(path.name, stripnl=False)
    html = colored("\n".join(lines) + "\n", lexer).translate(_OURS)
    return list(zip(lines, html.split("\n")))


def _hunk(
    group: list[tuple[str, int, int, int, int]],
    before: list[tuple[str, str]],
    after: list[tuple[str, str]],
) -> Iterator[tuple[str, str, str]]:
    """(tag, line, HTML) of the lines of a hunk: what goes stands above what comes."""
    for what, i1, i2, j1, j2 in group:
        if what == "equal":
            yield from (("span", *line) for line in after[j1:j2])
        else:
            yield from (("del", *line) for line in before[i1:i2])
            yield from (("ins", *line) for line in after[j1:j2])
