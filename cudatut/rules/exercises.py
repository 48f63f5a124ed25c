"""What the exercises of a chapter have to be, so that each can be begun: the header, the cells, and that the parts fit.

Without a GPU: both files are read as Python, and names are looked up. tests/gpu/test_exercises.py runs them.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from rich.cells import cell_len

from cudatut import catalog, exercises
from cudatut.catalog import ChapterFiles
from cudatut.errors import CudatutError
from cudatut.exercises import Exercise
from cudatut.finding import Finding
from cudatut.fingerprint import meaning
from cudatut.rules import compared
from cudatut.rules.examples import HAN
from cudatut.rules.places import finding, line_of_cell, line_of_exercise

PARTS = ("given", "stub", "solution", "check")
FEWEST, MOST = 2, 3
_PART = re.compile(rf"({'|'.join(PARTS)})-\d+")


def of_chapter(chapter: str) -> list[Finding]:
    """Findings of the files of a chapter's exercises; where one cannot be read, that is the only one of it."""
    files = ChapterFiles(chapter)
    begun, solved = files.script(catalog.EXERCISES), files.script(catalog.SOLUTIONS)
    absent = [path for path in (begun, solved) if not path.is_file()]
    if absent:
        how = "write it as docs/en/contributing.md says under 'Exercises'"
        return [finding(path, 0, f"this file is missing: {how}") for path in absent]
    try:
        listed = exercises.of_chapter(chapter)
    except catalog.BadHeaderError as error:
        return [finding(begun, 1, str(error).removeprefix(f"{catalog.shown(begun)}: "))]
    found = [*_how_many(begun, listed), *_cells(begun, solved, listed)]
    for exercise in listed:
        try:
            found += of_exercise(exercise)
        except CudatutError as error:  # a cell that is not there, which _cells has told
            found += [] if found else [finding(begun, 0, str(error))]
    return found + undefined([one for one in listed if _readable(one)])


def _readable(exercise: Exercise) -> bool:
    try:
        return not list(_unreadable(exercise))
    except CudatutError:
        return False


def _how_many(begun: Path, listed: list[Exercise]) -> Iterator[Finding]:
    if not FEWEST <= len(listed) <= MOST:
        count = f"there {'is' if len(listed) == 1 else 'are'} {len(listed)} of them"
        yield finding(begun, 1, f"a chapter has two or three exercises, and {count}")
    for before, after in pairwise(listed):
        if catalog.LEVELS.index(after.level) < catalog.LEVELS.index(before.level):
            line = line_of_exercise(begun, after.number)
            said = f"exercise {after.number} is {after.level} and stands behind one that is {before.level}"
            yield finding(begun, line, f"{said}: the easy ones come first")


def _cells(begun: Path, solved: Path, listed: list[Exercise]) -> Iterator[Finding]:
    """Header and cells name the same exercises, in order."""
    numbers = range(1, len(listed) + 1)
    stubs, wanted = list(catalog.cells(begun)), [f"stub-{n}" for n in numbers]
    if stubs != wanted:
        yield finding(
            begun,
            1,
            f"the cells are {_listed(stubs)}, and the header's exercises need {_listed(wanted)}",
        )
    cells = list(catalog.cells(solved))
    wanted = [f"{part}-{n}" for n in numbers for part in ("given", "solution", "check")]
    # Others may stand between them, such as a measurement that the page shows; no exercise needs those.
    parts = [cell for cell in cells if _PART.fullmatch(cell)]
    if parts != wanted:
        yield finding(
            solved,
            1,
            f"of exercises it has the cells {_listed(parts)}; needed, in this order: {_listed(wanted)}",
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


# --- one exercise ----------------------------------------------------------------------------------


def of_exercise(exercise: Exercise) -> list[Finding]:
    """Findings of one exercise. Raises BadExerciseError where a cell of it is missing."""
    header = partial(finding, _file(exercise, "stub"), _line(exercise, "header"))
    found = [header(said) for said in _languages(exercise)]
    unreadable = list(_unreadable(exercise))
    if unreadable:
        return found + unreadable
    found += [*_widths(exercise), *_contexts(exercise)]
    missing = _bound(exercise.stub) - _bound(exercise.solution)
    if missing:
        names = ", ".join(sorted(missing))
        found.append(
            _at(exercise, "solution", f"it does not define {names}, which the stub does: add it")
        )
    if "ct." not in exercise.check:
        found.append(_at(exercise, "check", "it compares nothing: use ct.check"))
    if problem := without_a_task(exercise):
        found.append(_at(exercise, "stub", problem))
    if exercise.chapter.startswith("start/"):
        found += _pycuda_and_numpy_alone(exercise)
    return found + _files_are_python(exercise)


def _languages(exercise: Exercise) -> Iterator[str]:
    for key, texts in (("title", exercise.title), ("task", exercise.task)):
        where = f"exercise {exercise.number}: the {key}"
        if not HAN.search(texts["zh"]):
            yield f"{where} in zh holds no Chinese: write it in Chinese"
        if HAN.search(texts["en"]):
            yield f"{where} in en holds Chinese: write it in English"
    if not exercise.fails:
        yield f"exercise {exercise.number}: 'fails' is empty: say what the check says of the stub"


def _unreadable(exercise: Exercise) -> Iterator[Finding]:
    for part in PARTS:
        try:
            ast.parse(getattr(exercise, part))
        except SyntaxError as error:
            said = f"Python cannot read this: {error.msg}"
            yield _at(exercise, part, said, error.lineno or 0)


def _widths(exercise: Exercise) -> Iterator[Finding]:
    for part in PARTS:
        for number, line in enumerate(getattr(exercise, part).splitlines(), 1):
            if (width := cell_len(line)) > exercises.COLUMNS:
                said = f"the line has {width} columns, {exercises.COLUMNS} fit: break it"
                yield _at(exercise, part, said, number)


def _contexts(exercise: Exercise) -> Iterator[Finding]:
    for part in PARTS:
        if "pycuda.autoinit" in getattr(exercise, part):
            yield _at(
                exercise,
                part,
                "pycuda.autoinit makes a second context, in which arrays of ct are unknown: "
                "import pycuda.autoprimaryctx",
            )


def without_a_task(exercise: Exercise) -> str:
    """Why an exercise asks for nothing: its stub means what the solution means, or its check compares nothing of the stub."""
    # Comments, docstrings and layout do not count, in the kernels of strings neither.
    whole = ((exercise.given, part, exercise.check) for part in (exercise.stub, exercise.solution))
    one, other = (meaning.python("# %% whole\n" + "\n\n".join(parts)) for parts in whole)
    if exercise.stub == exercise.solution or (one and one == other):
        return "the stub is the solution: take out what the reader shall write"
    if not compared.compares(exercise.given, exercise.stub, exercise.check):
        names = ", ".join(sorted(compared.bound(exercise.stub)))
        return f"no ct.check of the check looks at what the stub defines: compare {names}"
    return ""


def _files_are_python(exercise: Exercise) -> list[Finding]:
    """The files that `python -m cudatut exercise` writes."""
    for solution in (False, True):
        for lang in exercises.LANGUAGES:
            try:
                # As bytes: for a string Python does not look for an encoding in its first lines (PEP 263).
                raw = exercises.started(exercise, lang, solution).encode()
                compile(raw, f"{exercise.file}.py", "exec")
            except exercises.BadExerciseError as error:
                file = f"{catalog.shown(_file(exercise, 'check'))}: "
                return [_at(exercise, "check", str(error).removeprefix(file))]
            except SyntaxError as error:
                said = f"the file that a reader begins with is no Python: {error.msg}"
                return [_at(exercise, "check", said)]
    return []


def _pycuda_and_numpy_alone(exercise: Exercise) -> Iterator[Finding]:
    """In `start`, before the helper package is introduced."""
    allowed = sys.stdlib_module_names | {"numpy", "pycuda"}
    for part in ("given", "stub", "solution"):
        for node in ast.walk(ast.parse(getattr(exercise, part))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name in _imported(node):
                    if name.partition(".")[0] not in allowed:
                        said = f"it imports {name}: in `start` a reader has PyCUDA and NumPy alone"
                        yield _at(exercise, part, said, node.lineno)
            elif isinstance(node, ast.Name) and node.id == "ct":
                said = "it uses ct: in `start` only the check does, since basics introduces it"
                yield _at(exercise, part, said, node.lineno)


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules that a statement imports, or imports from."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [name.name for name in node.names]


def _bound(code: str) -> set[str]:
    """What code defines at its top level."""
    found = set()
    for node in ast.parse(code).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        for target in getattr(node, "targets", []):
            found |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


# --- names -----------------------------------------------------------------------------------------


def undefined(listed: list[Exercise]) -> list[Finding]:
    """What ruff finds undefined in givens, stub or solution, and check, one after the other."""
    of_file: dict[str, tuple[Exercise, str]] = {}
    with tempfile.TemporaryDirectory(prefix="cudatut-exercises-") as folder:
        for exercise in listed:
            for part in ("stub", "solution"):
                code = "\n\n".join((exercise.given, getattr(exercise, part), exercise.check))
                name = f"{exercise.file}_{part}"
                of_file[name] = exercise, part
                (Path(folder) / f"{name}.py").write_text(code, encoding="utf-8")
        if not of_file:
            return []
        ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F821"]
        done = subprocess.run(
            [*ruff, "--output-format=json", folder], capture_output=True, text=True
        )
        if done.returncode not in (0, 1):
            raise CudatutError(f"ruff cannot look for undefined names: {done.stderr.strip()}")
        found = []
        for entry in json.loads(done.stdout):
            path = Path(entry["filename"])
            exercise, part = of_file[path.stem]
            line = path.read_text(encoding="utf-8").splitlines()[entry["location"]["row"] - 1]
            said = f"given, {part} and check, one after the other: {entry['message']} in `{line.strip()}`: define it"
            found.append(_at(exercise, part, said))
    return found


# --- places ----------------------------------------------------------------------------------------


def _file(exercise: Exercise, part: str) -> Path:
    ending = catalog.EXERCISES if part == "stub" else catalog.SOLUTIONS
    return ChapterFiles(exercise.chapter).script(ending)


def _line(exercise: Exercise, part: str) -> int:
    if part == "header":
        return line_of_exercise(_file(exercise, "stub"), exercise.number)
    return line_of_cell(_file(exercise, part), f"{part}-{exercise.number}")


def _at(exercise: Exercise, part: str, said: str, line: int = 0) -> Finding:
    """A finding in a cell; `line` counts from 1 inside it."""
    return finding(_file(exercise, part), _line(exercise, part) + line, said)


# --- notebooks -------------------------------------------------------------------------------------


def of_notebook(chapter: str) -> list[Finding]:
    """The notebooks that Colab opens are what the files say. Raises CudatutError without nbformat."""
    found, mend = [], "run `python -m cudatut exercise --write-notebooks`"
    for lang in catalog.LANGUAGES:
        path, raw = exercises.committed_notebook(chapter, lang)
        if not path.is_file():
            found.append(
                finding(path, 0, f"this notebook, which Colab opens, is not there: {mend}")
            )
        elif path.read_bytes().replace(b"\r\n", b"\n") != raw:
            found.append(
                finding(path, 0, f"this notebook, which Colab opens, is out of date: {mend}")
            )
    return found
