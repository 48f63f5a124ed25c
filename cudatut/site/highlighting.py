"""Code in the classes of the site's code blocks: once per build, though a chapter and its notebook page show it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import PythonLexer

from cudatut.recording import Recording
from cudatut.site import overlaid, shared, state

_PYTHON = PythonLexer()
_FORMATTER = HtmlFormatter(nowrap=True)  # making one costs more than coloring a short cell
# Python code and its HTML, of the cells that `color_cells` has seen.
_cells: dict[str, str] = {}


def color_cells(records: Iterable[Recording]) -> None:
    """Color the code of these recordings, sharing the work with the build of the other language."""
    examples = (
        json.dumps([overlaid.code(c.source, file) for c in record.cells if c.kind == "code"])
        for record, file in ((one, state.current().example(one.name).file) for one in records)
    )
    for cells, colors in shared.each(examples, _color).items():
        _cells.update(zip(json.loads(cells), colors))


def _color(cells: str) -> list[str]:
    return list(map(colored, json.loads(cells)))


@cache
def colored(code: str, lexer: Lexer = _PYTHON) -> str:
    """HTML of the code alone; every line closes its own spans."""
    return highlight(code, lexer, _FORMATTER)


def python_block(code: str, name: str = "") -> str:
    """HTML of a block as pymdownx.highlight makes them; `name` is HTML for the line above the code."""
    above = f'<span class="filename">{name}</span>' if name else ""
    html = _cells.get(code) or colored(code)
    return f'<div class="highlight">{above}<pre><span></span><code>{html}</code></pre></div>'
