"""The files of memory/bindings/mixed, built as a reader does it: in an empty folder outside the checkout, by their Makefile."""

import ctypes
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import cudatut as ct
from cudatut import comments
from cudatut.book.memory.bindings import building


@pytest.fixture(scope="module")
def make(tmp_path_factory, compiler):
    """make(goal, ...): what it printed; `make.folder` has the files."""
    folder = tmp_path_factory.mktemp("mixed")
    for file in building.FILES:
        (folder / file).write_text(building.text(file), encoding="utf-8")
    flags = " ".join(ct.nvcc_flags(compiler.program))
    fixed = [f"NVCC={compiler.program}", f"PYTHON={sys.executable}", f"LDFLAGS={flags}"]

    def run(*goals: str) -> str:
        done = subprocess.run(
            ["make", *goals, *fixed],
            cwd=folder,
            env=ct.nvcc_env(compiler.program),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stdout + done.stderr
        return done.stdout

    run.folder = folder
    return run


def test_every_file_of_the_folder_is_built_or_shown():
    folder = ct.paths.examples_dir() / "memory/bindings/mixed"
    assert {one.name for one in folder.iterdir()} == set(building.FILES)


def test_the_program_is_built_and_only_again_when_something_has_changed(make):
    first = make()
    assert "g++" in first and "-gencode arch=compute_75,code=sm_75" in first
    assert "Nothing to be done" in make()
    header = make.folder / "saxpy.cuh"
    os.utime(header)
    again = make()
    assert "saxpy.cu " in again and "main.cpp " not in again


def test_without_a_gpu_the_program_names_the_error(make):
    make("program")
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    program = make.folder / "build" / "program"
    done = subprocess.run([program], env=hidden, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout[:9]) == (1, "cudaError")


def test_for_a_debugger_the_device_code_is_another_and_lies_elsewhere(make):
    make("program")
    said = make("program", "DEBUG=1")
    assert re.search(r"nvcc.* -g -G ", said) and " -O3" not in said
    usual, debug = (make.folder / one / "saxpy.cu.o" for one in ("build", "debug"))
    assert debug.stat().st_size > 2 * usual.stat().st_size


def test_what_is_named_as_gpus_becomes_flags(make):
    said = make("-n", "-B", "lib", "ARCHS=80 90")
    assert re.findall(r"code=\w+", said) == ["code=sm_80", "code=sm_90", "code=compute_90"]


def test_the_library_takes_what_is_declared(make):
    make("lib")
    library = building.declared(make.folder / "build" / "libsaxpy.so")
    assert library.saxpy_nothing(2, 1 << 40, 1 << 41, 3, None) == 0
    assert library.saxpy_launch(2, 1 << 40, 1 << 41, 0, None) == 0  # no element, no launch
    library.saxpy_error.restype = ctypes.c_char_p
    assert library.saxpy_error(209) == b"cudaErrorNoKernelImageForDevice"
    with pytest.raises(ctypes.ArgumentError):
        library.saxpy_launch("2", 0, 0, 0, None)


def test_an_address_needs_its_type():
    labs, where = ctypes.CDLL(None).labs, 0x7F12_3456_7890
    assert labs(where) != where
    labs.argtypes, labs.restype = [ctypes.c_long], ctypes.c_long
    assert labs(where) == where


def test_the_module_refuses_what_is_not_on_the_gpu(make, missing):
    if find_spec("nanobind") is None:
        pytest.skip("nanobind is not installed: pip install nanobind")
    make("module")
    module = building.imported(make.folder / "build" / "saxpy_nb.so")
    assert module.nothing(2, 1 << 40, 1 << 41, 3, 0) == 0
    x = np.ones(10, "float32")
    for wrong in (x, x.astype("float64"), 1 << 40, None):
        with pytest.raises(TypeError):
            module.saxpy(2, wrong, x)
    with pytest.raises(TypeError):
        module.launch(2, 1.5, 0, 0, 0)


def test_without_make_or_nanobind_it_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(building.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ct.ToolMissing, match="pip install nanobind"):
        building.build("module")
    monkeypatch.setattr(building.shutil, "which", lambda name: None)
    with pytest.raises(ct.ToolMissing, match="make"):
        building.build("lib")


def test_the_makefile_has_comments_for_the_chinese_page():
    text = building.text("Makefile")
    found = [one.text for one in comments.comments(text, "python")]
    assert any(one.startswith("make program") for one in found)
    rules = re.sub(r"(?m)^#.*\n", "", text)
    assert rules in re.sub(r"(?m)^#.*\n", "", comments.replaced(text, "python", lambda one: "字"))


def test_all_files_are_named_by_the_makefile_or_by_each_other():
    texts = {file: building.text(file) for file in building.FILES}
    for file in building.FILES[1:]:
        stem = Path(file).stem
        assert any(stem in text for other, text in texts.items() if other != file), file
