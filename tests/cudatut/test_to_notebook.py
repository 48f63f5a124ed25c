"""The notebook of an example: its cells have addresses."""

import pytest

from cudatut import catalog
from cudatut.record import recorder
from cudatut.to_notebook import RecordingFailed, notebook_of


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
