"""Each exercise can be begun: what it says of itself, and that its givens fit its stub, its solution and its check.

Without a GPU: `cudatut.rules.exercises` reads both files; here the whole book is held to it, and faults are planted. Kernels
that only stubs have are compiled. tests/gpu/test_exercises.py runs the exercises.
"""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from cudatut import catalog, exercises
from cudatut.errors import CudatutError
from cudatut.rules import compared, kernels
from cudatut.rules import exercises as exercises_rules

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
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


@pytest.mark.parametrize("chapter", sorted({*WRITTEN, *exercises.chapters()}))
def test_the_exercises_of_a_chapter_are_as_they_should_be(chapter) -> None:
    found = exercises_rules.of_chapter(chapter)
    assert not found, "\n".join(map(str, found))


# --- faults ----------------------------------------------------------------------------------------


BEGUN, SOLVED = "exercises.py", "solutions.py"


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """Call it with (file, old text, new text) ...: a chapter with two exercises, changed, and what is found in it."""

    def found(*changes):
        folder = tmp_path / "examples" / "basics" / "timing"
        folder.mkdir(parents=True)
        monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))
        for name in (BEGUN, SOLVED):
            text = (EXAMPLES / "basics" / "timing" / name).read_text(encoding="utf-8")
            for file, old, new in changes:
                if name == file:
                    assert old in text
                    text = text.replace(old, new, 1)
            (folder / name).write_text(text, encoding="utf-8")
        return list(map(str, exercises_rules.of_chapter("basics/timing")))

    return found


def test_a_chapter_without_faults(chapter) -> None:
    assert chapter() == []


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        ((BEGUN, "level: hard", "level: warm-up"), "#       3:", "the easy ones come first"),
        ((BEGUN, "# %% stub-2", "# %% stub-4"), "# ---", "the cells are stub-1, stub-4"),
        ((SOLVED, "# %% given-2", "# %% given-9"), "# ---", "needed, in this order: given-1"),
        ((BEGUN, 'en: "A timer of your own"', 'en: "计时"'), "#       1:", "the title in en holds Chinese"),
        ((SOLVED, "# %% check-1\n", "# %% check-1\nx = = 1\n"), "x = = 1", "Python cannot read this"),
        ((SOLVED, "# %% check-1\n", f"# %% check-1\n# {'x' * 79}\n"), f"# {'x' * 79}", "81 columns, 80 fit"),
        ((SOLVED, "# %% given-1\n", "# %% given-1\nimport pycuda.autoinit\n"), "# %% given-1", "autoprimaryctx"),
        ((SOLVED, "# %% check-1\n", "# %% check-1\nnobody(1)\n"), "# %% solution-1", "Undefined name `nobody` in `nobody(1)`"),
        ((BEGUN, "# ---\n# jupyter", "# -\n# jupyter"), "# -", "the header needs 'exercises:'"),
    ],
)  # fmt: skip
def test_a_fault_is_found_with_its_place(chapter, tmp_path, change, line, said) -> None:
    """line: what stands where the finding points to."""
    found = chapter(change)
    fitting = [one for one in found if said in one]
    assert fitting, found
    file, number = fitting[0].split(":")[:2]
    assert file == f"examples/basics/timing/{change[0]}"
    assert (tmp_path / file).read_text(encoding="utf-8").splitlines()[int(number) - 1] == line


def test_a_file_that_is_missing_and_too_few_exercises(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))
    (tmp_path / "examples" / "basics").mkdir(parents=True)
    found = list(map(str, exercises_rules.of_chapter("basics/warps")))
    assert [line.partition(": ")[0] for line in found] == [
        "examples/basics/warps/exercises.py",
        "examples/basics/warps/solutions.py",
    ]
    header = (
        "# ---\n# jupyter:\n#   cudatut:\n#     requires: sm_75\n#     exercises:\n#       1:\n"
        "#         title: {en: a, zh: 甲}\n#         level: easy\n#         minutes: 5\n"
        "#         task: {en: a, zh: 甲}\n#         fails: x\n# ---\n"
    )
    folder = tmp_path / "examples" / "basics" / "warps"
    folder.mkdir()
    (folder / BEGUN).write_text(f"{header}# %% stub-1\nx = 1\n")
    (folder / SOLVED).write_text(
        "# %% given-1\nimport cudatut as ct\n# %% solution-1\nx = 2\n# %% check-1\nct.check(x, 2)\n"
    )
    (found,) = exercises_rules.of_chapter("basics/warps")
    assert "two or three exercises, and there is 1 of them" in found.message


@pytest.mark.parametrize(
    ("chapter", "stub", "solution", "check", "place", "said"),
    [
        ("basics/warps", "x = 1", "x = 2", "ct.check(x, 2)", None, None),
        ("basics/warps", "x = 1", "y = 2", "ct.check(y, 2)", "solutions.py:3", "it does not define x, which the stub does"),
        ("basics/warps", "x = 1", "x = 2", "assert x == 2", "solutions.py:5", "it compares nothing: use ct.check"),
        ("start/warps", "x = 1", "import cupy\nx = 2", "ct.check(x, 2)", "solutions.py:4", "it imports cupy"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit(
    tmp_path, monkeypatch, chapter, stub, solution, check, place, said
) -> None:
    """Of the first of two exercises that are written alike."""
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))
    folder = tmp_path / "examples" / chapter
    folder.mkdir(parents=True)
    each = "#       {}: {{title: {{en: a, zh: 甲}}, level: easy, minutes: 5, task: {{en: a, zh: 甲}}, fails: x}}\n"
    header = "# ---\n# jupyter:\n#   cudatut:\n#     requires: sm_75\n#     exercises:\n"
    header += "".join(map(each.replace("#   ", "#     ").format, (1, 2))) + "# ---\n"
    begun = "".join(f"# %% stub-{number}\n{stub}\n" for number in (1, 2))
    solved = "".join(
        f"# %% given-{n}\nimport numpy as np\n# %% solution-{n}\n{solution}\n# %% check-{n}\nimport cudatut as ct\n{check}\n"
        for n in (1, 2)
    )
    (folder / BEGUN).write_text(header + begun, encoding="utf-8")
    (folder / SOLVED).write_text(solved, encoding="utf-8")
    found = list(map(str, exercises_rules.of_chapter(chapter)))
    if said is None:
        assert found == []
    else:
        assert any(one.startswith(f"examples/{chapter}/{place}: {said}") for one in found), found


@dataclass(frozen=True)
class Parts:
    """Of an exercise what these rules look at."""

    chapter, number, name = "start/add", 1, "start/add 1"
    given: str
    stub: str
    solution: str
    check: str


STUB, SOLUTION = "def twice(x):\n    return x", "def twice(x):\n    return 2 * x"
CHECK = 'for n in (1, 2):\n    got = twice(n)\n    ct.check(got, 2 * n, name=f"{n}")'
KERNEL = 'SOURCE = """__global__ void twice(float *x) { x[0] *= 2; }"""'
RUN = "def run(x):\n    ct.Kernel(SOURCE, 'twice')(x, grid=1, block=1)\n"
IMPORT = "try:\n    import lxml\nexcept ImportError:\n    import xml.dom.domreg"
MODULE = "twice(xml.dom.registered)\nct.check(xml.dom.registered, {})"
RUNS = "x = ct.to_device(X)\nrun(x)\nct.check(x, 2 * X, name='x')"


@pytest.mark.parametrize(
    ("given", "stub", "solution", "check", "problem"),
    [
        ("", STUB, SOLUTION, CHECK, ""),
        (RUN, KERNEL.replace("*= 2", "*= 1"), KERNEL, RUNS, ""),
        ("def right(got):\n    assert got == 2", STUB, SOLUTION, "right(twice(1))", ""),
        ("", STUB, SOLUTION, "assert twice(1) == 2", ""),
        ("out = [0]", "out[0] = 1", "out[0] = 2", "ct.check(out, [2])", ""),
        ("out = [1]", "out[0] *= 1", "out[0] *= 2", "ct.check(out, [2])", ""),
        ("", SOLUTION, SOLUTION, CHECK, "the stub is the solution"),
        ("", SOLUTION + "  # yours: twice as much", SOLUTION, CHECK, "the stub is the solution"),
        ("", SOLUTION.replace("    ", '    "Twice."\n    '), SOLUTION, CHECK, "is the solution"),
        (RUN, KERNEL.replace("{", "{ /* yours */"), KERNEL, RUNS, "the stub is the solution"),
        ("", STUB, SOLUTION, "ct.check(np.ones(3), np.ones(3))", "looks at what the stub defines"),
        ("", STUB, SOLUTION, "twice(1)\nct.check(np.ones(3), np.ones(3))", "compare twice"),
        (RUN, KERNEL.replace("2", "1"), KERNEL, RUNS.replace("run(x)", "pass"), "compare SOURCE"),
        ("", STUB, SOLUTION, "print(twice(1))", "no ct.check of the check"),
        (IMPORT, STUB, SOLUTION, MODULE, "no ct.check of the check"),
    ],
)
def test_an_exercise_without_a_task_is_refused(given, stub, solution, check, problem) -> None:
    found = exercises_rules.without_a_task(Parts(given, stub, solution, check))
    assert (problem in found) if problem else not found, found


@pytest.mark.parametrize(
    ("part", "code", "said"),
    [
        ("given", "import xml.dom.domreg\nimport cupy", "it imports cupy"),
        ("stub", "def twice(x):\n    return ct.cdiv(x, 1)", "it uses ct"),
        ("solution", "from cudatut import check", "it imports cudatut"),
    ],
)
def test_start_needs_pycuda_and_numpy_alone(part, code, said) -> None:
    whole = Parts(**{"given": "", "stub": STUB, "solution": SOLUTION, "check": CHECK, part: code})
    (found,) = exercises_rules._pycuda_and_numpy_alone(whole)
    assert said in found.message


# --- kernels ---------------------------------------------------------------------------------------

compiling = load("test_compile")
KNOWN = {source.code for source in compiling.SOURCES}  # compiled by test_compile.py


def stub_kernels() -> list[tuple[str, kernels.Stub]]:
    """Kernels that only stubs have, each with the exercise's name."""
    found = []
    for chapter in exercises.chapters():
        try:
            for exercise in exercises.of_chapter(chapter):
                own = kernels.of_stub(exercise)
                found += [(exercise.name, source) for source in own if source.code not in KNOWN]
        except (exercises.CudatutError, SyntaxError):
            continue  # other tests say so
    return found


STUBS = stub_kernels()


@pytest.mark.parametrize(
    ("name", "source"), STUBS, ids=[f"{name}-{source.where}" for name, source in STUBS]
)
def test_the_stubs_kernel_compiles(name, source, compiler, tmp_path) -> None:
    done = compiling.compile_source(source, compiler, tmp_path)
    said = kernels.problems(source, done.status, done.log)
    assert not said, f"{name}, its stub: {said}\n{done.log}"


# --- notebooks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", exercises.chapters())
def test_the_notebook_for_colab_is_up_to_date(chapter) -> None:
    pytest.importorskip("nbformat")
    found = exercises_rules.of_notebook(chapter)
    assert not found, "\n".join(map(str, found))


def test_no_notebook_is_left_behind() -> None:
    """What begins a chapter's exercises on Colab: one for the pages of each language, and no other."""
    chapters = map(catalog.ChapterFiles, exercises.chapters())
    known = {one.exercises_notebook(lang) for one in chapters for lang in catalog.LANGUAGES}
    for path in EXAMPLES.rglob("*.ipynb"):
        assert path in known, f"{catalog.shown(path)} has no exercises: remove it"


def test_a_ruff_that_cannot_look_is_told_in_its_words(monkeypatch, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such rule >&2\nexit 2\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    some = exercises.of_chapter("start/errors")[:1]
    with pytest.raises(CudatutError, match="ruff cannot look for undefined names: no such rule$"):
        exercises_rules.undefined(some)


# --- the rules at their boundaries ------------------------------------------------------------------


def rated(*levels: str):
    return [SimpleNamespace(number=n, level=level) for n, level in enumerate(levels, 1)]


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([], ["a chapter has two or three exercises, and there are 0 of them"]),
        (["easy"], ["a chapter has two or three exercises, and there is 1 of them"]),
        (["warm-up", "easy", "hard"], []),
        (["easy"] * 4, ["a chapter has two or three exercises, and there are 4 of them"]),
        (["hard", "easy"], ["exercise 2 is easy and stands behind one that is hard: the easy ones come first"]),
    ],
)  # fmt: skip
def test_how_many_exercises_a_chapter_has(tmp_path, levels, said) -> None:
    found = list(exercises_rules._how_many(tmp_path / "exercises.py", rated(*levels)))
    assert [one.message for one in found] == said
    assert [one.line for one in found] == [1 if "chapter" in one else 0 for one in said]


def test_a_line_of_eighty_columns_fits(chapter) -> None:
    assert chapter((SOLVED, "# %% check-1\n", f"# %% check-1\n# {'中' * 39}\n")) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((BEGUN, "fails:", "fails: ''  #"), "exercise 1: 'fails' is empty: say what the check says of the stub"),
        ((BEGUN, 'zh: "自己写一个计时函数"', 'zh: "A timer"'), "exercise 1: the title in zh holds no Chinese: write it in Chinese"),
        ((SOLVED, "# %% check-1\n", '# %% check-1\nx = """a\nb"""\n'), "check-1 has a string over several lines; move it into given-1, for a reader's file indents the check"),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence(chapter, change, message) -> None:
    (found,) = chapter(change)
    assert found.endswith(f": {message}") and found.count("examples/") == 1


def test_cells_that_are_missing_are_told_once_and_the_others_still_judged(chapter) -> None:
    found = chapter(
        (SOLVED, "# %% given-2", "# %% given-9"),
        (SOLVED, "# %% check-1\n", "# %% check-1\nnobody(1)\n"),
    )
    of_cells = [one for one in found if "of exercises it has the cells" in one]
    assert len(of_cells) == 1 and of_cells[0].startswith("examples/basics/timing/solutions.py:1: ")
    assert "given-1, solution-1, check-1, given-2" in of_cells[0].partition("needed")[2]
    assert any("Undefined name `nobody`" in one for one in found)
    assert not any("has no cell" in one for one in found)


def test_an_exercise_that_cannot_be_judged_is_told_where_nothing_else_is(
    chapter, monkeypatch
) -> None:
    def cannot(exercise):
        raise CudatutError("it cannot be judged")

    monkeypatch.setattr(exercises_rules, "of_exercise", cannot)
    assert chapter() == ["examples/basics/timing/exercises.py: it cannot be judged"]


@pytest.mark.parametrize("solution", [False, True])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_file_that_can_be_written_is_python(monkeypatch, lang, solution) -> None:
    (one, *_) = exercises.of_chapter("start/errors")
    bad = lang, solution

    def started(exercise, lang, solution):
        return "x = = 1\n" if (lang, solution) == bad else "x = 1\n"

    monkeypatch.setattr(exercises, "started", started)
    (found,) = exercises_rules._files_are_python(one)
    assert found.message == "the file that a reader begins with is no Python: invalid syntax"
    assert found.file == "examples/start/errors/solutions.py" and found.line > 1
    monkeypatch.setattr(exercises, "started", lambda *_: "x = 1\n")
    assert exercises_rules._files_are_python(one) == []


def test_what_start_may_import_and_where_it_imports_more(monkeypatch) -> None:
    monkeypatch.setattr(
        exercises_rules, "_at", lambda exercise, part, said, line: (part, line, said)
    )
    given = "import os, numpy.linalg\nfrom pycuda.driver import Event\nfrom xml.dom import minidom"

    def found(**parts):
        whole = Parts(
            **{"given": given, "stub": STUB, "solution": SOLUTION, "check": CHECK} | parts
        )
        return list(exercises_rules._pycuda_and_numpy_alone(whole))

    assert found() == []
    alone = "in `start` a reader has PyCUDA and NumPy alone"
    assert found(stub="x = 1\nimport os, cupy.linalg", check="import cupy") == [
        ("stub", 2, f"it imports cupy.linalg: {alone}")
    ]
    assert found(solution="from . import x") == [("solution", 1, f"it imports : {alone}")]
    assert found(stub="x = 1\ny = ct") == [
        ("stub", 2, "it uses ct: in `start` only the check does, since basics introduces it")
    ]


def test_a_stub_and_its_solution_define_the_same_names() -> None:
    code = "def f(): q = 1\nclass C: pass\na, b = c[0] = 1, 2\nfor i in a: d = i\nimport os\n"
    assert exercises_rules._bound(code) == {"f", "C", "a", "b", "c"}


def test_undefined_names_are_told_with_their_line() -> None:
    assert exercises_rules.undefined([]) == []
    (_, two, *_) = exercises.of_chapter("start/errors")
    one = SimpleNamespace(
        chapter="start/errors", number=1, file="start_errors_1",
        given="x = 1", stub="y = x", solution="y = none", check="  \nz(y)",
    )  # fmt: skip
    found = {one.message for one in exercises_rules.undefined([one, two])}
    assert found == {
        "given, stub and check, one after the other: Undefined name `z` in `z(y)`: define it",
        "given, solution and check, one after the other: Undefined name `none` in `y = none`: define it",
        "given, solution and check, one after the other: Undefined name `z` in `z(y)`: define it",
    }


def test_a_notebook_that_is_not_there_or_out_of_date_is_told(tmp_path, monkeypatch) -> None:
    paths = {lang: tmp_path / f"x.{lang}.ipynb" for lang in catalog.LANGUAGES}
    monkeypatch.setattr(
        exercises, "committed_notebook", lambda chapter, lang: (paths[lang], b"a\nb\n")
    )
    monkeypatch.setattr(
        exercises_rules, "finding", lambda path, line, said: (path.name, line, said)
    )
    mend = "run `python -m cudatut exercise --write-notebooks`"
    paths["zh"].write_bytes(b"a\nc\n")
    assert exercises_rules.of_notebook("a/x") == [
        ("x.en.ipynb", 0, f"this notebook, which Colab opens, is not there: {mend}"),
        ("x.zh.ipynb", 0, f"this notebook, which Colab opens, is out of date: {mend}"),
    ]
    paths["en"].write_bytes(b"a\nb\n")
    paths["zh"].write_bytes(b"a\r\nb\r\n")  # as git does on Windows
    assert exercises_rules.of_notebook("a/x") == []


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("x = y", {"x"}),
        ("x, (y, *z) = w", {"x", "y", "z"}),
        ("out[i] = a\nb.c = d", {"out", "i", "b"}),
        ("x += y", {"x"}),
        ("def f(a):\n    b = a", {"f"}),
        ("class C:\n    b = 1", {"C"}),
        ("import numpy as np\nfrom a import b", set()),
        ("if a:\n    x = 1\nelse:\n    y = 2", {"x", "y"}),
        ("for i in r:\n    with a as b:\n        while c:\n            d = 1", {"i", "b", "d"}),
        ("try:\n    x = 1\nexcept E:\n    y = 1\nfinally:\n    z = 1", {"x", "y", "z"}),
        ("print(x)", set()),
    ],
)
def test_what_code_binds(code, names) -> None:
    assert compared.bound(code) == names


@pytest.mark.parametrize(
    ("given", "check", "looks"),
    [
        ("", "ct.check(mine, 1)", True),
        ("", "np.check(mine, 1)", False),
        ("", "ct.show(mine, 1)", False),
        ("", "check(mine, 1)", False),
        ("", "assert mine", True),
        ("", "x = mine\ny = x\nct.check(y, 1)", True),
        ("", "ct.check(y, 1)\nx = mine", False),
        ("", "fill(mine, out)\nct.check(out, 1)", True),  # an output array
        ("def f(x):\n    return mine", "ct.check(f(1), 1)", True),
        ("def f(x):\n    return 1", "ct.check(f(1), 1)", False),
        ("def f(x):\n    return 1", "y = f(mine)\nct.check(y, 1)", True),
        ("def f(x):\n    assert x", "f(mine)", True),
        ("def f(x):\n    print(x)", "f(mine)", False),
        ("def f(x):\n    assert x", "f(1)", False),
        ("def f(x):\n    assert x", "g.f(mine)", False),
        ("try:\n    x = 1\nexcept E:\n    x = mine", "ct.check(x, 1)", True),
        ("", "if mine:\n    x = 1\nct.check(x, 1)", False),  # `x` does not hold it
        ("import numpy as np", "np.add(mine, 1)\nct.check(np.ones(1), 1)", False),
        ("import a.b.c", "a.b.c.f(mine)\nct.check(a.b.c.d, 1)", False),
        ("from a import f", "f(mine)\nct.check(f(1), 1)", False),
        ("class C:\n    pass", "C.x = mine\nct.check(C, 1)", True),
    ],
)
def test_whether_a_check_looks_at_what_the_reader_wrote(given, check, looks) -> None:
    assert compared.compares(given, "mine = 0", check) is looks
    assert compared.compares(given, "", check) is False
