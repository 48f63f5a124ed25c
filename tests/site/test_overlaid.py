"""The book's overlays: all that Chinese pages, notebooks and exercises show has its Chinese, and code stays what it is."""

import io
import re
import runpy
import sys

import pytest
import yaml
from rich.cells import cell_len

from cudatut import comments, overlays, paths
from cudatut.site import overlaid, references, state

_HAN = re.compile(r"[\u4e00-\u9fff]")
DOCS = paths.docs_dir() / "zh"
COLUMNS = 80


@pytest.fixture(scope="module")
def pieces():
    return list(dict.fromkeys(overlaid.shown(DOCS)))


def test_nothing_lacks_its_chinese():
    found = overlaid.lacking(DOCS)
    said = [f"{overlay}: {text} ({file})" for overlay, own in found.items() for text, file in own.items()]  # fmt: skip
    assert not said, "\n".join([f"{len(said)} texts", *said[:40]])


def test_no_pair_is_stale():
    assert not overlaid.stale(), "\n".join(map(str, overlaid.stale()))


def test_code_stays_what_it_is_and_fits_its_column(pieces):
    wide = []
    for file, translated, text in pieces:
        if translated is not overlays.code:
            continue
        language = "python" if file.endswith((".py", "Makefile")) else "cuda"
        chinese = overlays.code(text, file)
        bare = (comments.replaced(one, language, lambda _: "") for one in (text, chinese))
        left, right = (re.sub(r"\s|//|#", "", one) for one in bare)
        assert left == right, (file, text[:200])
        most = max(COLUMNS, *map(cell_len, text.split("\n")))
        wide += [f"{file}: {line}" for line in chinese.split("\n") if cell_len(line) > most]
    assert not wide, "\n".join(wide)


def test_no_english_comment_is_typed_on_a_chinese_page():
    found = []
    for page in sorted(DOCS.glob("*/*.md")):  # what contributors read shows files as they are
        for number, line, kind, info in references.scan(page.read_text(encoding="utf-8")):
            language = {"python": "python", "py": "python", "cuda": "cuda", "cpp": "cuda", "c": "cuda"}.get(info.split(" ")[0])  # fmt: skip
            if kind == "code" and language and "exec" not in info and "8<" not in line:
                for one in comments.comments(line, language):
                    code = re.fullmatch(r"\w+\(.*\)", one.text)
                    if comments.has_english(one.text) and not _HAN.search(one.text) and not code:
                        found.append(f"{page.relative_to(DOCS)}:{number}: {one.text}")
    assert not found, "\n".join(found)


def test_pairs_are_chinese():
    """Or said to be the same with `zh: =`."""
    for path in sorted(paths.examples_dir().rglob(overlays.FILE)):
        for english, pair in overlays.load(path).items():
            if pair.words != english:
                place = f"{paths.shown(path)}:{pair.line}"
                names = len(re.findall(r"[A-Za-z]{2,}", pair.words)) <= 2  # such as 'lane'
                assert _HAN.search(pair.words) or names, place
                prose = re.sub(r"\([^()]*\)|\[[^\[\]]*\]|（[^（）]*, [^（）]*）", "", pair.words)
                assert not re.search(r"[\u4e00-\u9fff][,;:?]|[,;:?][\u4e00-\u9fff]", prose), place


# --- of a small book ------------------------------------------------------------------------------


SCRIPT = """\
# ---
# jupyter:
#   cudatut:
#     title: {en: Add, zh: 相加}
#     requires: sm_75
# ---
# %% [markdown]
# One idea
# %% add-them-2
x = 1  # the sum
"""
KERNEL = """\
// of the file
// --8<-- [start:one]
int a;  // of one
// --8<-- [end:one]
int b;  // of none
// --8<-- [start:two]
int c;  // of two
// --8<-- [end:two]
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Call it with files by their paths; the folder of the Chinese pages."""
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))
    (tmp_path / "examples").mkdir()

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        overlaid.forget()
        overlaid._texts.cache_clear()
        return tmp_path / "docs/zh"

    yield write
    overlaid.forget()
    overlaid._texts.cache_clear()


def test_of_a_page_are_shown_regions_and_whole_files_that_are_there(small):
    page = '--8<-- "a/k.cu:one"\\n--8<-- "a/k.cu"\\n--8<-- "a/none.cu"\\n'.replace("\\n", "\n")
    docs = small({"examples/a/k.cu": KERNEL, "docs/zh/a/b.md": page})
    whole = KERNEL.split("\n")
    assert list(overlaid.shown(docs)) == [
        ("a/k.cu", overlays.code, "int a;  // of one"),
        ("a/k.cu", overlays.code, "\n".join(one for one in whole if "8<" not in one)),
    ]


def test_of_an_example_are_shown_its_prose_its_code_and_the_titles_of_its_cells(small):
    docs = small({"examples/a/b.py": SCRIPT})
    said = [(translated, text) for _, translated, text in overlaid.shown(docs)]
    assert (overlays.words, "One idea") in said
    assert (overlays.title, "One idea") not in said and (overlays.words, "x = 1") not in said
    assert said[-2:] == [(overlays.code, "x = 1  # the sum"), (overlays.title, "add-them-2")]


def test_what_is_in_progress_and_exercises_are_shown_too(small, monkeypatch):
    stubs = "# ---\n# jupyter:\n#   cudatut: {}\n# ---\n# %% stub-1\ny = 1  # yours\n"
    docs = small({"examples/a/b.py": SCRIPT, "examples/a/b_exercises.py": stubs})
    monkeypatch.setattr(overlaid.catalog, "draft_patterns", lambda: ["examples/a/*", "a/*"])
    said = [(file, text) for file, _, text in overlaid.shown(docs)]
    assert ("a/b.py", "One idea") in said
    assert said[-1] == ("a/b_exercises.py", "y = 1  # yours")


PAIRS = "- {en: One idea, zh: 一}\n- {en: add them, zh: 加}\n- {en: the sum, zh: 总和}\n"


def test_a_pair_is_stale_that_no_file_below_says(small):
    gone = "this one has no place any more " * 4
    small(
        {
            "examples/a/b.py": SCRIPT,
            "examples/a/zh.yml": PAIRS + f"- {{en: {gone}, zh: 无}}\n- {{en: of one, zh: 一}}\n",
            "examples/a/notes.md": "// of one\n",
            "examples/c/k.cu": KERNEL,
            "examples/c/zh.yml": "".join(f"- {{en: {one}, zh: 一}}\n" for one in ("of one", "of none", "of the file", "the sum")),
        }
    )  # fmt: skip
    said = "stands in no file below this folder: take the pair out, or say it as the code does"
    in_c = f"examples/c/zh.yml:4: 'the sum' {said}"
    assert list(map(str, overlaid.stale())) == [
        f"examples/a/zh.yml:4: '{gone[:80]}' {said}",
        f"examples/a/zh.yml:5: 'of one' {said}",
        in_c,
    ]
    assert list(map(str, overlaid.stale(paths.examples_dir() / "c"))) == [in_c]


def test_a_region_may_begin_inside_a_comment(small):
    kernel = "/* the whole\n// --8<-- [start:in]\n// of the region\n// --8<-- [end:in]\n*/\n"
    small({"examples/a/k.cu": kernel, "examples/a/zh.yml": "- {en: of the region, zh: 一}\n"})
    assert overlaid.stale() == []


def test_the_cell_in_front_of_every_notebook_and_plain_python_may_have_pairs(small):
    first = "such as in Colab: this compiles PyCUDA, which takes minutes"
    pairs = f'- {{en: "{first}", zh: 一}}\n'
    small({"examples/a/b.py": SCRIPT, "examples/a/zh.yml": pairs})
    assert overlaid.stale() == []
    plain = "x = 1  # plainly\n"
    small({"examples/a/b.py": plain, "examples/a/zh.yml": pairs + "- {en: plainly, zh: 二}\n"})
    assert [one.line for one in overlaid.stale()] == [1]


def test_the_command_prints_what_is_lacking_as_pairs_and_what_is_stale(small, capsys):
    long = "a comment that says: more"
    files = {"examples/a/b.py": SCRIPT.replace("the sum", long), "examples/c/k.cu": KERNEL}
    page = '--8<-- "c/k.cu:two"\n'
    small(files | {"docs/zh/a/b.md": page, "examples/c/zh.yml": "- {en: of one, zh: 一}\n"})
    assert overlaid.main([]) == 1
    assert capsys.readouterr().out == (
        "\n# examples/a/zh.yml\n"
        "- en: One idea\n  zh:   # a/b.py\n"
        f"- en: |-\n    {long}\n  zh:   # a/b.py\n"
        "- en: add them\n  zh:   # a/b.py\n"
        "\n# examples/c/zh.yml\n- en: of two\n  zh:   # c/k.cu\n"
    )
    small({"examples/c/zh.yml": "- {en: of two, zh: 二}\n- {en: of four, zh: 四}\n"})
    assert overlaid.main(["c"]) == 1
    assert capsys.readouterr().out.startswith("examples/c/zh.yml:2: 'of four' stands")
    assert overlaid.main(["a"]) == 1 and "of four" not in capsys.readouterr().out
    small({"examples/a/zh.yml": PAIRS.replace("the sum", f'"{long}"')})
    assert (overlaid.main(["a"]), overlaid.main(["c"])) == (0, 1)


def test_as_a_command_it_writes_what_no_terminal_of_ascii_could(small, monkeypatch):
    small({"examples/c/k.cu": KERNEL, "examples/c/zh.yml": "- {en: 5 µs, zh: 五}\n"})
    for folders, status in ((["c"], 1), (["a"], 0), ([], 1)):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "argv", ["overlaid.py", *folders])
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(overlaid.__file__, run_name="__main__")
        sys.stdout.flush()
        assert ended.value.code == status and ("5 µs".encode() in written.getvalue()) == bool(
            status
        )


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("two words", True),
        ("ends in a stop.", True),
        ("a: b", False),
        ("ends: ", False),
        ("a # b", False),
        ("two\nlines", False),
        ("'quoted'", False),
        ("1 and 2", False),
        ("No", False),
        ("off", False),
        ("x" * 199, True),
        ("x" * 200, False),
    ],
)
def test_a_text_is_plain_where_yaml_reads_it_so(text, plain):
    shown = overlaid._block(text)
    assert (shown == text) == plain
    assert yaml.safe_load(f"- en: {shown}\n  zh: x\n") == [{"en": text, "zh": "x"}]


def test_a_build_reports_what_it_cannot_say_in_chinese(small, monkeypatch):
    small({"examples/a/zh.yml": "- {en: the sum, zh: 总和}\n"})
    build = state.State(lang="zh")
    monkeypatch.setattr(state, "_state", build)
    assert overlaid.code("x  # the sum", "a/b.py") == "x  # 总和"
    assert overlaid.title("the-sum-2", "a/b.py") == "总和 2"
    assert overlaid.words("One idea", "a/b.py") == "One idea"
    assert build.problems == ["examples/a/zh.yml lacks the Chinese of 'One idea' (a/b.py)"]
    small({"examples/a/zh.yml": "x\n"})
    assert overlaid.words("the sum", "a/b.py") == "the sum"
    assert len(build.problems) == 2 and "is a list of pairs" in build.problems[1]
    build.lang = "en"
    assert overlaid.words("anything", "a/b.py") == "anything" and len(build.problems) == 2
