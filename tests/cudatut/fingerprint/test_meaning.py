"""What a source means is hashed apart from how it is written: comments, docstrings and formatting leave the hash, a token
does not."""

import ast
import itertools
import random
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudatut.errors import ToolMissing
from cudatut.fingerprint.meaning import (
    CUDA,
    cuda,
    dump,
    meaning_hash,
    python,
    read_comments,
    text_hash,
)
from cudatut.gpu import nvcc

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(path for path in (ROOT / "examples").rglob("*") if path.is_file())
KERNELS = [path for path in FILES if path.suffix in CUDA]
SCRIPTS = [path for path in FILES if path.suffix == ".py"]
some = settings(max_examples=60, deadline=None, derandomize=True)

HEADER = """# ---
# jupyter:
#   cudatut:
#     title: {en: "Add", zh: "加法"}
#     requires: sm_75
#     sizes: {n: [1000, 10]}
# ---
"""


def same(name: str, one: str, other: str) -> bool:
    hashes = [meaning_hash(name, text.encode()) for text in (one, other)]
    assert None not in hashes
    return hashes[0] == hashes[1]


# --- CUDA C++ ----------------------------------------------------------------------------------------


def test_comments_are_what_the_compiler_takes_for_comments():
    """g++ takes the comments out of every kernel file of the book: the same tokens are left."""
    try:
        gcc = nvcc.find_host_compiler()
    except ToolMissing as error:
        pytest.skip(str(error))
    apart = "\n#pragma next_file\n"
    # g++ leaves out one directive, which it obeys.
    read = {path: path.read_text(encoding="utf-8").replace("#pragma once", "") for path in KERNELS}
    whole = apart.join(text.rstrip() for text in read.values())
    command = [gcc, "-fpreprocessed", "-dD", "-E", "-P", "-xc++", "-"]
    done = subprocess.run(command, input=whole, capture_output=True, text=True, check=True)
    texts = done.stdout.split(apart)
    assert len(texts) == len(KERNELS)
    for (path, text), stripped in zip(read.items(), texts):
        # Those comments that programs read count, and g++ does not know them.
        kept = [one for one in (cuda(text) or "").split("\0") if not one.startswith("//")]
        left = cuda(stripped)
        if "#string-of" not in kept:  # there blanks count, and g++ chooses its own
            assert left == ("\0".join(kept) or None), path


def written_again(tokens: list[str], choose: random.Random) -> str:
    """The same tokens in another writing."""
    between = [" ", "\t", " /* word */", " \\\n", " /**/ "]
    lines = [*between, "\n", "\n\n", ' // a word, and a "quote"\n', " /* two\n * lines\n */"]
    text, directive, tight = "", False, False
    for token in tokens:
        if token in ("#define-function", "#define-object"):
            tight = token == "#define-function"
        elif token == "":
            text, directive = text + "\n", False
        elif token.startswith("//"):
            text += f"\n {token}  \n"
        elif token == "#" and not directive:
            text, directive = text + choose.choice(["\n#", "\n  # "]), True
        elif token == "(" and tight:
            text, tight = text + token, False
        else:
            text += choose.choice(between if directive else lines) + token
    return text


WRITTEN = {path: cuda(path.read_text(encoding="utf-8")) for path in KERNELS}
PLAIN = [path for path, said in WRITTEN.items() if said and "#string-of" not in said]


def test_most_kernel_files_have_a_meaning():
    assert len(PLAIN) > 0.95 * len(KERNELS)


@some
@given(path=st.sampled_from(PLAIN), seed=st.integers(0, 2**32))
def test_another_writing_of_a_kernel_means_the_same(path, seed):
    tokens = WRITTEN[path].split("\0")
    assert cuda(written_again(tokens, random.Random(seed))) == WRITTEN[path]


@some
@given(path=st.sampled_from(PLAIN), seed=st.integers(0, 2**32))
def test_another_token_in_a_kernel_means_something_else(path, seed):
    text, choose = path.read_text(encoding="utf-8"), random.Random(seed)
    tokens = WRITTEN[path].split("\0")
    # One that stands once is where we think it is, and not in a comment.
    once = [
        one
        for one in set(tokens)
        if re.fullmatch(r"\w+|\"[^\"]*\"", one)
        and len(re.findall(rf"(?<!\w){re.escape(one)}(?!\w)", text)) == 1
    ]
    if not once:
        return
    token = choose.choice(sorted(once))
    other = choose.choice(["", "other", "17", f"{token} {token}"])
    changed = re.sub(rf"(?<!\w){re.escape(token)}(?!\w)", lambda _: other, text)
    assert cuda(changed) != WRITTEN[path], f"{token} -> {other}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int a;", "int a ; // b"),
        ("a /* x */ + b", "a+b"),
        ("#define A 1 /* over\ntwo lines */ 2\nx", "#define A 1 2\nx"),
        ("#  define F(x) x", "#define F(x) x // y"),
        ("# /* why */ define /* so */ F(x) x", "#define F(x) x"),
        ("// ends \\\n in two lines\nx", "x"),
        ('s = "// none";', 's = "// none" ; // one'),
        ("x\r\ny\r\n", "x\ny\n"),
        ("// @rung 3 kernel=k", "//   @rung 3   kernel=k\n"),
        ("// a word\n// @instance k<3>\nx", "x"),
        ("a >>= 2", "a  >>= 2"),
    ],
)
def test_cuda_that_means_the_same(one, other):
    assert same("x.cu", one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a + +b", "a++ b"),
        ("a - -b", "a-- b"),
        ("#define F(x) x", "#define F (x) x"),
        ("# /* why */ define F(x) x", "# /* why */ define F (x) x"),
        ("#pragma unroll\nx", "#pragma unroll 2\nx"),
        ("#define A x\ny", "#define A x y"),
        ("#if A\nb", "#if A b"),
        ('s = "a  b"', 's = "a b"'),
        ('s = "/* a */"', 's = "/* b */"'),
        ("c = '\"'; // x", "c = '\"'; /* x */ y"),
        ("// @rung 3 kernel=k block=256", "// @rung 3 kernel=k block=128"),
        ("// requires: sm_80\nx", "// requires: sm_90\nx"),
        ("x = 1'000;", "x = 1'0000;"),
        ("x = 1e-5f;", "x = 1e+5f;"),
        ("x // y \\\nz\n", "x // y\nz\n"),
        ("a b", "ab"),
        ("a.b", "a .5"),
        # Blanks inside an argument stand in the string that a macro makes of it.
        ("#define S(x) #x\nS(a+b)", "#define S(x) #x\nS(a + b)"),
    ],
)
def test_cuda_that_means_something_else(one, other):
    assert not same("x.cu", one, other)


def test_the_tokens_of_a_source_are_those_that_recordings_have_hashed():
    """Other ones, for the same text, would make every recording stale."""
    text = '#include "x.cuh"\n#define N 3\n#define F(a) a\nint n; // one\n// @rung  20 block=256\n'
    assert cuda(text).split("\0") == [
        *("#", "include", '"x.cuh"', ""),
        *("#define-object", "#", "define", "N", "3", ""),
        *("#define-function", "#", "define", "F", "(", "a", ")", "a", ""),
        *("int", "n", ";", "// @rung 20 block=256"),
    ]


def test_where_a_macro_makes_strings_only_blanks_between_tokens_count():
    one = "#define S(x) #x\nS(a + b)\n  int c;"
    assert same("x.cu", one, "#define S(x)   #x // z\nS(a  /* y */ +\n b)\nint c; // d")


@pytest.mark.parametrize(
    "text",
    [
        "int line = __LINE__;",
        "auto here = std::source_location::current();",
        's = "no end',
        "/* no end",
        "a \\ \nb",  # compilers differ on whether this line goes on
        'R"(a\\\nb)"',
    ],
)
def test_cuda_of_which_only_the_text_can_tell(text):
    assert meaning_hash("x.cu", text.encode()) is None


def test_comments_that_programs_read():
    text = '// @rung 3  kernel=k\n// why\n/* @rung 4 */\nx; // requires:  sm_80\ns = "// @rung 5";'
    assert read_comments(text) == ["// @rung 3 kernel=k", "// requires: sm_80"]


# --- Python ------------------------------------------------------------------------------------------

_MARK = re.compile(r"^# %%.*$", re.MULTILINE)


def reformatted(text: str) -> str:
    """A script without comments and docstrings, each statement as Python itself writes it, its cells where they were."""
    parts, ends = [], [mark.start() for mark in _MARK.finditer(text)] + [len(text)]
    head = text[: ends[0]] if len(ends) > 1 else ""
    for start, end in itertools.pairwise(ends):
        mark, _, body = text[start:end].partition("\n")
        silent = body.rstrip().endswith(";")
        markdown = "[markdown]" in mark
        code = "" if markdown else bare(body, cell=True) + ";" * silent
        parts.append(f"{mark}\n\n\n{'# Other words.' if markdown else code}\n")
    return head + "".join(parts) if parts else bare(text, cell=False)


def bare(code: str, cell: bool) -> str:
    tree = ast.parse(code)
    for node in ast.walk(tree):
        documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
        if not isinstance(node, documented) or (cell and node is tree):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Expr(ast.Constant("Other words."))]
    return ast.unparse(ast.fix_missing_locations(tree))


def test_formatting_of_every_script_leaves_its_meaning():
    told = 0
    for path in SCRIPTS:
        text = path.read_text(encoding="utf-8")
        if (meant := meaning_hash(path.name, text.encode())) and "__doc__" not in text:
            told += 1
            assert meaning_hash(path.name, reformatted(text).encode()) == meant, path
    assert told > 0.95 * len(SCRIPTS)


class Mutation(ast.NodeTransformer):
    """One node of a tree is another: the n-th that can be."""

    def __init__(self, n: int):
        self.n, self.done = n, False

    def visit(self, node):
        changed = self.other(node)
        if changed is not None:
            self.n -= 1
            if self.n == -1:
                self.done = True
                return ast.copy_location(changed, node)
        return self.generic_visit(node)

    def other(self, node):
        match node:
            case ast.Constant(value=bool(value)):
                return ast.Constant(not value)
            case ast.Constant(value=int(value) | float(value)):
                return ast.Constant(value + 1 or 2)
            case ast.BinOp(op=ast.Add()):
                return ast.BinOp(node.left, ast.Sub(), node.right)
            case ast.Attribute():
                return ast.Attribute(node.value, f"{node.attr}_", node.ctx)
            case ast.Name():
                return ast.Name(f"{node.id}_", node.ctx)
            case ast.keyword(arg=str()):
                return ast.keyword(f"{node.arg}_", node.value)
            case ast.Return(value=ast.expr()):
                return ast.Return()
            case ast.Compare(ops=[ast.Lt()]):
                return ast.Compare(node.left, [ast.LtE()], node.comparators)
        return None


@some
@given(path=st.sampled_from(SCRIPTS), n=st.integers(0, 400))
def test_another_node_of_a_script_means_something_else(path, n):
    text = path.read_text(encoding="utf-8")
    cells = [m for m in _MARK.finditer(text) if "[markdown]" not in m[0]]
    start = cells[n % len(cells)].end() if cells else 0
    after = _MARK.search(text, start)
    code = text[start : after.start() if after else len(text)]
    mutation = Mutation(n)
    changed = ast.unparse(mutation.visit(ast.parse(code)))
    if mutation.done:
        whole = f"{text[:start]}\n{changed}\n{text[after.start() :] if after else ''}"
        assert python(whole) != python(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1_000", "x=1000  # a number"),
        ("f(a,\n  b)", "f(\n    a, b,\n)"),
        ("def f():\n    'A.'\n    return 1", "def f():\n    return 1"),
        ("'''Module.'''\nx = 1", "x = 1"),
        ("x = 'a'", 'x = "a"'),
        ("x = u'a'", "x = 'a'"),
        ("x = 1; y = 2", "x = 1\ny = 2"),
        ("if (a and b): c", "if a and b:\n    c"),
    ],
)
def test_python_that_means_the_same(one, other):
    assert same("x.py", one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 1.0"),
        ("x = True", "x = 1"),
        ("x = 'a'", "x = b'a'"),
        ("x = 'a b'", "x = 'a  b'"),
        ("x = f'{y=}'", "x = f'{y = }'"),
        ("f(a, b)", "f(b, a)"),
        ("a()\nb()", "b()\na()"),
        ("def f(): return 1", "def f(): return None"),
        ("case = None", "case = ..."),
        # Here somebody may read what stands there.
        ("'''Usage.'''\nprint(__doc__)", "'''Use.'''\nprint(__doc__)"),
        ("def f():\n  'A.'\ninspect.getdoc(f)", "def f():\n  'B.'\ninspect.getdoc(f)"),
    ],
)
def test_python_that_means_something_else(one, other):
    assert not same("x.py", one, other)


@pytest.mark.parametrize(
    "text",
    ["x = (", "%timeit x", "print(inspect.getsource(f))", "sys._getframe().f_lineno", "x\0y"],
)
def test_python_of_which_only_the_text_can_tell(text):
    assert meaning_hash("x.py", text.encode()) is None


def test_the_source_of_the_package_is_not_the_scripts_own():
    assert same(
        "x.py", "print(inspect.getsource(ct.bench))", "print( inspect.getsource(ct.bench) )"
    )


EXAMPLE = f"""{HEADER}
# %% [markdown]
# One idea.

# %% setup
x = 1  # one

# %% show
y = x
y
"""


@pytest.mark.parametrize(
    ("was", "now", "equal"),
    [
        ("One idea.", "Another thought.", True),
        ("# One idea.\n", "# One idea.\n\n# %% [markdown]\n# Two.\n", True),
        ("x = 1  # one", "\n\nx = 1", True),
        ('zh: "加法"', 'zh: "相加"', True),
        ("requires: sm_75\n", "requires: sm_75\n#     timeout_s: 3\n", True),
        ("[1000, 10]", "[1000, 11]", False),
        ("sm_75", "sm_80", False),
        ("# %% show\n", "# %% other\n", False),
        ("# %% show\ny = x\n", "y = x\n# %% show\n", False),
        ("y = x\ny\n", "y = x\ny  # the value\n", True),
        # A notebook shows the value of a cell's last statement, unless a semicolon follows.
        ("y = x\ny\n", "y = x\ny;\n", False),
        ("y = x\ny\n", "y = x\ny;  # quiet\n", False),
        ("y = x\ny\n", "y = x\ny  # not quiet;\n", True),
        ("y = x\ny\n", "y = x;\ny\n", True),
        ("y = x\ny\n", "y = x\n'词'; y\n", False),
    ],
)
def test_an_example_by_cells(was, now, equal):
    assert was in EXAMPLE
    assert same("x.py", EXAMPLE, EXAMPLE.replace(was, now)) is equal


def test_code_before_the_first_cell_has_no_meaning():
    assert meaning_hash("x.py", EXAMPLE.replace("# %% [m", "import os\n# %% [m").encode()) is None


KERNEL = '''
source = """
// Adds one.
__global__ void add(int *x) { x[0] += 1; }
"""
add = ct.Kernel(source, "add")
'''
REWRITTEN = ("// Adds one.\n", "// Adds 1.\n\n")


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        (f"{HEADER}# %% one\n{KERNEL}", True),
        (f"{HEADER}# %% one\n{KERNEL.replace('ct.Kernel', 'SourceModule')}", True),
        ('k = ct.Kernel("// Adds one.\\n__global__ void k() {}", "k")', True),
        # Somebody else sees the string: another file, a print, whoever asks the kernel for its source.
        (KERNEL, False),
        (f"{HEADER}# %% one\n{KERNEL}print(source)\n", False),
        (f"{HEADER}# %% one\n{KERNEL}print(f'{{source}}')\n", False),
        (f"{HEADER}# %% one\n{KERNEL}print(add.source)\n", False),
        (f"{HEADER}# %% one\n{KERNEL.replace('int *x', 'int *x, int = __LINE__')}", False),
        (f"{HEADER}# %% one\n{KERNEL.replace('// Adds', 'x; // Adds')[:-40]}", False),
        ('print("// Adds one.\\n__global__ void k() {}", "k")', False),
    ],
)
def test_a_comment_in_a_kernel_that_is_a_string(text, equal):
    was, now = REWRITTEN
    if was not in text:
        was, now = was.replace("\n", "\\n"), now.replace("\n", "\\n")
    assert was in text
    hashes = [meaning_hash("x.py", one.encode()) for one in (text, text.replace(was, now))]
    assert (hashes[0] == hashes[1] != None) is equal  # noqa: E711


def test_a_token_in_a_kernel_that_is_a_string():
    text = f"{HEADER}# %% one\n{KERNEL}"
    assert not same("x.py", text, text.replace("+= 1", "+= 2"))


# --- any file ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.txt", "data.gguf", "renamed.yml", "x", "x.ipynb"])
def test_of_data_only_the_text_can_tell(name):
    assert meaning_hash(name, b"x = 1") is None


def test_the_end_of_a_line_is_no_part_of_a_text():
    assert text_hash(b"a\r\nb\r\n") == text_hash(b"a\nb\n") != text_hash(b"a\nb")
    assert meaning_hash("x.py", b"x = '''a\r\nb'''") == meaning_hash("x.py", b"x = '''a\nb'''")
    assert meaning_hash("x.cu", "词".encode("gbk")) is None


def test_a_tree_is_dumped_without_what_newer_versions_add():
    function = ast.parse("def f(x): return x").body[0]
    newer = ast.parse("def f(x): return x").body[0]
    newer.type_params = []
    assert dump(function) == dump(newer)
    whole = ast.parse("f'a{b}'", mode="eval").body
    with_empty = ast.JoinedStr([*whole.values, ast.Constant("")])  # as Python 3.12 leaves it
    assert dump(whole) == dump(with_empty) != dump(ast.JoinedStr(whole.values[:1]))
    assert dump(ast.Constant(None)) != dump(ast.Constant("None"))


def test_the_name_of_a_kernels_file_is_no_code():
    """Though it may hold what a comment in CUDA begins with."""
    one, other = (
        meaning_hash("a/x.py", f'import cudatut as ct\nct.Kernel("a//{name}.cu", "f")\n'.encode())
        for name in ("b", "c")
    )
    assert one != other
