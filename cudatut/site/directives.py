"""The `example` fence: an executed cell of a recording, its source and what it printed.

    ```example
    start/first_kernel#check
    ```

Each line of the body is one cell. `source="none"` in the fence's header shows the output only,
`output="none"` the source only. The source has the HTML that pymdownx.highlight gives the other fences.
With `over="cuBLAS"` a chart of lines shows each divided by that one.
With `program="who_am_i.py"` the one cell is a whole program, shown under its file's name and offered as that file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from cudatut.errors import CudatutError
from cudatut.recording import Cell, Recording
from cudatut.site import highlighting, localize, missing, overlaid, state
from cudatut.site import render as rendering
from cudatut.site.locale import text

_CELL = re.compile(r"(?P<example>[a-z0-9_]+(?:/[a-z0-9_]+)+)#(?P<cell>[a-z0-9]+(?:-[a-z0-9]+)*)")
_OPTIONS = {
    "source": "above|none",
    "output": "below|none",
    "over": r"\S.*",
    "program": r"[a-z][a-z0-9_]*\.py",
}


class DirectiveError(CudatutError):
    """An example fence that cannot be understood; the message quotes it."""


def render(body: str, header: dict[str, str] | None = None, lang: str = "en") -> str:
    """HTML of an example fence.

    Raises DirectiveError on bad syntax, and as `State.record`: an example that is unknown, not recorded, damaged, stale
    or failed is never shown.
    """
    shown, named = header or {}, _cells(body)
    for name, value in shown.items():
        if not re.fullmatch(_OPTIONS.get(name, "(?!)"), value):
            raise DirectiveError(
                f'an example fence has {name}="{value}"; '
                'allowed are source="above|none", output="below|none", over="line", program="name.py"'
            )
    if "program" in shown and (shown.get("source") == "none" or len(named) > 1):
        raise DirectiveError(f"the program {shown['program']} must be one cell, with its source")
    return "".join(_cell(name, cell, shown, lang) for name, cell in named)


def _cells(body: str) -> list[tuple[str, str]]:
    """(example, cell) of each line of a fence's body. Raises DirectiveError on any other line."""
    found = []
    for line in filter(None, map(str.strip, body.splitlines())):
        match = _CELL.fullmatch(line)
        if not match:
            raise DirectiveError(f"'{line}' in an example fence: write it as part/example#cell")
        found.append((match["example"], match["cell"]))
    if not found:
        raise DirectiveError("an example fence is empty: write part/example#cell into it")
    return found


def _cell(name: str, cell: str, shown: dict[str, str], lang: str) -> str:
    build, record = state.current(), state.current().record(name)
    found = record.cell(cell)
    if found.kind != "code":
        raise DirectiveError(f"{name}#{cell} is a {found.kind} cell; only code cells are shown")
    with_source, with_output = shown.get("source") != "none", shown.get("output") != "none"
    source = output = ""
    if with_output and isinstance(record, missing.StandIn):
        output = missing.note_html(record, lang)
    elif with_output:
        output = results(record, found, lang, build.gpus(name, cell), shown.get("over", ""))
    if with_output and not output and not with_source:
        raise DirectiveError(f"{name}#{cell} printed nothing, and source is none")
    if with_source:
        title = shown.get("program", build.example(name).file)
        target, words = build.link(f"examples/{name}/#cell-id={cell}"), text("example.open", lang)
        link = f'<a href="{target}" title="{words}">{title}</a>'
        code = overlaid.code(found.source, build.example(name).file)
        if "program" in shown:
            code = program(code)
            link += _download(f"examples/{name}/{title}", code, lang)
        source = highlighting.python_block(code, link)
    kind = "ct-cell ct-program" if "program" in shown else "ct-cell"
    return f'<div class="{kind}">{source}{output}</div>'


def results(
    record: Recording,
    cell: Cell,
    lang: str,
    gpus: Sequence[tuple[str, list]] = (),
    over: str = "",
) -> str:
    """HTML of what a cell showed. gpus, over: see `render.results_html`. Raises DirectiveError naming the cell."""
    try:
        with localize.of(record.name):
            return rendering.results_html(cell.outputs, lang, gpus, over)
    except ValueError as error:
        raise DirectiveError(f"{record.name}#{cell.title} cannot be shown: {error}") from error


def _download(path: str, source: str, lang: str) -> str:
    """A link to the program as a file, which the plugin puts beside the page of its example."""
    build = state.current()
    if build.programs.setdefault(path, source) != source:
        raise DirectiveError(f"two programs would be the one file {path}; name them differently")
    file, word = path.rpartition("/")[2], text("example.download", lang)
    return f' <a class="ct-download" href="{build.link(path)}" download="{file}">{word}</a>'


def program(source: str) -> str:
    """A program cell as its reader types it: where the cell only gives a name to a text, `late = '''...'''`, that text.

    So stands a program that ruins its own process: the notebook keeps it as a text, and another process runs it.
    """
    match ast.parse(source).body:
        case [ast.Assign(targets=[ast.Name()], value=ast.Constant(value=str(text)))]:
            return text.strip("\n")
    return source


# --- what pymdownx.superfences calls ------------------------------------------------------------


def _accept(language: str, inputs: dict, options: dict, attrs: dict, md: Any) -> bool:
    """Accept every header: the fence's formatter reports what is wrong with it, superfences would hide it."""
    options["header"] = dict(inputs)
    return True


def fence(name: str = "example", html: Callable[..., str] = render) -> dict[str, Any]:
    """Entry for `custom_fences` of pymdownx.superfences.

    html: makes a fence's HTML of its body, its header and the page's language. A problem that it raises fails the strict
    build and stands in the page in the fence's place.
    """

    def formatter(
        source: str, language: str, css_class: str, options: dict, md: Any, **_: Any
    ) -> str:
        build = state.current()
        try:
            return html(source, options.get("header"), build.lang)
        except CudatutError as error:
            build.report(error)
            return (
                '<div class="admonition failure"><p class="admonition-title">'
                f"{escape(source.strip())}</p><p>{escape(str(error))}</p></div>"
            )

    return {"name": name, "class": name, "validator": _accept, "format": formatter}
