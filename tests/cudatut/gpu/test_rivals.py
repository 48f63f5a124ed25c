"""Versions of rivals' libraries, and the kernels that they launch: stand-ins answer as the libraries and CUPTI do."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudatut.errors import ToolMissing
from cudatut.gpu import launched, rivals


def property_of(*numbers, status=0):
    """A library's function of libraryPropertyType: it writes the number that it is asked for."""

    def answer(which, value):
        value._obj.value = numbers[which]
        return status

    return answer


def test_a_library_that_is_loaded_is_named_with_its_version(monkeypatch):
    """Each version once, of all files that tell; a library that tells nothing is not named."""
    loaded = {
        "/a/libcublas.so.13": SimpleNamespace(cublasGetProperty=property_of(13, 1, 0)),
        "/b/libcublas.so.12": SimpleNamespace(cublasGetProperty=property_of(12, 9, 1)),
        "/c/libcublas.so.13": SimpleNamespace(cublasGetProperty=property_of(13, 1, 0)),
        "/a/libcublasLt.so.13": SimpleNamespace(
            cublasLtGetProperty=property_of(13, 1, 0, status=1)
        ),
        "/a/libcudnn.so.9": SimpleNamespace(),
    }
    monkeypatch.setattr(rivals, "_PACKAGES", {})
    monkeypatch.setattr(rivals, "_loaded_libraries", lambda: map(Path, loaded))
    monkeypatch.setattr(rivals.ctypes, "CDLL", loaded.get)
    monkeypatch.delitem(rivals.sys.modules, "cudatut.gpu.vendor", raising=False)
    assert rivals.versions() == {"cuBLAS": "12.9.1, 13.1.0"}


def test_a_package_is_named_as_pages_name_it_with_the_first_version_that_is_installed(monkeypatch):
    """A module that nobody imported is none of this process's rivals, and one without a package has no version."""
    installed = {"cupy-cuda12x": "14.1", "cupy": "1.0", "torch": "2.9"}

    def version(package):
        if package not in installed:
            raise rivals.metadata.PackageNotFoundError(package)
        return installed[package]

    modules = dict.fromkeys(("cupy", "flash_attn"))
    modules["cudatut.gpu.vendor"] = SimpleNamespace(cub_version=lambda: "3.0.1")
    monkeypatch.setattr(rivals, "sys", SimpleNamespace(modules=modules))
    monkeypatch.setattr(rivals.metadata, "version", version)
    monkeypatch.setattr(rivals, "_loaded_libraries", list)
    assert rivals.versions() == {"CUB": "3.0.1", "CuPy": "14.1"}
    modules["cudatut.gpu.vendor"] = SimpleNamespace(cub_version=lambda: None)
    assert rivals.versions() == {"CuPy": "14.1"}


def test_cudnn_tells_its_version_in_one_number(monkeypatch):
    class Ask:
        def __call__(self):
            return 91203

    libraries = {"/a/libcudnn.so.9": SimpleNamespace(cudnnGetVersion=Ask())}
    monkeypatch.setattr(rivals.ctypes, "CDLL", libraries.get)
    assert rivals._cudnn(Path("/a/libcudnn.so.9")) == "9.12.3"
    assert rivals._cudnn(Path("/a/none.so")) is None


def test_which_shared_libraries_a_process_holds(monkeypatch):
    lines = [
        "7f00-7f01 r-xp 00000000 08:01 77 /b/lib with a blank/libcublas.so.13",
        "7f02-7f03 r--p 00000000 08:01 77 /b/lib with a blank/libcublas.so.13",
        "7f04-7f05 r-xp 00000000 08:01 78 /a/libcudnn.so.9",
        "7f06-7f07 r-xp 00000000 08:01 79 /usr/bin/python3",
        "7f08-7f09 rw-p 00000000 00:00 0",
    ]

    def read(path, **how):
        if str(path) != "/proc/self/maps":
            raise FileNotFoundError(path)
        return "\n".join(lines)

    monkeypatch.setattr(Path, "read_text", read)
    found = [Path("/a/libcudnn.so.9"), Path("/b/lib with a blank/libcublas.so.13")]
    assert list(rivals._loaded_libraries()) == found


def test_the_kernels_of_a_rival_are_kept_by_its_name(monkeypatch):
    """Each once, in the order in which it first ran; of a rival that nobody could listen to, none."""
    told = iter([["gemm<128>", "split"], None, None, ["split", "reduce"]])
    monkeypatch.setattr(rivals, "_launched", {})
    monkeypatch.setattr(rivals.launched, "kernels_of", lambda launch: next(told))
    launch = object()
    assert rivals.name_kernels("cuBLAS", launch) == ["gemm<128>", "split"]
    assert rivals.name_kernels("CUB", launch) is None
    assert rivals.name_kernels("CUB", launch) is None
    rivals.name_kernels("cuBLAS", launch)
    assert rivals.kernels() == {"cuBLAS": ["gemm<128>", "split", "reduce"]}


@pytest.fixture
def cupti(monkeypatch):
    """CUPTI, which tells of three runs of two kernels, the last one first; what a test says of it."""
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    runs = [(30, "_Z1ai"), (20, "b"), (10, "_Z1ai")]
    told = SimpleNamespace(listened=False, missing=False, events=[])

    @contextmanager
    def listen(kinds, hear):
        if told.missing:
            raise ToolMissing("no cupti-python")
        told.events.append(kinds)
        yield
        hear([SimpleNamespace(start=start, name=name) for start, name in runs])

    monkeypatch.setattr(launched.cupti, "listening", lambda: told.listened)
    monkeypatch.setattr(launched.cupti, "listen", listen)
    return told


def test_the_kernels_that_a_launch_runs(cupti):
    """In the order in which they ran, each once, as they are called in the source."""
    assert launched.kernels_of(lambda: cupti.events.append("launch")) == ["a", "b"]
    assert cupti.events == [[launched.cupti.KERNEL], "launch"]


@pytest.mark.parametrize("why", ["a tool", "another listens", "no cupti-python"])
def test_nobody_tells_which_kernels_run(cupti, monkeypatch, why):
    """And the launch is not made."""
    if why == "a tool":
        monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    cupti.listened, cupti.missing = why == "another listens", why == "no cupti-python"
    assert launched.kernels_of(lambda: cupti.events.append("launch")) is None
    assert cupti.events == []
