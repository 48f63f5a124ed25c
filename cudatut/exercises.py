"""The exercises: what each asks for, files to begin with, how they are graded, and which are done.

`examples/<part>/<chapter>_exercises.py` holds, in its header, what each exercise asks for, and a cell `stub-N` with
what the reader begins with. `<chapter>_solutions.py`, an example like others, holds `given-N`, `solution-N` and
`check-N`. A reader's file is made of given, stub and check.

Imports neither Jupyter nor NumPy nor PyCUDA: a list of exercises is quick, and needs no GPU.
"""

import datetime
import difflib
import io
import json
import os
import re
import sys
import textwrap
import tokenize
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from cudatut import catalog, paths
from cudatut.errors import CudatutError
from cudatut.files import write_new, write_whole

LEVELS = ("warm-up", "easy", "medium", "hard")
LANGUAGES = ("en", "zh")
COLUMNS = 80
_CHAPTER = re.compile(r"[a-z0-9_]+/[a-z0-9_]+")
_IMPORT_CT = re.compile(r"import cudatut as ct[ \t]*(?:#.*)?")


class BadExerciseError(CudatutError):
    """A file of exercises or solutions is not as it should be; the message names it and says why."""


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

    @property
    def given(self) -> str:
        """Imports, data and helpers: what the reader need not write."""
        return _cell(f"{self.chapter}_solutions", f"given-{self.number}")

    @property
    def stub(self) -> str:
        """What the reader begins with."""
        return _cell(f"{self.chapter}{catalog.EXERCISES}", f"stub-{self.number}")

    @property
    def solution(self) -> str:
        """Ours, in the place of the stub."""
        return _cell(f"{self.chapter}_solutions", f"solution-{self.number}")

    @property
    def check(self) -> str:
        """Tests of what the stub or the solution defines."""
        return _cell(f"{self.chapter}_solutions", f"check-{self.number}")


def _cell(name: str, title: str) -> str:
    path = paths.examples_dir() / f"{name}.py"
    if not path.is_file():
        raise BadExerciseError(f"examples/{name}.py is not there; its cell '{title}' is needed")
    found = catalog.cells(path)
    if not found.get(title):
        raise BadExerciseError(f"examples/{name}.py has no cell '{title}'")
    return found[title]


def chapters() -> list[str]:
    """Chapters that have exercises, such as 'start/errors', in the order of the book."""
    root = paths.examples_dir()
    if not root.is_dir():
        raise CudatutError(f"there is no folder of examples at {root}")
    found = {
        catalog.relative(path, root).removesuffix(f"{catalog.EXERCISES}.py")
        for path in root.glob(f"*/*{catalog.EXERCISES}.py")
    }
    order = [f"{part}/{chapter}" for part, _, some in _contents() for chapter, _ in some]
    return [name for name in order if name in found] + sorted(found - set(order))


def _contents() -> list[tuple[str, dict[str, str], list[tuple[str, dict[str, str]]]]]:
    """(id, title, [(id, title)]) of each part and its chapters; a copy of docs/contents.yml is in the package."""
    root = paths.repo_root()
    path = root / "docs" / "contents.yml" if root else Path(__file__).with_name("contents.yml")
    if not path.is_file():
        return []
    import yaml

    parts = yaml.safe_load(path.read_text(encoding="utf-8"))["parts"]
    return [(p["id"], p["title"], [(c["id"], c["title"]) for c in p["chapters"]]) for p in parts]


def of_chapter(chapter: str) -> list[Exercise]:
    """The exercises of a chapter, in order. Raises UnknownExerciseError, BadExerciseError."""
    path = paths.examples_dir() / f"{chapter}{catalog.EXERCISES}.py"
    if not _CHAPTER.fullmatch(chapter) or not path.is_file():
        raise UnknownExerciseError(_no_such_chapter(chapter))
    shown = f"examples/{chapter}{catalog.EXERCISES}.py"
    try:
        own = catalog.header(path)
    except catalog.BadHeaderError as error:
        raise BadExerciseError(str(error)) from error
    listed = (own or {}).get("exercises")
    if not isinstance(listed, dict) or list(listed) != list(range(1, len(listed) + 1)):
        raise BadExerciseError(
            f"{shown}: the header needs 'exercises:' with the numbers 1, 2, ... in order"
        )
    requires = own.get("requires")
    if not isinstance(requires, str) or not catalog._ARCH.fullmatch(requires):
        raise BadExerciseError(
            f"{shown}: the header's requires is {requires!r}; write it like sm_75"
        )
    return [_exercise(chapter, number, entry, requires, shown) for number, entry in listed.items()]


def _exercise(chapter: str, number: int, entry: Any, requires: str, shown: str) -> Exercise:
    where = f"{shown}: exercise {number}"
    entry = entry if isinstance(entry, dict) else {}
    for key in ("title", "task"):
        texts = entry.get(key)
        if not isinstance(texts, dict) or not all(
            isinstance(texts.get(lang), str) and texts[lang].strip() for lang in LANGUAGES
        ):
            raise BadExerciseError(f"{where} needs '{key}' in 'en' and 'zh'")
    level, minutes, fails = (entry.get(key) for key in ("level", "minutes", "fails"))
    if level not in LEVELS:
        raise BadExerciseError(f"{where} has level {level!r}; there are {', '.join(LEVELS)}")
    if isinstance(minutes, bool) or not isinstance(minutes, int) or minutes < 1:
        raise BadExerciseError(f"{where} has minutes {minutes!r}; give a whole number")
    try:
        re.compile(fails)
    except (TypeError, re.error) as error:
        raise BadExerciseError(
            f"{where} has fails {fails!r}; give a regular expression for what the check says of the stub ({error})"
        ) from error
    texts = [{lang: _joined(entry[key][lang]) for lang in LANGUAGES} for key in ("title", "task")]
    return Exercise(chapter, number, texts[0], level, minutes, texts[1], fails, requires)


def _joined(text: str) -> str:
    """Text of a header without the blanks that YAML leaves between Chinese lines, and behind their punctuation."""
    text = re.sub(rf"({_WIDE})\s+(?={_WIDE})", r"\1", text.strip())
    return re.sub(r"([，。；：、！？（）《》])\s+", r"\1", text)


def get(chapter: str, number: int) -> Exercise:
    """One exercise. Raises UnknownExerciseError with suggestions, BadExerciseError."""
    chapter = chapter_of(chapter)
    found = of_chapter(chapter)
    for exercise in found:
        if exercise.number == number:
            return exercise
    have = f"1 to {len(found)}" if len(found) > 1 else "only number 1"
    raise UnknownExerciseError(f"{chapter} has no exercise {number}: there are {have}.")


def chapter_of(text: str) -> str:
    """A chapter from what somebody typed: 'start/errors', 'errors' if no other part has one, or a path of its file.

    Raises UnknownExerciseError with suggestions.
    """
    wanted = re.sub(r"(_exercises|_solutions)?(\.py|\.ipynb)?$", "", text.replace("\\", "/"))
    wanted = wanted.removeprefix("./").removeprefix("examples/").strip("/")
    known = chapters()
    wanted = catalog.renamed().get(wanted, wanted)
    if wanted in known:
        return wanted
    ends = [name for name in known if name.partition("/")[2] == wanted]
    if len(ends) == 1:
        return ends[0]
    raise UnknownExerciseError(_no_such_chapter(wanted, ends))


def _no_such_chapter(wanted: str, close: Iterable[str] = ()) -> str:
    known = chapters()
    stems = {name.partition("/")[2]: name for name in known}
    near = [*close, *difflib.get_close_matches(wanted, known, n=3, cutoff=0.7)]
    stem = wanted.rpartition("/")[2]
    near += [stems[s] for s in difflib.get_close_matches(stem, stems, n=3, cutoff=0.7)]
    hint = f" Did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
    return (
        f"there are no exercises of a chapter '{wanted}'.{hint} "
        "`python -m cudatut exercise` lists them all."
    )


# --- files to begin with -------------------------------------------------------------------------

_WORDS = {
    "en": {
        "title": "Exercise {number} of {chapter}: {title}",
        "effort": "{level}, {minutes} minutes",
        "how": "Write your part below. Then run this file; it checks itself:",
        "ours": "Our solution:",
        "explains": "says in plain words what goes wrong",
        "given": "given",
        "yours": "yours",
        "solution": "our solution",
        "check": "check; nothing below is to be changed",
        "warm-up": "warm-up",
        "easy": "easy",
        "medium": "medium",
        "hard": "hard",
    },
    "zh": {
        "title": "{chapter} 练习 {number}：{title}",
        "effort": "{level}，{minutes} 分钟",
        "how": "在下面写出你的部分，然后运行本文件，它会自行检查：",
        "ours": "参考答案：",
        "explains": "出错时用一两句话说明原因",
        "given": "给定",
        "yours": "你来写",
        "solution": "参考答案",
        "check": "检查；以下内容不用改",
        "warm-up": "热身",
        "easy": "容易",
        "medium": "中等",
        "hard": "较难",
    },
}


def effort(exercise: Exercise, lang: str) -> str:
    """'easy, 10 minutes' in the reader's language."""
    word = _WORDS[lang]
    return word["effort"].format(level=word[exercise.level], minutes=exercise.minutes)


def started(exercise: Exercise, lang: str = "en", solution: bool = False) -> str:
    """The file that a reader begins with: task, given, stub (or our solution), check."""
    word = _WORDS[lang]
    title = word["title"].format(
        chapter=exercise.chapter, number=exercise.number, title=exercise.title[lang]
    )
    needs = effort(exercise, lang)
    comment = [
        *wrapped(f"{title} ({needs})" if lang == "en" else f"{title}（{needs}）"),
        "",
        *wrapped(exercise.task[lang]),
        "",
        *wrapped(word["how"]),
        f"    python {exercise.file}.py",
        word["ours"],
        f"    python -m cudatut exercise {exercise.name} --solution",
    ]
    lines = [f"# {line}".rstrip() for line in comment]
    part = exercise.solution if solution else exercise.stub
    lines += [
        "import cudatut as ct",
        "",
        f"{_call(exercise, lang)}  # {word['explains']}",
        _rule(word["given"]),
        exercise.given,
        _rule(word["solution"] if solution else word["yours"]),
        part,
        _rule(word["check"]),
        graded(exercise, lang),
    ]
    return "\n".join(lines) + "\n"


def _rule(label: str) -> str:
    head = f"# --- {label} "
    return f"\n\n{head}{'-' * max(3, COLUMNS - _width(head))}\n"


def _call(exercise: Exercise, lang: str) -> str:
    language = "" if lang == "en" else f', lang="{lang}"'
    return f'ct.exercise("{exercise.chapter}", {exercise.number}{language})'


def graded(exercise: Exercise, lang: str = "en") -> str:
    """The check, indented below the statement that grades it. Raises BadExerciseError for a check with a string that
    spans lines: the indentation would change it.
    """
    check = exercise.check
    require_one_line_strings(check, f"examples/{exercise.chapter}_solutions.py", exercise.number)
    lines = [line for line in check.split("\n") if not _IMPORT_CT.fullmatch(line)]
    body = "\n".join(lines).strip("\n")
    return f"with {_call(exercise, lang)}:\n{textwrap.indent(body, '    ')}"


def require_one_line_strings(check: str, file: str, number: int) -> None:
    """Raises BadExerciseError for a string in a check that spans lines, and for code that cannot be read."""
    fstrings = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(check).readline):
            name = tokenize.tok_name[token.type]
            if name == "FSTRING_START":
                fstrings.append(token.start[0])
            spans = name == "STRING" and token.start[0] != token.end[0]
            if name == "FSTRING_END":
                spans = fstrings.pop() != token.end[0]
            if spans:
                raise BadExerciseError(
                    f"{file}: check-{number} has a string over several lines; move it into given-{number}, "
                    "for a reader's file indents the check"
                )
    except (tokenize.TokenError, SyntaxError) as error:
        raise BadExerciseError(f"{file}: check-{number} cannot be read: {error}") from error


def wrapped(text: str, columns: int = COLUMNS - 2) -> list[str]:
    """Lines of a text; a Chinese character takes two columns, and a line may end beside one."""
    pieces = re.findall(
        rf"{_WIDE}[{_NOT_FIRST}]*|\s+|(?:(?!{_WIDE})\S)+[{_NOT_FIRST}]*", " ".join(text.split())
    )
    lines = [""]
    for piece in pieces:
        if _width(lines[-1] + piece.rstrip()) > columns and lines[-1].strip():
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        if piece.strip() or lines[-1]:
            lines[-1] += piece
    return [line.rstrip() for line in lines]


_WIDE = r"[\u3000-\u9fff\uff00-\uffef]"
_NOT_FIRST = "，。、；：？！）》」』”’"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def write(exercise: Exercise, out: str | None = None, **how: Any) -> Path:
    """Write the file that a reader begins with. Returns its path.

    out: another file or a folder; by default the working folder. how: lang, notebook, solution.
    Raises CudatutError where there is a file already: nothing of a reader's is overwritten.
    """
    as_notebook, solution = how.get("notebook", False), how.get("solution", False)
    lang = how.get("lang", "en")
    default = (
        exercise.file + ("_solution" if solution else "") + (".ipynb" if as_notebook else ".py")
    )
    path = Path(out) if out else Path(default)
    if path.is_dir():
        path = path / default
    if as_notebook:
        prepare = f'cudatut.notebook.prepare("{exercise.chapter}_solutions")'
        first = _code("prepare", f"import cudatut.notebook\n\n{prepare}")
        raw = notebook([exercise], [lang], [first], solution=solution)
    else:
        raw = started(exercise, lang, solution).encode()
    try:
        write_new(path, raw)
    except FileExistsError:
        raise CudatutError(
            f"{path} is there already and stays as it is; choose another name with --out FILE"
        ) from None
    except OSError as error:
        raise CudatutError(f"{path} cannot be written: {error.strerror}") from error
    if not solution:
        keep(exercise, "started")
    return path


# --- notebooks -----------------------------------------------------------------------------------


def notebook(
    exercises: list[Exercise],
    languages: Iterable[str] = LANGUAGES,
    first: Iterable[dict[str, Any]] = (),
    solution: bool = False,
) -> bytes:
    """A notebook (nbformat 4.5) of exercises, not run: for each its task, given, stub (or our solution) and check.

    first: cells before them.
    """
    languages = list(languages)
    cells = list(first)
    for exercise in exercises:
        number = exercise.number
        cells.append(_markdown(f"exercise-{number}", _task(exercise, languages)))
        cells.append(_code(f"given-{number}", exercise.given))
        part = exercise.solution if solution else exercise.stub
        cells.append(_code(f"solution-{number}" if solution else f"stub-{number}", part))
        lang = languages[0]
        cells.append(_code(f"check-{number}", f"import cudatut as ct\n\n{graded(exercise, lang)}"))
    whole = {
        "cells": cells,
        "metadata": {
            "accelerator": "GPU",  # Colab gives the notebook a GPU
            "colab": {"gpuType": "T4"},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode()


def _task(exercise: Exercise, languages: list[str]) -> str:
    parts = []
    for lang in languages:
        word = _WORDS[lang]
        heading = word["title"].format(
            chapter=exercise.chapter, number=exercise.number, title=exercise.title[lang]
        )
        parts.append(f"## {heading}\n\n*{effort(exercise, lang)}*\n\n{exercise.task[lang]}")
    return "\n\n".join(parts)


def _markdown(name: str, source: str) -> dict[str, Any]:
    # Colab's #scrollTo goes by the id in the metadata.
    return {
        "cell_type": "markdown",
        "id": name,
        "metadata": {"id": name},
        "source": source.splitlines(keepends=True),
    }


def _code(name: str, source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {"id": name, "title": name},
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }


def committed_notebook(chapter: str) -> tuple[Path, bytes]:
    """Where the notebook of a chapter's exercises lies, which Colab opens, and what it should hold."""
    from cudatut.record.notebook import install_cell

    # It puts the folder of the solutions on the path, and needs the GPU that they need.
    install = install_cell(f"{chapter}_solutions")
    path = paths.examples_dir() / f"{chapter}{catalog.EXERCISES}.ipynb"
    return path, notebook(of_chapter(chapter), LANGUAGES, [_code(install["id"], install["source"])])


def write_notebooks() -> list[Path]:
    """Bring the notebooks of all chapters up to date. Returns those that were written."""
    changed = []
    for chapter in chapters():
        path, raw = committed_notebook(chapter)
        if not path.is_file() or path.read_bytes().replace(b"\r\n", b"\n") != raw:
            write_whole(path, raw)
            changed.append(path)
    return changed


# --- progress ------------------------------------------------------------------------------------


def progress_file() -> Path:
    """Where progress is kept: in $CUDATUT_PROGRESS (a folder), else in the user's data folder."""
    override = os.environ.get("CUDATUT_PROGRESS")
    if override:
        return Path(override).resolve() / "exercises.json"
    from platformdirs import user_data_dir

    return Path(user_data_dir("cudatut", "cudatut")) / "exercises.json"


def progress() -> dict[str, str]:
    """'started' or 'done' by exercise ('start/errors 2'). Raises CudatutError for a file that is none of ours."""
    path = progress_file()
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(name): entry["state"]
            for name, entry in kept.items()
            if entry["state"] in ("started", "done")
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CudatutError(
            f"your progress in {path} cannot be read ({error}); "
            "`python -m cudatut exercise --forget` removes it"
        ) from error


def keep(exercise: Exercise, state: str) -> bool:
    """Remember that an exercise was started or is done; what is done stays done. False where that cannot be kept."""
    path = progress_file()
    try:
        known = progress()
        if known.get(exercise.name) in (state, "done"):
            return True
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        today = datetime.date.today().isoformat()
        kept[exercise.name] = {"state": state, "on": today}
        write_whole(path, (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode())
    except (OSError, CudatutError):
        return False
    return True


def forget(exercise: Exercise | None = None) -> Path:
    """Remove what was kept, of one exercise or of all. Returns the file."""
    path = progress_file()
    if exercise is None:
        path.unlink(missing_ok=True)
    elif exercise.name in progress():
        kept = json.loads(path.read_text(encoding="utf-8"))
        del kept[exercise.name]
        write_whole(path, (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode())
    return path


def listing(only: str | None = None, level: str | None = None, lang: str = "en") -> list[str]:
    """Lines that list the exercises by part, chapter and level, with minutes and progress.

    only: a part or a chapter. Raises UnknownExerciseError.
    """
    try:
        known = progress()
    except CudatutError as error:
        known, lines = {}, [str(error), ""]
    else:
        lines = []
    names = chapters()
    if only and any(name.startswith(f"{only}/") for name in names):
        names = [name for name in names if name.startswith(f"{only}/")]
    elif only:
        names = [chapter_of(only)]
    titles: dict[str, dict[str, str]] = {}
    for part, title, some in _contents():
        titles[part] = title
        titles.update({f"{part}/{chapter}": title_of for chapter, title_of in some})
    state_in = {
        "en": {"started": "started", "done": "done"},
        "zh": {"started": "已开始", "done": "已完成"},
    }[lang]
    total = done = 0
    before = None
    for name in names:
        found = [e for e in of_chapter(name) if level in (None, e.level)]
        if not found:
            continue
        part = name.partition("/")[0]
        if part != before:
            lines += [*([""] if before else []), titles.get(part, {}).get(lang, part)]
            before = part
        title_of = titles.get(name, {}).get(lang, "")
        lines.append(f"  {name}  {title_of}".rstrip())
        for exercise in sorted(found, key=lambda e: (LEVELS.index(e.level), e.number)):
            state = known.get(exercise.name, "")
            total, done = total + 1, done + (state == "done")
            minutes = f"{exercise.minutes} min" if lang == "en" else f"{exercise.minutes} 分钟"
            columns = (
                (f"{exercise.number}", 3, True),
                (_WORDS[lang][exercise.level], 7, False),
                (minutes, 7, True),
                (state_in.get(state, ""), 7, False),
            )
            row = "  ".join(_padded(*column) for column in columns)
            lines.append(f"    {row}  {exercise.title[lang]}")
    if lang == "en":
        lines += ["", f"{done} of {total} done; kept in {progress_file()}"]
    else:
        lines += ["", f"共 {total} 个练习，已完成 {done} 个；记录保存在 {progress_file()}"]
    return lines


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * max(0, width - _width(text))
    return blanks + text if right else text + blanks


# --- grading -------------------------------------------------------------------------------------

# What caught a mistake, in the reader's words.
_GUARDS = {
    "values": {
        "en": "the values are wrong",
        "zh": "结果的值不对",
    },
    "poison": {
        "en": "elements were never written (they still hold the poison that ct.empty puts there)",
        "zh": "有元素从未被写入（里面还是 ct.empty 填入的标记值）",
    },
    "zone": {
        "en": "a kernel wrote outside its array (a red zone beside it was touched)",
        "zh": "kernel 写到了数组之外（数组两侧的保护区被改动）",
    },
    "nan": {
        "en": "there are NaNs in the result",
        "zh": "结果里有 NaN",
    },
    "shape": {
        "en": "the result has another shape than it should",
        "zh": "结果的形状不对",
    },
    "compile": {
        "en": "the kernel does not compile",
        "zh": "kernel 编译不通过",
    },
    "access": {
        "en": "a kernel touched memory that is not its own, and the GPU stopped it",
        "zh": "kernel 访问了不属于它的内存，被 GPU 中止",
    },
    "launch": {
        "en": "the launch was refused",
        "zh": "启动被拒绝",
    },
    "memory": {
        "en": "the GPU has too little free memory",
        "zh": "GPU 的可用内存不够",
    },
    "time": {
        "en": "it did not come to an end",
        "zh": "程序没有按时结束",
    },
    "cuda": {
        "en": "CUDA reported an error",
        "zh": "CUDA 报告了一个错误",
    },
    "condition": {
        "en": "a condition of the check does not hold",
        "zh": "检查中的一个条件不成立",
    },
    "python": {
        "en": "Python stopped at an error",
        "zh": "Python 出错中止",
    },
    "machine": {
        "en": "this machine lacks something",
        "zh": "这台机器缺少条件",
    },
}
_PASSED = {"en": "passed: {name}, {title}", "zh": "通过：{name}，{title}"}
_NOT_PASSED = {"en": "not passed: {name}: {what}", "zh": "未通过：{name}：{what}"}
_NOT_GRADED = {"en": "not graded: {name}: {what}", "zh": "未评判：{name}：{what}"}
_KEPT = {
    "en": "Your progress is kept in {path}; `python -m cudatut exercise --forget` removes it.",
    "zh": "进度保存在 {path}；用 `python -m cudatut exercise --forget` 可以删除。",
}
_NOT_KEPT = {
    "en": "Your progress could not be kept in {path}.",
    "zh": "无法把进度写入 {path}。",
}
# After these the process can use the GPU no more.
_FATAL = re.compile(
    r"illegal (?:memory access|address|instruction)|misaligned address|unspecified launch failure"
    r"|device-side assert|invalid (?:address space|program counter)|launch timed out"
)
_REFUSED = re.compile(
    r"cuLaunchKernel failed|cuFuncSet\w+ failed|cuLaunchGrid failed|too many resources|invalid configuration"
)


@dataclass(frozen=True)
class Explained:
    """What went wrong in a reader's file: the guard that caught it, and one line of detail."""

    guard: str
    detail: str

    def text(self, exercise: Exercise, lang: str) -> str:
        frame = _NOT_GRADED if self.guard == "machine" else _NOT_PASSED
        head = frame[lang].format(name=exercise.name, what=_GUARDS[self.guard][lang])
        return f"{head}\n  {self.detail}" if self.detail else head


def explained(error: BaseException) -> Explained:
    """Which guard caught what. Goes by the names of PyCUDA's errors, so that nothing is imported for it."""
    said = str(error)
    names = {cls.__name__ for cls in type(error).__mro__}
    pycuda = any(cls.__module__.startswith("pycuda") for cls in type(error).__mro__)
    if "CheckError" in names:
        return _of_check(said)
    if names & {"NoGpuError", "UnsupportedGpuError", "ToolMissing"}:
        return Explained("machine", _line(said))
    if isinstance(error, ImportError) and (error.name or "").startswith("pycuda"):
        return Explained("machine", f"{_line(said)}; `python -m cudatut doctor` says what to do")
    if names & {"KernelCompileError", "CompileError"}:
        return Explained("compile", _compiler_line(said) + _where(error))
    if _FATAL.search(said) and (pycuda or isinstance(error, AssertionError)):
        return Explained("access", _FATAL.search(said)[0])
    if "OutOfDeviceMemory" in names or (pycuda and "MemoryError" in names):
        return Explained("memory", _line(said))
    if "TimeoutExpired" in names:
        return Explained("time", _line(said))
    if isinstance(error, AssertionError):
        if "CompileError" in said:
            return Explained("compile", _compiler_line(said))
        # A program of its own that failed: its last line says why.
        last = [line for line in said.splitlines() if line.strip()][-1:]
        return Explained("condition", _line("".join(last)) + _where(error))
    if "cudatut" in type(error).__module__ and "LaunchError" in names:
        return Explained("launch", _line(said) + _where(error))
    if pycuda:
        refused = _REFUSED.search(said) or "LaunchError" in names
        return Explained("launch" if refused else "cuda", _line(said) + _where(error))
    return Explained("python", f"{type(error).__name__}: {_line(said)}{_where(error)}")


def _of_check(said: str) -> Explained:
    lines = [line.strip() for line in said.splitlines()]
    head = lines[0].removesuffix(".")
    if "wrote outside its arrays" in head:
        return Explained("zone", f"{head}: {'; '.join(lines[1:3])}")
    guard = "values"
    if any("never written" in line for line in lines):
        guard = "poison"
    elif any(line.endswith("are NaN") for line in lines):
        guard = "nan"
    elif "has shape" in head:
        guard = "shape"
    head = re.sub(r" \(rtol [^)]*\)$", "", head)
    first = re.search(r"first at index (\(.*?\)|\S+): (.*)", said)
    return Explained(
        guard, f"{head}; element {first[1]} is the first: {first[2]}" if first else head
    )


def _line(said: str, most: int = 300) -> str:
    """The first line that says something, not too long."""
    first = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return first if len(first) <= most else first[: most - 3] + "..."


def _compiler_line(said: str) -> str:
    found = re.search(r"^.*\berror\b[: ].*$", said, re.MULTILINE)
    line = _line(found[0] if found else said)
    return re.sub(r"^\S*[/\\](?=[^/\\\s]+\(\d+\))", "", line)


def _where(error: BaseException) -> str:
    """' (line 12 of errors_2.py: `launch(...)`)': the innermost line of the reader's own."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    place, frame = "", error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if main and os.path.abspath(file) == os.path.abspath(main):
            import linecache

            code = linecache.getline(file, frame.tb_lineno).strip()
            place = f" (line {frame.tb_lineno} of {Path(file).name}{f': `{code}`' if code else ''})"
        frame = frame.tb_next
    return place


def exercise(chapter: str, number: int, lang: str = "en") -> "Graded":
    """Grade an exercise: `with ct.exercise("start/errors", 2):` and below it the check.

    Where all of it holds, that is said and kept as progress. Where not, one or two lines say what caught it, and the
    program ends with exit status 1; CUDATUT_DEBUG=1 shows the traceback instead. From the first call on, errors
    outside the check are explained in the same way. Raises UnknownExerciseError.
    """
    graded = Graded(get(chapter, number), lang if lang in LANGUAGES else "en")
    # What lies beside the solution is beside the reader's file too.
    beside = str(paths.examples_dir() / graded.exercise.chapter.partition("/")[0])
    if beside not in sys.path:
        sys.path.append(beside)
    if not _debugging() and not _in_notebook():
        sys.excepthook = graded.hook
    return graded


class Graded:
    """What `with ct.exercise(...)` enters."""

    def __init__(self, exercise: Exercise, lang: str):
        self.exercise, self.lang = exercise, lang

    def __enter__(self) -> "Graded":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None:
            try:
                _settle()
            except Exception as late:
                if _debugging():
                    raise
                error = late
        if error is None:
            self._passed()
            return False
        if _debugging() or not isinstance(error, Exception):
            return False
        if _in_notebook():
            raise NotPassed(self._explained(error).text(self.exercise, self.lang)) from None
        self._failed(error)
        raise SystemExit(1) from None

    def hook(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        """In the place of sys.excepthook."""
        if isinstance(error, Exception) and not isinstance(error, SyntaxError):
            self._failed(error)
        else:
            sys.__excepthook__(kind, error, traceback)

    def _passed(self) -> None:
        name, title = self.exercise.name, self.exercise.title[self.lang]
        kept = keep(self.exercise, "done")
        print(_PASSED[self.lang].format(name=name, title=title))
        print((_KEPT if kept else _NOT_KEPT)[self.lang].format(path=progress_file()), flush=True)

    def _explained(self, error: Exception) -> Explained:
        """As `explained`; but a GPU that the exercise is not for is the reason before all others."""
        if _gpu_in_use():
            from cudatut.errors import UnsupportedGpuError
            from cudatut.gpu.device import require

            try:
                require(self.exercise.requires)
            except UnsupportedGpuError as reason:
                return explained(reason)
            except Exception:  # the context is lost: the error itself says more
                return explained(error)
        return explained(error)

    def _failed(self, error: Exception) -> None:
        found = self._explained(error)
        sys.stdout.flush()
        print(found.text(self.exercise, self.lang), file=sys.stderr, flush=True)
        if found.guard == "access" and not isinstance(error, AssertionError):
            # The context is lost. PyCUDA would complain of it for every array that it cleans up.
            _leave(1)


_leave: Callable[[int], None] = os._exit


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
    from cudatut.errors import CheckError
    from cudatut.gpu.memory import damaged_zones

    if damage := damaged_zones():
        raise CheckError("a kernel wrote outside its arrays.\n  " + "\n  ".join(damage))
