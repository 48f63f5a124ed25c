"""Examples: found, described, and traced to their files, by text alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from cudatut import catalog
from cudatut.errors import CudatutError


def test_header(book):
    book.example("start/add", requires="sm_90a", timeout_s=7)
    (example,) = catalog.examples()
    assert example.name == "start/add"
    assert example.title == {"en": "Vector add", "zh": "向量加法"}
    assert (example.requires, example.timeout_s) == ("sm_90a", 7.0)
    assert example.file == "start/add.py"


def test_sorted_without_shared_modules_and_hidden_folders(book):
    book.example("b/two")
    book.example("a/one")
    book.file("a/ladder.py", "RUNGS = []\n")
    book.example(".ipynb_checkpoints/one")
    book.example("__pycache__/one")
    assert [example.name for example in catalog.examples()] == ["a/one", "b/two"]


def test_windows_line_ends(book):
    path = book.example("a/one")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert catalog.get("a/one").requires == "sm_75"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# %% check\n1\n", "does not begin with a '# ---' header"),
        ("# ---\n# jupyter: {\n# ---\n# %% a\n", "the header is not YAML"),
        ("# ---\n# jupyter: {}\n# ---\n# %% a\n", "lacks 'jupyter: cudatut:'"),
        ("# ---\n# - 1\n# ---\n# %% a\n", "lacks 'jupyter: cudatut:'"),
        (
            '# ---\n# jupyter:\n#   cudatut: {title: {en: "x"}, requires: sm_75}\n# ---\n',
            "must have 'en' and 'zh'",
        ),
        (
            "# ---\n# jupyter:\n#   cudatut: {title: {en: x, zh: y}, requires: 7.5}\n# ---\n",
            "requires is 7.5; write it like sm_75",
        ),
        (
            "# ---\n# jupyter:\n#   cudatut: {title: {en: x, zh: y}, requires: sm_75, timeout_s: 0}\n# ---\n",
            "timeout_s is 0",
        ),
        *(
            (
                f"# ---\n# jupyter:\n#   cudatut: {{title: {{en: x, zh: y}}, requires: sm_75, {flag}: often}}\n# ---\n",
                f"{flag} is 'often'; it must be true or false",
            )
            for flag in ("alone", "long")
        ),
    ],
)
def test_bad_header_names_the_file_and_the_fault(book, text, message):
    book.file("a/bad.py", text)
    with pytest.raises(catalog.BadHeaderError) as caught:
        catalog.examples()
    assert message in str(caught.value)
    assert "examples/a/bad.py" in str(caught.value)


def test_flags_of_the_header(book):
    book.example("a/usual")
    book.example("a/beside", alone=False)
    book.example("a/sweep", long=True)
    found = {example.name: (example.alone, example.long) for example in catalog.examples()}
    assert found == {"a/beside": (False, False), "a/sweep": (True, True), "a/usual": (True, False)}
    # What is not said: it measures time, and takes no more of it than others.
    book.file(
        "a/bare.py",
        "# ---\n# jupyter:\n#   cudatut: {title: {en: x, zh: y}, requires: sm_75}\n# ---\n# %% a\n1\n",
    )
    bare = catalog.get("a/bare")
    assert (bare.alone, bare.long) == (True, False)


def test_sources_are_followed_through_strings_includes_and_imports(book):
    book.file("a/add.cu", '#include "common.cuh"\n#include <cstdio>\n#include "b/shared.cuh"\n')
    book.file("a/common.cuh", '  #  include "deeper.cuh"\n')
    book.file("a/deeper.cuh", '#include "common.cuh"\n')  # a circle
    book.file("b/shared.cuh", "")
    book.file("a/inline.cuh", "")
    book.file("a/ladder.py", 'import numpy\nKERNEL = "b/rung.cu"\n')
    book.file("b/rung.cu", "")
    book.example("b/other")
    book.file("a/unrelated.cu", "")
    book.example(
        "a/add",
        "# %% setup\n"
        "import os, ladder as l\n"
        'k = Kernel("a/add.cu", "add")\n'
        "inline = Kernel('''\n"
        '#include "inline.cuh"\n'
        "''', 'x')\n"
        'ct.profile("b/other", "add", [])\n'
        'open("missing.cu"); "none/such"\n',
    )
    assert catalog.get("a/add").sources() == [
        "a/add.cu",
        "a/add.py",
        "a/common.cuh",
        "a/deeper.cuh",
        "a/inline.cuh",
        "a/ladder.py",
        "b/other.py",
        "b/rung.cu",
        "b/shared.cuh",
    ]
    included = [path.name for path in catalog.with_includes(book.root / "a/add.cu")]
    assert included == ["add.cu", "common.cuh", "deeper.cuh", "shared.cuh"]


def test_sources_stay_inside_the_examples(book):
    outside = book.root.parent / "outside.cuh"
    outside.write_text("")
    book.example("a/add", f'# %% a\nx = "../{outside.name}"\n')
    assert catalog.get("a/add").sources() == ["a/add.py"]


@pytest.mark.parametrize(
    "name", ["a/add", "examples/a/add.py", "a/add.ipynb", "./examples/a/add.py"]
)
def test_get(book, name):
    book.example("a/add")
    assert catalog.get(name).name == "a/add"


# --- names and places --------------------------------------------------------------------------------------------

NAMES = {
    "start/add.py": "start/add",
    "start/add_claims.py": "start/add_claims",
    "llm/softmax/chapter.py": "llm/softmax",
    "llm/softmax/claims.py": "llm/softmax_claims",
    "llm/softmax/rows_of_two.py": "llm/softmax_rows_of_two",
    "llm/engine/model/chapter.py": "llm/engine/model/chapter",  # of a package, not of a chapter
    "tools.py": "tools",
}


@pytest.mark.parametrize(("file", "name"), NAMES.items())
def test_a_name_and_its_place_lead_to_each_other(book, file, name):
    path = book.file(file, "")
    assert catalog.name_in(file) == catalog.name_of(path) == name
    assert catalog.path_of(name) == path


def test_where_an_example_would_lie(book):
    assert catalog.path_of("llm/softmax") == book.root / "llm/softmax/chapter.py"


@pytest.mark.parametrize("flat", [True, False])
def test_the_longest_folder_that_fits_is_an_examples(book, flat):
    """`a/x_y_z` may be x_y_z.py, z.py of the chapter x_y, or y_z.py of the chapter x: where only some are there, one is it."""
    book.file("a/x/y_z.py", "")
    assert catalog.path_of("a/x_y_z") == book.root / "a/x/y_z.py"
    book.file("a/x_y/z.py", "")
    assert catalog.path_of("a/x_y_z") == book.root / "a/x_y/z.py"
    if flat:
        book.file("a/x_y_z.py", "")
    assert catalog.path_of("a/x_y_z").relative_to(book.root).as_posix() == (
        "a/x_y_z.py" if flat else "a/x_y/z.py"
    )


@pytest.mark.parametrize(
    ("one", "two", "name"),
    [
        ("a/x", "a/x/chapter", "a/x"),
        ("a/x/claims", "a/x_claims", "a/x_claims"),
        ("a/x/y_z", "a/x_y/z", "a/x_y_z"),
    ],
)
def test_two_of_one_name_are_refused_with_both_places(book, one, two, name):
    book.example(one)
    book.file(f"{two}.py", "")  # a module, too, is run by its name
    with pytest.raises(CudatutError) as caught:
        catalog.examples()
    first, second = sorted([Path(f"examples/{one}.py"), Path(f"examples/{two}.py")])
    said = f"{first.as_posix()} and {second.as_posix()} are both called {name}: "
    assert str(caught.value) == f"{said}give one of them another name"


def test_no_two_files_of_the_book_have_one_name():
    assert len(catalog.examples(drafts=True)) > 100


@pytest.fixture
def chapter(book):
    """A chapter in a folder of its own, which it was not always in."""
    book.example("a/add/chapter")
    book.example("a/add/claims")
    book.file("a/add/exercises.py", "# %% stub-1\n")
    for kernel in ("add", "add_wide", "other"):
        book.file(f"a/add/{kernel}.cu", "")
    moved = {"add.py": "chapter.py", "add_claims.py": "claims.py", "add.cu": "add.cu"}
    lines = [f"a/{old}: a/add/{new}\n" for old, new in moved.items()]
    book.file("moved.yml", "".join(lines) + "a/sums_claims.py: a/add/claims.py\n")
    return book


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("a/add", "a/add"),
        ("a/add/chapter.py", "a/add"),
        ("./examples/a/add/chapter.py", "a/add"),
        ("examples\\a\\add\\chapter.py", "a/add"),
        ("a/add/add.cu", "a/add"),
        ("recordings/nvidia-h200/a/add.ipynb", "a/add"),
        ("a/add_claims", "a/add_claims"),
        ("examples/a/add/claims.py", "a/add_claims"),
        # As it was before it moved.
        ("examples/a/add.py", "a/add"),
        ("a/add.cu", "a/add"),
        ("a/add.ipynb", "a/add"),
        ("a/add_claims.py", "a/add_claims"),
        ("a/sums_claims.py", "a/add_claims"),
    ],
)
def test_what_may_be_typed_for_an_example_in_a_folder(chapter, typed, name):
    assert catalog.get(typed).name == name


@pytest.mark.parametrize("typed", ["a/add/other.cu", "a/add/gone.py", "a/add/chapter", "a/chapter"])
def test_what_is_no_examples_place(chapter, typed):
    if typed == "a/add/chapter":  # the path without its ending is as good
        assert catalog.get(typed).name == "a/add"
        return
    with pytest.raises(catalog.UnknownExampleError):
        catalog.get(typed)


def test_a_kernel_is_called_as_its_example(chapter):
    assert catalog.plain("a/add/add_wide.cu") == "a/add_wide"


def test_the_exercises_of_a_folder_are_no_example(chapter):
    assert [example.name for example in catalog.examples()] == ["a/add", "a/add_claims"]
    for typed in ("a/add_exercises", "a/add/exercises.py", "a/add/exercises.ipynb"):
        with pytest.raises(catalog.UnknownExampleError, match="exercise a/add` lists them"):
            catalog.get(typed)


def test_the_sources_of_an_example_in_a_folder(book):
    book.example(
        "a/add/chapter",
        "# %% setup\nfrom cudatut.book.a.tools import (\n    first,  # of two\n    second,\n)\n"
        "from cudatut.book.a import ladder\nimport beside\n"
        'k = Kernel("a/add/add.cu", "add")\nct.profile("b/other", "add", [])\n',
    )
    for name in (
        "a/tools/first.py",
        "a/tools/second.py",
        "a/tools/__init__.py",
        "a/ladder.py",
        "a/add/beside.py",
    ):
        book.file(name, "")
    book.file("a/add/add.cu", '#include "beside.cuh"\n#include "a/shared.cuh"\n')
    book.file("a/add/beside.cuh", "")
    book.file("a/shared.cuh", "")
    book.example("b/other/chapter")
    assert catalog.get("a/add").sources() == [
        *("a/add/add.cu", "a/add/beside.cuh", "a/add/beside.py", "a/add/chapter.py"),
        *("a/ladder.py", "a/shared.cuh", "a/tools/first.py"),
        *("a/tools/second.py", "b/other/chapter.py"),
    ]


@pytest.mark.parametrize("text", ["- a\n", "a: 1\n", "a: [b]\n", "1: b\n"])
def test_what_is_no_list_of_moves_is_refused(book, text):
    book.file("moved.yml", text)
    with pytest.raises(CudatutError, match="moved.yml: each line must be 'old place: new place'"):
        catalog.get("a/add")


def test_a_file_with_dots_in_its_name_is_left_out_by_all_of_it():
    for pattern, meant in (("llm/softmax/two.parts", True), ("llm/softmax/two", False)):
        assert catalog.matches("llm/softmax/two.parts.cu", [pattern]) is meant
    assert catalog.name_in("start/two.parts.py") == "start/two.parts"


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("a/add*", []),
        ("a/add", ["a/add_claims"]),
        ("a/add_claims", ["a/add"]),
        ("a/ad", ["a/add", "a/add_claims"]),
    ],
)
def test_drafts_in_a_folder(chapter, pattern, left):
    chapter.file("drafts.txt", f"{pattern}\n")
    assert [example.name for example in catalog.examples()] == left
    assert catalog.matches("a/add/claims.py", [pattern]) == ("a/add_claims" not in left)


@pytest.mark.parametrize(
    "name", ["first_kernel", "start/frist_kernel", "strat/first_kernel", "first_kernels"]
)
def test_unknown_name_offers_close_ones(book, name):
    book.example("start/first_kernel")
    book.example("start/hello")
    with pytest.raises(catalog.UnknownExampleError) as caught:
        catalog.get(name)
    assert "Did you mean start/first_kernel?" in str(caught.value)
    assert "start/hello" not in str(caught.value)


def test_unknown_name_far_from_all_offers_the_list(book):
    book.example("start/hello")
    with pytest.raises(
        catalog.UnknownExampleError, match=r"no example 'zzz'\. `python -m cudatut list`"
    ):
        catalog.get("zzz")


@pytest.mark.parametrize("name", ["", "/", "../secret", "start", "a/ladder"])
def test_what_is_no_name_is_unknown(book, name):
    book.example("start/hello")
    book.file("a/ladder.py", "x = 1\n")
    (book.root.parent / "secret.py").write_text(
        (book.root / "start/hello.py").read_text("utf-8"), "utf-8"
    )
    with pytest.raises(catalog.UnknownExampleError):
        catalog.get(name)


def test_no_folder_of_examples(book):
    book.root.rmdir()
    with pytest.raises(CudatutError, match="no folder of examples"):
        catalog.examples()


def test_listing_imports_nothing_heavy(book):
    book.example("a/add")
    book.recorded("a/add")
    code = (
        "import sys; from cudatut.cli import main; main(['list']); "
        "print([m for m in ('numpy', 'jupytext', 'nbformat', 'nbclient', 'IPython', 'rich', 'pycuda') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "fresh" in done.stdout


def test_examples_in_progress_wait_outside(book):
    for name in ("a/done", "b/draft", "b/draft_solutions"):
        book.example(name)
    book.file("drafts.txt", "# in progress\nb/draft*  # both\n\n")
    assert [example.name for example in catalog.examples()] == ["a/done"]
    assert [e.name for e in catalog.examples(drafts=True)] == [
        "a/done",
        "b/draft",
        "b/draft_solutions",
    ]
    assert catalog.get("b/draft").name == "b/draft"


@pytest.mark.parametrize("blank", range(6))
def test_blank_lines_between_cells_are_those_of_jupytext(blank):
    """And at the end, where fewer are needed."""
    jupytext = pytest.importorskip("jupytext")
    gap = "\n" * (blank + 1)
    text = f"# %% [markdown]\n# Prose.{gap}# %% one\nx = 1{gap}# %% two\n\ny = 2{gap}"
    theirs = [cell.source for cell in jupytext.reads(text, "py:percent").cells]
    assert [source for _, _, source in catalog.cells_of(text)] == theirs


def test_the_header_of_an_example_in_progress_is_nobody_elses_matter(book):
    book.example("a/one")
    book.file("a/two.py", "# %% check\n1\n")
    with pytest.raises(catalog.BadHeaderError):
        catalog.examples()
    book.file("drafts.txt", "a/two\n")
    assert [example.name for example in catalog.examples()] == ["a/one"]
    with pytest.raises(catalog.UnknownExampleError, match=r"Did you mean a/one\?"):
        catalog.get("a/onne")
    for meant in (lambda: catalog.get("a/two"), lambda: catalog.examples(drafts=True)):
        with pytest.raises(catalog.BadHeaderError):
            meant()


def test_the_files_of_a_chapter(book):
    for name in ("errors", "errors_more", "errors_more_solutions", "errors_solutions", "error"):
        book.example(f"a/{name}")
    book.file("a/errors.cu", "")
    book.file("a/errors_exercises.ipynb", "{}")
    names = ["a/errors", "a/errors_more", "a/error"]
    found = {name: [p.name for p in catalog.ChapterFiles(name).code(names)] for name in names}
    assert found == {
        "a/errors": ["errors.cu", "errors.py", "errors_solutions.py"],
        "a/errors_more": ["errors_more.py", "errors_more_solutions.py"],
        "a/error": ["error.py"],
    }
    files = catalog.ChapterFiles("a/errors")
    assert files.script(catalog.SOLUTIONS) == book.root / "a/errors_solutions.py"
    assert (
        files.exercises_notebook() == book.root / "a/errors/exercises.ipynb"
    )  # of no exercises.py
    assert all(
        catalog.matches(f"a/{name}.py", list(files.drafts)) is mine
        for name, mine in (("errors", True), ("errors_solutions", True), ("error", False))
    )
    root = book.root.parent / "docs"
    assert files.page("zh") == root / "zh/a/errors.md"
    assert (files.figures, files.labels) == (
        root / "figures/a/errors.py",
        root / "labels/a_errors.yml",
    )


def test_the_files_of_a_chapter_in_its_folder(book):
    """All that lies in its folder is the chapter's, and what a flat part would have beside it; what is not there yet
    belongs into the folder.
    """
    for name in ("errors/chapter", "errors/claims", "errors_more/chapter", "ladder/ladder"):
        book.example(f"a/{name}")
    for name in (
        "errors/step.cu",
        "errors/deep/step.cuh",
        "errors_one.cu",
        "errors/exercises.ipynb",
    ):
        book.file(f"a/{name}", "")
    names = ["a/errors", "a/errors_more", "a/warps"]
    found = {
        name: [catalog.relative(p, book.root / "a") for p in catalog.ChapterFiles(name).code(names)]
        for name in names
    }
    assert found == {
        "a/errors": [
            *("errors/chapter.py", "errors/claims.py", "errors/deep/step.cuh", "errors/step.cu"),
            "errors_one.cu",
        ],
        "a/errors_more": ["errors_more/chapter.py"],
        "a/warps": [],
    }
    files, folder = catalog.ChapterFiles("a/errors"), book.root / "a/errors"
    assert [files.script(ending) for ending in ("", "_claims", catalog.EXERCISES)] == [
        folder / file for file in ("chapter.py", "claims.py", "exercises.py")
    ]
    assert files.kernel == folder / "errors.cu"
    assert files.exercises_notebook() == folder / "exercises.ipynb"
    assert all(
        catalog.matches(f"a/{file}", list(files.drafts)) is mine
        for file, mine in (
            ("errors/chapter.py", True),
            ("errors/exercises.py", True),
            ("errors/step.cu", True),
            ("error/chapter.py", False),
        )
    )


def test_what_a_header_leaves_out(book):
    book.file("a/bare.py", "# ---\n# jupyter:\n#   cudatut: {title: {en: x, zh: y}, requires: sm_75}\n# ---\n# %% a\n1\n")  # fmt: skip
    bare = catalog.get("a/bare")
    assert (bare.timeout_s, bare.extra, bare.sizes) == (120.0, "", {})
    assert '"cudatut[gpu] @ git+https://' in bare.first_cell()
    book.file("a/llm.py", "# ---\n# jupyter:\n#   cudatut: {title: {en: x, zh: y}, requires: sm_75, extra: llm}\n# ---\n# %% a\n1\n")  # fmt: skip
    assert '"cudatut[gpu,llm] @ git+https://' in catalog.get("a/llm").first_cell()
    assert catalog.get("a/llm").first_cell().endswith('cudatut.notebook.prepare("a/llm")')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: {en: x, zh: ' '}, requires: sm_75", "must have 'en' and 'zh'"),
        ("title: {en: x, zh: 3}, requires: sm_75", "must have 'en' and 'zh'"),
        ("title: x, requires: sm_75", "must have 'en' and 'zh'"),
        ("title: {en: x, zh: y}, requires: sm_75, timeout_s: true", "timeout_s is True; give seconds"),
        ("title: {en: x, zh: y}, requires: sm_75, timeout_s: -1", "timeout_s is -1; give seconds"),
        ("title: {en: x, zh: y}, requires: sm_75, extra: A", "extra is 'A'; name an extra"),
        ("title: {en: x, zh: y}", "requires is None; write it like sm_75 or sm_90a"),
    ],
)  # fmt: skip
def test_values_of_a_header_that_do_not_fit(book, text, message):
    book.file("a/bad.py", f"# ---\n# jupyter:\n#   cudatut: {{{text}}}\n# ---\n# %% a\n")
    with pytest.raises(catalog.BadHeaderError) as caught:
        catalog.get("a/bad")
    assert str(caught.value).startswith("examples/a/bad.py: the header's ") and message in str(caught.value)  # fmt: skip


def test_a_chapter_by_its_parts(book):
    files = catalog.ChapterFiles("a/errors")
    assert (files.part, files.stem) == ("a", "errors")
    assert files.script() == book.root / "a/errors/chapter.py"
    assert files.script(catalog.SOLUTIONS) == book.root / "a/errors/solutions.py"
    assert files.kernel == book.root / "a/errors/errors.cu"
    assert files.exercises_notebook("zh") == book.root / "a/errors/exercises.zh.ipynb"
    assert files.overlay == book.root / "a/errors/zh.yml"
    assert files.drafts == ("a/errors", "a/errors_*")
    assert files.owns("a/errors_more", []) and not files.owns("a/errors_more", ["a/errors_more"])
    assert files.owns("a/errors", ["a/error"]) and not files.owns("a/errorsmore", [])


@pytest.mark.parametrize(
    ("typed", "bare"),
    [
        ("./examples/a/add.py", "a/add"),
        ("examples\\a\\add.cu", "a/add"),
        ("recordings/nvidia-h200/a/add.ipynb", "a/add"),
        ("a/add/", "a/add"),
        ("a/recordings/x/add", "a/recordings/x/add"),
        ("a/add.py.txt", "a/add.py.txt"),
    ],
)
def test_a_name_without_what_names_a_file_of_it(typed, bare):
    assert catalog._bare(typed) == bare


def test_close_names_are_offered_once_each():
    known = ["a/errors", "b/errors", "b/other"]
    assert catalog.did_you_mean("errors", known) == " Did you mean a/errors or b/errors?"
    assert catalog.did_you_mean("a/errors_", known) == " Did you mean a/errors or b/errors?"
    assert catalog.did_you_mean("qqq", known) == ""
    # As a whole, where a part is wrong and the rest is not close by itself.
    assert (
        catalog.did_you_mean("reduction_x/ab", ["reduction_y/ac"])
        == " Did you mean reduction_y/ac?"
    )


def test_prose_loses_its_signs_and_is_numbered():
    text = "# %% [markdown] about\n# One\n#two\n#  three\n# %% a\n# code\n# %% [markdown]\n# Last\n"
    assert list(catalog.cells_of(text)) == [
        ("md-1", "markdown", "One\ntwo\n three"),
        ("a", "code", "# code"),
        ("md-2", "markdown", "Last"),
    ]
    assert list(catalog.cells_of("x = 1\n")) == []


def test_which_modules_are_imported(book):
    text = (
        "import os, one.two as t\nfrom three import (four,  # a note\n    five as six)\n"
        "  from seven import eight\nfrom cudatut.book.a.b import c\nfrom . import nine\n"
    )
    found = list(catalog.imported(text, book.root / "x"))
    for name in ("x/os", "x/one/two", "x/three", "x/three/four", "x/three/five", "x/seven", "x/seven/eight", "a/b", "a/b/c"):  # fmt: skip
        assert book.root / f"{name}.py" in found, name
    at_the_margin = list(catalog.imported(text, book.root / "x", margin=True))
    assert book.root / "x/seven.py" not in at_the_margin
    assert book.root / "x/three/five.py" in at_the_margin


def test_a_text_that_is_not_utf_8_is_named(tmp_path):
    (tmp_path / "x.py").write_bytes(b"\xff")
    with pytest.raises(CudatutError, match=r"x\.py is not UTF-8 text: .*0xff"):
        catalog.read_text(tmp_path / "x.py")
    (tmp_path / "x.py").write_bytes(b"a\r\nb\r\n")
    assert catalog.read_text(tmp_path / "x.py") == "a\nb\n"


def test_the_script_among_files():
    files = ["a/add.cu", "a/add/claims.py", "a/add/chapter.py", "a/add/chapter.cu"]
    assert catalog.script_in("a/add", files) == "a/add/chapter.py"
    assert catalog.script_in("a/add_claims", files) == "a/add/claims.py"
    assert catalog.script_in("a/else", files) is None
