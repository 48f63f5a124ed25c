"""The chapters' programs in C++: each built by its first comment from its one file, and run; its checks pass."""

import shutil
import subprocess

import pytest

import cudatut as ct
from cudatut import alone

LIMIT_S = 120


@pytest.mark.parametrize("chapter", alone.chapters())
def test_a_chapters_program_is_built_from_one_file_and_right(chapter, tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not on the PATH")
    arch = alone.arch_of(chapter)
    if arch and not ct.supports(ct.device().compute_capability, arch):
        pytest.skip(f"needs {arch}")
    name = chapter.rpartition("/")[2]
    (tmp_path / f"{name}.cu").write_text(alone.program(chapter), encoding="utf-8")
    command = alone.command(chapter).split()
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([tmp_path / name], capture_output=True, text=True, timeout=LIMIT_S)
    print(ran.stdout)  # times, shown by `pytest -rP`
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # A check says `check NAME: passed` or `check NAME: failed`; a label may have the word ("launches that failed").
    assert ": passed" in ran.stdout and ": failed" not in ran.stdout
