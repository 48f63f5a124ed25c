"""Compiled kernels are kept whole, for what they depend on, and what cannot be kept is compiled all the same."""

import sys
import threading
import types
from pathlib import Path

import pytest

from cudatut.gpu import cubins

HOW = {"options": ["-lineinfo"], "no_extern_c": True, "arch": "sm_90", "include_dirs": ["/a"]}


@pytest.fixture
def pycuda(monkeypatch, tmp_path):
    """A compiler that writes down what it is asked for; `.made` is what it returns."""
    module = types.ModuleType("pycuda.compiler")
    module.asked, module.made = [], b"cubin"

    def compile(source, **how):
        module.asked.append((source, how))
        return module.made

    module.compile = compile
    monkeypatch.setitem(sys.modules, "pycuda", types.ModuleType("pycuda"))
    monkeypatch.setitem(sys.modules, "pycuda.compiler", module)
    monkeypatch.setattr(cubins, "nvcc_version", lambda nvcc: f"13.0 of {nvcc}")
    monkeypatch.delenv("PYCUDA_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(tmp_path / "cache"))
    return module


def test_a_kernel_is_compiled_once(pycuda):
    assert [cubins.compiled("one", Path("nvcc"), **HOW) for _ in range(3)] == [b"cubin"] * 3
    assert pycuda.asked == [("one", {"nvcc": "nvcc", "cache_dir": False, **HOW})]


@pytest.mark.parametrize(
    "change",
    [
        {"source": "two"},
        {"nvcc": Path("other")},
        *({name: other} for name, other in [
            ("options", []), ("no_extern_c", False), ("arch", "sm_90a"), ("include_dirs", ["/b"]),
        ]),
    ],
    ids=str,
)  # fmt: skip
def test_and_anew_for_whatever_is_another(pycuda, change):
    asked = {"source": "one", "nvcc": Path("nvcc"), **HOW}
    cubins.compiled(**asked)
    pycuda.made = b"another"
    assert cubins.compiled(**asked | change) == b"another" and len(pycuda.asked) == 2
    assert cubins.compiled(**asked) == b"cubin" and len(pycuda.asked) == 2


def test_who_reads_while_another_writes_gets_all_or_nothing(pycuda, tmp_path):
    """As ten processes of tests do that compile the same kernels at the same time."""
    pycuda.made = bytes(range(256)) * 40_000
    sizes, writing = set(), True

    def look():
        while writing:
            for path in (tmp_path / "cache").glob("cudatut-*.cubin"):
                sizes.add(path.stat().st_size)

    reader = threading.Thread(target=look)
    reader.start()
    for i in range(30):
        assert cubins.compiled(f"source {i}", Path("nvcc"), **HOW) == pycuda.made
    writing = False
    reader.join()
    assert sizes <= {len(pycuda.made)}
    assert len(list((tmp_path / "cache").iterdir())) == 30, "nothing else is left there"


def test_what_only_the_preprocessor_knows_is_left_to_pycuda(pycuda, monkeypatch):
    cubins.compiled("#include MACRO", Path("nvcc"), **HOW)
    monkeypatch.setenv("PYCUDA_DISABLE_CACHE", "1")
    cubins.compiled("one", Path("nvcc"), **HOW)
    assert [how for _, how in pycuda.asked] == [{"nvcc": "nvcc", **HOW}] * 2


def test_a_folder_that_cannot_be_written_costs_time_only(pycuda, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert [cubins.compiled("one", Path("nvcc"), **HOW) for _ in range(2)] == [b"cubin"] * 2
    assert len(pycuda.asked) == 2


def test_it_is_the_folder_that_the_doctor_looks_at(pycuda, monkeypatch):
    import platformdirs

    monkeypatch.delenv("PYCUDA_CACHE_DIR")
    default = Path(platformdirs.user_cache_dir("pycuda", "pycuda"))
    assert cubins.folder().parent == default
