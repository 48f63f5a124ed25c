"""Each exercise can be begun: what it says of itself, and that its givens fit its stub, its solution and its check.

Without a GPU: both files are read as Python, names are looked up, kernels compiled. tests/gpu/test_exercises.py runs them.
"""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

import pytest
import yaml
from rich.cells import cell_len

from cudatut import catalog, exercises
from cudatut.fingerprint import meaning

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
HAN = re.compile(r"[\u4e00-\u9fff]")
PARTS = ("given", "stub", "solution", "check")
WRITTEN = [
    f"{part['id']}/{chapter['id']}"
    for part in yaml.safe_load((ROOT / "docs/contents.yml").read_text(encoding="utf-8"))["parts"]
    for chapter in part["chapters"]
    if chapter["written"] is True
]


def load(name: str):
    """Another file of tests as a module; pytest's own where it has it."""
    file = Path(__file__).with_name(f"{name}.py")
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(file):
            return module
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


compared = load("compared")


@cache
def of_chapter(chapter: str) -> list[exercises.Exercise]:
    return exercises.of_chapter(chapter)


def listed() -> list[tuple[str, int]]:
    """(chapter, number) of every exercise; number 0 where the header cannot be read, which a test then says."""
    found = []
    for chapter in exercises.chapters():
        try:
            found += [(chapter, exercise.number) for exercise in of_chapter(chapter)]
        except catalog.BadHeaderError:
            found.append((chapter, 0))
    return found


ALL = listed()
each = pytest.mark.parametrize(
    ("chapter", "number"), ALL, ids=[f"{chapter}-{number}" for chapter, number in ALL]
)


def exercise_of(chapter: str, number: int) -> exercises.Exercise:
    """Raises BadHeaderError, which says what is wrong with the header."""
    return next(e for e in of_chapter(chapter) if e.number == (number or 1))


def names_bound(code: str) -> set[str]:
    """What code defines at its top level."""
    found = set()
    for node in ast.parse(code).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        for target in getattr(node, "targets", []):
            found |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


@pytest.mark.parametrize("chapter", WRITTEN)
def test_every_chapter_has_exercises_that_can_be_begun(chapter) -> None:
    file = catalog.path_of(f"{chapter}_exercises")
    assert file.is_file(), f"{catalog.shown(file)} is missing: see docs/en/contributing.md"
    found = of_chapter(chapter)
    assert 2 <= len(found) <= 4, f"{chapter} has {len(found)} exercises; two or three are right"
    levels = [exercises.LEVELS.index(exercise.level) for exercise in found]
    assert levels == sorted(levels), f"{chapter}: its easy exercises come first"


@pytest.mark.parametrize("chapter", exercises.chapters())
def test_cells_and_header_name_the_same_exercises(chapter) -> None:
    count = len(of_chapter(chapter))
    numbers = range(1, count + 1)
    begun = catalog.path_of(f"{chapter}_exercises")
    stubs = list(catalog.cells(begun))
    assert stubs == [f"stub-{n}" for n in numbers], f"cells of {catalog.shown(begun)}"
    file = catalog.path_of(f"{chapter}_solutions")
    assert file.is_file(), f"{catalog.shown(file)} is missing"
    wanted = [f"{part}-{n}" for n in numbers for part in ("given", "solution", "check")]
    cells = list(catalog.cells(file))
    # Others may stand between them, such as a measurement that the page shows; no exercise needs those.
    assert [cell for cell in cells if cell in wanted] == wanted, f"cells of {file.name}: {cells}"
    parts = [cell for cell in cells if re.fullmatch(r"(given|stub|solution|check)-\d+", cell)]
    assert parts == wanted, f"{file.name} has cells of exercises that its header lacks: {parts}"


@each
def test_both_languages(chapter, number) -> None:
    exercise = exercise_of(chapter, number)
    for texts in (exercise.title, exercise.task):
        assert HAN.search(texts["zh"]), (
            f"{exercise.name}: the zh text holds no Chinese: {texts['zh']}"
        )
        assert not HAN.search(texts["en"]), f"{exercise.name}: the en text holds Chinese"
    assert exercise.fails, f"{exercise.name}: 'fails' is empty"


@each
def test_its_parts_fit(chapter, number) -> None:
    exercise = exercise_of(chapter, number)
    for part in PARTS:
        code = getattr(exercise, part)
        for line in code.splitlines():
            width = cell_len(line)
            assert width <= 80, f"{exercise.name}, {part}: {width} columns, 80 fit: {line}"
        assert "pycuda.autoinit" not in code, (
            f"{exercise.name}, {part}: pycuda.autoinit makes a second context, in which arrays of ct are unknown; "
            "import pycuda.autoprimaryctx"
        )
    missing = names_bound(exercise.stub) - names_bound(exercise.solution)
    assert not missing, f"{exercise.name}: the stub defines {missing}, the solution does not"
    assert "ct." in exercise.check, f"{exercise.name}: the check uses no ct.check"


@each
def test_python_reads_the_files_that_the_command_writes(chapter, number) -> None:
    exercise = exercise_of(chapter, number)
    for solution in (False, True):
        for lang in exercises.LANGUAGES:
            # As bytes: for a string Python does not look for an encoding in its first lines (PEP 263).
            raw = exercises.started(exercise, lang, solution).encode()
            compile(raw, f"{exercise.file}.py", "exec")


@each
def test_something_is_left_to_do_and_it_is_what_the_check_looks_at(chapter, number) -> None:
    problem = without_a_task(exercise_of(chapter, number))
    assert not problem, problem


def without_a_task(exercise: exercises.Exercise) -> str:
    """Why an exercise asks for nothing: its stub means what the solution means, or its check compares nothing of the stub."""
    # Comments, docstrings and layout do not count, in the kernels of strings neither.
    whole = ((exercise.given, part, exercise.check) for part in (exercise.stub, exercise.solution))
    one, other = (meaning.python("# %% whole\n" + "\n\n".join(parts)) for parts in whole)
    if exercise.stub == exercise.solution or (one and one == other):
        return f"{exercise.name}: the stub is the solution"
    if not compared.compares(exercise.given, exercise.stub, exercise.check):
        names = ", ".join(sorted(compared.bound(exercise.stub)))
        return f"{exercise.name}: no ct.check of its check looks at what the stub defines: {names}"
    return ""


@dataclass(frozen=True)
class Parts:
    """Of an exercise what `without_a_task` looks at."""

    name = "start/add 1"
    given: str
    stub: str
    solution: str
    check: str


STUB, SOLUTION = "def twice(x):\n    return x", "def twice(x):\n    return 2 * x"
CHECK = 'for n in (1, 2):\n    got = twice(n)\n    ct.check(got, 2 * n, name=f"{n}")'
KERNEL = 'SOURCE = """__global__ void twice(float *x) { x[0] *= 2; }"""'
RUN = "def run(x):\n    ct.Kernel(SOURCE, 'twice')(x, grid=1, block=1)\n"
RUNS = "x = ct.to_device(X)\nrun(x)\nct.check(x, 2 * X, name='x')"


@pytest.mark.parametrize(
    ("given", "stub", "solution", "check", "problem"),
    [
        ("", STUB, SOLUTION, CHECK, ""),
        (RUN, KERNEL.replace("*= 2", "*= 1"), KERNEL, RUNS, ""),
        ("def right(got):\n    assert got == 2", STUB, SOLUTION, "right(twice(1))", ""),
        ("", STUB, SOLUTION, "assert twice(1) == 2", ""),
        ("", SOLUTION, SOLUTION, CHECK, "the stub is the solution"),
        ("", SOLUTION + "  # yours: twice as much", SOLUTION, CHECK, "the stub is the solution"),
        ("", SOLUTION.replace("    ", '    "Twice."\n    '), SOLUTION, CHECK, "is the solution"),
        (RUN, KERNEL.replace("{", "{ /* yours */"), KERNEL, RUNS, "the stub is the solution"),
        ("", STUB, SOLUTION, "ct.check(np.ones(3), np.ones(3))", "looks at what the stub defines"),
        ("", STUB, SOLUTION, "twice(1)\nct.check(np.ones(3), np.ones(3))", "defines: twice"),
        (RUN, KERNEL.replace("2", "1"), KERNEL, RUNS.replace("run(x)", "pass"), "defines: SOURCE"),
        ("", STUB, SOLUTION, "print(twice(1))", "no ct.check of its check"),
    ],
)
def test_an_exercise_without_a_task_is_refused(given, stub, solution, check, problem) -> None:
    found = without_a_task(Parts(given, stub, solution, check))
    assert (problem in found) if problem else not found, found


@each
def test_start_needs_pycuda_and_numpy_alone(chapter, number) -> None:
    exercise = exercise_of(chapter, number)
    if not chapter.startswith("start/"):
        pytest.skip("the helper package is introduced in basics")
    allowed = sys.stdlib_module_names | {"numpy", "pycuda"}
    for part in ("given", "stub", "solution"):
        for node in ast.walk(ast.parse(getattr(exercise, part))):
            imported = []
            if isinstance(node, ast.Import):
                imported = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                imported = [node.module or ""]
            for name in imported:
                assert name.partition(".")[0] in allowed, f"{exercise.name}, {part} imports {name}"
            ct = isinstance(node, ast.Name) and node.id == "ct"
            assert not ct, f"{exercise.name}, {part} uses ct, line {node.lineno}"


@pytest.fixture(scope="session")
def undefined(tmp_path_factory) -> dict[str, list[str]]:
    """What ruff finds undefined in givens, stub or solution, and check, one after the other; by file."""
    folder = tmp_path_factory.mktemp("exercises")
    for chapter, number in ALL:
        try:
            exercise = exercise_of(chapter, number)
            for part in ("stub", "solution"):
                code = "\n\n".join((exercise.given, getattr(exercise, part), exercise.check))
                (folder / f"{exercise.file}_{part}.py").write_text(code, encoding="utf-8")
        except exercises.CudatutError:
            continue  # other tests say so
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F821"]
    done = subprocess.run(
        [*command, "--output-format=json", folder], capture_output=True, text=True
    )
    found: dict[str, list[str]] = {}
    for entry in json.loads(done.stdout):
        lines = Path(entry["filename"]).read_text(encoding="utf-8").splitlines()
        said = f"{entry['message']}: {lines[entry['location']['row'] - 1].strip()}"
        found.setdefault(Path(entry["filename"]).stem, []).append(said)
    return found


@each
def test_every_name_is_defined(chapter, number, undefined) -> None:
    exercise = exercise_of(chapter, number)
    for part in ("stub", "solution"):
        found = undefined.get(f"{exercise.file}_{part}", [])
        assert not found, f"{exercise.name}, given, {part} and check: " + "; ".join(found)


# --- kernels ---------------------------------------------------------------------------------------

compiling = load("test_compile")
KNOWN = {source.code for source in compiling.SOURCES}  # compiled by test_compile.py
UNUSED = re.compile(r"declared but never referenced|set but never used")  # as a stub may leave it


class Stub(compiling.Source):
    """A kernel to begin with: the oldest architecture that it claims and one of today's are enough."""

    def architectures(self, every: bool = True) -> list[str]:
        first, *others = super().architectures()
        return [first, *(["90"] if "90" in others else [])]


def stub_kernels() -> list[tuple[str, Stub]]:
    """Kernels that only stubs have, each with the exercise's name."""
    found = []
    for chapter, number in ALL:
        try:
            exercise = exercise_of(chapter, number)
            code = "\n\n".join((exercise.given, exercise.stub, exercise.check))
            sources = compiling.of_python(code, f"{exercise.file}.py")
        except (exercises.CudatutError, SyntaxError):
            continue  # other tests say so
        for source in sources:
            if source.code in KNOWN:
                continue
            folders = (catalog.path_of(chapter + catalog.EXERCISES).parent, EXAMPLES)
            source = replace(source, requires=exercise.requires, folders=folders)
            stub = Stub(**{one.name: getattr(source, one.name) for one in fields(source)})
            found.append((exercise.name, stub))
    return found


STUBS = stub_kernels()


@pytest.mark.parametrize(
    ("name", "source"), STUBS, ids=[f"{name}-{source.where}" for name, source in STUBS]
)
def test_the_stubs_kernel_compiles(name, source, compiler, tmp_path) -> None:
    done = compiling.compile_source(source, compiler, tmp_path)
    log = done.log
    assert done.status == 0, f"{name}: its stub does not compile:\n{log}"
    warned = [
        line
        for line in log.splitlines()
        if re.search(r"\bwarning\b[ #]", line) and not UNUSED.search(line)
    ]
    assert not warned, f"{name}: its stub compiles with warnings:\n" + "\n".join(warned)


# --- notebooks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", exercises.chapters())
def test_the_notebook_for_colab_is_up_to_date(chapter) -> None:
    pytest.importorskip("nbformat")
    path, raw = exercises.committed_notebook(chapter)
    mend = "run `python -m cudatut exercise --write-notebooks`"
    assert path.is_file(), f"examples/{path.relative_to(EXAMPLES)} is not there: {mend}"
    have = path.read_bytes().replace(b"\r\n", b"\n")
    assert have == raw, f"examples/{path.relative_to(EXAMPLES)} is out of date: {mend}"


def test_no_notebook_is_left_behind() -> None:
    known = {f"{chapter}{catalog.EXERCISES}" for chapter in exercises.chapters()}
    for path in EXAMPLES.rglob("*.ipynb"):
        assert catalog.name_of(path) in known, f"{catalog.shown(path)} has no exercises: remove it"
