"""Tests that need a GPU: skipped with the reason where there is none, failed where one was promised."""

import os

import pytest
import zones

import cudatut as ct

zones.watch()


@pytest.fixture(autouse=True)
def nothing_beside_arrays_is_written(request):
    """By any kernel that a test launches, unless it is marked `writes_outside`."""
    zones.damaged()
    yield
    found = zones.damaged()
    if found and not request.node.get_closest_marker("writes_outside"):
        pytest.fail("a kernel wrote outside its arrays:\n  " + "\n  ".join(found), pytrace=False)


@pytest.fixture
def path_of_tests(pytestconfig, monkeypatch):
    """Processes that a test starts find the modules that tests share."""
    folders = [str(folder) for folder in pytestconfig.getini("pythonpath")]
    known = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [*folders, known])))


def pytest_collection_modifyitems(items):
    try:
        ct.activate()
    except ct.NoGpuError as error:
        if os.environ.get("CUDATUT_REQUIRE_GPU") == "1":
            raise
        for item in items:
            if "tests/gpu/" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason=str(error)))
