"""What tests/conftest.py's compiler keeps: a result is used again only where nothing that it depends on has changed."""

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Stands in for nvcc: writes down that it ran; what it makes is its source, what it read is what the test says.
FAKE = """#!/bin/sh
if [ "$1" = --version ]; then cat "$(dirname "$0")/version"; exit; fi
echo ran >> "$(dirname "$0")/runs"
cp source.cu out
echo "out : source.cu $(cat "$(dirname "$0")/reads")" > needs
echo "a remark" >&2
grep -q WRONG source.cu && exit 1 || exit 0
"""
SOURCE = '#include "one.cuh"\n#include <stdio.h>\n__global__ void k() {}\n'


class Bench:
    """The stand-in, two folders of headers and a cache."""

    def __init__(self, kind: type, root: Path) -> None:
        self.kind, self.root, self.folders = kind, root, (root / "near", root / "far")
        for folder in ("near/deep", "far", "work"):
            (root / folder).mkdir(parents=True)
        (root / "near/one.cuh").write_text('#include "deep/two.cuh"\n')
        (root / "near/deep/two.cuh").write_text("#define TWO 2\n")
        (root / "version").write_text("V13.0.88")
        (root / "reads").write_text("")
        (root / "nvcc").write_text(FAKE)
        (root / "nvcc").chmod(0o755)

    def __call__(self, text: str = SOURCE, flags=("--cubin",), **more):
        compiler = self.kind(self.root / "nvcc", self.root / "cache")
        return compiler(text, flags, self.root / "work", self.folders, **more)

    def runs(self) -> int:
        """How often nvcc ran since this was asked last."""
        path = self.root / "runs"
        count = len(path.read_text().splitlines()) if path.exists() else 0
        path.unlink(missing_ok=True)
        return count


@pytest.fixture
def bench(compiler, tmp_path) -> Bench:
    return Bench(type(compiler), tmp_path)


def test_the_same_words_are_compiled_once(bench):
    first, second = bench(output=True), bench(output=True)
    assert bench.runs() == 1
    assert first == second and first.output == SOURCE.encode() and first.log == "a remark\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda b, m: (b.root / "near/one.cuh").write_text('#include "deep/two.cuh"\n//\n'),
        lambda b, m: (b.root / "near/deep/two.cuh").write_text("#define TWO 3\n"),
        lambda b, m: (b.root / "near/stdio.h").write_text(""),  # from now on before the system's
        lambda b, m: (b.root / "version").write_text("V13.0.99"),
        lambda b, m: m.setenv("NVCC_APPEND_FLAGS", "-G"),
    ],
    ids=["header", "header of a header", "a header comes in between", "version", "variable"],
)
def test_a_change_is_compiled(bench, change, monkeypatch):
    bench()
    change(bench, monkeypatch)
    bench()
    assert bench.runs() == 2
    bench()
    assert bench.runs() == 0


def test_a_header_that_moves_nearer_is_another(bench):
    (bench.root / "near/one.cuh").rename(bench.root / "far/one.cuh")
    (bench.root / "near/deep").rename(bench.root / "far/deep")
    bench()
    (bench.root / "near/one.cuh").write_text("#define ONE 1\n")
    bench()
    assert bench.runs() == 2


def test_other_flags_and_another_source_are_compiled(bench):
    for text, flags in ((SOURCE, ["-a"]), (SOURCE, ["-b"]), (SOURCE + "//", ["-a"])):
        bench(text, flags)
    assert bench.runs() == 3


def test_what_fails_is_compiled_again(bench):
    assert [bench("WRONG").status for _ in range(2)] == [1, 1]
    assert bench.runs() == 2


@pytest.mark.parametrize(
    "text", ["#define NAME <x.h>\n#include NAME\n", "#if __has_include(<x.h>)\n#endif\n"]
)
def test_where_the_headers_cannot_be_known_nothing_is_kept(bench, text):
    bench(text), bench(text)
    assert bench.runs() == 2


def test_a_result_without_the_file_that_is_asked_for_does_not_do(bench):
    bench()
    assert bench(output=True).output == SOURCE.encode()
    assert bench.runs() == 2


def test_a_kept_result_that_is_cut_short_does_not_do(bench):
    bench()
    (entry,) = (bench.root / "cache").iterdir()
    entry.write_text(json.dumps({"log": "x"})[:-3])
    assert bench().log == "a remark\n"
    assert bench.runs() == 2


def test_a_header_that_the_key_does_not_know_is_an_error(bench):
    """As where the compiler looks for headers in a place that this search does not know."""
    (bench.root / "reads").write_text(str(ROOT / "examples/gemm/ladder/edges.cuh"))
    with pytest.raises(AssertionError, match=r"does not know of .*edges\.cuh"):
        bench()
    (bench.root / "reads").write_text("/usr/include/stdio.h")
    bench()


def test_the_books_headers_are_found(compiler):
    found = compiler.included('#include "gemm/ladder/tma.cu"\n', (ROOT / "examples",))
    assert os.path.join("examples", "gemm", "ladder", "edges.cuh") in found
