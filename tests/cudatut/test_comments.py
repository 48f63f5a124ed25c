"""Comments of Python and CUDA C++, found and put in other words; the code around them stays."""

import pytest

from cudatut import comments

PYTHON = '''"""What the module does,
over two lines.

And a second paragraph."""
import numpy as np  # noqa: F401

# One comment
# of two lines.
x = "# no comment"  # behind code
SOURCE = """
#include <stdio.h>
__global__ void f(int* a) {
  // inside a text
  a[0] = 1;  // a word, "quoted // twice"
}
"""


def f(a):
    """One line."""
    # - an item
    # - another
    return f"{a}  # no comment"  # (a: b)
'''
CUDA = """// Two lines
// of one comment.
//
// A second paragraph.
__global__ void f(const char* s) {
  s = "// no comment";  // behind code
  int a = '"'; /* short */
  // --8<-- [start:region]
  // in a region
  /* several
   * lines */
}
"""


def texts(code, language):
    return [one.text for one in comments.comments(code, language)]


def test_comments_of_python():
    assert texts(PYTHON, "python") == [
        "What the module does, over two lines.\n\nAnd a second paragraph.",
        "One comment of two lines.",
        "behind code",
        "inside a text",
        'a word, "quoted // twice"',
        "One line.",
        "- an item",
        "- another",
        "(a: b)",
    ]


def test_comments_of_cuda():
    assert texts(CUDA, "cuda") == [
        "Two lines of one comment.",
        "A second paragraph.",
        "behind code",
        "short",
        "in a region",
        "several lines",
    ]


@pytest.mark.parametrize(("code", "language"), [(PYTHON, "python"), (CUDA, "cuda")])
def test_other_words_stand_where_the_comments_stood(code, language):
    other = comments.replaced(code, language, lambda text: f"{text} 文")
    assert texts(other, language) == [f"{one} 文" for one in texts(code, language)]
    gone = [comments.replaced(one, language, lambda _: "") for one in (code, other)]
    assert "".join(gone[0].split()) == "".join(gone[1].split()), "the code itself"
    assert comments.replaced(code, language, lambda _: None) == code
    assert comments.replaced(code, language, lambda text: text) == code


def test_a_part_that_does_not_parse():
    part = "        if x:  # first\n            # second,\n            # longer\n        else:\n"
    assert texts(part, "python") == ["first", "second, longer"]
    assert comments.replaced(part, "python", {"second, longer": "第二"}.get) == (
        "        if x:  # first\n            # 第二\n        else:\n"
    )
    part = "    def f(a):\n        '''Says what.'''\n        return a  # it\n"
    assert texts(part, "python") == ["Says what.", "it"]
    assert "'''说明。'''" in comments.replaced(part, "python", {"Says what.": "说明。"}.get)


def test_long_words_are_broken_in_columns():
    words = "这一段中文注释很长" * 8
    code = "  // long\n  int a;\n"
    lines = comments.replaced(code, "cuda", lambda _: words).split("\n")
    assert len(lines) == 4 and all(line.startswith("  // ") for line in lines[:2])
    assert comments.replaced(code, "cuda", lambda _: "一\n二") == "  // 一\n  // 二\n  int a;\n"
    docstring = 'def f():\n    """Long."""\n'
    lines = comments.replaced(docstring, "python", lambda _: words).split("\n")
    assert lines[1].startswith('    """这') and lines[-2].endswith('"""')


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("each thread adds", True),
        ("`sum` over", True),
        ("`sum`", False),
        ("n = 33", False),
        ("mma.sync", False),
        ("每个线程", False),
        ("每个 thread", True),
        ("cuBLAS, CUB", False),
    ],
)
def test_whether_there_is_english(text, english):
    assert comments.has_english(text) == english
