"""The chapters' programs in C++: each built by its first comment from its one file, and run; its checks pass."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from cudatut import alone

LIMIT_S = 120


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder for each chapter's program, all built side by side, and what the compiler said."""
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not on the PATH")

    def build(chapter):
        folder, name = tmp_path_factory.mktemp("cpp"), chapter.rpartition("/")[2]
        (folder / f"{name}.cu").write_text(alone.program(chapter), encoding="utf-8")
        command = alone.command(chapter).split()
        return folder / name, subprocess.run(command, cwd=folder, capture_output=True, text=True)

    with ThreadPoolExecutor() as pool:
        return dict(zip(alone.chapters(), pool.map(build, alone.chapters())))


@pytest.mark.parametrize("chapter", alone.chapters())
def test_a_chapters_program_is_built_from_one_file_and_right(built, chapter):
    program, compiler = built[chapter]
    assert compiler.returncode == 0, compiler.stderr
    ran = subprocess.run([program], capture_output=True, text=True, timeout=LIMIT_S)
    print(ran.stdout)  # times, shown by `pytest -rP`
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "passed" in ran.stdout and "failed" not in ran.stdout
