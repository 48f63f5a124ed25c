"""What the first cell of a notebook says where something is missing; what it does in an installed copy, tests/test_notebooks.py tries."""

import subprocess
import sys

import pytest

from cudatut import libraries, notebook
from cudatut.errors import ToolMissing, UnsupportedGpuError
from cudatut.gpu import device

NAME = "start/add"
HEAD = '# ---\n# jupyter:\n#   cudatut: {{title: {{en: x, zh: y}}, requires: {requires}, extra: "{extra}"}}\n# ---\n'


@pytest.fixture
def machine(book, monkeypatch):
    """One with a T4 and with all libraries, unless it is said otherwise; and what pip was told to install there."""

    def made(
        requires="sm_75",
        extra="",
        no_gpu=None,
        lacks=None,
        hidden=(),
        imports="",
        cupy="cupy-cuda12x",
    ):
        cell = f"# %% a\n{imports}\n"
        book.file(f"{NAME}.py", HEAD.format(requires=requires, extra=extra) + cell)
        monkeypatch.setattr(device, "why_no_gpu", lambda: no_gpu)
        monkeypatch.setattr(
            device, "gpu_lacks", lambda requires: lacks and f"{lacks} for {requires}"
        )
        monkeypatch.setattr(device, "driver_cuda", lambda: (12, 4))
        monkeypatch.setattr(device, "cupy_package", lambda: cupy)
        monkeypatch.setattr(libraries, "installed", lambda module: module not in hidden)

    return made


def said(capsys):
    return capsys.readouterr().out.splitlines()


def test_where_all_is_there_nothing_is_said(machine, capsys):
    machine(extra="llm", imports="import torch")
    notebook.prepare(NAME)
    assert said(capsys) == []


@pytest.mark.parametrize(
    ("requires", "choose"),
    [
        ("sm_75", "Runtime > Change runtime type > T4 GPU (free)"),
        ("sm_80", "Runtime > Change runtime type > L4 GPU (paid)"),
        ("sm_100a", "no GPU there can run it"),
    ],
)
def test_without_a_gpu_one_is_told_how_to_get_it(machine, capsys, requires, choose):
    machine(requires=requires, no_gpu="no driver")
    notebook.prepare(NAME)
    assert said(capsys) == [
        "This notebook needs a GPU, and there is none here: no driver.",
        f"In Colab: {choose}, then run this cell again.",
    ]
    machine(no_gpu="no driver", hidden=("pycuda",))
    notebook.prepare(NAME)
    assert said(capsys)[2:] == ["PyCUDA is not installed either: cells that import it stop."]
    # What it cannot do without is asked for all the same, before a cell fetches a model.
    machine(no_gpu="no driver", extra="llm", hidden=("pycuda", "gguf"))
    with pytest.raises(ToolMissing, match=r"gguf not installed.*\[llm\]"):
        notebook.prepare(NAME)


def test_a_gpu_that_is_too_old_is_named(machine, capsys):
    machine(requires="sm_90a", lacks="this GPU is 7.5", hidden=("pycuda",))
    with pytest.raises(UnsupportedGpuError) as caught:
        notebook.prepare(NAME)
    assert str(caught.value) == (
        f"{NAME} cannot run here: this GPU is 7.5 for sm_90a. Its page shows a recording of it. "
        "In Colab: Runtime > Change runtime type > H100 GPU (paid)."
    )
    assert caught.value._render_traceback_() == [str(caught.value)] and said(capsys) == []


def test_what_it_cannot_do_without_is_asked_for_in_one_command(machine):
    machine(extra="llm", hidden=("pycuda", "tokenizers"))
    with pytest.raises(ToolMissing) as caught:
        notebook.prepare(NAME)
    text = str(caught.value)
    assert text.startswith(f"{NAME} cannot run here: pycuda, tokenizers not installed.")
    assert "%pip install" in text and "[gpu,llm]" in text
    assert caught.value._render_traceback_() == [text]


def test_what_it_compares_with_may_be_missing(machine, capsys):
    machine(hidden=("torch",), imports="import torch")
    notebook.prepare(NAME)
    first, second = said(capsys)
    assert first == "PyTorch is not installed: what needs it is left out, or its cell says so."
    assert second.endswith("run this in a cell, then this cell again: %pip install torch")


@pytest.mark.parametrize(
    ("package", "hidden", "installs"),
    [(None, ("cupy",), False), ("cupy-cuda12x", (), False), ("cupy-cuda12x", ("cupy",), True)],
)
def test_cupy_is_installed_where_it_is_missing_and_fits(
    machine, monkeypatch, capsys, package, hidden, installs
):
    machine(cupy=package, hidden=hidden)
    told = []

    def run(command, capture_output, text):
        assert capture_output and text, "what pip says goes on no page, and is read"
        told.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(notebook.subprocess, "run", run)
    # Else this process would not find what was not there before.
    monkeypatch.setattr("importlib.invalidate_caches", lambda: told.append("looks again"))
    notebook.install_cupy()
    wanted = [[sys.executable, "-m", "pip", "install", "-q", "cupy-cuda12x"], "looks again"]
    assert told == (wanted if installs else []) and said(capsys) == []


@pytest.mark.parametrize(
    ("stderr", "why"), [("a\nno wheel\n", "no wheel"), ("", "no reason given")]
)
def test_that_cupy_cannot_be_installed_stops_nothing(machine, monkeypatch, capsys, stderr, why):
    machine(hidden=("cupy",))
    done = subprocess.CompletedProcess([], 1, "", stderr)
    monkeypatch.setattr(notebook.subprocess, "run", lambda command, **_: done)
    notebook.install_cupy()
    lacks = "the benchmarks lack the vendor's rows"
    assert said(capsys) == [f"cupy-cuda12x could not be installed ({why}): {lacks}"]
