"""The programs that pages show (an `example` fence with `program="name.py"`), as tests look for them."""

import ast
import re
from collections.abc import Iterator

from cudatut.site import directives, references

_PROGRAM = re.compile(r'program="([^"]+)"')


def of_page(markdown: str) -> Iterator[tuple[str, str, str]]:
    """(example, cell, file name) of each program that a page shows, such as ("start/hello", "program", "hello.py")."""
    for _, line, kind, info in references.scan(markdown):
        name = _PROGRAM.search(info)
        if kind == "code" and info.split()[:1] == ["example"] and name and line.strip():
            example, _, cell = line.strip(" \t>").partition("#")
            yield example, cell, name[1]


def run_by(source: str) -> str | None:
    """The name of the cell that runs a program which its own cell keeps as a text; None for one that runs by itself."""
    if directives.program(source) == source:
        return None
    [assigned] = ast.parse(source).body
    assert isinstance(assigned, ast.Assign)
    return ast.unparse(assigned.targets[0])
