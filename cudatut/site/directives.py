"""The `example` fence: an executed cell of a recording, its source and what it printed.

    ```example
    start/first_kernel#check
    ```

Each line of the body is one cell. `source="none"` in the fence's header shows the output only,
`output="none"` the source only. The source has the HTML that pymdownx.highlight gives the other fences.
With `program="who_am_i.py"` the one cell is a whole program, shown under its file's name and offered as that file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from html import escape
from typing import Any

from cudatut.errors import CudatutError
from cudatut.site import highlighting, missing, state

_CELL = re.compile(r"(?P<example>[a-z0-9_]+(?:/[a-z0-9_]+)+)#(?P<cell>[a-z0-9]+(?:-[a-z0-9]+)*)")
_OPTIONS = {"source": ("above", "none"), "output": ("below", "none")}
_PROGRAM = re.compile(r"[a-z][a-z0-9_]*\.py")
_OPEN = {"en": "Open the whole example", "zh": "打开完整示例"}
_DOWNLOAD = {"en": "Download", "zh": "下载"}


class DirectiveError(CudatutError):
    """An example fence that cannot be understood; the message quotes it."""


def cells(body: str) -> list[tuple[str, str]]:
    """(example, cell) of each line of a fence's body. Raises DirectiveError on any other line."""
    found = []
    for line in body.splitlines():
        if not line.strip():
            continue
        match = _CELL.fullmatch(line.strip())
        if not match:
            raise DirectiveError(
                f"'{line.strip()}' in an example fence: write it as part/example#cell"
            )
        found.append((match["example"], match["cell"]))
    if not found:
        raise DirectiveError("an example fence is empty: write part/example#cell into it")
    return found


def options(header: dict[str, str]) -> dict[str, str]:
    """The options of a fence's header, checked. Raises DirectiveError naming what is allowed."""
    for name, value in header.items():
        if name == "program" and _PROGRAM.fullmatch(value):
            continue
        if name not in _OPTIONS or value not in _OPTIONS[name]:
            allowed = ", ".join(f'{key}="{"|".join(values)}"' for key, values in _OPTIONS.items())
            allowed += ', program="name.py"'
            raise DirectiveError(f'an example fence has {name}="{value}"; allowed are {allowed}')
    if "program" in header and header.get("source") == "none":
        raise DirectiveError("an example fence has a program, but does not show its source")
    return {"source": "above", "output": "below", **header}


def render(body: str, header: dict[str, str] | None = None, lang: str = "en") -> str:
    """HTML of an example fence.

    Raises DirectiveError on bad syntax, and whatever
    `cudatut.recording.require_good` raises: an example that is unknown, not recorded, damaged,
    stale or failed is never shown.
    """
    shown, named = options(header or {}), cells(body)
    if "program" in shown and len(named) > 1:
        raise DirectiveError(
            f"the program {shown['program']} is {len(named)} cells; it must be one"
        )
    return "".join(_cell(name, cell, shown, lang) for name, cell in named)


def _cell(name: str, cell: str, shown: dict[str, str], lang: str) -> str:
    from cudatut.site import render as results

    record = state.current().record(name)
    found = record.cell(cell)
    if found.kind != "code":
        raise DirectiveError(f"{name}#{cell} is a {found.kind} cell; only code cells are shown")
    with_source, with_output = shown["source"] == "above", shown["output"] == "below"
    if isinstance(record, missing.StandIn):
        output = missing.note_html(record, lang) if with_output else ""
    else:
        try:
            gpus = state.current().gpus(name, cell)
            output = results.results_html(found.outputs, lang, gpus) if with_output else ""
        except ValueError as error:
            raise DirectiveError(f"{name}#{cell} cannot be shown: {error}") from error
    if with_output and not output and not with_source:
        raise DirectiveError(f"{name}#{cell} printed nothing, and source is none")
    source = ""
    if with_source:
        target = state.current().link(f"examples/{name}/#cell-id={cell}")
        title = escape(shown.get("program", f"{name}.py"))
        link = f'<a href="{target}" title="{_OPEN[lang]}">{title}</a>'
        code = found.source
        if "program" in shown:
            code = program_text(code)
            link += _download(f"examples/{name}/{title}", code, lang)
        source = highlighting.python_block(code, link)
    kind = "ct-cell ct-program" if "program" in shown else "ct-cell"
    return f'<div class="{kind}">{source}{output}</div>'


def program_text(source: str) -> str:
    """A program cell as its reader types it: where the cell only gives a name to a text, `late = '''...'''`, that text.

    So stands a program that ruins its own process: the notebook keeps it as a text, and another process runs it.
    """
    statements = ast.parse(source).body
    if len(statements) == 1 and isinstance(statements[0], ast.Assign):
        value = statements[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value.strip("\n")
    return source


def _download(path: str, source: str, lang: str) -> str:
    """A link to the program as a file, which the plugin puts beside the page of its example."""
    build = state.current()
    if build.programs.setdefault(path, source) != source:
        raise DirectiveError(f"two programs would be the one file {path}; name them differently")
    file = path.rpartition("/")[2]
    return (
        f' <a class="ct-download" href="{build.link(path)}" download="{file}">{_DOWNLOAD[lang]}</a>'
    )


# --- what pymdownx.superfences calls ------------------------------------------------------------


def validator(language: str, inputs: dict, opts: dict, attrs: dict, md: Any) -> bool:
    """Accept every header: the fence's formatter reports what is wrong with it, superfences would hide it."""
    opts["header"] = dict(inputs)
    return True


def _failure(source: str, error: CudatutError) -> str:
    """What stands in the page in the place of a fence that cannot be rendered."""
    return (
        '<div class="admonition failure"><p class="admonition-title">'
        f"{escape(source.strip())}</p><p>{escape(str(error))}</p></div>"
    )


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
            return _failure(source, error)

    return {"name": name, "class": name, "validator": validator, "format": formatter}
