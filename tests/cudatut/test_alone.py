"""Chapters as C++: one file that needs nothing else of the book, built by its first comment."""

import re
import shutil
import subprocess

import pytest

from cudatut import alone, paths
from cudatut.errors import CudatutError
from cudatut.site import contents

PARTS = "basics", "reduction", "gemm", "memory", "primitives", "images"
# Chapters of these parts that have no such program, and why.
WITHOUT = {
    "images/cutlass_conv": "its kernel is CUTLASS's: a folder of headers, which one file and one line of nvcc do not bring",
    "primitives/scoreboard": "it has no kernel of its own, and times those of the chapters before it, which have their programs",
}


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A folder of examples with one chapter, whose main.cu names two files."""
    monkeypatch.setattr(paths, "examples_dir", lambda: tmp_path)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_cuh", ".cuh").replace("_cu", ".cu")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def test_each_file_is_put_in_once_where_it_is_first_named(book):
    book(
        a__one__main_cu='// What it does.\n#include <cstdio>\n#include "cpp/host.cuh"\n#include "one.cu"\nint main() {}\n',
        a__one__one_cu='// Kernel.\n#include "cpp/host.cuh"\n__global__ void one() {}\n',
        cpp__host_cuh="#pragma once\nint host;\n",
    )
    assert alone.chapters() == ["a/one"]
    assert [line for line in alone.program("a/one").splitlines() if line] == [
        "// nvcc -O3 -std=c++17 -o one one.cu",
        "//",
        "// What it does.",
        "#include <cstdio>",
        "int host;",
        "// Kernel.",
        "__global__ void one() {}",
        "int main() {}",
    ]


def test_what_only_the_book_reads_is_left_out(book):
    book(
        a__one__main_cu='// What.\n#include "one.cu"\nint main() {}\n',
        a__one__one_cu="// Kernel.\n// requires: sm_80\n// @rung 10 kernel=one\n// --8<-- [start:one]\nvoid one();\n  // --8<-- [end:one]\n",
    )
    text = alone.program("a/one")
    assert "--8<--" not in text and "@rung" not in text and "requires" not in text
    assert text.startswith("// nvcc -O3 -std=c++17 -arch=sm_80 -o one one.cu\n")


@pytest.mark.parametrize(
    "requires, arch", [("", ""), ("sm_75", ""), ("sm_80", "sm_80"), ("sm_90a", "sm_90a")]
)
def test_the_architecture_is_the_highest_that_a_file_asks_for(book, requires, arch):
    book(
        a__one__main_cu='#include "one.cu"\n#include "two.cu"\n',
        a__one__one_cu=f"// requires: {requires}\n",
        a__one__two_cu="// requires: sm_75\n",
    )
    assert alone.arch_of("a/one") == arch


def test_a_program_may_need_flags_of_its_own(book):
    book(
        a__one__main_cu='// What.\n// flags: -rdc=true --fmad=false\n#include "one.cu"\nint main() {}\n',
        a__one__one_cu="// requires: sm_80\nvoid one();\n",
    )
    assert (
        alone.command("a/one")
        == "nvcc -O3 -std=c++17 -arch=sm_80 -rdc=true --fmad=false -o one one.cu"
    )
    assert "flags:" not in alone.program("a/one")


def test_a_file_that_is_not_there_is_named(book):
    book(a__one__main_cu='\n#include "nothing.cu"\n')
    with pytest.raises(CudatutError, match=r"a/one/main.cu:2 includes 'nothing.cu', which"):
        alone.program("a/one")


# --- the book's own -----------------------------------------------------------------------------------------------------


def test_every_chapter_of_these_parts_has_a_program_or_a_reason():
    written = {
        one.name for one in contents.chapters(contents.load()) if one.written and one.part in PARTS
    }
    there = set(alone.chapters())
    assert there <= written
    assert written - there == set(WITHOUT)


def test_a_chapter_without_a_program_says_so_truly():
    """CUTLASS is what the one includes; the other has no file of kernels."""
    examples = paths.examples_dir()
    assert "#include <cutlass/" in (examples / "images/cutlass_conv/conv.cu").read_text(
        encoding="utf-8"
    )
    assert not list((examples / "primitives/scoreboard").glob("*.cu*"))


@pytest.mark.parametrize("chapter", alone.chapters())
def test_a_program_is_whole(chapter):
    text = alone.program(chapter)
    first, second, *_ = text.splitlines()
    assert first == f"// {alone.command(chapter)}" and second == "//"
    assert not re.search(r'^\s*#\s*include\s*"', text, re.MULTILINE)
    assert "check(" in text and "time_us(" in text


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
@pytest.mark.parametrize("chapter", alone.chapters())
def test_its_first_comment_builds_it(chapter, tmp_path):
    name = chapter.rpartition("/")[2]
    (tmp_path / f"{name}.cu").write_text(alone.program(chapter))
    command = (tmp_path / f"{name}.cu").read_text().splitlines()[0].removeprefix("// ")
    done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert (tmp_path / name).stat().st_size
