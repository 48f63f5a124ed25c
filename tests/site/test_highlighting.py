"""Code in the classes of the site's code blocks, which a build colors once."""

import re
from html import unescape
from types import SimpleNamespace

import pytest
from pygments.lexers import CudaLexer

from cudatut.recording import Cell, Recording
from cudatut.site import highlighting, shared

ONE = '<span class="n">x</span> <span class="o">=</span> <span class="mi">1</span>\n'
CODE = f"<pre><span></span><code>{ONE}</code></pre></div>"


def test_a_block_has_a_line_for_its_name_where_it_has_one():
    assert highlighting.python_block("x = 1") == f'<div class="highlight">{CODE}'
    named = '<div class="highlight"><span class="filename"><b>a.py</b></span>'
    assert highlighting.python_block("x = 1", "<b>a.py</b>") == f"{named}{CODE}"


def test_cells_that_were_colored_together_are_not_colored_again(monkeypatch):
    """Each in its own color; prose is none of them."""
    cells = [Cell(f"c{k}", kind, source, [], True) for k, (kind, source) in enumerate(
        [("code", "x = 1"), ("markdown", "y = 2"), ("code", "z = 3")]
    )]  # fmt: skip
    build = SimpleNamespace(example=lambda name: SimpleNamespace(file=f"{name}.py"))
    monkeypatch.setattr(highlighting, "_cells", {})
    monkeypatch.setattr(highlighting.state, "current", lambda: build)
    monkeypatch.setattr(highlighting.overlaid, "code", lambda source, file: f"{source}  # {file}")
    monkeypatch.setattr(shared, "each", lambda given, make: {one: make(one) for one in given})
    highlighting.color_cells([Recording("a/b", None, {}, cells)])
    assert list(highlighting._cells) == ["x = 1  # a/b.py", "z = 3  # a/b.py"]
    html = highlighting._cells["z = 3  # a/b.py"]
    assert '<span class="n">z</span>' in html and "# a/b.py" in html
    highlighting._cells["x = 1  # a/b.py"] = "ours"
    assert "<code>ours</code>" in highlighting.python_block("x = 1  # a/b.py")


KERNEL = """
#include <stdio.h>

__global__ void twice(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;  // one thread, one element
  if (i < n) x[i] = 2.0f * x[i];
}
"""


def text_of(html):
    return unescape(re.sub(r"<[^>]+>", "", html))


@pytest.mark.parametrize("quotes", ['"""', "'''"])
@pytest.mark.parametrize("prefix", ["", "r", "R"])
def test_cuda_in_a_long_string_has_the_colors_of_cuda(quotes, prefix):
    code = f"x = 1\nmodule = SourceModule({prefix}{quotes}{KERNEL}{quotes})\nprint(x)"
    html = highlighting.colored(code)
    assert text_of(html) == f"{code}\n"
    as_cuda = highlighting.colored(KERNEL.strip("\n"), CudaLexer())
    assert as_cuda.strip("\n") in html
    # Around it Python is Python, and the quotes are a string's.
    assert html.startswith('<span class="n">x</span>') and '<span class="nb">print</span>' in html
    assert html.count(quotes) == 2


@pytest.mark.parametrize(
    "code",
    [
        '"""__global__ functions are kernels; this is a docstring {}."""',
        'def f():\n    """A __device__ function; see {}."""',
        'x = """text without a kernel; {}"""',
        'x = "__global__ void f() {}"',
        'x = f"""__global__ void f() {{ int a = {n}; }}"""',
        'x = """__global__ alone"""',
    ],
)
def test_other_strings_are_text(code):
    html = highlighting.colored(code)
    assert text_of(html) == f"{code}\n"
    assert not re.search(r'class="(k|kt|kr)">(void|int|__global__|__device__)<', html)


def test_several_strings_each_by_what_it_holds():
    html = highlighting.colored(
        f'a, b = """{KERNEL}""", """plain; {{}}"""\nc = 1\nd = """{KERNEL}"""'
    )
    assert html.count(">__global__</span>") == 2
    assert text_of(html).count("plain; {}") == 1 and '<span class="s2">"""plain; ' in html


def test_a_program_that_is_kept_as_a_text_is_python():
    """With its kernel in a string of its own."""
    program = f"import x\nm = SourceModule('''{KERNEL}''')\n"
    html = highlighting.colored(f'late = """\n{program}"""')
    assert text_of(html) == f'late = """\n{program}"""\n'
    assert highlighting.colored(program) in html
