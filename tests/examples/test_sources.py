"""Each example is written as CONTRIBUTING.md says: header, titled cells, plain Python, formatted."""

import subprocess
import sys
from pathlib import Path

import pytest

from cudatut import catalog, paths
from cudatut.errors import ToolMissing
from cudatut.rules import examples as rules
from cudatut.rules import formatting

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = catalog.examples(drafts=True)
KERNEL_FILES = sorted(
    path for folder in ("examples", "cudatut", "tests") for path in (ROOT / folder).rglob("*.cu*")
)


def name_of(item) -> str:
    return item.name if isinstance(item, catalog.Example) else str(item.relative_to(ROOT))


def test_there_are_examples() -> None:
    assert EXAMPLES and KERNEL_FILES
    assert paths.examples_dir() == ROOT / "examples"


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_is_as_it_should_be(example: catalog.Example) -> None:
    found = rules.of_example(example.path)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("path", KERNEL_FILES, ids=name_of)
def test_regions_are_whole(path: Path) -> None:
    found = rules.of_kernel_file(path)
    assert not found, "\n".join(map(str, found))


def test_clang_format(missing) -> None:
    try:
        found = formatting.of_cuda(KERNEL_FILES, ROOT)
    except ToolMissing as error:
        missing(str(error))
    assert not found, "\n".join(map(str, found))


def test_ruff() -> None:
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command]
        done = subprocess.run(ruff, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"run `make format`:\n{done.stdout[-4000:]}{done.stderr}"


# --- faults ----------------------------------------------------------------------------------------

HEADER = "# ---\n# jupyter:\n#   cudatut: {title: {en: A, zh: 甲}, requires: sm_75}\n# ---\n"
GOOD = f"{HEADER}\n# %% [markdown] about\n# A.\n\n# %% program\nx = 1\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Call it with a file's name and text; returns its path among the examples."""
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))

    def write(name: str, text: str) -> Path:
        path = tmp_path / "examples" / "a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("zh: 甲", "zh: A", 1, "zh title holds no Chinese"),
        ("en: A", "en: 甲", 1, "en title holds Chinese"),
        ("zh: 甲", "de: B", 1, "it must have 'en' and 'zh'"),
        ("# ---\n# jupyter", "# jupyter", 1, "does not begin with a '# ---' header"),
        ("# %% [markdown] about\n# A.\n\n", "", 6, "the first cell is not of Markdown"),
        ("# %% program\nx = 1\n", "", 1, "there is no cell of code"),
        ("program", "The_Program", 9, "is no address"),
        ("program", "install", 9, "that every notebook gets"),
        ("x = 1\n", "x = 1\n# %% program\n", 11, "stands on line 9 already"),
        ("# %% [markdown]", "y = 1\n# %% [markdown]", 7, "code before the first cell"),
        ("x = 1", "x = = 1", 10, "Python cannot read this"),
        ("x = 1", "# %time x", 10, "a magic"),
        ("x = 1", "display(1)", 10, "a script has no 'display'"),
        ("x = 1", 'x = "/mnt/x"', 10, "a path of one machine"),
    ],
)
def test_a_fault_of_an_example_is_found(written, old, new, line, said) -> None:
    assert rules.of_example(written("x.py", GOOD)) == []
    assert old in GOOD
    (found,) = rules.of_example(written("x.py", GOOD.replace(old, new, 1)))
    assert said in found.message
    assert (found.file, found.line) == ("examples/a/x.py", line)


def test_a_file_that_is_no_example_is_told_how_one_begins(written) -> None:
    (found,) = rules.of_example(written("x.py", "x = 1\n"))
    assert (found.file, found.line) == ("examples/a/x.py", 1)
    assert found.message.startswith("this file has neither the '# ---' header nor the cells")


def test_a_broken_region_is_found(written) -> None:
    whole = "// --8<-- [start:a]\nint x;\n// --8<-- [end:a]\n"
    assert rules.of_kernel_file(written("x.cu", whole)) == []
    for text in (whole.replace("[end:a]", "[end:b]"), whole + whole, whole.replace("start", "end")):
        found = rules.of_kernel_file(written("x.cu", text))
        assert found and "is not begun once and then ended once" in found[0].message


def test_a_fault_of_formatting_is_found_with_its_place(written) -> None:
    good = written("good.py", "x = 1\n"), written("good.cu", "int x;\n")
    assert formatting.of_python(good[:1], ROOT) == formatting.of_cuda(good[1:], ROOT) == []
    bad = written("bad.py", "import os\nx = {  'a':1}\n")
    *linted, formatted = formatting.of_python([*good[:1], bad], ROOT)
    assert {(one.file, one.line) for one in linted} == {("examples/a/bad.py", 1)}
    assert any("F401" in one.message and "make format" in one.message for one in linted)
    assert formatted.file == "examples/a/bad.py" and "make format" in formatted.message
    bad = written("bad.cu", "int x;\nint  y;\nint   z;\n")
    (found,) = formatting.of_cuda([*good[1:], bad], ROOT)
    assert (found.file, found.line) == ("examples/a/bad.cu", 2) and "make format" in found.message
