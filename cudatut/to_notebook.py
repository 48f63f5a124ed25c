"""The notebook that an example's cells make, not yet run, and the cell in front of it; no GPU is needed.

Recordings are such notebooks after a run; pages of examples without one, restamps and exercises begin with them, too.
"""

import itertools
import re
from typing import Any

from cudatut import recording, runs_on
from cudatut.catalog import Example
from cudatut.errors import CudatutError

SESSION_CELL = "cudatut-session"  # what a recorded notebook's kernel reports at its end
_TITLE = re.compile(r"[a-z0-9-]{1,64}")


class RecordingFailed(CudatutError):
    """An example could not be recorded; the message names example and cell."""

    def __init__(self, name: str, reason: str, cell: str | None = None):
        super().__init__(f"{name}, cell '{cell}': {reason}" if cell else f"{name}: {reason}")
        self.name, self.cell, self.reason = name, cell, reason


def notebook_of(example: Example) -> Any:
    """The notebook (nbformat 4) that an example's cells make, not yet run: a cell's id is its title.

    Raises RecordingFailed for a code cell without title, a title that is no address, or one used twice.
    """
    import jupytext
    from nbformat import v4

    read = jupytext.reads(example.path.read_text(encoding="utf-8"), fmt="py:percent")
    notebook = v4.new_notebook(metadata=runs_on.notebook_metadata(example.requires))
    numbers = itertools.count(1)
    seen = {recording.INSTALL_CELL, SESSION_CELL}
    for cell in read.cells:
        if cell.cell_type == "markdown":
            notebook.cells.append(v4.new_markdown_cell(cell.source, id=f"md-{next(numbers)}"))
            continue
        if cell.cell_type != "code":
            reason = f"a '{cell.cell_type}' cell; only code and markdown are recorded"
            raise RecordingFailed(example.name, reason)
        title = cell.metadata.get("title", "")
        if not _TITLE.fullmatch(title) or title.startswith("md-"):
            start = cell.source.strip().split("\n")[0]
            reason = f"the cell that begins with `{start}` needs a title (a-z, 0-9, -) after '# %%'"
            raise RecordingFailed(example.name, reason)
        if title in seen:
            reason = "this title is used twice, or is cudatut's own"
            raise RecordingFailed(example.name, reason, title)
        seen.add(title)
        notebook.cells.append(v4.new_code_cell(cell.source, id=title, metadata={"title": title}))
    return notebook


def raw(notebook: Any) -> bytes:
    """A notebook (nbformat 4) as the bytes of its file."""
    import nbformat

    return (nbformat.writes(notebook, version=4).rstrip("\n") + "\n").encode()


def install_cell(example: Example) -> Any:
    """The first cell of the notebook of this example: what it needs where it is opened outside a checkout."""
    import nbformat

    title = recording.INSTALL_CELL
    return nbformat.v4.new_code_cell(example.first_cell(), id=title, metadata={"title": title})
