"""What a recording says of where it was made."""

import re
import sys
from importlib import metadata

import pytest

from cudatut.record import session


def test_the_first_installed_package_tells_its_version(monkeypatch):
    versions = {"cupy-cuda12x": "12.3", "cupy": "1.0"}

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(session.metadata, "version", version)
    assert session._version("cupy-cuda13x", "cupy-cuda12x", "cupy") == "12.3"
    assert session._version("nothing") is None


def test_the_toolchain_names_what_is_here_and_none_for_what_is_not(monkeypatch):
    numpy = pytest.importorskip("numpy")
    found = session._toolchain()
    assert found["numpy"] == numpy.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["python"])
    assert sys.version.startswith(found["python"])
    assert set(found) == {
        "cuda", "nvcc", "pycuda", "python", "numpy", "cupy",
    }  # fmt: skip
