"""Libraries that examples import: each extra is what pyproject.toml has, and the imports are found."""

import re
import tomllib
from pathlib import Path

from cudatut import catalog, libraries

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# By module, the package that brings it, where they are called otherwise.
PACKAGE = {"cutlass": "nvidia-cutlass-dsl"}


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


def test_a_module_of_a_package_that_is_not_there():
    assert libraries.installed("json.decoder")
    assert not libraries.installed("nowhere_to_be_found")
    assert not libraries.installed("nowhere_to_be_found.driver")
