"""What stands for the GPU while examples are recorded, and an example as if it had run."""

import pytest

from cudatut import catalog, recording
from cudatut.record.run import Executed
from cudatut.to_notebook import notebook_of

TOOLCHAIN = {"cuda": "13.0", "nvcc": "13.0.88", "pycuda": "1", "python": "3.12.3", "numpy": "2.5.0"}


@pytest.fixture
def as_if_run():
    """Makes the notebook of an example whose cells ran, and showed nothing."""

    def made(example):
        notebook = notebook_of(example)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count = 1
        return notebook

    return made


@pytest.fixture
def with_gpu():
    """First lines of an example's first cell: its kernel then reports a GPU that is not there."""
    return f"""
import cudatut as ct
from cudatut import paths
from cudatut.record import session
from cudatut.results import Benchmark, Check, Row
session._gpu = lambda: {{"name": "NVIDIA Test", "compute_capability": "9.0", "memory_bytes": 8, "sm_count": 1, "driver": "1"}}
session._toolchain = lambda: {TOOLCHAIN}
"""


@pytest.fixture
def executed(book, as_if_run):
    """An example as if it had run, for what happens after that."""
    book.example("a/add", "# %% check\nprint(1)\n")
    example = catalog.get("a/add")
    session = {
        "gpu": {
            "name": "G",
            "compute_capability": "9.0",
            "memory_bytes": 8,
            "sm_count": 1,
            "driver": "1",
        }
    }
    session |= {"toolchain": TOOLCHAIN, "kernels": [], "used": [], "rivals": {}}
    sources = {"a/add.py": recording.source_hash(example.path)}
    return Executed(example, as_if_run(example), session, 1.0, sources, recording.meanings(sources))
