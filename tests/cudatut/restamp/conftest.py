"""A small book in a repository: two examples, their kernels, and recordings of them."""

import datetime
import json
from pathlib import Path

import pytest

from cudatut import catalog, recording
from cudatut.history import history
from cudatut.restamp.accept import restamp
from cudatut.results import Check
from cudatut.to_notebook import install_cell, notebook_of
from cudatut.tool import SANITIZERS

HEADER = """# ---
# jupyter:
#   cudatut:
#     title: {{en: "{0}", zh: "{0}"}}
#     requires: sm_90
# ---

# %% [markdown]
# One idea.

"""
ADD = """# %% setup
import cudatut as ct
import helper

n = helper.LENGTH  # of both arrays
# %% compile
add = ct.Kernel("a/add.cu", "add")
# %% check
add(n)
"""
TOOLCHAIN = {
    "cuda": "13.0",
    "nvcc": "13.0.88",
    "pycuda": "2026.1",
    "python": "3.12",
    "numpy": "2.5",
}
KERNEL = """// Adds.
#include "numbers.cuh"

extern "C" __global__ void add(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = plus(x[i]);
}
"""
NUMBERS = """#pragma once
__device__ inline float plus(float x) { return x + 1.0f; }
"""
FILES = {
    "a/add.py": HEADER.format("Add") + ADD,
    "a/helper.py": '"""What both have."""\n\nLENGTH = 1000\n',
    "a/add.cu": KERNEL,
    "a/numbers.cuh": NUMBERS,
    "a/words.txt": "one\n",
    "b/read.py": HEADER.format("Read") + "# %% check\nprint(open('a/words.txt').read())\n",
}


class SmallBook:
    """The book, and what is done to it."""

    def __init__(self, repository):
        self.repository, self.root = repository, repository.root / "examples"
        self.commit(**FILES)

    def commit(self, **files: str | None) -> str:
        return self.repository.commit(**files)

    def edit(self, name: str, was: str, now: str) -> str:
        """Replace words of a file and commit it."""
        text = (self.root / name).read_text(encoding="utf-8")
        assert was in text
        return self.commit(**{name: text.replace(was, now)})

    def move(self, was: str, now: str) -> None:
        (self.root / now).parent.mkdir(exist_ok=True)
        self.repository.git("mv", f"examples/{was}", f"examples/{now}")

    def record(self, name: str, *sources: str, text: str = "1000\n", **metadata) -> Path:
        """A recording as if the example had run at HEAD, committed. sources: besides its .py."""
        commit = {"commit": self.repository.git("rev-parse", "HEAD")}
        path = self.write(name, self.notebook(name, *sources, text=text, **commit | metadata))
        self.commit()
        return path

    def write(self, name: str, notebook: str) -> Path:
        path = self.whole(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(notebook, encoding="utf-8")
        return path

    @staticmethod
    def whole(name: str) -> Path:
        """Where the whole recording of an example lies."""
        return recording.own_path("NVIDIA Test", name)

    def notebook(self, name: str, *sources: str, text: str, **metadata) -> str:
        example = catalog.get(name)
        notebook = notebook_of(example)
        notebook.cells.insert(0, install_cell(example))
        code = [cell for cell in notebook.cells[1:] if cell.cell_type == "code"]
        for count, cell in enumerate(code, 1):
            cell.execution_count = count
        result = Check("sum", True, 3, 0.0, 0.0, 1e-5, 1e-5)
        shown = {"output_type": "display_data", "metadata": {}, "data": {}}
        shown["data"] = result._repr_mimebundle_()
        stream = {"output_type": "stream", "name": "stdout", "text": text}
        code[-1].outputs = [stream, shown]
        files = [example.file, *sources]
        found = {
            "schema": 1,
            "name": name,
            "title": example.title,
            "requires": example.requires,
            "sources": recording.hashes(files),
            "meanings": recording.meanings(files),
            "gpu": {
                "name": "NVIDIA Test",
                "compute_capability": "9.0",
                "memory_bytes": 8,
                "sm_count": 1,
                "driver": "1",
            },
            "toolchain": TOOLCHAIN,
            "recorded_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "duration_s": 1.0,
            "sanitizers": [{"kind": "sanitizer", "tool": one, "errors": 0} for one in SANITIZERS],
        }
        notebook.metadata["cudatut"] = found | metadata
        return self.signed(json.loads(json.dumps(notebook)), name)

    def signed(self, notebook: dict, name: str) -> str:
        """A notebook as the text of its file, with the digest that it would have if it had been recorded so."""
        path = self.whole(name)
        made = recording.parse(name, path, json.dumps(notebook).encode())
        notebook["metadata"]["cudatut"]["digest"] = made.digest()
        return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"

    def forge(self, name: str, change) -> None:
        """Change the JSON of a recording, and sign it anew, as whoever forges one can."""
        path = self.whole(name)
        notebook = json.loads(path.read_text(encoding="utf-8"))
        change(notebook["metadata"]["cudatut"], notebook)
        path.write_text(self.signed(notebook, name), encoding="utf-8")

    def load(self, name: str = "a/add"):
        return recording.load(name)

    def restamp(self, *names: str):
        """The outcome of a restamp of one recording, or of these, by name; committed."""
        outcomes = restamp([recording.load(name) for name in names or ("a/add",)])
        self.commit()
        found = {one.name: one for one in outcomes}
        return found if names else found.get("a/add")

    @property
    def past(self):
        history.cache_clear()
        return history()


@pytest.fixture
def small(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return SmallBook(repository)


@pytest.fixture
def added(small):
    """The book with a recording of a/add, as older ones are: it does not name its kernels."""
    small.record("a/add", "a/helper.py", "a/add.cu", "a/numbers.cuh")
    return small
