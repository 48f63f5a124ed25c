"""`python -m cudatut check`: the one judge of a chapter. A newcomer's try, from `new` to nothing to mend; and planted faults."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from cudatut import catalog, cli, exercises, overlays
from cudatut.authoring import check as checking
from cudatut.authoring import new as beginning
from cudatut.authoring.check import Verdict, check
from cudatut.catalog import LANGUAGES, ChapterFiles
from cudatut.errors import ToolMissing
from cudatut.files import write_whole
from cudatut.finding import Finding
from cudatut.rules import kernels
from cudatut.site import judge

NAME = "basics/saxpy2"
WRITTEN = Path(__file__).with_name("saxpy2")  # by a newcomer, each in the place of what `new` wrote
BY_HAND = 10  # files at most


@pytest.fixture
def cached(compiler):
    """nvcc, run once for the same source."""

    def run(source, folder):
        found = compiler.included(source.code, source.folders)
        headers = None if found is None else [raw.decode() for raw in found.values()]
        text, flags = kernels.compiled_text(source), kernels.flags(source, headers)
        done = compiler(text, flags, folder, source.folders)
        return done.status, done.log

    return run


@pytest.fixture
def chapter(small_book):
    """The files of the newcomer's chapter, written."""
    beginning.new(NAME, "Scaled addition", "缩放加法")
    files, by_hand = ChapterFiles(NAME), []
    for path, kind in beginning._wanted(files).items():
        begun, whole = path.read_bytes(), (WRITTEN / f"{kind}.txt").read_bytes()
        by_hand += [path] * (begun != whole)
        path.write_bytes(whole)
    assert len(by_hand) <= BY_HAND
    overlays.load.cache_clear()
    for lang in LANGUAGES:  # `python -m cudatut exercise --write-notebooks`
        write_whole(*exercises.committed_notebook(NAME, lang))
    return files


def test_a_newcomers_chapter_from_new_to_nothing_to_mend(chapter, cached, monkeypatch, capsys):
    """With a kernel, a figure, two exercises and two languages; its kernels are compiled, its pages built."""
    monkeypatch.setattr(kernels.Nvcc, "found", lambda: cached)
    assert cli.main(["check", NAME]) == 0
    out, err = capsys.readouterr()
    *notes, end = out.splitlines()
    assert end == f"{NAME}: nothing to mend"
    assert [note.partition(": recordings/")[0] for note in notes] == ["note: without outputs"] * 2
    assert "building the pages" in err and f"compiling {KERNEL}" in err


FILES = ChapterFiles(NAME)
EN, ZH = f"docs/en/{NAME}.md", f"docs/zh/{NAME}.md"
KERNEL, SCRIPT, BEGUN, SOLVED = (
    f"examples/{NAME}/{file}"
    for file in ("saxpy2.cu", "chapter.py", "exercises.py", "solutions.py")
)
FIGURE, TABLE = f"docs/figures/{NAME}.py", "docs/contents.yml"

# What is planted where, where it has to be found, and what is said of it.
FAULTS = [
    (EN, "## Predict {", "## Guess {", f"{EN}:43", "is called 'Predict': write that"),
    (EN, "Does it matter", "It takes 5 ms. Does it matter", f"{EN}:14", "is a typed measurement"),
    (EN, "Each element is", "`atomicNobody()` and", f"{EN}:14", "stands in no entry of docs/glossary.yml"),
    (EN, "so any thread", "so any mbarrier", f"{EN}:14", "is used here and introduced in"),
    (EN, "[CUDA C++", "(to write: more) [CUDA C++", f"{EN}:95", "this is still to be written: more"),
    (ZH, "{ #problem }", "{ #problems }", f"{ZH}:12", "give both pages the same headings in the same order"),
    (BEGUN, 'en: "In place"', 'en: "On the spot"', f"{EN}:80", "should be '### Exercise 1: On the spot"),
    (BEGUN, "  // yours: one", "  z = 1;  // yours: one", f"{BEGUN}:30", 'identifier "z" is undefined'),
    (BEGUN, "level: medium", "level: warm-up", f"{BEGUN}:17", "the easy ones come first"),
    (SOLVED, "    ct.check(y,", "    print(y,", f"{BEGUN}:30", "compare source"),
    (SCRIPT, "# %% bench", "# %% check", f"{SCRIPT}:44", "the cell title 'check' stands on line 36 already"),
    (SCRIPT, "n = 16_777_216", "n  = 16_777_216", SCRIPT, "ruff would format this otherwise: run `make format`"),
    (KERNEL, "int n) {", "int n)   {", f"{KERNEL}:6", "clang-format would write this otherwise"),
    (KERNEL, "a * x[i]", "a * z[i]", KERNEL, 'saxpy2.cu(8): error: identifier "z" is undefined'),
    (KERNEL, "[end:one]", "[end:once]", f"{KERNEL}:3", "the region 'one' is not begun once"),
    (FIGURE, "from cudatut", "import os\n\nfrom cudatut", f"{FIGURE}:5", "F401"),
    (TABLE, '"Scaled addition"', '"Scaled sums"', f"{EN}:2", "calls this chapter 'Scaled sums'"),
]  # fmt: skip


def test_each_fault_is_found_with_its_place_and_in_a_sentence(
    small_book, chapter, cached, monkeypatch
):
    monkeypatch.setattr(checking, "_build", lambda *_: [])
    for file, old, new, _, _ in FAULTS:
        text = (small_book / file).read_text("utf-8")
        assert old in text, (file, old)
        (small_book / file).write_text(text.replace(old, new, 1), "utf-8")
    found = check(NAME, compiler=cached).findings
    missed = [
        (place, said)
        for *_, place, said in FAULTS
        if not any(one.startswith(f"{place}: ") and said in one for one in found)
    ]
    assert not missed, "\n".join(found)
    assert all("Traceback" not in one and "\n" not in one for one in found)


def test_a_file_that_is_missing_is_one_sentence(small_book, chapter):
    for file in (EN, ZH, SCRIPT, BEGUN, SOLVED):
        there = (small_book / file).read_bytes()
        (small_book / file).unlink()
        found = list(map(str, judge.of_chapter(NAME, small_book / "docs")))
        assert any(one.startswith(f"{file}: this ") and "write" in one for one in found), found
        (small_book / file).write_bytes(there)
    assert judge.of_chapter(NAME, small_book / "docs") == []


def test_a_header_that_cannot_be_read_is_told_and_nobody_else_minds(small_book, chapter):
    text = (small_book / SCRIPT).read_text("utf-8")
    (small_book / SCRIPT).write_text(text.replace("# ---\n", "# --\n", 1), "utf-8")
    found = list(map(str, judge.of_chapter(NAME, small_book / "docs")))
    assert any(one.startswith(f"{SCRIPT}:1: has cells but does not begin") for one in found), found
    assert NAME not in [one.name for one in catalog.examples()]
    assert cli.main(["list"]) == 0
    begun = (small_book / BEGUN).read_text("utf-8")
    (small_book / BEGUN).write_text(begun.replace("exercises:", "exercise:"), "utf-8")
    assert cli.main(["exercise"]) == 0


def accepts(source, folder):
    """In the place of nvcc."""
    return 0, ""


def test_what_a_build_finds_is_told_and_a_build_that_fails(chapter, monkeypatch):
    for rule in ("_formatting", "_kernels"):
        monkeypatch.setattr(checking, rule, lambda *_: [])
    monkeypatch.setattr(checking, "build", lambda *_, **__: [f"{EN}: 1700 words, 1600 allowed"])
    assert check(NAME, compiler=accepts).findings == [f"{EN}: 1700 words, 1600 allowed"]

    def failing(*_, **__):
        raise checking.BuildError("The site was not built (zh).")

    monkeypatch.setattr(checking, "build", failing)
    assert check(NAME, compiler=accepts).findings == ["The site was not built (zh)."]


def test_a_tool_that_is_not_there_is_a_note(chapter, monkeypatch):
    monkeypatch.setattr(checking, "build", lambda *_, **__: [])

    def none(*_):
        raise ToolMissing("it is not found")

    monkeypatch.setattr(kernels.Nvcc, "found", none)
    monkeypatch.setattr(checking, "_formatting", none)
    found = check(NAME)
    assert found.findings == [] and found.notes[:2] == ["not looked at: it is not found"] * 2


def test_no_such_chapter(small_book, capsys):
    assert cli.main(["check", "basics/coalesing"]) == 2
    said = capsys.readouterr().err
    assert "Did you mean basics/coalescing?" in said and said.count("\n") == 1


@pytest.mark.parametrize(("findings", "status"), [(["x:1: mend it"], 1), ([], 0)])
def test_the_command(monkeypatch, capsys, findings, status):
    monkeypatch.setattr(checking, "check", lambda name, say: Verdict(findings, ["not recorded"]))
    assert cli.main(["check", "basics/coalescing"]) == status
    said = capsys.readouterr().out
    end = "1 thing to mend" if findings else "nothing to mend"
    assert said.splitlines() == [*findings, "note: not recorded", f"basics/coalescing: {end}"]


# --- its parts --------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    """Of a chapter: a script, a kernel, a figure, and a page in each language."""
    names = {
        "script": "a.py",
        "kernel": "a.cu",
        "figures": "figure.py",
        "en": "en.md",
        "zh": "zh.md",
    }
    paths = {key: tmp_path / name for key, name in names.items()}
    for path in paths.values():
        path.write_text("")
    code = [paths["script"], paths["kernel"]]
    return SimpleNamespace(
        name="a/b", code=lambda names: code, figures=paths["figures"], page=paths.__getitem__
    )


def test_scripts_kernels_and_figures_are_formatted_each_by_its_tool(files, tmp_path, monkeypatch):
    asked = []
    for tool in ("of_python", "of_cuda"):
        monkeypatch.setattr(
            checking.formatting,
            tool,
            lambda *given, tool=tool: asked.append((tool, *given)) or [tool],
        )
    assert checking._formatting(files, ["a/b"], tmp_path) == ["of_python", "of_cuda"]
    script, kernel = files.code([])
    assert asked == [
        ("of_python", [script, files.figures], tmp_path),
        ("of_cuda", [kernel], tmp_path),
    ]
    files.figures.unlink()
    checking._formatting(files, ["a/b"], tmp_path)
    assert asked[2] == ("of_python", [script], tmp_path)


def test_pages_are_built_where_there_are_all(files, tmp_path, monkeypatch):
    said, asked = [], []

    def build(root, out, stage, names, say):
        asked.append((root, stage, names))
        assert out.name == "site" and out.parent.is_dir()
        return ["found"]

    monkeypatch.setattr(checking, "build", build)
    assert checking._build(files, tmp_path, said.append) == ["found"]
    assert said == ["building the pages"] and asked == [(tmp_path, "preview", ["a/b"])]
    files.page("zh").unlink()
    assert checking._build(files, tmp_path, said.append) == [] and len(asked) == len(said) == 1


def test_kernels_are_compiled_with_the_stubs_that_can_be_read(files, monkeypatch):
    asked = []
    monkeypatch.setattr(kernels, "of_files", lambda *given: asked.append(given) or ["found"])
    monkeypatch.setattr(exercises, "of_chapter", lambda name: [name])
    assert checking._kernels(files, ["a/b"], accepts, print) == ["found"]

    def damaged(name):
        raise catalog.BadHeaderError("no header")

    monkeypatch.setattr(exercises, "of_chapter", damaged)
    checking._kernels(files, ["a/b"], accepts, print)
    code = files.code([])
    assert asked == [(code, ["a/b"], accepts, print), (code, [], accepts, print)]


def test_only_examples_without_outputs_are_noted(files, monkeypatch):
    def require_good(name):
        if name == "a/b":
            raise catalog.CudatutError("a/b is not recorded")

    asked = []
    name = "a/b"
    monkeypatch.setattr(
        checking.catalog, "get", lambda path: asked.append(path) or SimpleNamespace(name=name)
    )
    monkeypatch.setattr(checking.recording, "require_good", require_good)
    assert list(checking._recordings(files, [])) == ["without outputs: a/b is not recorded"]
    assert [Path(path).name for path in asked] == ["a.py"]
    name = "a/c"
    assert list(checking._recordings(files, [])) == []


def test_what_two_rules_find_is_told_once_and_the_pages_first(small_book, monkeypatch):
    for rule in ("_formatting", "_kernels", "_build"):
        monkeypatch.setattr(checking, rule, lambda *_, rule=rule: [rule, "x:1: twice"])
    found = [Finding("y", 2, "second"), Finding("x", 1, "twice"), Finding("x", 1, "twice")]
    monkeypatch.setattr(judge, "of_chapter", lambda name, docs: found)
    monkeypatch.setattr(checking, "_recordings", lambda *_: ["not recorded"])
    said = check(NAME, compiler=accepts)
    assert said.findings == ["x:1: twice", "y:2: second", "_formatting", "_kernels", "_build"]
    assert said.notes == ["not recorded"]
