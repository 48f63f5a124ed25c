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
        ("the", True),
        ("is in", False),
        ("cuBLAS, CUB", False),
    ],
)
def test_whether_there_is_english(text, english):
    assert comments.has_english(text) == english


def other(code, language, **words):
    """The code with other words for comments by what they begin with."""

    def found(text):
        return next((new for begin, new in words.items() if text.startswith(begin)), None)

    return comments.replaced(code, language, found)


def test_every_comment_has_its_place_in_the_code():
    for code, language in ((PYTHON, "python"), (CUDA, "cuda")):
        for one in comments.comments(code, language):
            whole = code[one.start : one.end]
            assert whole.startswith(one.open.strip()) and whole == whole.strip()
            assert whole.endswith(one.close.strip()) and one.text.split()[-1] in whole


def test_words_are_broken_at_eighty_columns():
    """Wherever the comment begins; one that was wider before may be as wide again."""

    def widest(code, language, words="a " * 99):
        return max(map(len, comments.replaced(code, language, lambda _: words).split("\n")))

    both = "a " * 99, f"bb {'a ' * 99}"  # of which lines are odd or even
    assert max(widest("    int b;  // x\n", "cuda", one) for one in both) == 80
    assert max(widest("/* x */\n", "cuda", one) for one in both) == 80
    assert max(widest("# x\n", "python", one) for one in both) == 80
    assert max(widest(f"// {'x' * 97}\n", "cuda", one) for one in both) == 100
    assert max(widest(f"y; // {'x' * 97}\n", "cuda", one) for one in both) == 103
    # Of a part, the columns behind its margin.
    assert max(widest("    if x:  # y\n", "python", one) for one in both) == 84


def test_a_comment_of_several_lines_keeps_its_form():
    code = "  int a; /* one\n          * two */ int b;\n"
    assert other(code, "cuda", one="x\ny") == "  int a; /* x\n          * y */ int b;\n"
    assert other(code, "cuda", one="x\n\ny").split("\n")[1] == "          *"
    assert other("/* one */\n", "cuda", one="x") == "/* x */\n"
    assert other("//one\n//two\n", "cuda", one="x\ny") == "// x\n// y\n"
    assert other("// one\n", "cuda", one="x\n\ny") == "// x\n//\n// y\n"
    # One that is set in from its sign stays so.
    assert other("//   one\n", "cuda", one="x") == "//   x\n"
    assert other("//   one\n// two\n", "cuda", one="x") == "// x\n"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("// a\n// b\n", ["a b"]),
        ("// a\n\n// b\n", ["a", "b"]),
        ("// a\n// b\n// c\n// d\n", ["a b c d"]),
        ("// a\n  // b\n", ["a", "b"]),  # of another column
        ("x;  // a\ny;  // b\n", ["a", "b"]),  # behind code
        ("x;  // a\n    // b\n", ["a b"]),  # goes on below what stands behind code
        ("// a\n// - b\n// 1. c\n// 2) d\n//   e\n", ["a", "- b", "1. c", "2) d", "e"]),
        ("// a\n// noqa: b\n// c\n", ["a", "c"]),
        ("// a\n// ---\n// c\n", ["a", "c"]),
        ("// a /* b */\n", ["a /* b */"]),
        ("/* a // b */\n", ["a // b"]),
        ('R"(// a)" // b\n', ["b"]),
        ("'\"' // b\n", ["b"]),
        ('"\\"// a" // b\n', ["b"]),
        ("x;\t// a   \n", ["a"]),
        ("// type: x\n// clang-format off\n// @note\n// !\n// NOLINT\n// ruff: x\n// fmt: off\n", []),
        ("/* b */ // a\n/* c */\n", ["b", "a", "c"]),
    ],
)  # fmt: skip
def test_which_lines_are_one_comment(code, found):
    assert texts(code, "cuda") == found


def test_docstrings_keep_their_quotes_and_margins():
    code = 'class A:\n    r"""One\n    two.\n\n    Three.\n    """\n\n    async def f(self):\n        \'x\'\n'
    assert texts(code, "python") == ["One two.\n\nThree.", "x"]
    new = other(code, "python", One="甲\n\n乙", x="丙")
    assert (
        new == 'class A:\n    r"""甲\n\n    乙\n    """\n\n    async def f(self):\n        \'丙\'\n'
    )
    # One line of words needs none for the end.
    assert other(code, "python", One="甲").startswith('class A:\n    r"""甲"""\n')
    kept = 'def f():\n    """One\n    two."""\n'
    assert other(kept, "python", One="a\nb") == 'def f():\n    """a\n    b"""\n'
    # The quotes at both ends are counted.
    firsts = [other('"""x"""\n', "python", x=one).split("\n")[0] for one in ("a " * 99, "bb " + "a " * 99)]  # fmt: skip
    assert max(map(len, firsts)) == 3 + 80 - 6


def test_what_is_no_docstring_is_left_alone():
    assert texts('x = 1\n"""Words."""\n', "python") == []
    assert texts('x = """\nWords of a text,\nover lines.\n"""\n', "python") == []
    assert texts('def f():\n    3\n    """Words."""\n', "python") == []
    assert texts("x = '# no'  # yes\n", "python") == ["yes"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("__device__ int a;  // in CUDA\n", ["in CUDA"]),
        ("import os  # in Python\n", ["in Python"]),
        ("words  # of none\n// of none\n", []),
    ],
)
@pytest.mark.parametrize("prefix", ["", "f"])
def test_comments_of_a_program_inside_a_text(text, found, prefix):
    code = f'é = 1\nSOURCE = {prefix}"""\n{text}"""\nx = 2  # 词 last\n'
    assert texts(code, "python") == [*found, "词 last"]
    new = comments.replaced(code, "python", lambda words: f"<{words}>")
    assert new == code.replace("词 last", "<词 last>").replace(*([found[0], f"<{found[0]}>"] if found else ["", ""]))  # fmt: skip


def test_the_last_comment_of_a_program_ends_before_the_quotes():
    assert texts('x = """\n#include <a>\n// last"""\n', "python") == ["last"]
    assert texts('x = """\nimport a\n# last\n"""\n', "python") == ["last"]


def test_a_part_may_begin_with_a_blank_line():
    assert other("\n    x = 1  # one\n", "python", one="甲") == "\n    x = 1  # 甲\n"


def test_a_function_in_braces_is_a_program():
    assert texts('x = """\nint f() {\n  // in braces\n}\n"""\n', "python") == ["in braces"]


def test_a_text_in_one_line_is_no_program():
    assert texts('x = """#include <a>  // b"""\n', "python") == []
    assert texts("x = ('#define a // b\\n'\n     'c')\n", "python") == []


def test_a_part_with_a_margin_keeps_it():
    part = "    é = 1  # one\n\n    def f():\n        '''Two\n        lines.\n        '''\n"
    assert texts(part, "python") == ["one", "Two lines."]
    new = other(part, "python", one="甲\n乙", Two="丙\n丁")
    assert new == (
        "    é = 1  # 甲\n           # 乙\n\n    def f():\n        '''丙\n        丁\n        '''\n"
    )
    assert other(part, "python", Two="丙").endswith("        '''丙'''\n")


def test_of_what_does_not_parse_the_signs_in_texts_count_for_nothing():
    assert texts('else:\n    x = "# no"\n    y = 1  # yes\n# too\n', "python") == ["yes", "too"]
