"""Shared by all tests: what to do where a tool is missing, the built site, the browser.

The tests of one file run in one process, so that its fixtures are made once; the compile tests are
many and independent, so they are spread over all processes (`make test` uses --dist loadgroup).
"""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Each test of these has processes of its own.
SPREAD = ("/tests/gpu/test_programs.py", "/tests/gpu/test_exercises.py")
IN_CI = os.environ.get("CI", "") not in ("", "0", "false")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items):
    for item in items:
        path = item.path.as_posix()
        if "/tests/examples/" not in path and not path.endswith(SPREAD):
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


# What the project and its dependencies consist of, by the names under which they lie in site-packages.
DEPENDENCIES = (
    "numpy",
    "numpy.libs",
    "platformdirs",
    "yaml",
    "_yaml",
    "rich",
    "markdown_it",
    "mdurl",
    "pygments",
)


@pytest.fixture(scope="session")
def installed(shared_folder):
    """Python of a fresh environment with the project's wheel and its dependencies alone, made once a run.

    `pycuda` is a stand-in there that can be imported; whatever is asked of it raises NeedsGpu.
    """
    folder = shared_folder / "installed"
    python = folder / "bin" / "python"
    with open(shared_folder / "installed.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
            options = ["--no-deps", "--no-build-isolation", "--wheel-dir", folder / "wheel", ROOT]
            done = subprocess.run([*pip, *options], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr[-3000:]
            (wheel,) = (folder / "wheel").glob("*.whl")
            (packages,) = folder.glob("lib/python3*/site-packages")
            with zipfile.ZipFile(wheel) as whole:
                whole.extractall(packages)
            ours = Path(sysconfig.get_path("platlib"))
            for name in DEPENDENCIES:
                if (ours / name).exists():
                    (packages / name).symlink_to(ours / name)
            shutil.copytree(ROOT / "tests" / "stand_ins" / "pycuda", packages / "pycuda")
            (folder / ".done").touch()
    return python


@pytest.fixture(scope="session")
def chromium(missing):
    """Path of Chromium or Chrome, from $CHROMIUM or PATH."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    named = os.environ.get("CHROMIUM")
    path = shutil.which(named) if named else next(filter(None, map(shutil.which, names)), None)
    if path is None:
        missing("no Chromium (Debian: apt-get install chromium; or set CHROMIUM to its path)")
    return Path(path)
