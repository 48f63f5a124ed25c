"""Code in the classes of the site's code blocks, which a build colors once."""

from types import SimpleNamespace

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
