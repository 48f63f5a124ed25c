"""Code in the classes of the site's code blocks: once per build, though a chapter and its notebook page show it.

CUDA C++ in a string of Python is colored as CUDA C++.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import CudaLexer, PythonLexer
from pygments.token import String

from cudatut.recording import Recording
from cudatut.site import overlaid, shared, state

_Token = tuple[int, Any, str]  # where it begins, its kind, its text
_LONG_STRING = re.compile(
    r"(?P<begin>[A-Za-z]*(?P<quotes>\"{3}|'{3}))(?P<code>.*)(?P=quotes)", re.DOTALL
)
_IS_CUDA = re.compile(r"\b(?:__global__|__device__)\b.*[;{]", re.DOTALL)
_IS_PYTHON = re.compile(r"^(?:import|from) \w", re.MULTILINE)


class _Python(PythonLexer):
    """Python, whose long strings are CUDA C++ where they hold a function for the GPU; docstrings are text.

    Where such a string is a whole program, which another process is to run, it is Python again.
    """

    def get_tokens_unprocessed(self, *given: Any) -> Iterator[_Token]:
        string: list[_Token] = []
        for token in super().get_tokens_unprocessed(*given):
            if token[1] in String:
                string.append(token)
                continue
            yield from _string(string)
            string = []
            yield token
        yield from _string(string)


def _string(tokens: list[_Token]) -> Iterable[_Token]:
    """The tokens of a string of Python; what it holds in those of its own language, where there is a kernel in it."""
    whole = _LONG_STRING.fullmatch("".join(text for _, _, text in tokens))
    if not whole or tokens[0][1] in String.Doc or not _IS_CUDA.search(whole["code"]):
        return tokens
    first, _, _ = tokens[0]
    inside, lexer = (
        first + whole.start("code"),
        _PYTHON if _IS_PYTHON.search(whole["code"]) else _CUDA,
    )
    code = lexer.get_tokens_unprocessed(whole["code"])
    return [
        (first, String.Double, whole["begin"]),
        *((inside + at, kind, text) for at, kind, text in code),
        (first + whole.end("code"), String.Double, whole["quotes"]),
    ]


_PYTHON, _CUDA = _Python(), CudaLexer()
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
