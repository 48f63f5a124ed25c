"""Each example is written as CONTRIBUTING.md says: header, titled cells, plain Python, formatted."""

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from cudatut import catalog, paths

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = catalog.examples(drafts=True)
KERNEL_FILES = sorted(
    path for folder in ("examples", "cudatut", "tests") for path in (ROOT / folder).rglob("*.cu*")
)
CELL = re.compile(r"^# %%[ \t]*(?P<kind>\[markdown\])?[ \t]*(?P<title>.*)$", re.MULTILINE)


def name_of(item) -> str:
    return item.name if isinstance(item, catalog.Example) else str(item.relative_to(ROOT))


def test_there_are_examples() -> None:
    assert EXAMPLES and KERNEL_FILES
    assert paths.examples_dir() == ROOT / "examples"


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_header_and_cells(example: catalog.Example) -> None:
    text = example.path.read_text(encoding="utf-8")
    ast.parse(text)
    assert re.search(r"[\u4e00-\u9fff]", example.title["zh"]), "the zh title holds no Chinese"
    assert not re.search(r"[\u4e00-\u9fff]", example.title["en"]), "the en title holds Chinese"
    cells = list(CELL.finditer(text))
    assert cells and cells[0]["kind"], "the first cell is Markdown: one idea in one sentence"
    titles = [cell["title"].strip() for cell in cells if not cell["kind"]]
    assert titles, "no code cell"
    for title in titles:
        assert re.fullmatch(r"[a-z0-9-]+", title), f"cell title {title!r} is not [a-z0-9-]+"
    assert len(set(titles)) == len(titles), f"a cell title occurs twice: {titles}"
    assert "install" not in titles, "'install' is the title of the cell that every notebook gets"
    between = text[text.index("\n# ---", 5) + 6 : cells[0].start()]
    assert not between.strip(), "code before the first cell"


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_runs_as_a_script_too(example: catalog.Example) -> None:
    """No magics (they would not parse), no notebook-only names, no absolute path of a machine."""
    text = example.path.read_text(encoding="utf-8")
    assert not re.search(r"^[ \t]*[#]?[ \t]*[%!](?!%)\w", text, re.MULTILINE), "a magic"
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert not names & {"get_ipython", "display", "In", "Out"}
    assert not re.search(r"""["'](/home|/root|/Users|/mnt|[A-Z]:\\)""", text)


@pytest.mark.parametrize("path", KERNEL_FILES, ids=name_of)
def test_regions_are_whole(path: Path) -> None:
    """Each `--8<-- [start:x]` has its end, once: a page that quotes a broken region shows nothing."""
    marks = re.findall(r"--8<-- \[(start|end):([\w-]+)\]", path.read_text(encoding="utf-8"))
    for name in {name for _, name in marks}:
        assert [kind for kind, n in marks if n == name] == ["start", "end"], f"region {name}"


@pytest.mark.parametrize("path", KERNEL_FILES, ids=name_of)
def test_clang_format(path: Path, missing) -> None:
    scripts = sysconfig.get_path("scripts")
    program = shutil.which("clang-format", path=scripts) or shutil.which("clang-format")
    if program is None:
        missing("clang-format is not installed (pip install clang-format)")
    done = subprocess.run(
        [program, "--dry-run", "--Werror", path], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, f"run `make format`:\n{done.stderr[:2000]}"


def test_ruff() -> None:
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command]
        done = subprocess.run(ruff, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"run `make format`:\n{done.stdout[-4000:]}{done.stderr}"
