"""examples/images/cutlass_conv without a GPU and without CUTLASS: how a library is made and kept, what its functions are asked, and who
refuses what."""

import ctypes
import json
from pathlib import Path

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.cutlass_conv import conv
from cudatut.book.images.implicit_gemm.shapes import Shape

TILE = conv.Tile(128, 64, 32, 2, 1)
SHAPE = Shape(2, 8, 19, 31, 16, (3, 5), (1, 2), (4, 6), (7, 8))


@pytest.fixture
def headers(tmp_path, monkeypatch):
    """Folders as the package has them, and libraries that are kept in a folder of their own."""
    version = tmp_path / "include/cutlass/version.h"
    version.parent.mkdir(parents=True)
    version.write_text("#define CUTLASS_MAJOR 4\n")
    monkeypatch.setattr(conv, "headers", lambda: [tmp_path / "include", tmp_path / "tools"])
    monkeypatch.setattr(conv, "user_cache_dir", lambda *_: str(tmp_path / "kept"))
    return version


@pytest.fixture
def nvcc(tmp_path, monkeypatch):
    """A program that says what it was told, and makes a file; it fails where a file `broken` stands beside it."""
    program = tmp_path / "nvcc"
    program.write_text(
        '#!/bin/sh\necho "$@" >> "$0.told"\n'
        'test -e "$(dirname "$0")/broken" && { echo "error: no" >&2; exit 1; }\n'
        'while test "$1" != -o; do shift; done\ntouch "$2"\n'
        "echo 'ptxas info    : Used 40 registers' >&2\n"
        "echo '    0 bytes stack frame, 12 bytes spill stores, 0 bytes spill loads' >&2\n"
        "echo 'ptxas info    : Used 168 registers, used 2 barriers' >&2\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(ct, "find_nvcc", lambda: program, raising=False)
    monkeypatch.setattr(ct, "nvcc_flags", lambda _: ["--flag"], raising=False)
    monkeypatch.setattr(ct, "nvcc_env", lambda _: {"PATH": "/usr/bin:/bin"}, raising=False)
    return program


def told(nvcc):
    file = Path(f"{nvcc}.told")
    return file.read_text().splitlines() if file.exists() else []


def test_a_library_is_made_once(headers, nvcc):
    made = conv.build(TILE)
    assert made.is_file() and conv.build(TILE) == made
    (line,) = told(nvcc)
    for word in (
        *("-DPIXELS=128", "-DFILTERS=64", "-DSTEP=32", "-DDOWN=2", "-DACROSS=1"),
        *("sm_90a", "--shared", "--flag", "conv.cu", f"-I{headers.parents[1]}"),
    ):
        assert word in line
    said = json.loads(made.with_suffix(".json").read_text())
    assert said["registers"] == 168 and said["spilled"] == 12 and said["compiled in"] > 0


def test_another_tile_or_version_is_another_library(headers, nvcc):
    names = {conv.library_file(TILE), conv.library_file(TILE._replace(step=64))}
    headers.write_text("#define CUTLASS_MAJOR 5\n")
    assert len(names | {conv.library_file(TILE)}) == 3


def test_what_nvcc_refuses_is_said_and_not_kept(headers, nvcc):
    (nvcc.parent / "broken").touch()
    with pytest.raises(ct.KernelCompileError, match=r"conv\.cu: error: no"):
        conv.build(TILE)
    assert not conv.library_file(TILE).exists()
    (nvcc.parent / "broken").unlink()
    conv.libraries((TILE, TILE._replace(step=64)))
    assert conv.library_file(TILE).is_file()


def test_without_the_package_the_command_is_said(monkeypatch):
    monkeypatch.setattr(conv, "find_spec", lambda name: None)
    with pytest.raises(ct.ToolMissing, match=r"pip install --no-deps nvidia-cutlass==4\.2"):
        conv.headers()


class Library:
    """Its functions, as ctypes has them: `status` is what they return."""

    def __init__(self, status=0):
        self.status, self.asked, self.ran, self.dropped = status, [], 0, 0

    def make(self, x, w, y, numbers, scratch, size, made):
        self.asked.append((x.value, w.value, y.value, list(numbers), bool(scratch)))
        size._obj.value = 256
        if scratch:
            made._obj.value = 7
        return self.status

    def run(self, made, stream):
        self.ran += 1
        return self.status

    def drop(self, made):
        self.dropped += 1

    def chosen(self, numbers):
        numbers[:] = range(8)


@pytest.fixture
def library(monkeypatch):
    one = Library()
    monkeypatch.setattr(conv, "library", lambda tile: one)
    monkeypatch.setattr(conv.ct, "empty", lambda *_: type("Bytes", (), {"gpudata": 99}), raising=False)  # fmt: skip
    return one


class Array:
    """Of which only address, type and shape are looked at."""

    def __init__(self, shape, address, dtype="uint16"):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": self.dtype.str,
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


def arrays(shape, dtype="uint16"):
    n, c, h, w = shape[:4]
    return (
        Array((n, h, w, c), 1 << 20, dtype),
        Array((shape.filters, *shape.window, c // shape.groups), 2 << 20, dtype),
        Array((n, *shape.out, shape.filters), 3 << 20, dtype),
    )


def test_the_numbers_stand_in_the_order_of_the_functions(library):
    run = conv.Made(TILE, SHAPE, *arrays(SHAPE))
    numbers = [2, 19, 31, 8, 16, 3, 5, 1, 2, 4, 6, 7, 8]
    places = (1 << 20, 2 << 20, 3 << 20)
    assert library.asked == [(*places, numbers, False), (*places, numbers, True)]
    run()
    assert library.ran == 1
    del run
    assert library.dropped == 1


def test_what_cutlass_says_is_a_reason(library):
    library.status = 12
    with pytest.raises(conv.Refused, match="128 x 64, cluster 2 x 1: CUTLASS says: invalid"):
        conv.Made(TILE, SHAPE, *arrays(SHAPE))
    assert conv.refused(TILE, SHAPE) == "invalid"
    library.status = 5
    assert conv.refused(TILE, SHAPE) == "invalid problem"
    library.status = 0
    assert conv.refused(TILE, SHAPE) == ""
    grouped = SHAPE._replace(groups=2)
    assert conv.refused(TILE, grouped) == "no groups"
    with pytest.raises(conv.Refused, match="no groups"):
        conv.Made(TILE, grouped, *arrays(grouped))
    assert len(conv.STATUS) == 12


def test_a_launch_that_fails_is_an_error(library):
    run = conv.Made(TILE, SHAPE, *arrays(SHAPE))
    library.status = 8
    with pytest.raises(ct.CudatutError, match="internal error"):
        run()


def test_arrays_that_do_not_fit_are_refused(library):
    for k in range(3):
        given = list(arrays(SHAPE))
        given[k] = Array((1, *given[k].shape[1:]), 9 << 20)
        with pytest.raises(ValueError):
            conv.Made(TILE, SHAPE, *given)
    with pytest.raises(TypeError):
        conv.Made(TILE, SHAPE, *arrays(SHAPE, "float32"))
    assert not library.asked


def test_a_contestant_is_what_cutlass_takes(library, monkeypatch):
    monkeypatch.setattr(conv, "build", lambda tile: None)
    run = conv.prepare(SHAPE, *arrays(SHAPE), (TILE,))
    assert run and run.tile == TILE
    run()
    assert library.ran == 1
    library.status = 12
    one = conv.prepare(SHAPE, *arrays(SHAPE), (TILE,))
    assert not one and "invalid" in one.reason


def test_the_report_joins_nvcc_and_the_builder(library, monkeypatch, tmp_path):
    (tmp_path / "a.json").write_text('{"registers": 5}')
    monkeypatch.setattr(conv, "build", lambda tile: tmp_path / "a.so")
    said = conv.report(TILE)
    assert said["registers"] == 5 and said["stages"] == 0 and said["blocks of a cluster"] == 7


def test_the_names_of_the_numbers_are_those_of_the_source():
    text = conv.source_file().read_text(encoding="utf-8")
    assert f"i < {len(conv.CHOSEN)}; ++i) numbers[i]" in text
    assert len(conv.numbers(SHAPE)) == 13 and isinstance(conv.numbers(SHAPE), ctypes.Array)
