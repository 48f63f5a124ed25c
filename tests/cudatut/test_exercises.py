"""Exercises: listed, written as files that nobody's work is lost to, graded, and remembered."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from cudatut import catalog, cli, exercises, tool
from cudatut.errors import (
    CheckError,
    CudatutError,
    KernelCompileError,
    LaunchError,
    NoGpuError,
    OutOfDeviceMemory,
    ToolMissing,
)
from cudatut.gpu import check, memory
from cudatut.wrapping import padded

ROOT = Path(__file__).resolve().parents[2]

HEADER = """# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Twice", zh: "两倍"}
#         level: warm-up
#         minutes: 5
#         task:
#           en: >-
#             Return twice the number, whatever it is, and do it in a sentence so long that it has to be
#             wrapped somewhere.
#           zh: >-
#             返回这个数的两倍。这句话要足够长，
#             长到在文件里必须换行，这样才能看出换行的位置对不对，标点符号也不能跑到行首去。
#         fails: "3 elements are wrong"
#       2:
#         title: {en: "Thrice", zh: "三倍"}
#         level: hard
#         minutes: 20
#         task: {en: "Return three times the number.", zh: "返回三倍。"}
#         fails: "AttributeError"
# ---
"""
STUBS = """# %% stub-1
def twice(x):
    return x  # yours

# %% stub-2
def thrice(x):
    return x.nothing
"""
SOLUTIONS = """# %% [markdown]
# Solutions.
# %% given-1
import numpy as np

NUMBERS = np.arange(1, 4)


# %% solution-1
def twice(x):
    return 2 * x


# %% check-1
import cudatut as ct

for scale in (1, 5):
    x = scale * NUMBERS
    ct.check(twice(x), 2 * x, name=f"scale {scale}")

# %% given-2
NUMBER = 7

# %% solution-2
def thrice(x):
    return 3 * x

# %% check-2
import cudatut as ct
import numpy as np

ct.check(np.array([thrice(NUMBER)]), np.array([21]), name="thrice")
"""


@pytest.fixture
def chapter(book, tmp_path, monkeypatch):
    """A chapter `start/add` with two exercises; the working folder is empty, progress is kept in a folder of the test."""
    monkeypatch.setenv("CUDATUT_PROGRESS", str(tmp_path / "progress"))
    monkeypatch.delenv("CUDATUT_DEBUG", raising=False)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # `ct.exercise` changes it
    book.file("start/add_exercises.py", HEADER + STUBS)
    book.example("start/add_solutions", SOLUTIONS)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return book


def run(file, **env):
    return subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        env=tool.environment() | env,
    )


# --- what there is ---------------------------------------------------------------------------------


def test_listed_by_chapter_with_minutes_and_progress(chapter, capsys):
    assert cli.main(["exercise"]) == 0
    said = capsys.readouterr().out
    assert "start/add" in said and "warm-up" in said and "5 min" in said and "0 of 2 done" in said
    assert said.index("Twice") < said.index("Thrice")
    exercises.keep(exercises.get("start/add", 2), "done")
    exercises.keep(exercises.get("start/add", 2), "started")  # stays done
    assert cli.main(["exercise", "start", "--lang", "zh"]) == 0
    said = capsys.readouterr().out
    assert "三倍" in said and "已完成 1 个" in said
    assert cli.main(["exercise", "start/add", "--level", "hard", "--lang", "en"]) == 0
    said = capsys.readouterr().out
    assert "Thrice" in said and "Twice" not in said


def test_parts_and_chapters_have_their_titles_in_the_books_order():
    one, two, part = ({"en": name, "zh": name} for name in ("One", "Two", "Part"))
    chapters = [{"id": "one", "title": one}, {"id": "a-two", "title": two}]
    contents = json.dumps({"parts": [{"id": "p", "title": part, "chapters": chapters}]})
    assert list(exercises._titles_in(contents).items()) == [
        ("p", part),
        ("p/one", one),
        ("p/a-two", two),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["start/ad", "1"], "Did you mean start/add?"),
        (["strat/add"], "Did you mean start/add?"),
        (["nothing", "1"], "lists them all"),
        (["../../etc", "1"], "no exercises of a chapter"),
        (["start/add", "3"], "start/add has no exercise 3: its last is 2"),
        (["start/add", "--out", "x.py"], "say which exercise"),
        (["start/add", "--forget"], "say which exercise"),
    ],
)
def test_what_there_is_not(chapter, capsys, arguments, says):
    assert cli.main(["exercise", *arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("name", ["start/add", "add", "examples/start/add_exercises.py"])
def test_ways_to_name_a_chapter(chapter, name):
    assert exercises.get(name, 1).chapter == "start/add"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("#       2:", "#       3:", "1, 2, ... in order"),
        ("level: hard", "level: fiendish", "level is 'fiendish'"),
        ("minutes: 20", "minutes: soon", "minutes is 'soon'"),
        ("minutes: 20", "minutes: 0", "minutes is 0"),
        ("minutes: 20", "minutes: true", "minutes is True"),
        ("exercises:", "exercises: 5\n#     others:", "1, 2, ... in order"),
        ("#         level: hard\n", "", "exercise 2's level is None"),
        (', zh: "三倍"', "", "it must have 'en' and 'zh'"),
        ('fails: "AttributeError"', 'fails: "("', "regular expression"),
        ('#         fails: "AttributeError"\n', "", "regular expression"),
        ("requires: sm_75", "requires: 75", "requires is 75"),
    ],
)
def test_a_header_that_is_wrong_names_its_file(chapter, old, new, says):
    chapter.file("start/add_exercises.py", (HEADER + STUBS).replace(old, new))
    with pytest.raises(catalog.BadHeaderError) as caught:
        exercises.of_chapter("start/add")
    assert says in str(caught.value) and "examples/start/add_exercises.py" in str(caught.value)


def test_a_cell_that_is_missing_is_named(chapter):
    chapter.example("start/add_solutions", SOLUTIONS.replace("given-2", "given-3"))
    with pytest.raises(exercises.BadExerciseError, match="add_solutions.py has no cell 'given-2'"):
        exercises.write(exercises.get("start/add", 2))
    assert not list(Path.cwd().iterdir())


def test_a_check_with_a_string_over_lines_is_refused(chapter):
    for string in ('"""a\nb"""', 'f"""a\n{1}"""', '"""a\\\nb"""'):
        chapter.example("start/add_solutions", SOLUTIONS.replace("NUMBER)", string + ")"))
        with pytest.raises(exercises.BadExerciseError, match="check-2 has a string over several"):
            exercises.started(exercises.get("start/add", 2))


# --- files -----------------------------------------------------------------------------------------


def test_a_file_is_written_once_and_never_over_another(chapter, capsys):
    assert cli.main(["exercise", "start/add", "1"]) == 0
    path = Path("start_add_1.py")
    path.write_text("mine\n")
    assert cli.main(["exercise", "start/add", "1"]) == 2
    err = capsys.readouterr().err
    assert "start_add_1.py is there already" in err and "--out FILE" in err
    assert path.read_text() == "mine\n"
    assert cli.main(["exercise", "start/add", "1", "--out", "again.py"]) == 0
    assert cli.main(["exercise", "start/add", "1", "--out", "again.py", "--solution"]) == 2
    Path("folder").mkdir()
    assert cli.main(["exercise", "start/add", "1", "--out", "folder"]) == 0
    assert cli.main(["exercise", "start/add", "1", "--out", "none/x.py"]) == 2
    assert sorted(os.listdir()) == ["again.py", "folder", "start_add_1.py"]
    assert os.listdir("folder") == ["start_add_1.py"]
    assert exercises.progress() == {"start/add 1": "started"}


def test_a_broken_write_leaves_nothing(chapter, monkeypatch):
    def full(*ignored):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cudatut.files.Path.write_bytes", full)
    with pytest.raises(CudatutError, match="No space left"):
        exercises.write(exercises.get("start/add", 1))
    assert not os.listdir()


def test_what_is_written(chapter):
    text = exercises.started(exercises.get("start/add", 1))
    compile(text, "x.py", "exec")
    order = ("Exercise 1 of start/add: Twice (warm-up, 5 minutes)", "import cudatut as ct")
    order += ("--- given", "NUMBERS =", "--- yours", "# yours", "--- check", "with ct.exercise(")
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert text.count("import cudatut as ct") == 1
    assert max(map(cell_len, text.splitlines())) <= 80
    zh = exercises.started(exercises.get("start/add", 1), "zh")
    assert (
        "两倍" in zh and 'lang="zh"' in zh and "足够长，长到" in zh and "--solution --lang zh" in zh
    )
    assert max(map(cell_len, zh.splitlines())) <= 80
    assert not any(line[2:3] and line[2] in "，。、" for line in zh.splitlines())


def test_no_title_is_read_as_the_encoding_of_the_file(chapter):
    """PEP 263: a comment in the first two lines that says `coding: NAME`, as a title may."""
    header = HEADER.replace("Twice", "Decoding: twice").replace(
        "Return twice", "Coding=x: return twice"
    )
    chapter.file("start/add_exercises.py", header + STUBS)
    for lang in exercises.LANGUAGES:
        text = exercises.started(exercises.get("start/add", 1), lang)
        assert ("# Exercise 1 of start/add: Decoding: twice" in text) == (lang == "en")
        compile(text.encode(), "x.py", "exec")
        with pytest.raises(SyntaxError, match="encoding"):  # what the lines before it save it from
            compile(b"# Exercise 1 of start/add: Decoding: twice\n", "x.py", "exec")


def test_the_solution_is_printed_or_written(chapter, capsys):
    assert cli.main(["exercise", "start/add", "1", "--solution"]) == 0
    text = capsys.readouterr().out
    compile(text, "x.py", "exec")
    assert "return 2 * x" in text and "# yours" not in text and not os.listdir()
    assert cli.main(["exercise", "start/add", "1", "--solution", "--out", "ours.py"]) == 0
    assert Path("ours.py").read_text() == text
    assert exercises.progress() == {}


def test_the_notebook_of_a_chapter_is_what_colab_opens(chapter, capsys):
    nbformat = pytest.importorskip("nbformat")
    assert cli.main(["exercise", "--write-notebooks"]) == 0
    path = chapter.root / "start" / "add_exercises.ipynb"
    assert str(path) in capsys.readouterr().out
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert ids[:3] == ["install", "exercise-1", "given-1"] and ids[-1] == "check-2"
    assert not any(cell.get("outputs") for cell in notebook.cells)
    chinese = nbformat.read(path.with_suffix(".zh.ipynb"), as_version=4)
    nbformat.validate(chinese)
    assert [cell.id for cell in chinese.cells] == ids
    for one, here, there in (
        (notebook, "Return twice", "返回"),
        (chinese, "返回这个数的两倍", "Return"),
    ):
        assert here in one.cells[1].source and there not in one.cells[1].source
    assert 'ct.exercise("start/add", 1, lang="zh")' in chinese.cells[4].source
    assert exercises.write_notebooks() == []


def test_status_takes_that_notebook_for_no_orphan(chapter, capsys):
    pytest.importorskip("nbformat")
    exercises.write_notebooks()
    chapter.recorded("start/add_solutions")
    assert cli.main(["status"]) == 0, capsys.readouterr()
    chapter.file("start/other_exercises.ipynb", "{}")
    assert cli.main(["status"]) == 1
    assert "other_exercises.ipynb" in capsys.readouterr().out


# --- graded ----------------------------------------------------------------------------------------


def test_a_stub_fails_and_a_solution_passes(chapter):
    path = exercises.write(exercises.get("start/add", 1))
    failed = run(path)
    assert failed.returncode == 1
    lines = failed.stderr.splitlines()
    assert lines[0] == "not passed: start/add 1: the values are wrong"
    assert "element 0 is the first: got" in lines[1] and "scale 1" in lines[1] and len(lines) == 2
    assert exercises.progress() == {"start/add 1": "started"}
    path.write_text(path.read_text().replace("return x ", "return 2 * x "))
    passed = run(path)
    assert passed.returncode == 0, passed.stderr
    assert "passed: start/add 1, Twice" in passed.stdout and not passed.stderr
    assert str(exercises.progress_file()) in passed.stdout and "--forget" in passed.stdout
    assert exercises.progress() == {"start/add 1": "done"}


def test_an_error_of_pythons_names_the_readers_line_and_debugging_shows_all(chapter):
    path = exercises.write(exercises.get("start/add", 2), lang="zh")
    failed = run(path)
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    assert "未通过：start/add 2：Python 出错中止" in failed.stderr
    assert "（start_add_2.py 第" in failed.stderr and "`return x.nothing`" in failed.stderr
    assert "Traceback" in run(path, CUDATUT_DEBUG="1").stderr


def test_the_language_of_a_file_goes_before_that_of_the_reader(chapter):
    """`lang=` in the file; where it has none, the reader's."""
    for lang, chinese in (("zh", True), ("en", False)):
        path = exercises.write(exercises.get("start/add", 1), f"{lang}.py", lang)
        for asked in ("en", "zh"):
            said = run(path, CUDATUT_LANG=asked).stderr
            expected = "检查 scale 1：共 3 个元素，其中 3 个不对；第一个是元素 0：得到 1，应为 2"
            assert (expected in said) == (chinese or asked == "zh"), said


def test_errors_before_the_check_are_explained_too(chapter):
    path = exercises.write(exercises.get("start/add", 1))
    path.write_text(
        path.read_text().replace("    return x ", "    return x\n\nraise OSError('no') ")
    )
    failed = run(path)
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    assert "not passed: start/add 1" in failed.stderr and "OSError: no (line" in failed.stderr


def test_a_syntax_error_is_pythons_to_explain(chapter):
    path = exercises.write(exercises.get("start/add", 1))
    path.write_text(path.read_text().replace("def twice(x):", "def twice(x)"))
    failed = run(path)
    assert failed.returncode == 1 and "SyntaxError" in failed.stderr


def test_in_a_notebook_the_message_stands_alone(chapter, monkeypatch):
    monkeypatch.setattr(exercises, "_in_notebook", lambda: True)
    with pytest.raises(exercises.NotPassed) as caught, exercises.exercise("start/add", 1):
        raise AssertionError("no")
    assert caught.value._render_traceback_() == [str(caught.value)]
    assert "a condition of the check does not hold" in str(caught.value)


def test_ctrl_c_is_no_failure(chapter):
    with pytest.raises(KeyboardInterrupt), exercises.exercise("start/add", 1):
        raise KeyboardInterrupt


def test_a_chapter_in_a_folder(chapter):
    """Its files have other names, and its exercises those that they had."""
    root = chapter.root / "start"
    (root / "add").mkdir()
    for name in ("exercises", "solutions"):
        (root / f"add_{name}.py").rename(root / f"add/{name}.py")
    assert exercises.chapters() == ["start/add"]
    for typed in ("start/add", "add"):
        assert exercises.get(typed, 1).stub.startswith("def twice")
    assert run(exercises.write(exercises.get("add", 1), solution=True)).returncode == 0
    path, _ = exercises.committed_notebook("start/add")
    assert path == root / "add" / "exercises.ipynb"
    (root / "add/solutions.py").write_text("")
    with pytest.raises(CudatutError, match=r"examples/start/add/solutions\.py has no cell"):
        _ = exercises.get("start/add", 1).check


def test_modules_of_the_book_are_found_from_a_readers_folder(chapter):
    chapter.file("start/answers.py", "ANSWER = 42\n")
    solutions = SOLUTIONS.replace(
        "NUMBER = 7", "from cudatut.book.start.answers import ANSWER\n\nNUMBER = ANSWER // 6"
    )
    chapter.example("start/add_solutions", solutions)
    path = exercises.write(exercises.get("start/add", 2), solution=True)
    assert run(path).returncode == 0


def test_a_wheel_in_an_empty_folder(tmp_path):
    """The order of the chapters comes with the package, where there is no checkout."""
    package = tmp_path / "packages" / "cudatut"
    shutil.copytree(ROOT / "cudatut", package, ignore=shutil.ignore_patterns("__pycache__", "site"))
    (package / "contents.yml").write_bytes((ROOT / "docs" / "contents.yml").read_bytes())
    (package / "examples" / "start").mkdir(parents=True)
    for name, text in (("exercises", HEADER + STUBS), ("solutions", SOLUTIONS)):
        (package / "examples" / "start" / f"errors_{name}.py").write_text(text, encoding="utf-8")
    work = tmp_path / "work"
    work.mkdir()
    env = os.environ | {
        "PYTHONPATH": str(package.parent),
        "CUDATUT_PROGRESS": str(tmp_path / "progress"),
    }
    env.pop("CUDATUT_EXAMPLES", None)
    command = [sys.executable, "-m", "cudatut", "exercise"]
    listed = subprocess.run(command, env=env, cwd=work, capture_output=True, text=True)
    assert "Getting started" in listed.stdout and "start/errors" in listed.stdout, listed.stderr
    subprocess.run(
        [*command, "start/errors", "1", "--solution", "--out", "x.py"], env=env, cwd=work
    )
    done = subprocess.run(
        [sys.executable, "x.py"], env=env, cwd=work, capture_output=True, text=True
    )
    assert done.returncode == 0 and "passed" in done.stdout, done.stderr


# --- what caught it --------------------------------------------------------------------------------


class CompileError(Exception):
    __module__ = "pycuda.driver"


class LogicError(Exception):
    __module__ = "pycuda._driver"


class MemoryError_(Exception):
    __module__ = "pycuda._driver"


MemoryError_.__name__ = "MemoryError"


def wrong(values, expected):
    values, expected = np.array(values, "float32"), np.array(expected, "float32")
    poison = memory.POISON_BYTE
    return check._wrong("n = 3", values, expected, values == expected, poison, 0, 0)


POISON = np.array([0xFFFFFFFF], "uint32").view("float32")[0]


@pytest.mark.parametrize(
    ("error", "guard", "detail"),
    [
        (wrong([1, 2, 0], [1, 2, 3]), "values", "element 2 is the first: got"),
        (
            wrong([1, POISON, 3], [1, 2, 3]),
            "poison",
            "1 of 3 elements are wrong; element 1",
        ),
        (wrong([1, np.nan, 3], [1, 2, 3]), "nan", "element 1 is the first: got"),
        (
            CheckError("check a: the output has shape (2,), the reference (3,)", "shape"),
            "shape",
            "shape (2,)",
        ),
        (
            check.outside(["empty(3 float32): 4 bytes after it were overwritten"], "a"),
            "zone",
            "check a: a kernel wrote outside its arrays: empty(3 float32): 4 bytes after it",
        ),
        (CheckError("guess saves too little.\nmore"), "values", "guess saves too little"),
        (
            CompileError(
                "nvcc compilation of /tmp/x/kernel.cu failed\n[stderr:\n/tmp/x/kernel.cu(5): error: "
                'identifier "j" is undefined\n]'
            ),
            "compile",
            'kernel.cu(5): error: identifier "j" is undefined',
        ),
        (
            KernelCompileError("nvcc could not compile inline.cu:\n  inline.cu, line 3: error: no"),
            "compile",
            "inline.cu, line 3: error: no",
        ),
        (LaunchError("add: block.x = 0, but this GPU allows 1 to 1024"), "launch", "block.x = 0"),
        (LogicError("cuLaunchKernel failed: invalid argument"), "launch", "invalid argument"),
        (
            LogicError("cuCtxSynchronize failed: an illegal memory access was encountered"),
            "access",
            "illegal memory access",
        ),
        (LogicError("cuCtxSynchronize failed: misaligned address"), "access", "misaligned"),
        (LogicError("cuInit failed: no device"), "cuda", "no device"),
        (MemoryError_("cuMemAlloc failed: out of memory"), "memory", "out of memory"),
        (NoGpuError("no NVIDIA driver"), "machine", "no NVIDIA driver"),
        (ToolMissing("no nvcc"), "machine", "no nvcc"),
        (OutOfDeviceMemory("8 GB are free"), "memory", "8 GB are free"),
        (ModuleNotFoundError("No module named 'pycuda'", name="pycuda"), "machine", "doctor"),
        (ModuleNotFoundError("No module named 'pycuda.x'", name="pycuda.x"), "machine", "doctor"),
        (subprocess.TimeoutExpired("python", 60), "time", "60 seconds"),
        (AssertionError("Traceback ...\n  x\nValueError: seven"), "condition", "ValueError: seven"),
        (
            AssertionError("Traceback ...\nModuleNotFoundError: No module named 'pycuda'"),
            "machine",
            "No module named 'pycuda'; `python -m cudatut doctor`",
        ),
        (
            AssertionError("Traceback ...\nImportError: libcuda.so.1: cannot open"),
            "machine",
            "libcuda.so.1: cannot open; ",
        ),
        (
            AssertionError(
                "...\npycuda._driver.RuntimeError: cuInit failed: no CUDA-capable device is detected"
            ),
            "machine",
            "cuInit failed",
        ),
        (
            AssertionError("Traceback ...\nModuleNotFoundError: No module named 'mine'"),
            "condition",
            "'mine'",
        ),
        (
            AssertionError("...\npycuda.driver.CompileError: x\nkernel.cu(2): error: y"),
            "compile",
            "kernel.cu(2): error: y",
        ),
        (TypeError("no"), "python", "TypeError: no"),
    ],
)
def test_which_guard_caught_what(error, guard, detail):
    found = exercises.explained(error)
    assert found.guard == guard and detail in found.detail
    assert "\n" not in found.detail


def test_a_line_has_three_hundred_characters_at_most():
    for said, kept in (("x" * 300, "x" * 300), ("x" * 301, "x" * 297 + "...")):
        assert exercises.explained(NoGpuError(said)).detail == kept


def test_a_lost_context_ends_the_process_at_once(chapter, monkeypatch, capsys):
    """PyCUDA would complain of it for every array that it cleans up."""
    left = []
    monkeypatch.setattr(os, "_exit", left.append)
    with pytest.raises(SystemExit) as caught, exercises.exercise("start/add", 1):
        raise LogicError("cuCtxSynchronize failed: an illegal memory access was encountered")
    assert caught.value.code == 1 and left == [1]
    assert "touched memory that is not its own" in capsys.readouterr().err


def test_a_check_that_passes_beside_a_touched_red_zone_has_not_passed(chapter, monkeypatch, capsys):
    from cudatut.gpu import memory

    monkeypatch.setattr(exercises, "_gpu_in_use", lambda: True)
    monkeypatch.setattr(memory, "damaged_zones", lambda: ["behind an array of 4 float32: 1 byte"])
    with pytest.raises(SystemExit) as caught, exercises.exercise("start/add", 1):
        pass
    assert caught.value.code == 1 and exercises.progress() == {}
    assert "a kernel wrote outside its array" in capsys.readouterr().err


# --- progress --------------------------------------------------------------------------------------


def test_progress_that_cannot_be_read_is_told_in_a_line(chapter, capsys):
    path = exercises.progress_file()
    path.parent.mkdir(parents=True)
    path.write_text("[" * 100_000)
    assert cli.main(["exercise"]) == 0
    said = capsys.readouterr().out
    assert "cannot be read" in said and "--forget" in said and "Twice" in said
    assert cli.main(["exercise", "--forget"]) == 0 and not path.exists()
    capsys.readouterr()
    path.mkdir()
    for arguments in (["--forget"], ["start/add", "1", "--forget"]):
        assert cli.main(["exercise", *arguments]) == 2
        said = capsys.readouterr().err
        assert f"{path}, and there is a folder of this name" in said and said.count("\n") == 1
    assert cli.main(["exercise"]) == 0 and "folder of this name" in capsys.readouterr().out
    assert exercises.keep(exercises.get("start/add", 1), "done") is False and path.is_dir()


def test_progress_is_forgotten(chapter, capsys):
    for number, state in ((1, "started"), (2, "done")):
        exercises.keep(exercises.get("start/add", number), state)
    assert exercises.progress() == {"start/add 1": "started", "start/add 2": "done"}
    assert cli.main(["exercise", "start/add", "1", "--forget"]) == 0
    assert exercises.progress() == {"start/add 2": "done"}
    assert cli.main(["exercise", "--forget"]) == 0
    assert str(exercises.progress_file()) in capsys.readouterr().out
    assert exercises.progress() == {} and not exercises.progress_file().exists()
    assert cli.main(["exercise", "--forget"]) == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"start/add 1": 3}'])
def test_damaged_progress_stops_nothing_and_is_not_overwritten(chapter, capsys, text):
    path = exercises.progress_file()
    path.parent.mkdir()
    path.write_text(text)
    assert cli.main(["exercise"]) == 0
    said = capsys.readouterr().out
    assert str(path) in said and "--forget" in said and "Twice" in said
    assert not exercises.keep(exercises.get("start/add", 1), "done")
    assert path.read_text() == text


def test_progress_is_kept_in_the_users_data_folder(monkeypatch, tmp_path):
    import platformdirs

    monkeypatch.delenv("CUDATUT_PROGRESS", raising=False)
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda *names: str(tmp_path))
    assert exercises.progress_file() == tmp_path / "exercises.json"


def test_a_folder_that_cannot_be_written_is_told(chapter, tmp_path, monkeypatch, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("CUDATUT_PROGRESS", str(blocked / "in"))
    with exercises.exercise("start/add", 1):
        pass
    said = capsys.readouterr().out
    assert "passed: start/add 1" in said and "could not be kept" in said


def test_what_is_kept_is_plain(chapter):
    exercises.keep(exercises.get("start/add", 1), "done")
    kept = json.loads(exercises.progress_file().read_text())
    assert kept == {"start/add 1": "done"}


def test_columns_are_as_wide_as_they_look():
    """A Chinese character takes two places."""
    columns = [
        padded(text, width) for text, width in (("ab", 5), ("ab", -5), ("中", 5), ("abc", 2))
    ]
    assert columns == ["ab   ", "   ab", "中   ", "abc"]


BEGUN = """\
# --- task ---------------------------------------------------------------------

# Exercise 2 of start/add: Thrice (hard, 20 minutes)
#
# Return three times the number.
#
# Write your part below. Then run this file; it checks itself:
#     python start_add_2.py
# Our solution:
#     python -m cudatut exercise start/add 2 --solution
import cudatut as ct

ct.exercise("start/add", 2)  # says in plain words what goes wrong


# --- given --------------------------------------------------------------------

NUMBER = 7


# --- yours --------------------------------------------------------------------

def thrice(x):
    return x.nothing


# --- check; change nothing below, where the answer stands ---------------------

with ct.exercise("start/add", 2):
    import numpy as np

    ct.check(np.array([thrice(NUMBER)]), np.array([21]), name="thrice")
"""


def test_a_file_to_begin_with_is_this_one(chapter):
    asked = exercises.get("start/add", 2)
    assert exercises.started(asked) == BEGUN
    ours = BEGUN.replace(f"yours {'-' * 68}", f"our solution {'-' * 61}")
    assert exercises.started(asked, solution=True) == ours.replace("x.nothing", "3 * x")
    assert exercises.write(asked).name == "start_add_2.py"
    assert exercises.write(asked, solution=True).name == "start_add_2_solution.py"
    Path("folder").mkdir()
    assert str(exercises.write(asked, "folder", solution=True)) == "folder/start_add_2_solution.py"


def test_a_rule_has_its_dashes_behind_the_longest_label():
    assert exercises._rule("a" * 72) == f"# --- {'a' * 72} ---\n"
    assert (
        cell_len(exercises._rule("a" * 70).strip()) == 80 == cell_len(exercises._rule("中").strip())
    )


def test_a_comment_is_as_wide_as_eighty_columns():
    for text in ("a " * 38 + "aa", "中" * 39):
        assert exercises._comment(text) == [f"# {text}"] and cell_len(f"# {text}") == 80
        assert len(exercises._comment(text + "b")) == 2


def test_in_chinese_each_part_has_the_comments_of_its_own_file(chapter, monkeypatch):
    monkeypatch.setattr(exercises.overlays, "code", lambda source, file: f"{file}: {source}")
    asked = exercises.get("start/add", 2)
    assert asked.shown("stub", "en").startswith("def thrice")
    assert asked.shown("stub", "zh").startswith("start/add_exercises.py: def thrice")
    for part in ("given", "solution"):
        assert asked.shown(part, "zh") == f"start/add_solutions.py: {asked.shown(part, 'en')}"


@pytest.mark.parametrize(
    "imported", ["import cudatut as ct", "import cudatut as ct  # of the book"]
)
def test_a_check_imports_the_package_once(chapter, imported):
    chapter.example("start/add_solutions", SOLUTIONS.replace("import cudatut as ct", imported))
    assert exercises.started(exercises.get("start/add", 2)) == BEGUN


def test_what_cannot_be_written_is_told_with_the_reason(chapter):
    with pytest.raises(CudatutError, match=r"^none/x\.py cannot be written: No such file"):
        exercises.write(exercises.get("start/add", 2), "none/x.py")
    assert exercises.progress() == {}


def test_an_exercise_is_counted_from_one(chapter):
    with pytest.raises(exercises.UnknownExerciseError, match="start/add has no exercise 0"):
        exercises.get("start/add", 0)


def test_a_name_that_two_parts_have_names_no_chapter(chapter):
    chapter.file("basics/add_exercises.py", HEADER + STUBS)
    with pytest.raises(
        exercises.UnknownExerciseError, match="Did you mean basics/add or start/add"
    ):
        exercises.chapter_of("add")
    assert exercises.chapter_of("basics/add") == "basics/add"


def test_chapters_stand_in_the_books_order_and_those_that_it_lacks_behind(chapter, monkeypatch):
    for name in ("start/b", "start/c", "start/a"):
        chapter.file(f"{name}_exercises.py", HEADER + STUBS)
    chapter.file("drafts.txt", "start/c*\n")
    monkeypatch.setattr(
        exercises, "_titles", lambda: dict.fromkeys(["start/add", "start/b", "start/gone"])
    )
    assert exercises.chapters() == ["start/add", "start/b", "start/a", "start/c"]
    assert exercises.chapters(drafts=False) == ["start/add", "start/b", "start/a"]
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(chapter.root / "none"))
    with pytest.raises(CudatutError, match="no folder of examples at .*none"):
        exercises.chapters()


def test_a_list_has_a_line_for_each_exercise_below_its_chapter_and_part(chapter, monkeypatch):
    chapter.file("basics/more_exercises.py", HEADER + STUBS)
    chapter.file("basics/draft_exercises.py", HEADER + STUBS)
    chapter.file("drafts.txt", "basics/draft*\n")
    names = {"start": "Begin", "start/add": "Sums", "basics": "Basics"}
    titles = {name: {"en": title, "zh": "中"} for name, title in names.items()}
    monkeypatch.setattr(exercises, "_titles", lambda: titles)
    exercises.keep(exercises.get("start/add", 1), "started")
    exercises.keep(exercises.get("basics/more", 2), "done")
    start = [
        "Begin",
        "  start/add  Sums",
        "      1  warm-up    5 min  started  Twice",
        "      2  hard      20 min           Thrice",
    ]
    basics = [
        "Basics",
        "  basics/more",
        "      1  warm-up    5 min           Twice",
        "      2  hard      20 min  done     Thrice",
    ]
    end = f"kept in {exercises.progress_file()}"
    assert exercises.listing() == [*start, "", *basics, "", f"1 of 4 done; {end}"]
    for only in ("start", "start/add", "add"):
        assert exercises.listing(only) == [*start, "", f"0 of 2 done; {end}"]
    hard = exercises.listing(level="hard")
    assert hard == [*start[:2], start[3], "", *basics[:2], basics[3], "", f"1 of 2 done; {end}"]
    assert exercises.listing(level="easy") == ["", f"0 of 0 done; {end}"]
    assert exercises.listing(lang="zh")[:3] == [
        "中",
        "  start/add  中",
        "      1  热身      5 分钟  已开始   两倍",
    ]


def test_progress_is_a_file_that_a_reader_can_read(chapter):
    for number, state in ((2, "started"), (1, "done")):
        assert exercises.keep(exercises.get("start/add", number), state)
    kept = exercises.progress_file().read_text()
    assert kept == '{\n "start/add 1": "done",\n "start/add 2": "started"\n}\n'
    assert exercises.forget(exercises.get("start/add", 2)) == exercises.progress_file()
    assert exercises.progress_file().read_text() == '{\n "start/add 1": "done"\n}\n'


def test_what_the_notebook_of_a_chapter_holds(chapter):
    nbformat = pytest.importorskip("nbformat")
    _, raw = exercises.committed_notebook("start/add")
    cells = nbformat.reads(raw.decode(), 4).cells
    parts = ["exercise", "given", "stub", "check"]
    assert [cell.id for cell in cells[1:]] == [f"{one}-{n}" for n in (1, 2) for one in parts]
    assert cells[5].source == (
        "## Exercise 2 of start/add: Thrice\n\n*hard, 20 minutes*\n\nReturn three times the number."
    )
    assert [cell.source for cell in cells[6:8]] == [
        "NUMBER = 7",
        "def thrice(x):\n    return x.nothing",
    ]
    assert cells[8].source == "import cudatut as ct\n\n" + BEGUN[BEGUN.index("with ") :].rstrip()
    assert [cell.metadata for cell in cells[5:7]] == [
        {"id": "exercise-2"},
        {"id": "given-2", "title": "given-2"},
    ]


def test_notebooks_that_are_as_they_should_be_are_left_alone(chapter):
    pytest.importorskip("nbformat")
    en, zh = exercises.write_notebooks()
    assert (en.name, zh.name) == ("add_exercises.ipynb", "add_exercises.zh.ipynb")
    en.write_bytes(en.read_bytes().replace(b"\n", b"\r\n"))  # as git does on Windows
    assert exercises.write_notebooks() == []
    zh.write_text("{}")
    assert exercises.write_notebooks() == [zh]


def test_a_reason_that_the_gpu_is_not_the_right_one_goes_before_others(chapter, monkeypatch):
    from cudatut.errors import UnsupportedGpuError
    from cudatut.gpu import device

    def require(requires):
        raise UnsupportedGpuError(f"it needs {requires}")

    asked, error = exercises.get("start/add", 1), TypeError("no")
    monkeypatch.setattr(device, "require", require)
    assert exercises._reason(asked, error) == exercises.Explained("python", "TypeError: no")
    monkeypatch.setattr(exercises, "_gpu_in_use", lambda: True)
    assert exercises._reason(asked, error) == exercises.Explained("machine", "it needs sm_75")
    monkeypatch.setattr(device, "require", lambda requires: 1 / 0)  # its context is lost
    assert exercises._reason(asked, error) == exercises.Explained("python", "TypeError: no")


def test_what_went_wrong_is_a_line_and_its_detail(chapter):
    asked = exercises.get("start/add", 1)
    told = exercises.Explained("machine", "no driver").text(asked, "en")
    assert told == "not graded: start/add 1: this machine lacks something\n  no driver"
    told = exercises.Explained("time", "").text(asked, "en")
    assert told == "not passed: start/add 1: it did not come to an end"


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (LogicError("cuCtxSynchronize failed: an illegal memory access was encountered"), [1]),
        (AssertionError("a program of its own: an illegal memory access"), []),
        (TypeError("no"), []),
    ],
)  # where it was another process's context, this one can go on
def test_only_a_context_of_its_own_that_is_lost_ends_the_process(chapter, monkeypatch, error, left):
    ends = []
    monkeypatch.setattr(os, "_exit", ends.append)
    exercises._failed(exercises.get("start/add", 1), "en", error)
    assert ends == left


def test_a_notebook_is_known_by_its_shell(monkeypatch):
    class IPython:
        shell = None

        def get_ipython(self):
            return self.shell

    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not exercises._in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", IPython())  # imported by something
    assert not exercises._in_notebook()
    monkeypatch.setattr(IPython, "shell", "a shell")
    assert exercises._in_notebook()


@pytest.mark.parametrize(
    ("debug", "notebook", "explains"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_errors_outside_the_check_are_explained_where_a_file_is_run(
    chapter, monkeypatch, capsys, debug, notebook, explains
):
    before = sys.excepthook
    monkeypatch.setattr(exercises, "_debugging", lambda: debug)
    monkeypatch.setattr(exercises, "_in_notebook", lambda: notebook)
    exercises.exercise("start/add", 1)
    assert (sys.excepthook is not before) == explains
    if explains:
        for error, told in (
            (TypeError("no"), "not passed: start/add 1: Python stopped at an error"),
            (SyntaxError("no"), "SyntaxError: no"),
            (KeyboardInterrupt(), "KeyboardInterrupt"),
        ):
            sys.excepthook(type(error), error, None)
            assert told in capsys.readouterr().err


def test_debugging_shows_what_the_check_raised(chapter, monkeypatch):
    monkeypatch.setenv("CUDATUT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError), exercises.exercise("start/add", 1):
        _ = 1 / 0
    monkeypatch.setenv("CUDATUT_DEBUG", "0")
    with pytest.raises(SystemExit), exercises.exercise("start/add", 1):
        _ = 1 / 0


def test_where_in_the_readers_file_it_was(chapter, tmp_path, monkeypatch):
    """The innermost of its lines, not those of what it calls; without its text, by its number."""
    main = sys.modules["__main__"]
    path = tmp_path / "mine.py"
    path.write_text("def f():\n    int('x')\n\nf()\n")
    monkeypatch.setattr(main, "__file__", str(path), raising=False)

    def told(name):
        try:
            exec(compile(path.read_text() if path.exists() else "1 / 0", name, "exec"), {})
        except Exception as error:
            return exercises._where(error)

    assert told(str(path)) == " (line 2 of mine.py: `int('x')`)"
    assert told(str(tmp_path / "other.py")) == ""
    path.unlink()
    import linecache

    linecache.clearcache()
    assert told(str(path)) == " (line 1 of mine.py)"
    monkeypatch.delattr(main, "__file__")
    assert told("") == ""


def test_the_line_of_a_compiler_names_its_file_without_the_folders():
    said = "some words\n/tmp/a b/c/kernel.cu(5): error: no\nmore"
    assert exercises._compiler_line("/tmp/c/kernel.cu(5): error: no") == "kernel.cu(5): error: no"
    assert exercises._compiler_line(said).endswith("kernel.cu(5): error: no")
    assert exercises._compiler_line("it ended\nwith status 1") == "it ended"


def test_pycuda_that_is_not_there_points_at_the_doctor():
    found = exercises.explained(ModuleNotFoundError("No module named 'pycuda'", name="pycuda"))
    assert found.detail == "No module named 'pycuda'; `python -m cudatut doctor` says what to do"
    other = exercises.explained(ModuleNotFoundError("No module named 'x'", name="x"))
    assert other == exercises.Explained("python", "ModuleNotFoundError: No module named 'x'")
    nameless = exercises.explained(ImportError("cannot import"))
    assert nameless == exercises.Explained("python", "ImportError: cannot import")


def test_a_console_that_lacks_characters_stops_no_exercise(chapter, monkeypatch):
    console = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", console)
    exercises.exercise("start/add", 1)
    print("中", flush=True)
    assert console.buffer.getvalue() == b"\\u4e2d\n"


def test_what_was_printed_stands_before_what_went_wrong(chapter, monkeypatch):
    """In a pipe, too, and where the process ends at once."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    print("before")
    exercises._failed(exercises.get("start/add", 1), "en", TypeError("no"))
    assert out.buffer.getvalue() == b"before\n"
    assert err.buffer.getvalue().startswith(b"not passed: start/add 1: Python stopped")
    with exercises.exercise("start/add", 1):
        pass
    assert b"passed: start/add 1, Twice\nYour progress is kept" in out.buffer.getvalue()
