"""Tests that need a GPU: skipped with the reason where there is none, failed where one was promised."""

import os
import sys
from pathlib import Path

import pytest

import cudatut as ct

sys.path.insert(
    0, str(Path(__file__).parent)
)  # kernel_faults.py is a script of its own and a module of the tests


def pytest_collection_modifyitems(items):
    try:
        ct.activate()
    except ct.NoGpuError as error:
        if os.environ.get("CUDATUT_REQUIRE_GPU") == "1":
            raise
        for item in items:
            if "tests/gpu/" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason=str(error)))
