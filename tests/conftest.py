"""Shared by all tests: what to do where a tool is missing, the built site, the browser.

The tests of one file run in one process, so that its fixtures are made once; the compile tests are
many and independent, so they are spread over all processes (`make test` uses --dist loadgroup).
"""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI", "") not in ("", "0", "false")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items):
    for item in items:
        if "/tests/examples/" not in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(ROOT).as_posix()))


@pytest.fixture(scope="session")
def missing():
    """Call it with a reason when something a test needs is not here: skips; fails in CI ($CI)."""

    def report(reason):
        if IN_CI:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return report


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, worker_id):
    """A folder that all processes of this run see (each has its own base below it)."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def built_site(shared_folder):
    """Folder of the site, built once a run, strictly, in both languages: English in it, Chinese in zh/."""
    out = shared_folder / "site"
    with open(shared_folder / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / ".done").exists():
            shutil.rmtree(out, ignore_errors=True)
            command = [sys.executable, "-m", "cudatut.site", "build", "--out", str(out)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, f"the site does not build:\n{done.stdout}\n{done.stderr}"
            (out / ".done").touch()
    return out


@pytest.fixture(scope="session")
def chromium(missing):
    """Path of Chromium or Chrome, from $CHROMIUM or PATH."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    named = os.environ.get("CHROMIUM")
    path = shutil.which(named) if named else next(filter(None, map(shutil.which, names)), None)
    if path is None:
        missing("no Chromium (Debian: apt-get install chromium; or set CHROMIUM to its path)")
    return Path(path)
