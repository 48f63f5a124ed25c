"""What an example has to be: header, titled cells, plain Python that also runs as a script; and kernels with whole regions."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from cudatut import catalog
from cudatut.finding import Finding
from cudatut.rules.places import finding

HAN = re.compile(r"[\u4e00-\u9fff]")
_CELL = re.compile(r"^# %%[ \t]*(?P<kind>\[markdown\])?[ \t]*(?P<title>.*)$", re.MULTILINE)
_MAGIC = re.compile(r"^[ \t]*[#]?[ \t]*[%!](?!%)\w", re.MULTILINE)
_OF_A_MACHINE = re.compile(r"""["'](/home|/root|/Users|/mnt|[A-Z]:\\)""")
_ONLY_IN_NOTEBOOKS = {"get_ipython", "display", "In", "Out"}
_REGION = re.compile(r"--8<-- \[(start|end):([\w-]+)\]")


def of_example(path: Path) -> list[Finding]:
    """Findings of one example's script. A header that cannot be read is the only finding then."""
    try:
        example = catalog.get(catalog.shown(path))
    except catalog.UnknownExampleError:
        return [
            finding(
                path,
                1,
                "this file has neither the '# ---' header nor the cells of an example; "
                "begin it as docs/en/contributing.md shows",
            )
        ]
    except catalog.BadHeaderError as error:
        return [_of_header(path, error)]
    text = catalog.read_text(path)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return [finding(path, error.lineno or 1, f"Python cannot read this: {error.msg}")]
    except ValueError as error:  # so Python before 3.11.4 says that a byte is null
        return [finding(path, 1, f"Python cannot read this: {error}")]
    return [
        *_titles(example),
        *_cells(path, text),
        *_runs_as_a_script(path, text, tree),
    ]


def _of_header(path: Path, error: catalog.BadHeaderError) -> Finding:
    return finding(path, 1, str(error).removeprefix(catalog.shown(path)).removeprefix(":").strip())


def _titles(example: catalog.Example) -> Iterator[Finding]:
    if not HAN.search(example.title["zh"]):
        yield finding(
            example.path, 1, "the header's zh title holds no Chinese: write it in Chinese"
        )
    if HAN.search(example.title["en"]):
        yield finding(example.path, 1, "the header's en title holds Chinese: write it in English")


def _cells(path: Path, text: str) -> Iterator[Finding]:
    cells = list(_CELL.finditer(text))

    def at(cell: re.Match) -> int:
        return text[: cell.start()].count("\n") + 1

    if not cells or not cells[0]["kind"]:
        line = at(cells[0]) if cells else 1
        yield finding(
            path,
            line,
            "the first cell is not of Markdown: begin with one that says the idea in a sentence",
        )
    code = [cell for cell in cells if not cell["kind"]]
    if not code:
        yield finding(path, 1, "there is no cell of code: add one, such as '# %% program'")
    seen: dict[str, int] = {}
    for cell in code:
        title = cell["title"].strip()
        if not re.fullmatch(r"[a-z0-9-]+", title):
            yield finding(
                path, at(cell), f"the cell title {title!r} is no address: use a-z, 0-9 and - only"
            )
        elif title == catalog.INSTALL_CELL:
            yield finding(
                path,
                at(cell),
                f"'{title}' is the title of the cell that every notebook gets: choose another",
            )
        elif title in seen:
            yield finding(
                path,
                at(cell),
                f"the cell title {title!r} stands on line {seen[title]} already: choose another",
            )
        seen.setdefault(title, at(cell))
    if cells and text[text.index("\n# ---", 5) + 6 : cells[0].start()].strip():
        yield finding(
            path, at(cells[0]), "there is code before the first cell: move it into a cell"
        )


def _runs_as_a_script(path: Path, text: str, tree: ast.Module) -> Iterator[Finding]:
    """No magics, no notebook-only names, no absolute path of a machine."""

    def at(found: re.Match) -> int:
        return text[: found.end()].count("\n") + 1

    if found := _MAGIC.search(text):
        yield finding(
            path, at(found), "a magic of notebooks does not run as a script: write it in Python"
        )
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _ONLY_IN_NOTEBOOKS:
            yield finding(
                path,
                node.lineno,
                f"a script has no '{node.id}', which only notebooks have: use print or ct.show",
            )
    if found := _OF_A_MACHINE.search(text):
        yield finding(
            path, at(found), "this is a path of one machine: name the file relative to the examples"
        )


def of_kernel_file(path: Path) -> list[Finding]:
    """Each `--8<-- [start:x]` has its end, once: a page that quotes a broken region shows nothing."""
    text = catalog.read_text(path)
    marks = [
        (kind, name, text[: mark.start()].count("\n") + 1)
        for mark in _REGION.finditer(text)
        for kind, name in [mark.groups()]
    ]
    found = []
    for name in dict.fromkeys(name for _, name, _ in marks):
        kinds = [kind for kind, other, _ in marks if other == name]
        if kinds != ["start", "end"]:
            line = next(line for _, other, line in marks if other == name)
            found.append(
                finding(
                    path,
                    line,
                    f"the region '{name}' is not begun once and then ended once: "
                    f"write [start:{name}] and [end:{name}] around it",
                )
            )
    return found
