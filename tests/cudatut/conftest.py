"""A folder of examples made for one test, and recordings made up for it."""

import copy
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from cudatut import catalog, history, recording, results
from cudatut.errors import CudatutError
from cudatut.results import MIME
from cudatut.tool import SANITIZERS

GPU = {
    "name": "NVIDIA Test",
    "compute_capability": "9.0",
    "memory_bytes": 80_000_000_000,
    "sm_count": 132,
    "driver": "580.1",
}
CHECK = {
    "kind": "check",
    "name": "add",
    "passed": True,
    "n": 31,
    "max_abs_err": 0.0,
    "max_rel_err": 0.0,
    "atol": 1e-5,
    "rtol": 1e-5,
}
ROW = {
    "name": "one thread",
    "median_us": 2.0,
    "p20_us": 1.0,
    "p80_us": 3.0,
    "value": 4.0,
    "of_peak": 0.5,
    "vendor": False,
    "ratio_to_vendor": None,
    "bytes": 8000,
}
# What an example made for a test says, unless it says something else: that of `Book.notebook`.
CELLS = """# %% [markdown]
# One idea
# %% setup
import os
x = 1
# %% bench
print("bench")
"""
BENCHMARK = {
    "kind": "benchmark",
    "name": "add",
    "unit": "GB/s",
    "peak": 8.0,
    "rows": [ROW],
    "rounds": 5,
}


def header(requires="sm_75", timeout_s=60, alone=True, long=False):
    return (
        "# ---\n# jupyter:\n#   cudatut:\n"
        '#     title: {en: "Vector add", zh: "向量加法"}\n'
        f"#     requires: {requires}\n#     timeout_s: {timeout_s}\n#     alone: {str(alone).lower()}\n"
        f"#     long: {str(long).lower()}\n# ---\n"
    )


class Book:
    """An examples folder."""

    def __init__(self, root: Path):
        self.root = root

    def file(self, name: str | Path, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def example(self, name: str, cells: str = CELLS, **head) -> Path:
        return self.file(f"{name}.py", header(**head) + cells)

    def notebook(self, name: str, *outputs: dict) -> dict:
        """A whole, good, fresh recording as JSON: its cell 'bench' shows a check, a benchmark and `outputs`."""
        example = catalog.get(name)
        shown = [
            {"output_type": "display_data", "metadata": {}, "data": _bundle(copy.deepcopy(result))}
            for result in (CHECK, BENCHMARK)
        ]
        return {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {
                "cudatut": {
                    "schema": 1,
                    "name": name,
                    "title": example.title,
                    "requires": example.requires,
                    "sources": {
                        example.file: recording.source_hash(example.path),
                    },
                    "gpu": dict(GPU),
                    "toolchain": {
                        "cuda": "13.0",
                        "nvcc": "13.0.88",
                        "pycuda": "2026.1",
                        "python": "3.12.3",
                        "numpy": "2.5.0",
                    },
                    "recorded_at": "2026-11-20T12:00:00+00:00",
                    "commit": "0" * 40,
                    "duration_s": 1.5,
                    "sanitizers": [
                        {"kind": "sanitizer", "tool": tool, "errors": 0} for tool in SANITIZERS
                    ],
                }
            },
            "cells": [
                _code("install", example.first_cell(), None),
                {"cell_type": "markdown", "id": "md-1", "metadata": {}, "source": ["One ", "idea"]},
                _code(
                    "setup",
                    ["import os\n", "x = 1"],
                    1,
                    {"output_type": "stream", "name": "stdout", "text": ["hello\n", "world\n"]},
                ),
                _code("bench", 'print("bench")', 2, *shown, *outputs),
            ],
        }

    def recorded(self, name: str, notebook: dict | None = None, agree: bool = True) -> Path:
        """Write a recording, with the texts and the digest that it would have, had it been recorded as it is.

        agree: the example then has the cells of a notebook that was made up.
        """
        notebook = notebook or self.notebook(name)
        if agree:
            with suppress(TypeError, KeyError):  # one that has no cells to agree with
                self._rewrite(name, notebook)
            for output in _shown(notebook):
                with suppress(ValueError, KeyError):  # one that cannot be shown
                    output["data"] |= _bundle(output["data"][MIME])
        gpu = GPU["name"]
        with suppress(TypeError, KeyError, AttributeError):  # one that does not say
            gpu = str(notebook["metadata"]["cudatut"]["gpu"]["name"])
        return self._signed(name, notebook, self.whole(name, gpu))

    @staticmethod
    def whole(name: str, gpu: str = GPU["name"]) -> Path:
        """Where the whole recording of an example lies."""
        return recording.own_path(gpu, name)

    def slim(self, name: str, gpu: str = "NVIDIA Other", notebook: dict | None = None) -> Path:
        """Write a slim recording of another GPU, likewise."""
        notebook = notebook or self.notebook(name)
        metadata = notebook["metadata"]["cudatut"]
        metadata["gpu"]["name"] = gpu
        metadata |= {"slim": True, "sanitizers": []}
        notebook["cells"] = [
            _code(
                cell["id"],
                "",
                1,
                *(
                    one | {"data": {MIME: one["data"][MIME]}}
                    for one in cell["outputs"]
                    if MIME in one.get("data", {})
                ),
            )
            for cell in notebook["cells"]
            if cell["cell_type"] == "code" and cell["id"] != "install"
        ]
        return self._signed(name, notebook, recording.slim_path(gpu, name))

    def _rewrite(self, name: str, notebook: dict) -> None:
        """Give an example the cells of a notebook, if its own are others."""
        example = catalog.get(name)
        path = example.path
        text = path.read_text(encoding="utf-8")
        wanted = [
            (cell["id"], cell["cell_type"], "".join(cell["source"]))
            for cell in notebook["cells"]
            if cell["id"] != "install"
        ]
        if list(catalog.cells_of(text)) == wanted:
            return
        before, new = recording.source_hash(path), text.partition("# %%")[0]
        for title, kind, source in wanted:
            if kind == "markdown":
                lines = "\n".join(f"# {line}".rstrip() for line in source.split("\n"))
                new += f"# %% [markdown]\n{lines}\n"
            else:
                new += f"# %% {title}\n{source}\n"
        path.write_text(new, encoding="utf-8")
        sources = notebook["metadata"]["cudatut"]["sources"]
        if sources[example.file] == before:
            sources[example.file] = recording.source_hash(path)

    def _signed(self, name: str, notebook: dict, path: Path) -> Path:
        with suppress(CudatutError):  # one too damaged to have a digest
            made = recording.parse(name, path, json.dumps(notebook).encode())
            notebook["metadata"]["cudatut"]["digest"] = made.digest()
        return self.file(path, json.dumps(notebook, indent=1))


def _shown(notebook):
    """The outputs of a notebook that hold results."""
    for cell in notebook.get("cells") or ():
        for output in (cell or {}).get("outputs") or ():
            if MIME in output.get("data", {}):
                yield output


def _bundle(result):
    """A result as a cell shows it."""
    return results.read(result)._repr_mimebundle_() | {MIME: result}


def _code(title, source, count, *outputs):
    return {
        "cell_type": "code",
        "id": title,
        "metadata": {},
        "source": source,
        "execution_count": count,
        "outputs": list(outputs),
    }


@pytest.fixture
def as_a_script(monkeypatch, tmp_path):
    """What a file changes in this process when it is run as a script is as before at the end: its arguments, and the folder
    where Python looks first.
    """
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.syspath_prepend(tmp_path / "before")


@pytest.fixture
def book(tmp_path, monkeypatch):
    root = tmp_path / "examples"
    root.mkdir()
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(root))
    return Book(root)


class Repository:
    """A checkout with examples/, and its commits."""

    def __init__(self, root: Path):
        self.root = root
        (root / "examples").mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str | Path) -> str:
        author = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", "-C", self.root, *author, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, **files: str | None) -> str:
        """Write files of examples/ (None: removed) and commit all that changed; returns the commit."""
        for name, text in files.items():
            path = self.root / "examples" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if text is None else path.write_bytes(text.encode())
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    if history.git(tmp_path, "version") is None:
        pytest.skip("no git")
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "book" / "examples"))
    history.history.cache_clear()
    yield Repository(tmp_path / "book")
    history.history.cache_clear()
