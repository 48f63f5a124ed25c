"""A bare name means one module: examples have each other from `cudatut.book`, and helpers of tests have names of their own.

As a script, an example would find what lies beside it by a bare name, too; as a module of `cudatut.book` it would not, or it
would find another room's, since `ladder.py` and `fp8.py` lie in several.
"""

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def imported(text: str) -> Iterator[str]:
    """The first names of what a module imports, wherever in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "" if node.level else str(node.module).partition(".")[0]


def bare(text: str, names: Iterable[str]) -> list[str]:
    """Those of these modules that a text imports by bare names; "." for an import that begins with a dot."""
    return sorted(name or "." for name in set(imported(text)) & {"", *names})


def test_examples_have_each_other_from_the_book():
    files = sorted((ROOT / "examples").rglob("*.py"))
    names = {path.stem for path in files} - set(sys.stdlib_module_names)
    wrong = {
        path.relative_to(ROOT).as_posix(): found
        for path in files
        if (found := bare(path.read_text(encoding="utf-8"), names))
    }
    assert not wrong, "write `from cudatut.book.<folder> import <module>`"


def test_no_example_has_the_name_of_a_module_of_python():
    """A script beside `types.py` would find that one where Python itself imports `types`."""
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").rglob("*.py")]
    assert [file for file in files if Path(file).stem in sys.stdlib_module_names] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import ladder", ["ladder"]),
        ("def late():\n    from ladder import LADDER", ["ladder"]),
        ("from . import ladder", ["."]),
        ("import numpy\nfrom cudatut.book.gemm.ladder import ladder", []),
    ],
)
def test_a_bare_name_is_seen(text, found):
    assert bare(text, ["ladder", "flash"]) == found


def helpers(folders: Iterable[Path]) -> Iterator[str]:
    """The names of what tests import from these folders."""
    for folder in folders:
        for path in folder.glob("*.py"):
            if path.stem != "conftest" and not path.stem.startswith("test_"):
                yield path.stem


def test_helpers_of_tests_have_names_of_their_own():
    folders = [ROOT / folder for folder in SETTINGS["tool"]["pytest"]["ini_options"]["pythonpath"]]
    counts = Counter(helpers(folders))
    assert {"kept", "emulator"} <= set(counts)
    assert [name for name, count in counts.items() if count > 1] == []
    assert set(counts) & {*sys.stdlib_module_names, "cudatut", "numpy", "pytest"} == set()
