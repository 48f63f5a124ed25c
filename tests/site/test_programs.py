"""Every program of a page finds what it imports where its reader has it: in a folder of its own, beside nothing else.

Without a GPU: imports are looked up, and those of the book's own modules are made. tests/gpu/test_programs.py runs them.
"""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import page_programs
import pytest

from cudatut import catalog
from cudatut.site import directives

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "en"
# What a reader has been told to install: in `start` less than later, and for an extra what it brings.
START = {"numpy", "pycuda"}
BOOK = START | {"cudatut"}
EXTRAS = {
    "": set(),
    "bindings": {"nanobind"},
    "cutlass": {"cutlass", "cuda"},
    "images": {"PIL", "skimage"},
    "llm": {"gguf", "tokenizers"},
}
PROGRAMS = [
    (path.relative_to(DOCS).with_suffix("").as_posix(), *program)
    for path in sorted(DOCS.rglob("*.md"))
    for program in page_programs.of_page(path.read_text(encoding="utf-8"))
]


def of_cell(example: str, cell: str) -> str:
    return directives.program(catalog.cells(catalog.get(example).path)[cell])


def imported(code: str) -> set[str]:
    """The modules that code imports anywhere, without what lies inside packages: 'cuda' for `import cuda.bindings`."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                found |= {one.name.partition(".")[0] for one in names}
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module.partition(".")[0])
    return found


def unresolved(code: str, installed: set[str]) -> set[str]:
    """What a program imports, and neither Python nor `installed` has."""
    return imported(code) - sys.stdlib_module_names - installed


def through_imports(code: str) -> str:
    """A program up to its last import at the top level."""
    body = ast.parse(code).body
    last = max(i for i, node in enumerate(body) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return ast.unparse(ast.Module(body[: last + 1], []))


def in_place_of_pycuda(folder: Path) -> Path:
    """A folder with a package of PyCUDA's name, whose modules have a class for every name that is asked for."""
    package = folder / "pycuda"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for module in ("compiler", "driver", "gpuarray"):
        text = "def __getattr__(name):\n    return type(name, (), {})\n"
        (package / f"{module}.py").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("page", "example", "cell", "file"), PROGRAMS, ids=[f"{one[0]}-{one[-1]}" for one in PROGRAMS]
)
def test_a_program_finds_what_it_imports(page, example, cell, file, tmp_path):
    code = of_cell(example, cell)
    extra = EXTRAS[catalog.get(example).extra]
    missing = unresolved(code, START if page.startswith("start/") else BOOK | extra)
    assert not missing, f"{file} of docs/en/{page}.md cannot import {missing} in an empty folder"
    if "cudatut.book" in code:
        (tmp_path / file).write_text(through_imports(code), encoding="utf-8")
        paths = [str(ROOT)]
        if importlib.util.find_spec("pycuda") is None:  # a machine without a GPU need not have it
            paths.append(str(in_place_of_pycuda(tmp_path / "packages")))
        done = subprocess.run(
            [sys.executable, file],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
        )
        said = done.stderr.strip().splitlines()
        # A package of the extra that is not installed here is not the program's fault, and is told as such.
        lacks = extra and said and "ToolMissing" in said[-1]
        assert done.returncode == 0 or lacks, f"{file} of docs/en/{page}.md: {done.stderr[-2000:]}"


def test_what_a_program_lacks_is_seen():
    code = "import os, numpy\nfrom flash_hopper import attention\n"
    assert unresolved(code, BOOK) == {"flash_hopper"}
    assert unresolved("import cutlass.cute", BOOK) == {"cutlass"}
    assert unresolved("import cudatut", START) == {"cudatut"}
