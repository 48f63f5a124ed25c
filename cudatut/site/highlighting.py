"""Code in the classes of the site's code blocks: once per build, though a chapter and its notebook page show it."""

from __future__ import annotations

from functools import cache

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import PythonLexer

_PYTHON = PythonLexer()
_FORMATTER = HtmlFormatter(nowrap=True)  # making one costs more than coloring a short cell


@cache
def colored(code: str, lexer: Lexer = _PYTHON) -> str:
    """HTML of the code alone; every line closes its own spans."""
    return highlight(code, lexer, _FORMATTER)


def python_block(code: str, name: str = "") -> str:
    """HTML of a block as pymdownx.highlight makes them; `name` is HTML for the line above the code."""
    above = f'<span class="filename">{name}</span>' if name else ""
    return (
        f'<div class="highlight">{above}<pre><span></span><code>{colored(code)}</code></pre></div>'
    )
