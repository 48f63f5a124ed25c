"""Exercises: listed, written as files that nobody's work is lost to, graded, and remembered."""

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
from cudatut.errors import CheckError, CudatutError, KernelCompileError, LaunchError, NoGpuError
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
        (["start/add", "3"], "its last is 2"),
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
    assert "两倍" in zh and 'lang="zh"' in zh and "足够长，长到" in zh
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
        (ModuleNotFoundError("No module named 'pycuda'", name="pycuda"), "machine", "doctor"),
        (ModuleNotFoundError("No module named 'pycuda.x'", name="pycuda.x"), "machine", "doctor"),
        (subprocess.TimeoutExpired("python", 60), "time", "60 seconds"),
        (AssertionError("Traceback ...\n  x\nValueError: seven"), "condition", "ValueError: seven"),
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
