"""Sources that an example cannot have run without have to be named; what it may have used is told by the run alone."""

import pytest

from cudatut import made_of


@pytest.fixture
def part(book):
    book.file("a/add.py", "import os\nfrom ladder import LADDER\n\ndef f():\n    import lazy\n")
    book.file("a/ladder.py", "import base, sys\nif x:\n    import perhaps\n")
    for name in ("base", "lazy", "perhaps", "shared"):
        book.file(f"a/{name}.py", "")
    book.file("a/add.cu", '#include "add.cuh"\n#include <cuda.h>\n#include "b/far.cuh"\n')
    book.file("a/add.cuh", '#include "deep.cuh"\n')
    book.file("a/deep.cuh", "")
    book.file("b/far.cuh", "")
    return book


ALL = ["add.cu", "add.cuh", "add.py", "base.py", "deep.cuh", "ladder.py"]


def lacking(named, without=(), **metadata):
    sources = [f"a/{name}" for name in ALL] + ["b/far.cuh"]
    sources = dict.fromkeys(name for name in sources if name not in without)
    return list(made_of.problems("a/add.py", named, {"sources": sources} | metadata))


def test_all_are_there(part):
    assert lacking({"a/add.cu"}) == []


@pytest.mark.parametrize(
    "gone", ["a/ladder.py", "a/base.py", "a/add.cu", "a/deep.cuh", "b/far.cuh"]
)
def test_one_was_left_out(part, gone):
    (problem,) = lacking({"a/add.cu"}, without=[gone])
    assert problem == f"its sources lack {gone}, without which it cannot have run"


@pytest.mark.parametrize(
    "line",
    [
        "from cudatut.book.a.tools import LENGTH",
        "from cudatut.book.a import (\n    ladder,  # its rungs\n    tools,\n)",
        "import cudatut.book.a.tools as tools",
    ],
)
def test_a_module_of_the_book_by_its_place(book, line):
    book.file("a/tools.py", "import beside_it\n")
    book.file("a/ladder.py", "")
    book.file("a/beside_it.py", "")
    book.file("a/add/chapter.py", f"{line}\n\ndef f():\n    from cudatut.book.a import lazy\n")
    book.file("a/lazy.py", "")
    sources = dict.fromkeys(["a/add/chapter.py", "a/ladder.py"])
    (problem,) = made_of.problems("a/add/chapter.py", (), {"sources": sources})
    assert problem == (
        "its sources lack a/beside_it.py, a/tools.py, without which it cannot have run"
    )


def test_of_what_is_named_only_files_count(part):
    assert lacking({"a/none.cu", "a/shared.py"}) == [
        "its sources lack a/shared.py, without which it cannot have run"
    ]


def test_headers_of_what_was_compiled(part):
    """Of an older recording all kernel files count; a newer one says which were compiled, and may have read others."""
    assert lacking((), without=["a/deep.cuh"]) != []
    assert lacking((), without=["a/deep.cuh"], kernels=[]) == []
    assert lacking((), without=["a/deep.cuh"], kernels=[{"text": "0"}, {"file": "b/far.cuh"}]) == []
    assert lacking((), without=["a/add.cuh"], kernels=[{"file": "a/add.cu"}]) != []


def test_a_source_that_is_gone_is_asked_elsewhere(part):
    (part.root / "a/add.cuh").unlink()
    assert lacking({"a/add.cu"}) == []
