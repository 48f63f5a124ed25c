"""Of the modules that are found by their bare names no two that are loaded together may have the same one.

An example has a process of its own, and what it imports lies beside it, or comes from `cudatut.book` or by `ct.shared`.
Modules of several parts have the names `ladder`, `machine_code`, `autotuning_space`, `bank_conflicts` and `scoreboard`. They
are not confused because no process imports two of them by that name: `cudatut.book`, `ct.load_ladder` and `ct.shared` put the
folder into it. The tests of a folder share a process, and its files put several parts on the path.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
# Those of `make test` share their processes; tests/llm and tests/tensor use what lies in tests/gpu.
PROCESSES = {
    "make test-gpu": ("tests/gpu",),
    "make test": ("tests/cudatut", "tests/examples", "tests/llm", "tests/tensor", "tests/site"),
}


def imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names of what is imported, and whether by its folder: from `cudatut.book` or by `ct.shared`."""
    for node in ast.iter_child_nodes(tree):
        named = []
        if isinstance(node, ast.Import):
            named = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            named = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
        for name in named:
            if name.startswith("cudatut.book."):
                yield name.removeprefix("cudatut.book.").replace(".", "/"), True
            else:
                yield name.split(".")[0], False
        if named:
            continue
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("shared", "import_module"):
                yield node.args[0].value, called == "shared"
        yield from imports(node)


def on_the_path(tests: Iterable[Path], root: Path) -> list[Path]:
    """The folders of which a test can import a module by its bare name: their own, and the parts that they mention."""
    parts = [part for part in (root / "examples").iterdir() if part.is_dir()]
    texts = [path.read_text(encoding="utf-8") for path in tests if path.suffix == ".py"]
    named = [
        part
        for part in parts
        if any(
            ("sys.path.insert" in text and f'"{part.name}"' in text)
            or f"examples/{part.name}" in text
            for text in texts
        )
    ]
    return [*sorted(named), *sorted({path.parent for path in (root / "tests").rglob("*.py")})]


def loaded(starts: Iterable[Path], folders: Iterable[Path], root: Path) -> dict[str, set[str]]:
    """By bare name, the files that stand for it in a process that loads these files.

    folders: where the files of tests look; a module of the examples looks beside itself.
    """
    found: dict[str, set[str]] = defaultdict(set)
    left, done = list(starts), set()
    while left:
        path = left.pop()
        if path in done:
            continue
        done.add(path)
        places = [path.parent] if path.is_relative_to(root / "examples") else folders
        for name, by_part in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if by_part:
                left += [file] if (file := root / "examples" / f"{name}.py").is_file() else []
                continue
            for folder in places:
                if (file := folder / f"{name}.py").is_file():
                    found[name].add(file.relative_to(root).as_posix())
                    left.append(file)
    return found


def confused(found: dict[str, set[str]]) -> dict[str, list[str]]:
    return {name: sorted(files) for name, files in found.items() if len(files) > 1}


def test_no_example_loads_two_modules_of_one_name():
    wrong = {
        path.relative_to(ROOT).as_posix(): two
        for path in sorted(EXAMPLES.rglob("*.py"))
        if (two := confused(loaded([path], (), ROOT)))
    }
    assert not wrong, "have one of the two from `cudatut.book`, or give it another name"


@pytest.mark.parametrize("command", PROCESSES)
def test_no_process_of_tests_loads_two_modules_of_one_name(command):
    tests = [path for folder in PROCESSES[command] for path in (ROOT / folder).rglob("*.py")]
    found = loaded(tests, on_the_path(tests, ROOT), ROOT)
    assert not confused(found), "have one of the two from `cudatut.book`, or give it another name"
    assert {"gemm", "flash", "kernel_faults"} <= set(found) or command == "make test"


def book(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_two_modules_of_one_name_are_noticed(tmp_path):
    """As it was with `fp8`: a helper of one part, a chapter of another, and tests that put both parts on the path."""
    path = 'import sys\nsys.path.insert(0, str(examples / "{}"))\n'
    root = book(
        tmp_path,
        examples__llm__fp8="",
        examples__tensor__fp8="",
        tests__gpu__test_a=path.format("llm") + "def test():\n    from fp8 import scales\n",
        tests__gpu__test_b=path.format("tensor"),
    )
    tests = list((root / "tests").rglob("*.py"))
    found = confused(loaded(tests, on_the_path(tests, root), root))
    assert found == {"fp8": ["examples/llm/fp8.py", "examples/tensor/fp8/chapter.py"]}
    (root / "examples/llm/fp8.py").rename(root / "examples/llm/serving/kv_scales.py")
    assert not confused(loaded(tests, on_the_path(tests, root), root))


def test_what_comes_by_its_part_is_followed(tmp_path):
    """`ct.shared` keeps the module itself apart, not what it imports."""
    root = book(
        tmp_path,
        examples__a__one='import ladder\nct.shared("b/two")\n',
        examples__a__ladder="",
        examples__b__two="import ladder\n",
        examples__b__ladder="",
    )
    one = root / "examples/a/one.py"
    assert confused(loaded([one], (), root)) == {
        "ladder": ["examples/a/ladder.py", "examples/b/ladder.py"]
    }
    for by_its_part in (
        'ct.shared("b/ladder")',
        "from cudatut.book.b.ladder import LADDER",
        "from cudatut.book.b import ladder",
        "import cudatut.book.b.ladder",
    ):
        (root / "examples/b/two.py").write_text(f"{by_its_part}\n")
        assert not confused(loaded([one], (), root)), by_its_part
    # And what that imports in its turn.
    (root / "examples/b/ladder.py").write_text("import helper\n")
    book(root, examples__a__helper="", examples__b__helper="")
    one.write_text('import helper\nct.shared("b/two")\n')
    assert set(confused(loaded([one], (), root))) == {"helper"}
