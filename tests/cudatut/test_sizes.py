"""The header's `sizes`: the reader's code states one size, a tool sees another."""

import sys

import pytest

from cudatut import catalog
from cudatut.gpu import watched

HEADER = """# ---
# jupyter:
#   cudatut:
#     title: {{en: "Add", zh: "加法"}}
#     requires: sm_75
#     sizes: {sizes}
# ---
"""
CELLS = """# %% program
n = 1_111_111
shape, words = (64, 32), 1 << 25
extents = (640, 320)
lengths = [1, 31, n]
many = 1 << 25
if n > 5:
    many_more = many
# %% again
n = 1_111_111
print(n, extents, many)
"""


def example(book, sizes, cells=CELLS):
    return book.file("a/add.py", HEADER.format(sizes=sizes) + cells)


SIZES = (
    "{n: [1_111_111, 1_111], extents: [[640, 320], [64, 32], [128, 32]], many: [33554432, 1024]}"
)


def test_the_header_gives_them(book):
    example(book, SIZES)
    assert catalog.get("a/add").sizes == {
        "n": (1_111_111, 1_111),
        "extents": ((640, 320), (64, 32), (128, 32)),
        "many": (1 << 25, 1024),
    }
    book.example("a/other")
    assert catalog.get("a/other").sizes == {}


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        ("", "1111111 (640, 320) 33554432"),
        ("memcheck", "1111 (64, 32) 1024"),
        ("ncu", "1111 (128, 32) 1024"),
    ],
)
def test_a_tool_sees_its_own(book, monkeypatch, as_a_script, capsys, tool, says):
    opened = []
    monkeypatch.setattr(watched, "activate", lambda: opened.append(tool))
    monkeypatch.setenv("CUDATUT_TOOL", tool)
    main = sys.modules["__main__"]
    watched.main([str(example(book, SIZES))])
    assert capsys.readouterr().out == says + "\n"
    assert sys.modules["__main__"] is main
    # ncu waits for the file to open the GPU; a sanitizer gives up on it after a while.
    assert opened == (["memcheck"] if tool == "memcheck" else [])


def test_a_file_is_run_as_a_script_of_its_own(book, monkeypatch, as_a_script, capsys, tmp_path):
    monkeypatch.setattr(watched, "activate", lambda: None)
    path = tmp_path / "x.py"  # no example, and no header
    (tmp_path / "beside_x.py").write_text("WHERE = 'beside it'\n")
    path.write_text(
        "import sys, beside_x\nprint(__name__, sys.argv == [__file__], beside_x.WHERE)\nsys.exit(0)\n"
    )
    watched.main([str(path), str(path)])
    assert capsys.readouterr().out == "__main__ True beside it\n" * 2
    path.write_text("raise SystemExit(3)\n")
    with pytest.raises(SystemExit):
        watched.main([str(path)])


def test_an_error_is_shown_at_its_line(book, monkeypatch, as_a_script):
    monkeypatch.setattr(watched, "activate", lambda: None)
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    path = example(book, "{n: [10, 5]}", "# %% a\nn = 10\n\nassert n == 10, n\n")
    with pytest.raises(AssertionError, match="5") as caught:
        watched.main([str(path)])
    assert caught.traceback[-1].lineno + 1 == len(HEADER.splitlines()) + 4


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ("{m: [10, 5]}", "sizes names 'm', but no line at the top level"),
        ("{shape: [10, 5]}", "sizes names 'shape', but no line"),  # not alone on its line
        ("{many_more: [10, 5]}", "sizes names 'many_more', but no line"),  # not at the top level
        ("{lengths: [[1, 2], [1]]}", "sizes names 'lengths', but no line"),  # not constant
        ("{n: [1_000, 10]}", "sizes has 1000 for 'n', but the code says 1111111"),
        ("{n: [1111111.0, 10]}", "for 'n', but the code says 1111111"),
        ("{extents: [640, 64]}", "for 'extents', but the code says (640, 320)"),
        ("{n: 10}", "give two values"),
        ("{n: [1_111_111]}", "give two values"),
        ("[n]", "write it like {n: [1_111_111, 1_111]}"),
    ],
)
def test_a_mistake_names_the_file(book, sizes, says):
    example(book, sizes)
    with pytest.raises(catalog.BadHeaderError) as caught:
        catalog.examples()
    assert says in str(caught.value) and "examples/a/add.py: the header's" in str(caught.value)


def test_two_values_of_one_name_are_refused(book):
    example(book, "{n: [10, 5]}", "# %% a\nn = 10\n# %% b\nn = 20\n")
    with pytest.raises(catalog.BadHeaderError, match="sizes has 10 for 'n', but the code says 20"):
        catalog.examples()


def test_cells_of_a_file(book):
    path = book.file(
        "a/x.py",
        "# ---\n# ---\n# %% [markdown] b\n# Prose.\n# %% a-1\n\nx = 1\r\n\n# %%\n2\n# %% c\n",
    )
    assert catalog.cells(path) == {"a-1": "x = 1", "c": ""}


def test_a_file_of_exercises_is_no_example(book):
    book.example("a/add")
    book.file(
        "a/add_exercises.py",
        "# ---\n# jupyter:\n#   cudatut: {requires: sm_75}\n# ---\n# %% stub-1\n",
    )
    assert [one.name for one in catalog.examples()] == ["a/add"]
    with pytest.raises(catalog.UnknownExampleError, match=r"cudatut exercise a/add` lists them"):
        catalog.get("a/add_exercises")
