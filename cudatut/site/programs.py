"""Whole programs on pages: what a reader saves, and which files have to lie beside it.

A page shows a program in an `example` fence with `program="name.py"`. Its reader has the book's package, and otherwise an
empty folder.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from cudatut import catalog, paths
from cudatut.site import references

_PROGRAM = re.compile(r'program="([^"]+)"')


def of_page(markdown: str) -> Iterator[tuple[str, str, str]]:
    """(example, cell, file name) of each program that a page shows, such as ("start/hello", "program", "hello.py")."""
    for _, line, kind, info in references.scan(markdown):
        name = _PROGRAM.search(info)
        if kind == "code" and info.split()[:1] == ["example"] and name and line.strip():
            example, _, cell = line.strip(" \t>").partition("#")
            yield example, cell, name[1]


def text(source: str) -> str:
    """A program cell as its reader types it: where the cell only gives a name to a text, `late = '''...'''`, that text.

    So stands a program that ruins its own process: the notebook keeps it as a text, and another process runs it.
    """
    return _named(source)[1] or source


def run_by(source: str) -> str | None:
    """The name of the cell that runs such a text; None for a program that runs in its own cell."""
    return _named(source)[0]


def _named(source: str) -> tuple[str | None, str]:
    match ast.parse(source).body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(program)))]:
            return name, program.strip("\n")
    return None, ""


def beside(example: str, program: str) -> list[str]:
    """Modules that a program of this example imports and the package does not have: files to be saved beside it.

    Relative to examples/, in the order in which they are imported, with what they import themselves. A program that puts a
    folder of the examples on `sys.path` needs none.
    """
    root = paths.examples_dir()
    folder = catalog.path_of(example).parent
    if any(ast.unparse(node) == "sys.path" for node in ast.walk(ast.parse(program))):
        return []
    found: dict[Path, None] = {}
    todo = [program]
    while todo:
        modules = (folder / f"{name}.py" for name in imported(todo.pop(0)))
        new = [file for file in modules if file.is_file() and file not in found]
        found |= dict.fromkeys(new)
        todo += map(catalog.read_text, new)
    return [catalog.relative(file, root) for file in found]


def imported(code: str) -> list[str]:
    """The modules that code imports anywhere, without what lies inside packages: 'cuda' for `import cuda.bindings`."""
    found: dict[str, None] = {}
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                found |= dict.fromkeys(one.name.partition(".")[0] for one in names)
            case ast.ImportFrom(module=str(module), level=0):
                found[module.partition(".")[0]] = None
    return list(found)
