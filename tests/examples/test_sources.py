"""Each example is written as CONTRIBUTING.md says: header, titled cells, plain Python, formatted."""

import subprocess
import sys
from pathlib import Path

import pytest

from cudatut import catalog, paths
from cudatut.errors import ToolMissing
from cudatut.rules import examples as rules
from cudatut.rules import formatting, places

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


# --- each rule at its boundaries --------------------------------------------------------------------


def test_a_script_without_cells_lacks_both_kinds(written) -> None:
    found = rules.of_example(written("x.py", f"{HEADER}\n# %% [markdown]\n# A.\n"))
    assert [(one.line, one.message.partition(":")[0]) for one in found] == [
        (1, "there is no cell of code")
    ]
    found = list(rules._cells(written("y.py", HEADER), HEADER))
    assert [(one.line, one.message.partition(":")[0]) for one in found] == [
        (1, "the first cell is not of Markdown"),
        (1, "there is no cell of code"),
    ]


def test_a_script_that_python_cannot_place_is_told_at_its_first_line(written) -> None:
    (found,) = rules.of_example(written("x.py", GOOD.replace("x = 1", "x = \0")))
    assert found.line == 1 and "null bytes" in found.message


@pytest.mark.parametrize(
    "cell", ["# %% a\n", "# %% a-9\n", "# %%   a  \n", "# %% [markdown] Any Title!\n"]
)
def test_titles_that_are_addresses(written, cell) -> None:
    text = f"{HEADER}\n# %% [markdown]\n# A.\n\n# %% program\nx = 1\n{cell}y = x\n"
    assert rules.of_example(written("x.py", text)) == []


def test_of_three_cells_of_one_title_each_points_at_the_first(written) -> None:
    text = GOOD + "# %% program\n# %% program\n"
    found = rules.of_example(written("x.py", text))
    said = "the cell title 'program' stands on line 9 already: choose another"
    assert [(one.line, one.message) for one in found] == [(11, said), (12, said)]


def test_where_a_script_would_not_run(written) -> None:
    """On the line of the magic, of the name, of the path: the first of each, every such name."""
    here, there = (f"/{home}/somebody/x" for home in ("root", "home"))
    text = GOOD + f'y = 2\n# !ls\n# %time y\ndisplay(In)\nz = "{here}", "{there}"\n'
    found = rules.of_example(written("x.py", text))
    assert [(one.line, one.message.partition(":")[0]) for one in found] == [
        (12, "a magic of notebooks does not run as a script"),
        (14, "a script has no 'display', which only notebooks have"),
        (14, "a script has no 'In', which only notebooks have"),
        (15, "this is a path of one machine"),
    ]


def test_a_broken_region_is_told_where_it_first_stands(written) -> None:
    whole = "// --8<-- [start:a]\nint x;\n// --8<-- [end:a]\n"
    text = f"{whole}int y;\n// --8<-- [start:b]\n// --8<-- [end:c]\n// --8<-- [end:c]\n"
    found = rules.of_kernel_file(written("x.cu", text))
    assert [(one.line, one.message.split("'")[1]) for one in found] == [(5, "b"), (6, "c")]
    assert found[0].message.endswith("write [start:b] and [end:b] around it")


@pytest.mark.parametrize(
    ("one", "said"),
    [
        ({"code": "F401", "message": "unused", "fix": {"a": 1}, "url": "u"}, "F401, unused: run `make format`"),
        ({"code": "F821", "message": "undefined", "fix": None, "url": "u"}, "F821, undefined (u)"),
        ({"code": "E999", "message": "odd"}, "E999, odd"),
        ({"code": None, "message": "a brace"}, "that it cannot read this, a brace"),
    ],
)  # fmt: skip
def test_what_ruff_says_is_a_sentence_with_its_cure(one, said) -> None:
    assert formatting._as_sentence(one) == f"ruff says {said}"


@pytest.fixture
def ran(monkeypatch):
    """Call it with statuses, outputs and errors, of one run each; returns the commands that are run instead of ruff's."""

    def answer(*answers):
        commands, left = [], list(answers)

        def run(command, **how):
            assert how["cwd"] == ROOT
            commands.append(command[1:])
            status, out, err = left.pop(0)
            return subprocess.CompletedProcess(command, status, out, err)

        monkeypatch.setattr(formatting.subprocess, "run", run)
        return commands

    return answer


def test_each_file_is_formatted_or_not(ran) -> None:
    one, two = ROOT / "examples" / "a.py", ROOT / "examples" / "b.py"
    commands = ran((1, "[]", ""), (0, "", ""), (1, "", ""))
    (found,) = formatting.of_python([one, two], ROOT)
    assert str(found) == "examples/b.py: ruff would format this otherwise: run `make format`"
    check = ["-m", "ruff", "format", "--check", "--quiet"]
    assert commands == [
        ["-m", "ruff", "check", "--output-format=json", str(one), str(two)],
        [*check, str(one)],
        [*check, str(two)],
    ]


@pytest.mark.parametrize("rule", [formatting.of_python, formatting.of_cuda])
def test_a_formatter_that_does_not_run_or_is_not_there_is_told(ran, monkeypatch, rule) -> None:
    commands = ran((2, "", " no such option\n"))
    assert rule([], ROOT) == [] and commands == []
    with pytest.raises(ToolMissing, match=r"does not run: no such option$"):
        rule([ROOT / "x"], ROOT)
    monkeypatch.setattr(formatting.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolMissing, match="is not installed: `python tools/environment.py"):
        rule([ROOT / "x"], ROOT)


def test_of_what_clang_format_says_the_first_place_of_each_file_is_told(ran) -> None:
    said = "code should be clang-formatted [-Wclang-format-violations]\n"
    lines = [f"a:b.cu:{line}:5: error: {said}int  x;\n" for line in (7, 9)]
    lines += ["a note: error: of no place\n", f"examples/c.cu:2:1: error: {said}"]
    ran((1, "", "".join(lines)))
    found = formatting.of_cuda([ROOT / "a:b.cu", ROOT / "examples/c.cu"], ROOT)
    assert [(one.file, one.line) for one in found] == [("a:b.cu", 7), ("examples/c.cu", 2)]
    ran((0, "", ""))
    assert formatting.of_cuda([ROOT / "examples/c.cu"], ROOT) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# %% a\n", 1),
        ("x\n# %% [markdown] a\n", 2),
        ("x\n\n# %%\ta  \n# %% a\n", 3),
        ("# %% ab\n", 0),
        ("x # %% a\n", 0),
    ],
)
def test_the_line_of_a_cell(written, text, line) -> None:
    assert places.line_of_cell(written("x.py", text), "a") == line


def test_the_line_of_an_exercise(written) -> None:
    path = written("exercises.py", "# ---\n#   1:\n#   12:\n#   2: {}\n")
    assert [places.line_of_exercise(path, number) for number in (1, 2, 12, 3)] == [2, 4, 3, 0]
    assert places.line_of_exercise(path.with_name("none.py"), 1) == 0
