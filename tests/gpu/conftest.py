"""Tests that need a GPU: skipped with the reason where there is none, failed where one was promised."""

import os

import pytest

import cudatut as ct


def pytest_collection_modifyitems(items):
    try:
        ct.activate()
    except ct.NoGpuError as error:
        if os.environ.get("CUDATUT_REQUIRE_GPU") == "1":
            raise
        for item in items:
            if "tests/gpu/" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason=str(error)))
