"""What stands for the GPU while examples are recorded, and an example as if it had run."""

import pytest

from cudatut import catalog, recording
from cudatut.record.notebook import notebook_of
from cudatut.record.run import Executed


@pytest.fixture
def with_gpu():
    """First lines of an example's first cell: its kernel then reports a GPU that is not there."""
    return """
import cudatut as ct
from cudatut import paths
from cudatut.record import session
from cudatut.results import Benchmark, Check, Row
session._gpu = lambda: {"name": "NVIDIA Test", "compute_capability": "9.0", "memory_bytes": 8, "sm_count": 1, "driver": "1"}
"""


@pytest.fixture
def executed(book):
    """An example as if it had run, for what happens after that."""
    book.example("a/add", "# %% check\nprint(1)\n")
    example = catalog.get("a/add")
    notebook = notebook_of(example)
    notebook.cells[0].execution_count = 1
    session = {
        "gpu": {
            "name": "G",
            "compute_capability": "9.0",
            "memory_bytes": 8,
            "sm_count": 1,
            "driver": "1",
        }
    }
    session |= {"toolchain": {}, "kernels": [], "used": [], "rivals": {}}
    sources = {"a/add.py": recording.source_hash(example.path)}
    return Executed(example, notebook, session, 1.0, sources, recording.meanings(sources))
