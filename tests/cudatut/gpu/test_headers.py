import re
import subprocess

import pytest

from cudatut import paths
from cudatut.errors import ToolMissing
from cudatut.gpu import headers
from cudatut.gpu.nvcc import find_nvcc

SOURCE = '#line 1 "a.cu"\n#include <stdint.h>\n#include "one.cuh"\n__global__ void k() {}\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "one.cuh").write_text('#include "deep/two.cuh"\n')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/two.cuh").write_text("#define TWO 2\n")
    return tmp_path


def test_the_comment_changes_with_every_header_and_with_nothing_else(folder):
    first = headers.with_digest(SOURCE, [folder])
    assert headers.with_digest(SOURCE, [folder]) == first
    assert "#include" not in first, "PyCUDA would preprocess it"
    comment, rest = first.split("\n", 1)
    assert comment.startswith("// ")
    assert re.sub(r"# include", "#include", rest) == SOURCE
    for name in ("one.cuh", "deep/two.cuh"):
        (folder / name).write_text((folder / name).read_text() + "// more\n")
        changed = headers.with_digest(SOURCE, [folder])
        assert changed != first and changed.split("\n", 1)[1] == rest
        first = changed


def test_a_header_is_looked_for_beside_the_file_that_includes_it(folder):
    (folder / "deep/one.cuh").write_text("#define OTHER 1\n")
    nearer = headers.with_digest(SOURCE, [folder / "deep", folder])
    assert nearer != headers.with_digest(SOURCE, [folder])
    # one.cuh's own "deep/two.cuh" lies beside it, wherever else there is one
    (folder / "other/deep").mkdir(parents=True)
    (folder / "other/deep/two.cuh").write_text("#define TWO 3\n")
    both = headers.with_digest(SOURCE, [folder, folder / "other"])
    assert both == headers.with_digest(SOURCE, [folder])


def test_headers_that_include_each_other_end(folder):
    (folder / "deep/two.cuh").write_text('#include "../one.cuh"\n')
    assert headers.with_digest(SOURCE, [folder]) != SOURCE


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        ('#include "nowhere.cuh"\n', ()),
        ("#define NAME <stdint.h>\n#include NAME\n", ()),
        ('#include "one.cuh"\n', ("-I/elsewhere",)),
        ('#include "one.cuh"\n', ("-include", "more.h")),
        ('#include "one.cuh"\n', ("--system-include=/elsewhere",)),
        ('#include "one.cuh"\n', ("-Xcompiler=-I/elsewhere",)),
        ("#include <pycuda-complex.hpp>\n", ()),
        ("__global__ void k() {}\n", ()),
    ],
    ids=[
        "not found",
        "macro",
        "other folders",
        "included by a flag",
        "system folders",
        "the host compiler's folders",
        "PyCUDA's",
        "none",
    ],
)
def test_where_a_change_could_not_be_seen_pycuda_preprocesses(folder, source, flags):
    assert headers.with_digest(source, [folder], flags) == source


def test_a_macro_deep_down_counts(folder):
    (folder / "deep/two.cuh").write_text("#include WHATEVER\n")
    assert headers.with_digest(SOURCE, [folder]) == SOURCE


def test_nvcc_reads_it_and_names_the_lines_of_the_file(folder, missing):
    try:
        nvcc = find_nvcc()
    except ToolMissing as error:
        missing(str(error))
    path = folder / "made.cu"
    for program, fails in (
        (SOURCE, False),
        (SOURCE + "__global__ void wrong() { TWO = 1; }\n", True),
    ):
        path.write_text(headers.with_digest(program, [folder]))
        command = [nvcc, "--cubin", "-arch=sm_75", f"-I{folder}", path, "-o", folder / "made.cubin"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert bool(done.returncode) == fails, done.stderr
    assert "a.cu(4): error" in done.stderr


def test_all_kernels_of_the_book_are_known_in_full():
    root = paths.examples_dir()
    # CUTLASS's headers are not the book's: nvcc reads them from its wheel.
    having = [
        path
        for path in root.rglob("*.cu")
        if "#include" in path.read_text() and "#include <cutlass/" not in path.read_text()
    ]
    assert having
    for path in having:
        text = headers.with_digest(path.read_text(), [path.parent, root])
        assert "#include" not in text, path
