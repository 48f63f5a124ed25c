"""Versions of rivals' libraries: stand-ins answer as the libraries do, and the files need not be there."""

from pathlib import Path
from types import SimpleNamespace

from cudatut.gpu import rivals


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
