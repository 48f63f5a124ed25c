"""Which file is which after a move, and what a source means apart from where things lie; trees without git."""

import pytest

from cudatut.fingerprint import meaning
from cudatut.restamp import moves


class Files(dict):
    """A tree of examples: texts by name."""

    def __init__(self, **texts: str):
        super().__init__({name: text.encode() for name, text in texts.items()})

    def sha256(self, name):
        return meaning.text_hash(self[name]) if name in self else None

    def meaning(self, name):
        return meaning.meaning_hash(name, self[name]) if name in self else None


KERNEL = "__global__ void k() {}\n"


@pytest.mark.parametrize(
    ("new", "target"),
    [
        ({"b/other.cu": KERNEL}, "b/other.cu"),
        ({"b/other.cu": KERNEL, "b/k.cu": "int x;\n"}, "b/other.cu"),
        # Of several with the text, the one with the name.
        ({"b/k.cu": KERNEL, "b/other.cu": KERNEL}, "b/k.cu"),
        ({"b/k.cu": KERNEL, "c/k.cu": KERNEL}, None),
        ({"b/one.cu": KERNEL, "c/two.cu": KERNEL}, None),
        # Of several with the text none has the name, and one elsewhere has.
        ({"b/one.cu": KERNEL, "c/two.cu": KERNEL, "d/k.cu": "int x;\n"}, "d/k.cu"),
        # The meaning, of files of its kind.
        ({"b/other.cu": f"// One.\n{KERNEL}"}, "b/other.cu"),
        ({"b/other.cu": f"// One.\n{KERNEL}", "c/k.cu": "int x;\n"}, "b/other.cu"),
        ({"b/other.cu": f"// One.\n{KERNEL}", "b/other.h": f"// Two.\n{KERNEL}"}, "b/other.cu"),
        ({"b/other.cu": f"// One.\n{KERNEL}", "c/third.cu": f"// Two.\n{KERNEL}"}, None),
        # Or else the name, if it is the only one.
        ({"b/deep/k.cu": "int x;\n"}, "b/deep/k.cu"),
        ({"b/k.cu": "int x;\n", "c/k.cu": "int y;\n"}, None),
        ({"b/kk.cu": "int x;\n", "b/k.cuh": "int y;\n"}, None),
    ],
)
def test_where_a_file_is_now(new, target):
    then = Files(**{"a/k.cu": KERNEL, "a/old.cu": KERNEL})
    now = Files(**{"a/old.cu": KERNEL, **new})
    assert moves.found(then, now, ["a/k.cu"]) == ({"a/k.cu": target} if target else {})


def test_what_the_list_gives_to_one_file_no_other_gets():
    then = Files(**{"a/k.cu": KERNEL, "a/l.cu": KERNEL})
    now = Files(**{"b/k.cu": KERNEL, "b/l.cu": KERNEL, "moved.yml": "a/k.cu: b/l.cu\n"})
    assert moves.found(then, now, ["a/l.cu", "a/k.cu"]) == {"a/k.cu": "b/l.cu", "a/l.cu": "b/k.cu"}
    assert moves.found(then, now, []) == {}


# --- what a source names -----------------------------------------------------------------------------

# Each name lies beside a/main, and at the top or in another part.
NAMED = [
    *("a/x.py", "x.py", "a/b/x.py", "b/x.py", "a/x.cuh", "x.cuh", "b/x.cuh", "a/b/x.cuh"),
    *("a/x.txt", "x.txt", "b/x.txt", "a/b/x.txt", "b/only.py", "b/example.py", "b/in/chapter.py"),
]


def placed(name, text, moved=None, files=NAMED):
    tree = Files(**dict.fromkeys(files, "x = 1\n"), **{name: text})
    return moves.placed(name, tree, moved or {})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # Beside the source first, then from the top.
        ("import x\n", {"a/x.py"}),
        ("import b.x\n", {"a/b/x.py"}),
        ("from b import x\n", {"a/b/x.py"}),
        ("from b.x import f\n", {"a/b/x.py"}),
        ("from b.only import f\n", {"b/only.py"}),
        ("from cudatut.book.b import only\n", {"b/only.py"}),
        ("import cudatut.examples.b.only as o\n", {"b/only.py"}),
        ("from . import x\n", {"a/x.py"}),
        ("import numpy\n", set()),
        # The whole paths that the package takes are from the top.
        ('x = ct.shared("b/x")\n', {"b/x.py"}),
        ('x = ct.shared(name)\n', set()),
        ('open("b/x.txt")\n', {"b/x.txt"}),
        ('open("./b/x.txt")\n', {"b/x.txt"}),
        ('open("x.txt")\n', set()),
        ('ct.profile("b/example")\n', {"b/example.py"}),
        ('f(b"b/x.txt", 3)\n', set()),
        # A kernel, and a program, in a string.
        ('K = """\n#include "b/x.cuh"\n"""\n', {"b/x.cuh"}),
        ('K = """\n#include "./b/x.cuh"\n"""\n', {"b/x.cuh"}),
        ('P = """\nopen(\'b/x.txt\')\n"""\n', {"b/x.txt"}),
        ('P = """\nopen(\'b/x.txt")\n"""\n', set()),
    ],
)  # fmt: skip
def test_the_files_that_python_names(text, names):
    assert placed("a/main.py", text).names == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('#include "x.cuh"\n', {"a/x.cuh"}),
        ('  # include "b/x.cuh"\n', {"a/b/x.cuh"}),
        ("#include <x.cuh>\n", set()),
        ('#include "none.cuh"\n', set()),
        ('// "x.cuh"\n', set()),
    ],
)
def test_the_files_that_a_kernel_includes(text, names):
    assert placed("a/main.cu", text).names == names


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ("import x\n", "from c import y as x\n", {"a/x.py": "c/y.py"}),
        ("import x\nx.f(x)\n", "from c import y\ny.f(y)\n", {"a/x.py": "c/y.py"}),
        ("from x import f, g\n", "from c.y import f, g\n", {"a/x.py": "c/y.py"}),
        ("from x import f\n", "from cudatut.book.c.y import f\n", {"a/x.py": "c/y.py"}),
        ("import os, x\n", "import os\nimport c.y as x\n", {"a/x.py": "c/y.py"}),
        ('x = ct.shared("b/only")\n', "from c import y as x\n", {"b/only.py": "c/y.py"}),
        ('f("b/x.txt")\n', 'f("c/y.txt")\n', {"b/x.txt": "c/y.txt"}),
        ('f("b/example")\n', 'f("c/y")\n', {"b/example.py": "c/y.py"}),
        ('f("""\ng("b/x.txt")""")\n', 'f("""\ng("c/y.txt")""")\n', {"b/x.txt": "c/y.txt"}),
        ('f("""\n#include "x.cuh"\n""")\n', 'f("""\n#include "c/y.cuh"\n""")\n', {"x.cuh": "c/y.cuh"}),
        ("from b import only, f\n", "from c import y as only\nfrom b import f\n", {"b/only.py": "c/y.py"}),
        # A formatter orders imports, by names that a move changes.
        ("import x\nfrom b import only\n", "from b import only\nfrom c import y as x\n", {"a/x.py": "c/y.py"}),
    ],
)  # fmt: skip
def test_what_follows_a_move_means_the_same(before, after, moved):
    (target,) = moved.values()
    was = placed("a/main.py", before, moved)
    now = placed("a/main.py", after, files=[*NAMED, target])
    assert was.meaning == now.meaning is not None and was.names == now.names
    assert placed("a/main.py", before).meaning != was.meaning


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Another file, another name of it, another attribute of it.
        ("import x\n", "import b.only as x\n"),
        ("from x import f\n", "from x import g\n"),
        ("from x import f\n", "from x import f as g\n"),
        ("import numpy as x\n", "import x\n"),
        ("from numpy import f, g\n", "from numpy import f\n"),
        ("from .none import f\n", "from ..none import f\n"),
        ('f("b/x.txt")\n', 'f("b/none.txt")\n'),
        ("x = 1\n", "y = 1\n"),
        # A name that means something else, too: what it is called counts.
        ("import x\nx = 1\n", "import x as y\ny = 1\n"),
        ("import x\ndef f(x): x\n", "import x as y\ndef f(y): y\n"),
        ("import x\ndef x(): x\n", "import x as y\ndef y(): y\n"),
        ("import x\nimport numpy as x\n", "import x as y\nimport numpy as y\n"),
        ("import x\nimport b.only as x\n", "import x as y\nimport b.only as y\n"),
        ("import x as h\nf = lambda h: h\n", "import x as g\nf = lambda h: g\n"),
        ("import x as h\ndef h(): pass\nh()\n", "import x as g\ndef h(): pass\ng()\n"),
        ("import x as h\nimport numpy as h\nh.f()\n", "import x as g\nimport numpy as h\ng.f()\n"),
        ("import x as scipy\nimport scipy\nscipy\n", "import x as g\nimport scipy\ng\n"),
        ("x = 1\n", "x = 2\n"),
        # Imports of the book alone change places, and only where their lines follow each other.
        ("import x\n\nimport b.only as o\n", "import b.only as o\n\nimport x\n"),
        ("import x\nf()\nimport b.only as o\n", "import b.only as o\nf()\nimport x\n"),
        ("import numpy\nimport scipy\n", "import scipy\nimport numpy\n"),
    ],
)
def test_what_means_something_else(one, other):
    assert placed("a/main.py", one).meaning != placed("a/main.py", other).meaning


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("import x\nx.f()\n", "import x as y\ny.f()\n"),
        ("import x\nimport b.only as o\n", "import b.only as o\nimport x\n"),
        ("import x\nimport numpy\nimport b.only as o\n", "import b.only as o\nimport numpy\nimport x\n"),
        ("from x import (\n    z,\n)\nimport b.only as o\n", "import b.only as o\nfrom x import z\n"),
        ("f()\nimport x\nimport b.only as o\n", "f()\nimport b.only as o\nimport x\n"),
    ],
)  # fmt: skip
def test_what_means_the_same(one, other):
    assert placed("a/main.py", one).meaning == placed("a/main.py", other).meaning is not None


def test_an_example_is_called_by_its_name_wherever_its_script_lies():
    moved = {"b/example.py": "b/example/chapter.py"}
    text = 'ct.profile("b/example")\n'
    was = placed("a/main.py", text, moved)
    now = placed("a/main.py", text, files=[*NAMED, "b/example/chapter.py"])
    assert was.meaning == now.meaning


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a/m.py", "def f(:\n"),
        ("a/m.py", "import inspect\ninspect.getsource(f)\n"),
        ("a/m.cu", '"'),
    ],
)
def test_of_what_nobody_can_read_only_the_text_tells(name, text):
    assert placed(name, text).meaning is None


def test_data_mean_their_text():
    assert placed("a/m.txt", "words\n").meaning == meaning.text_hash(b"words\n")


def test_a_kernel_whose_header_moved_means_the_same():
    was = placed("a/main.cu", '#include "x.cuh"\n', {"a/x.cuh": "c/y.cuh"})
    now = placed("a/main.cu", '#include "c/y.cuh"\n', files=[*NAMED, "c/y.cuh"])
    assert was == now and was.names == {"c/y.cuh"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("a/main.cu", '#include "x.cuh"\n#define N \\\n  3\n'), ("a/main.py", "# %% one\nx = 1\n")],
)
def test_how_lines_end_changes_nothing(name, text):
    assert placed(name, text.replace("\n", "\r\n")).meaning == placed(name, text).meaning


def test_what_was_found_once_holds_only_for_the_same_answers():
    text = '#include "x.cuh"\n#include "of_one_test.cuh"\n'
    first = placed("a/main.cu", text)
    assert placed("a/main.cu", text) is first
    assert placed("a/main.cu", text, {"a/x.cuh": "c/y.cuh"}) != first
    assert placed("a/main.cu", text, files=["x.cuh"]).names == {"x.cuh"}
    assert placed("b/main.cu", text).names == {"b/x.cuh"}
