"""Outputs say nothing of the machine, nor of how they came."""

import tempfile
from pathlib import Path

import pytest

import cudatut
from cudatut.record import outputs


def test_carriage_returns():
    assert outputs.without_overwritten("a\rb\rc\nd\r\ne\r") == "c\nd\ne"


def test_scrubbed_paths(book, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    scrub = outputs.scrubber()
    here = Path(cudatut.__file__).parent
    assert scrub(f"{here}/gpu/kernel.py:3 {here.parent}") == "cudatut/gpu/kernel.py:3 ."
    # Another folder, wherever the checkout lies.
    assert not scrub(f"{here.parent}2/x").startswith(".")
    assert scrub("/home/somebody/x /home/somebodyelse/x") == "~/x /home/somebodyelse/x"
    assert scrub(f"{tempfile.gettempdir()}/tmpab_12cd/kernel.cu") == "$TMPDIR/kernel.cu"
    assert scrub(f"{tempfile.gettempdir()}/ipykernel_123/456.py:2") == "cell:2"
    assert scrub(f"{book.root}/a/x.cu(3): error") == "examples/a/x.cu(3): error"
    assert scrub("/usr/local/cuda/bin/nvcc 3/4 a/b") == "/usr/local/cuda/bin/nvcc 3/4 a/b"


def test_a_file_of_the_checkout_is_named_by_its_place_there(monkeypatch):
    """Also where Python does not look for modules there."""
    monkeypatch.setattr(outputs.sys, "path", [])
    monkeypatch.setattr(outputs.paths, "repo_root", lambda: Path("/somewhere/book"))
    scrub = outputs.scrubber()
    assert scrub("see /somewhere/book/docs/x.md:3") == "see docs/x.md:3"
    assert scrub("in /somewhere/book") == "in ."
    assert scrub("in /somewhere/bookshelf") == "in /somewhere/bookshelf"


def test_code_cells_are_counted_as_they_stand(book):
    """Also where a cell has run others, and the kernel has counted those too."""
    v4 = pytest.importorskip("nbformat.v4")
    shown = v4.new_output("execute_result", {"text/plain": "1"}, execution_count=9)
    first = v4.new_code_cell("ran('others')", execution_count=4)
    second = v4.new_code_cell("1", execution_count=9, outputs=[shown])
    notebook = v4.new_notebook(cells=[first, v4.new_markdown_cell("text"), second])
    outputs.clean(notebook)
    assert (first.execution_count, second.execution_count) == (1, 2)
    assert second.outputs[0].execution_count == 2


def test_where_an_object_lies_in_memory_is_no_output():
    import nbformat

    cell = nbformat.v4.new_code_cell("x")
    shown = {"text/plain": "<a.B object at 0x7f00c0ffee>, 3"}
    cell.outputs = [nbformat.v4.new_output("execute_result", data=shown, execution_count=9)]
    notebook = nbformat.v4.new_notebook(cells=[cell])
    outputs.clean(notebook)
    (output,) = notebook.cells[0].outputs
    assert output.data["text/plain"] == "<a.B object>, 3" and output.execution_count == 1
