"""Libraries that examples import: each extra is what pyproject.toml has, and the imports are found."""

import re
import tomllib
from pathlib import Path

import pytest

from cudatut import catalog, libraries

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# By module, the package that brings it, where they are called otherwise.
PACKAGE = {"cutlass": "nvidia-cutlass-dsl", "PIL": "pillow", "skimage": "scikit-image"}


def packages(extra):
    lines = PROJECT["optional-dependencies"][extra]
    return {re.match(r"[\w.-]+", line)[0] for line in lines}


def test_the_modules_of_an_extra_are_those_of_its_packages():
    for extra, modules in libraries.MODULES.items():
        assert {PACKAGE.get(module, module) for module in modules} == packages(extra), extra


def test_every_extra_of_an_example_is_looked_for():
    extras = {example.extra for example in catalog.examples(drafts=True)} - {""}
    assert extras and extras <= set(libraries.MODULES)


def test_what_the_files_of_an_example_import(monkeypatch):
    monkeypatch.setattr(libraries, "installed", lambda module: False)
    monkeypatch.setattr(libraries.device, "driver_cuda", lambda: (12, 4))
    lacks = lambda name: {  # noqa: E731
        one.name: one.command for one in libraries.missing_beside(catalog.get(name))
    }
    assert lacks("start/first_kernel") == {}
    assert lacks("reduction/naive") == {"CuPy": "pip install cupy-cuda12x"}
    # through rivals/torch_rival.py, and measure/graphs.py
    assert set(lacks("llm/serving_rivals")) >= {"PyTorch", "cuda-bindings"}
    assert "[graphs12]" in lacks("llm/serving_rivals")["cuda-bindings"]
    monkeypatch.setattr(libraries, "installed", lambda module: True)
    assert lacks("llm/serving_rivals") == {}


def test_the_headers_of_cutlass_are_looked_for_by_their_package(monkeypatch):
    from cudatut.book.images.cutlass_conv import conv

    assert conv.PACKAGE == libraries.CUTLASS
    monkeypatch.setattr(libraries, "installed", lambda module: module != "cutlass_library")
    (lack,) = libraries.missing_beside(catalog.get("images/cutlass_conv"))
    assert (lack.name, lack.command) == ("CUTLASS", f"pip install --no-deps {conv.PACKAGE}")


def test_a_module_of_a_package_that_is_not_there():
    assert libraries.installed("json.decoder")
    assert not libraries.installed("nowhere_to_be_found")
    assert not libraries.installed("nowhere_to_be_found.driver")


@pytest.mark.parametrize(
    ("cuda", "cupy", "bindings"),
    [
        ((13, 0), "cupy-cuda13x", "[graphs13]"),
        ((12, 0), "cupy-cuda12x", "[graphs12]"),
        ((11, 8), None, None),
        (None, None, None),
    ],
)
def test_what_is_told_to_pip_fits_the_driver(book, monkeypatch, cuda, cupy, bindings):
    """Where nothing fits, nothing is said to be missing."""
    monkeypatch.setattr(libraries, "installed", lambda module: module == "torch")
    monkeypatch.setattr(libraries.device, "driver_cuda", lambda: cuda)
    monkeypatch.setattr(libraries.device, "cupy_package", lambda: cupy)
    book.example(
        "a/add", "# %% a\nimport torch\nfrom cuda.bindings import driver\nct.vendor.sum(x)\n"
    )
    found = {one.name: one.command for one in libraries.missing_beside(catalog.get("a/add"))}
    assert found.get("CuPy") == (cupy and f"pip install {cupy}")
    assert (found.get("cuda-bindings") or "None").endswith(f"{bindings}'" if bindings else "None")
    assert "PyTorch" not in found


@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        ("import torch.nn as nn", True),
        ("    from torch import cuda", True),
        ("import torchvision", False),
        ("x = 'import torch'", False),
        ("vendor = 1", False),
        ('found = find_spec("torch")', True),
        ('found = find_spec("torchvision")', False),
    ],
)
def test_a_library_is_known_by_its_imports(book, monkeypatch, line, lacks):
    monkeypatch.setattr(libraries, "installed", lambda module: False)
    monkeypatch.setattr(libraries.device, "driver_cuda", lambda: (12, 4))
    book.example("a/add", f"# %% a\nif able:\n    pass\n{line}\n")
    found = [one.name for one in libraries.missing_beside(catalog.get("a/add"))]
    assert found == (["PyTorch"] if lacks else [])


def test_the_modules_that_an_extra_lacks(monkeypatch):
    monkeypatch.setattr(libraries, "installed", lambda module: module == "gguf")
    assert libraries.missing("llm") == ["tokenizers"] and libraries.missing("gpu") == ["pycuda"]
    assert libraries.missing("") == [] and libraries.missing("nowhere") == []
