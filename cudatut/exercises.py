"""The exercises: what each asks for, files to begin with, how they are graded, and which are done.

`examples/<part>/<chapter>/exercises.py` holds, in its header, what each exercise asks for, and a cell `stub-N` with
what the reader begins with. `solutions.py` beside it, an example like others, holds `given-N`, `solution-N` and
`check-N`. A reader's file is made of given, stub and check.

Imports neither Jupyter nor NumPy nor PyCUDA: a list of exercises is quick, and needs no GPU.
"""

import ast
import itertools
import json
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import platformdirs
from rich.cells import cell_len

from cudatut import catalog, overlays, paths, runs_on, words, yaml_text
from cudatut.catalog import LEVELS
from cudatut.errors import CheckError, CudatutError
from cudatut.files import write_new, write_whole
from cudatut.words import LANGUAGES
from cudatut.wrapping import WIDE, padded, wrapped

COLUMNS = 80
_say = words.section("exercises")


class BadExerciseError(CudatutError):
    """A cell of an exercise or of its solution is not as it should be; the message names the file and says why."""


class UnknownExerciseError(CudatutError):
    """There is no such chapter or exercise; the message offers those that are close."""


class NotPassed(CudatutError):
    """An exercise's check failed in a notebook, which shows the message without a traceback."""

    def _render_traceback_(self) -> list[str]:  # what IPython asks an exception for
        return [str(self)]


# --- what there is -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exercise:
    """One exercise, as the header of its file describes it.

    fails: a regular expression that fits what the check says of the untouched stub. requires: as an example's.
    """

    chapter: str
    number: int
    title: dict[str, str]
    level: str
    minutes: int
    task: dict[str, str]
    fails: str
    requires: str

    @property
    def name(self) -> str:
        """'start/errors 2', as the command line takes it."""
        return f"{self.chapter} {self.number}"

    @property
    def file(self) -> str:
        """Name of the file that the command writes, without ending."""
        return f"{self.chapter.replace('/', '_')}_{self.number}"

    # What need not be written, what the reader begins with, ours in its place, and what tests it.
    given = property(lambda self: self._cell("given"))
    stub = property(lambda self: self._cell("stub", catalog.EXERCISES))
    solution = property(lambda self: self._cell("solution"))
    check = property(lambda self: self._cell("check"))

    def shown(self, name: str, lang: str) -> str:
        """'given', 'stub', 'solution' or 'check' with the comments of a language."""
        code = getattr(self, name)
        if lang == "en":
            return code
        path = catalog.path_of(
            f"{self.chapter}{catalog.EXERCISES if name == 'stub' else catalog.SOLUTIONS}"
        )
        return overlays.code(code, catalog.relative(path, paths.examples_dir()))

    def _cell(self, name: str, of: str = catalog.SOLUTIONS) -> str:
        path, title = catalog.path_of(f"{self.chapter}{of}"), f"{name}-{self.number}"
        found = catalog.cells(path).get(title) if path.is_file() else None
        if not found:
            raise BadExerciseError(f"{catalog.shown(path)} has no cell '{title}'")
        return found


def _file(chapter: str) -> Path:
    """Where the header and the stubs of a chapter's exercises stand."""
    return catalog.ChapterFiles(chapter).script(catalog.EXERCISES)


def chapters(drafts: bool = True) -> list[str]:
    """Chapters that have exercises, such as 'start/errors', in the order of the book; also those in progress."""
    root = paths.examples_dir()
    if not root.is_dir():
        raise CudatutError(f"there is no folder of examples at {root}")
    files = itertools.chain(root.glob(f"*/*{catalog.EXERCISES}.py"), root.glob("*/*/exercises.py"))
    passed_over = [] if drafts else catalog.draft_patterns()
    found = {
        catalog.name_of(path).removesuffix(catalog.EXERCISES)
        for path in files
        if not catalog.matches(catalog.relative(path, root), passed_over)
    }
    order = _titles()
    return [name for name in order if name in found] + sorted(found - order.keys())


def _titles() -> dict[str, dict[str, str]]:
    """Titles of the parts ('start') and chapters ('start/errors') in the book's order; the package has a copy of the file."""
    root = paths.repo_root()
    path = root / "docs" / "contents.yml" if root else Path(__file__).with_name("contents.yml")
    return _titles_in(path.read_text(encoding="utf-8")) if path.is_file() else {}


@cache
def _titles_in(contents: str) -> dict[str, dict[str, str]]:
    titles = {}
    for part in yaml_text.load(contents)["parts"]:
        titles[part["id"]] = part["title"]
        titles |= {f"{part['id']}/{one['id']}": one["title"] for one in part["chapters"]}
    return titles


def of_chapter(chapter: str) -> list[Exercise]:
    """The exercises of a chapter, in order. Raises UnknownExerciseError, BadHeaderError."""
    path = _file(chapter)
    if not path.is_file():
        raise _unknown(chapter)
    shown, own = catalog.shown(path), catalog.header(path) or {}
    listed = own.get("exercises")
    if not isinstance(listed, dict) or list(listed) != list(range(1, len(listed) + 1)):
        raise catalog.BadHeaderError(
            f"{shown}: the header needs 'exercises:' with the numbers 1, 2, ... in order"
        )
    requires = catalog.requires(own, f"{shown}: the header's")
    found = []
    for number, entry in listed.items():
        entry = entry if isinstance(entry, dict) else {}
        value = partial(catalog.value_of, entry, f"{shown}: exercise {number}'s")
        exercise = Exercise(
            chapter,
            number,
            title=_joined(value("title", catalog.bilingual, "it must have 'en' and 'zh'")),
            level=value("level", LEVELS.__contains__, f"there are {', '.join(LEVELS)}"),
            minutes=value("minutes", lambda m: type(m) is int and m > 0, "give a whole number"),
            task=_joined(value("task", catalog.bilingual, "it must have 'en' and 'zh'")),
            fails=value("fails", _is_pattern, "give a regular expression of what the check says"),
            requires=requires,
        )
        found.append(exercise)
    return found


def _is_pattern(text: Any) -> bool:
    try:
        return bool(re.compile(text))
    except (TypeError, re.error):
        return False


def _joined(texts: dict[str, str]) -> dict[str, str]:
    """Texts of a header without the blanks that YAML leaves between Chinese lines, and behind their punctuation."""
    blanks = rf"(?<={WIDE})\s+(?={WIDE})|(?<=[，。；：、！？（）《》])\s+"
    return {lang: re.sub(blanks, "", texts[lang].strip()) for lang in LANGUAGES}


def get(chapter: str, number: int) -> Exercise:
    """One exercise. Raises UnknownExerciseError with suggestions, BadHeaderError."""
    chapter = chapter_of(chapter)
    found = of_chapter(chapter)
    if 1 <= number <= len(found):
        return found[number - 1]
    raise UnknownExerciseError(_say("no exercise", chapter=chapter, number=number, last=len(found)))


def chapter_of(text: str) -> str:
    """A chapter from what somebody typed: 'start/errors', 'errors' if no other part has one, or a path of its file.

    Raises UnknownExerciseError with suggestions.
    """
    name = re.sub(f"({catalog.EXERCISES}|{catalog.SOLUTIONS})$", "", catalog.plain(text))
    if re.fullmatch(r"\w+/\w+", name) and _file(name).is_file():
        return name
    ends = [known for known in chapters() if name in (known, known.partition("/")[2])]
    if len(ends) == 1:
        return ends[0]
    raise _unknown(name)


def _unknown(chapter: str) -> UnknownExerciseError:
    hint = catalog.did_you_mean(chapter, chapters())
    return UnknownExerciseError(_say("no chapter", chapter=chapter, hint=hint))


# --- files to begin with -------------------------------------------------------------------------


def effort(exercise: Exercise, lang: str) -> str:
    """'easy, 10 minutes' in the reader's language."""
    return _say("effort", lang, level=_say(exercise.level, lang), minutes=exercise.minutes)


def _title(exercise: Exercise, lang: str) -> str:
    own = {"chapter": exercise.chapter, "number": exercise.number}
    return _say("title", lang, title=exercise.title[lang], **own)


def started(exercise: Exercise, lang: str = "en", solution: bool = False) -> str:
    """The file that a reader begins with: task, given, stub (or our solution), check."""
    title = _say("titled", lang, title=_title(exercise, lang), effort=effort(exercise, lang))
    ours = f"python -m cudatut exercise {exercise.name} --solution"
    lines = [
        # Python looks for the file's encoding in the first two lines (PEP 263), so no title or task stands there: those of
        # `llm/decoding: Unpack` would be read as the encoding 'Unpack'.
        _rule(_say("task", lang)),
        *_comment(title),
        "#",
        *_comment(exercise.task[lang]),
        "#",
        *_comment(_say("how", lang)),
        f"#     python {exercise.file}.py",
        f"# {_say('ours', lang)}",
        f"#     {ours}{'' if lang == 'en' else f' --lang {lang}'}",
        "import cudatut as ct",
        "",
        f"{_call(exercise, lang)}  # {_say('explains', lang)}",
        *_apart(_say("given", lang)),
        exercise.shown("given", lang),
        *_apart(_say("solution" if solution else "yours", lang)),
        exercise.shown("solution" if solution else "stub", lang),
        *_apart(_say("check", lang)),
        graded(exercise, lang),
    ]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in wrapped(text, lambda line: cell_len(line) <= COLUMNS - 2)]


def _rule(label: str) -> str:
    head = f"# --- {label} "
    return f"{head}{'-' * max(3, COLUMNS - cell_len(head))}\n"


def _apart(label: str) -> list[str]:
    return ["", "", _rule(label)]


def _call(exercise: Exercise, lang: str) -> str:
    language = "" if lang == "en" else f', lang="{lang}"'
    return f'ct.exercise("{exercise.chapter}", {exercise.number}{language})'


def graded(exercise: Exercise, lang: str = "en") -> str:
    """The check, indented below the statement that grades it. Raises BadExerciseError for a check with a string that
    spans lines: the indentation would change it.
    """
    imported = r"^import cudatut as ct[ \t]*(#.*)?$\n?"
    check = re.sub(imported, "", exercise.shown("check", lang), flags=re.MULTILINE).strip("\n")
    body = textwrap.indent(check, "    ")
    meant = ast.If(ast.Constant(True), ast.parse(check).body, [])
    if ast.dump(meant) != ast.dump(ast.parse(f"if True:\n{body}").body[0]):
        raise BadExerciseError(
            f"{catalog.shown(catalog.path_of(exercise.chapter + catalog.SOLUTIONS))}: check-{exercise.number} has a string over "
            f"several lines; move it into given-{exercise.number}, for a reader's file indents the check"
        )
    return f"with {_call(exercise, lang)}:\n{body}"


def write(
    exercise: Exercise, out: str | None = None, lang: str = "en", solution: bool = False
) -> Path:
    """Write the file that a reader begins with, or our solution. Returns its path.

    out: another file or a folder; by default the working folder.
    Raises CudatutError where there is a file already: nothing of a reader's is overwritten.
    """
    default = exercise.file + "_solution" * solution + ".py"
    path = Path(out or default)
    if path.is_dir():
        path = path / default
    try:
        write_new(path, started(exercise, lang, solution).encode())
    except FileExistsError:
        raise CudatutError(_say("is there", path=path)) from None
    except OSError as error:
        raise CudatutError(_say("cannot be written", path=path, reason=error.strerror)) from error
    if not solution:
        keep(exercise, "started")
    return path


# --- notebooks -----------------------------------------------------------------------------------


def committed_notebook(chapter: str, lang: str = "en") -> tuple[Path, bytes]:
    """Where the notebook of a chapter's exercises lies, which Colab opens, and what it should hold (nbformat 4.5)."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    from cudatut.to_notebook import install_cell, raw

    # It puts the folder of the solutions on the path, and needs the GPU that they need.
    solutions = catalog.get(f"{chapter}{catalog.SOLUTIONS}")
    first = install_cell(solutions)
    if lang != "en":
        first.source = overlays.code(first.source, solutions.file)
    cells = [first]
    for exercise in of_chapter(chapter):
        text = f"## {_title(exercise, lang)}\n\n*{effort(exercise, lang)}*\n\n{exercise.task[lang]}"
        cells.append(new_markdown_cell(text, id=f"exercise-{exercise.number}"))
        parts = {
            "given": exercise.shown("given", lang),
            "stub": exercise.shown("stub", lang),
            "check": f"import cudatut as ct\n\n{graded(exercise, lang)}",
        }
        for part, code in parts.items():
            name = f"{part}-{exercise.number}"
            cells.append(new_code_cell(code, id=name, metadata={"title": name}))
    for cell in cells:
        cell.metadata["id"] = cell.id  # Colab's #scrollTo goes by it
    made = new_notebook(cells=cells, metadata=runs_on.notebook_metadata(solutions.requires))
    return catalog.ChapterFiles(chapter).exercises_notebook(lang), raw(made)


def write_notebooks() -> list[Path]:
    """Bring the notebooks of all chapters up to date. Returns those that were written."""
    changed = []
    for chapter, lang in itertools.product(chapters(), LANGUAGES):
        path, raw = committed_notebook(chapter, lang)
        if not path.is_file() or path.read_bytes().replace(b"\r\n", b"\n") != raw:
            write_whole(path, raw)
            changed.append(path)
    return changed


# --- progress ------------------------------------------------------------------------------------


def progress_file() -> Path:
    """Where progress is kept: in $CUDATUT_PROGRESS (a folder), else in the user's data folder."""
    folder = os.environ.get("CUDATUT_PROGRESS") or platformdirs.user_data_dir("cudatut", "cudatut")
    return Path(folder).resolve() / "exercises.json"


def progress() -> dict[str, str]:
    """'started' or 'done' by exercise ('start/errors 2'). Raises CudatutError for a file that is none of ours."""
    path = progress_file()
    if path.is_dir():
        raise _folder_in_the_way(path)
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if not set(kept.values()) <= {"started", "done"}:
            raise ValueError(_say("not ours"))
        return kept
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CudatutError(_say("cannot be read", path=path, error=error)) from error


def _folder_in_the_way(path: Path) -> CudatutError:
    return CudatutError(_say("in the way", path=path))


def _write_progress(kept: dict[str, str]) -> None:
    progress_file().parent.mkdir(parents=True, exist_ok=True)
    write_whole(progress_file(), (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode())


def keep(exercise: Exercise, state: str) -> bool:
    """Remember that an exercise was started or is done; what is done stays done. False where that cannot be kept."""
    try:
        kept = progress()
        if kept.get(exercise.name) not in (state, "done"):
            _write_progress(kept | {exercise.name: state})
    except (OSError, CudatutError):
        return False
    return True


def forget(exercise: Exercise | None = None) -> Path:
    """Remove what was kept, of one exercise or of all. Returns the file. Raises CudatutError."""
    path = progress_file()
    if path.is_dir():
        raise _folder_in_the_way(path)
    try:
        if exercise is None:
            path.unlink(missing_ok=True)
        else:
            left = {name: one for name, one in progress().items() if name != exercise.name}
            _write_progress(left)
    except OSError as error:
        raise CudatutError(_say("cannot be changed", path=path, reason=error.strerror)) from error
    return path


def listing(only: str | None = None, level: str | None = None, lang: str = "en") -> list[str]:
    """Lines that list the exercises by part and chapter, the easier ones first, with minutes and progress.

    only: a part or a chapter. Raises UnknownExerciseError.
    """
    lines, known = [], {}
    try:
        known = progress()
    except CudatutError as error:
        lines += [str(error), ""]
    names = chapters(drafts=False)
    if only:
        names = [name for name in names if name.startswith(f"{only}/")] or [chapter_of(only)]
    titles, states, before = _titles(), [], None
    for name in names:
        found = [e for e in of_chapter(name) if level in (None, e.level)]
        if not found:
            continue
        part = name.partition("/")[0]
        if part != before:
            lines += [""] * bool(before) + [titles.get(part, {}).get(lang, part)]
            before = part
        lines.append(f"  {name}  {titles.get(name, {}).get(lang, '')}".rstrip())
        for exercise in found:
            state = known.get(exercise.name)
            states.append(state)
            columns = (
                f"{exercise.number:3}",
                padded(_say(exercise.level, lang), 7),
                padded(_say("minutes", lang, minutes=exercise.minutes), -7),
                padded(_say(state, lang) if state else "", 7),
                exercise.title[lang],
            )
            lines.append(f"    {'  '.join(columns)}")
    of = {"done": states.count("done"), "total": len(states), "path": progress_file()}
    return [*lines, "", _say("sum", lang, **of)]


# --- grading -------------------------------------------------------------------------------------

# After these the process can use the GPU no more.
_FATAL = re.compile(
    r"illegal (?:memory access|address|instruction)|misaligned address|unspecified launch failure"
    r"|device-side assert|invalid (?:address space|program counter)|launch timed out"
)
_REFUSED = re.compile(
    r"cuLaunchKernel failed|cuFuncSet\w+ failed|cuLaunchGrid failed|too many resources|invalid configuration"
)
# The last line of a program of its own that could not begin: no PyCUDA, no driver, no GPU.
_LACKING = re.compile(
    r"(?:ModuleNotFound|Import)Error: (?:No module named 'pycuda\b|libcuda\.)|cuInit failed"
)
# By the names of our errors and of PyCUDA's, so that nothing is imported for it.
_GUARDS = {
    "machine": {"NoGpuError", "UnsupportedGpuError", "ToolMissing"},
    "compile": {"KernelCompileError", "CompileError"},
    "memory": {"OutOfDeviceMemory"},
    "time": {"TimeoutExpired"},
    "launch": {"LaunchError"},
}


@dataclass(frozen=True)
class Explained:
    """What went wrong in a reader's file: the guard that caught it, and one line of detail in the reader's language."""

    guard: str
    detail: str

    def text(self, exercise: Exercise, lang: str) -> str:
        frame = "not graded" if self.guard == "machine" else "not passed"
        head = _say(frame, lang, name=exercise.name, what=_say(self.guard, lang))
        return f"{head}\n  {self.detail}" if self.detail else head


def explained(error: BaseException) -> Explained:
    """Which guard caught what."""
    said, kinds = str(error), type(error).__mro__
    if isinstance(error, CheckError):
        return Explained(error.guard, error.brief)
    names = {kind.__name__ for kind in kinds}
    pycuda = any(kind.__module__.startswith("pycuda") for kind in kinds)
    asserted = isinstance(error, AssertionError)
    named = (guard for guard, errors in _GUARDS.items() if errors & names)
    guard, detail = next(named, "cuda" if pycuda else "python"), _line(said)
    if isinstance(error, ImportError) and (error.name or "").startswith("pycuda"):
        guard, detail = "machine", _say("doctor", detail=detail)
    elif guard == "compile" or (asserted and "CompileError" in said):
        guard, detail = "compile", _compiler_line(said)
    elif (pycuda or asserted) and (fatal := _FATAL.search(said)):
        return Explained("access", fatal[0])  # whose line is not where the GPU was asked for it
    elif asserted:  # a program of its own that failed: its last line says why
        last = _line(said.strip().rpartition("\n")[2])
        if _LACKING.search(last):
            guard, detail = "machine", _say("doctor", detail=last.partition(": ")[2])
        else:
            guard, detail = "condition", last
    elif pycuda and "MemoryError" in names:
        guard = "memory"
    elif pycuda and _REFUSED.search(said):
        guard = "launch"
    elif guard == "python":
        detail = f"{type(error).__name__}: {detail}"
    return Explained(guard, detail + _where(error))


def _line(said: str) -> str:
    """The first line that says something, not too long."""
    first = said.strip().partition("\n")[0].rstrip()
    return first if len(first) <= 300 else first[:297] + "..."


def _compiler_line(said: str) -> str:
    found = re.search(r"^.*\berror\b[: ].*$", said, re.MULTILINE)
    line = _line(found[0] if found else said)
    return re.sub(r"^\S*[/\\](?=[^/\\\s]+\(\d+\))", "", line)


def _where(error: BaseException) -> str:
    """' (line 12 of errors_2.py: `launch(...)`)': the innermost line of the reader's own."""
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if main and os.path.abspath(frame.filename) == os.path.abspath(main):
            place = {"number": frame.lineno, "file": Path(main).name}
            return (
                _say("line of code", code=frame.line, **place)
                if frame.line
                else _say("line", **place)
            )
    return ""


def exercise(chapter: str, number: int, lang: str | None = None) -> AbstractContextManager[None]:
    """Grade an exercise: `with ct.exercise("start/errors", 2):` and below it the check.

    Where all of it holds, that is said and kept as progress. Where not, one or two lines say what caught it, and the
    program ends with exit status 1; CUDATUT_DEBUG=1 shows the traceback instead. From the first call on, errors
    outside the check are explained in the same way. lang: "en" or "zh", which this process speaks from here on; by default
    the reader's. Raises UnknownExerciseError.
    """
    if lang in LANGUAGES:
        words.use(lang)
    words.printable()
    asked, lang = get(chapter, number), words.language()

    def hook(kind: Any, error: BaseException, traceback: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, SyntaxError):
            _failed(asked, lang, error)
        else:
            sys.__excepthook__(kind, error, traceback)

    if not _debugging() and not _in_notebook():
        sys.excepthook = hook
    return _graded(asked, lang)


@contextmanager
def _graded(exercise: Exercise, lang: str) -> Iterator[None]:
    try:
        yield
        _settle()
    except Exception as error:
        if _debugging():
            raise
        if _in_notebook():
            raise NotPassed(_reason(exercise, error).text(exercise, lang)) from None
        _failed(exercise, lang, error)
        raise SystemExit(1) from None
    kept = "kept" if keep(exercise, "done") else "not kept"
    print(_say("passed", lang, name=exercise.name, title=exercise.title[lang]))
    print(_say(kept, lang, path=progress_file()), flush=True)


def _reason(exercise: Exercise, error: Exception) -> Explained:
    """As `explained`; but a GPU that the exercise is not for is the reason before all others."""
    if _gpu_in_use():
        from cudatut.errors import UnsupportedGpuError
        from cudatut.gpu.device import require

        try:
            require(exercise.requires)
        except UnsupportedGpuError as reason:
            return explained(reason)
        except Exception:  # the context is lost: the error itself says more
            pass
    return explained(error)


def _failed(exercise: Exercise, lang: str, error: Exception) -> None:
    found = _reason(exercise, error)
    sys.stdout.flush()
    print(found.text(exercise, lang), file=sys.stderr, flush=True)
    if found.guard == "access" and not isinstance(error, AssertionError):
        # The context is lost. PyCUDA would complain of it for every array that it cleans up.
        os._exit(1)


def _debugging() -> bool:
    return os.environ.get("CUDATUT_DEBUG") == "1"


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and shell.get_ipython() is not None


def _gpu_in_use() -> bool:
    return "pycuda.autoprimaryctx" in sys.modules


def _settle() -> None:
    """Errors of launches that nobody has waited for, and red zones touched since the last check."""
    if not _gpu_in_use():
        return
    from cudatut.gpu import check, memory

    if damage := memory.damaged_zones():
        raise check.outside(damage)
