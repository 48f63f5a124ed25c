"""The notebook of an example: its cells have addresses."""

import json

import pytest

from cudatut import catalog
from cudatut.record import recorder
from cudatut.to_notebook import RecordingFailed, install_cell, notebook_of, raw


def test_the_cells_of_an_example_stand_in_its_notebook_each_with_its_address(book):
    book.example("a/add", "# %% [markdown]\n# One\n\n# %% setup\nx = 1\n\n# %% [markdown]\n# Two\n")
    found = notebook_of(catalog.get("a/add")).cells
    assert [(cell.id, cell.cell_type, cell.source) for cell in found] == [
        ("md-1", "markdown", "One"), ("setup", "code", "x = 1"), ("md-2", "markdown", "Two"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("# %%\nx = 1\n", "the cell that begins with `x = 1` needs a title"),
        ("# %% Check It\nx = 1\n", "needs a title"),
        ("# %% md-1\nx = 1\n", "needs a title"),
        ("# %% a\n1\n# %% a\n2\n", "cell 'a': this title is used twice"),
        ("# %% install\n1\n", "cell 'install': this title is used twice, or is cudatut's own"),
        ("# %% [raw]\n# x\n", "a 'raw' cell"),
    ],
)
def test_cells_without_an_address(book, cells, reason):
    book.example("a/add", cells)
    with pytest.raises(RecordingFailed) as caught:
        recorder.record_all([catalog.get("a/add")])  # before it looks for a GPU
    assert reason in str(caught.value) and str(caught.value).startswith("a/add")


def test_which_cell_is_named(book):
    book.example("a/add", "# %% a\n1\n# %% a\n2\n")
    with pytest.raises(RecordingFailed) as caught:
        notebook_of(catalog.get("a/add"))
    assert (caught.value.name, caught.value.cell) == ("a/add", "a")
    assert str(caught.value) == f"a/add, cell 'a': {caught.value.reason}"
    assert str(RecordingFailed("a/add", "no GPU")) == "a/add: no GPU"


def test_a_notebook_says_for_which_gpu_it_is_and_what_its_cells_are_called(book):
    book.example("a/add", "# %% setup\n\nx = 1\ny = 2\n", requires="sm_90a")
    example = catalog.get("a/add")
    made = notebook_of(example)
    assert made.metadata.colab == {"gpuType": "H100"}
    assert made.cells[0].metadata == {"title": "setup"}
    first = install_cell(example)
    assert (first.id, first.source) == ("install", example.first_cell())
    assert first.metadata == {"title": "install"}
    written = raw(made)
    assert written.endswith(b"}\n") and json.loads(written)["nbformat"] == 4


@pytest.mark.parametrize("cells", ["# %%\n\n\nfirst\nsecond\n", f"# %% {'a' * 65}\nfirst\n"])
def test_a_cell_that_needs_a_title_is_named_by_its_first_line(book, cells):
    book.example("a/add", cells)
    with pytest.raises(RecordingFailed, match="the cell that begins with `first` needs a title"):
        notebook_of(catalog.get("a/add"))
