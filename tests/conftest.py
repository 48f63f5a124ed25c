"""Shared by all tests: what to do where a tool is missing, the built site, the browser, the compiler.

The tests of one file run in one process, so that its fixtures are made once; the compile tests are
many and independent, so they are spread over all processes (`make test` uses --dist loadgroup).
"""

import base64
import fcntl
import gc
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import kept
import needed
import pytest
import spending
import thinned

from cudatut import words
from cudatut.errors import ToolMissing
from cudatut.gpu import nvcc
from cudatut.site import publishing

ROOT = Path(__file__).resolve().parent.parent
os.environ[words.VARIABLE] = "en"  # what tests look for, here and in processes that they start
# Processes that tests start keep what they compile of the package: there are hundreds of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What takes longest begins first, in this order: `make test` has pytest-xdist keep it.
FIRST = (
    "tests/planted/test_planted.py",
    "tests/site/test_every_page.py",
    "tests/test_commands.py",
    "tests/site/test_browser.py",
    "tests/test_notebooks.py",
    "tests/cudatut/record/test_recorder.py",
    "tests/site/test_plugin.py",
)
NEIGHBORS = 8  # so many short tests go to one process together
# Each test of these has processes of its own.
SPREAD = ("/tests/gpu/test_programs.py", "/tests/gpu/test_exercises.py")
LEFT_OUT = pytest.StashKey()  # how many tests --full would add, and how many run


def pytest_addoption(parser):
    parser.addoption(
        "--full",
        action="store_true",
        help="whole sweeps, and what is marked `full` (tests/support/thinned.py), as `make test-full` runs them",
    )
    parser.addoption(
        "--costs",
        action="store_true",
        help="say at the end which files, chapters and tests cost the most processor seconds",
    )
    parser.addoption(
        "--all-architectures",
        action="store_true",
        help="compile every kernel for all architectures that it claims, each from its own front end on",
    )
    parser.addoption(
        "--traces",
        type=int,
        help="random traces of requests that tests/llm runs through the scheduler (200; with --full all that the book claims: 10000)",
    )
    parser.addoption(
        "--smollm2",
        action="store_true",
        help="run the reference on SmolLM2 too, which is downloaded (98 MB) if it is not in the cache",
    )


def pytest_configure(config):
    # Collecting makes some hundred thousand objects that all stay; looking through them for garbage takes a fifth of its time.
    gc.disable()
    if config.option.traces is None:
        config.option.traces = 10_000 if config.option.full else 200
    config.pluginmanager.register(spending.Costs(config.option.costs))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One process more than there are cores: many tests wait for a process of their own, for a browser, or for a clock."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(config, items):
    def place(item):
        path = item.path.as_posix()
        if "/tests/examples/" in path or path.endswith(SPREAD):
            return len(FIRST) + 1  # short ones, which fill what is left at the end
        return next((i for i, name in enumerate(FIRST) if path.endswith(name)), len(FIRST))

    if not config.getoption("--full"):
        all_of_them = needed.IN_CI or thinned.asked_for(config.args, config.option.keyword)
        long = thinned.listed(thinned.IN_CI.read_text(encoding="utf-8"))
        items[:], left = thinned.thinned(items, {} if all_of_them else long)
        config.hook.pytest_deselected(items=left)
        config.stash[LEFT_OUT] = len(left), len(items)
    items.sort(key=place)
    short = itertools.count()
    for item in items:
        group = item.path.relative_to(ROOT).as_posix()
        if place(item) > len(FIRST):
            # One group for each would have pytest-xdist compare thousands of them after each test.
            group = None if item.path.as_posix().endswith(SPREAD) else next(short) // NEIGHBORS
        if group is not None and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(str(group)))


def pytest_collection_finish():
    gc.enable()
    gc.freeze()


def pytest_report_collectionfinish(config):
    return thinned.said(*config.stash.get(LEFT_OUT, (0, 0)))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """A process of pytest-xdist is done; they all have collected the same."""
    if counts := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = counts


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, (0, 0))


def pytest_terminal_summary(terminalreporter, config):
    for line in thinned.said(*config.stash.get(LEFT_OUT, (0, 0))):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def missing():
    """Call it with a reason when something a test needs is not here: skips; fails in CI ($CI)."""
    return needed.missing


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, worker_id):
    """A folder that all processes of this run see (each has its own base below it)."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def built_site(shared_folder):
    """Folder of the site, built strictly, in both languages: English in it, Chinese in zh/. No test may write to it.

    It is built once for all that it is built from, and kept (tests/support/kept.py).
    """
    made_from = _sources_of_the_site(ROOT)

    def build(out):
        command = [sys.executable, "-m", "cudatut.site", "build", "--out", str(out)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"the site does not build:\n{done.stdout}\n{done.stderr}"

    if made_from is None:  # no checkout: once a run
        return kept.Kept(shared_folder).made("site", build)
    sites = kept.Kept(kept.cache_folder() / "site", most=3)
    return sites.made(sites.key(made_from), build)


# What no page shows and no build reads.
NOT_ON_THE_SITE = ("tests/", "tools/", ".ci/", ".github/", "Makefile", "CONTRIBUTING", "README")


def _sources_of_the_site(root):
    """All that the built site follows from, as JSON can write it; None where this is no checkout of git.

    Every file that git does not ignore, but for those of NOT_ON_THE_SITE; the versions of what is installed, and the
    variables that the build reads.
    """
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode:
        return None
    files = {}
    for name in sorted(set(listed.stdout.split("\0")) - {""}):
        path = root / name
        if not name.startswith(NOT_ON_THE_SITE) and path.is_file():
            files[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    installed = sorted({f"{one.name} {one.version}" for one in metadata.distributions()})
    read = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name == "SITE_URL" or (name.startswith("CUDATUT_") and name != "CUDATUT_TEST_CACHE")
    ]
    return [files, sys.version, installed, read]


@pytest.fixture(scope="session")
def sources_of_the_site():
    return _sources_of_the_site


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
    """Python of a fresh environment with the project and its dependencies alone, from the zip that the site offers, once a run.

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
            publishing.package(folder / publishing.PACKAGE, ROOT)
            options = ["--no-deps", "--no-build-isolation", "--wheel-dir", folder / "wheel"]
            options.append(folder / publishing.PACKAGE)
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


# --- the compiler ----------------------------------------------------------------------------------

_INCLUDES = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"\n]+)"|<([^>\n]+)>)?', re.M)
# What changes what nvcc makes of the same words.
_ENVIRONMENT = (
    *("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"),
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"),
)


@dataclass(frozen=True)
class Compiled:
    """status: nvcc's; log: what it said; output: the file that it made, where asked for."""

    status: int
    log: str
    output: bytes = b""


class Compiler:
    """nvcc, run once for the same words: the results of runs without an error are kept in `folder`.

    A result is found again by the SHA-256 of all that it depends on: source, the headers of ours that the source includes,
    flags, versions of nvcc and of the host compiler, and the variables that they read.
    """

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder, self.results = program, folder, kept.Kept(folder)
        host = [nvcc.find_host_compiler(), "--version"]
        said = [
            subprocess.run(command, capture_output=True, text=True).stdout
            for command in ([program, "--version"], host)
        ]
        wheels = metadata.distributions() if nvcc.is_from_pypi(program) else ()
        names = [f"{w.name} {w.version}" for w in wheels if w.name.startswith("nvidia-")]
        self.tools = [*said, sorted(names), [os.environ.get(name) for name in _ENVIRONMENT]]

    @staticmethod
    def included(text: str, folders: Sequence[Path]) -> dict[str, bytes] | None:
        """Of what a source includes the files that are ours, by their names below the checkout; None if that cannot be known.

        A header that is in none of these folders is the toolkit's or the host compiler's: their versions tell.
        """
        found: dict[str, bytes] = {}

        def read(text: str, beside: Sequence[Path]) -> bool:
            if "__has_include" in text:
                return False
            for quoted, named in _INCLUDES.findall(text):
                if not quoted and not named:  # a macro's
                    return False
                places = [*beside, *folders] if quoted else folders
                path = next(
                    (f / (quoted or named) for f in places if (f / (quoted or named)).is_file()),
                    None,
                )
                if (
                    path is not None
                    and (name := os.path.relpath(path.resolve(), ROOT)) not in found
                ):
                    found[name] = path.read_bytes()
                    if not read(found[name].decode(), [path.parent]):
                        return False
            return True

        return found if read(text, ()) else None

    def key(self, text: str, flags: Sequence[str], folders: Sequence[Path]) -> str | None:
        headers = self.included(text, folders)
        if headers is None:
            return None
        files = {name: hashlib.sha256(data).hexdigest() for name, data in headers.items()}
        order = [os.path.relpath(folder, ROOT) for folder in folders]
        parts = [1, self.tools, text, list(flags), order, sorted(files.items())]
        return self.results.key(*parts)

    def __call__(
        self,
        text: str,
        flags: Sequence[str],
        work: Path,
        folders: Sequence[Path] = (),
        places: Sequence[str] = (),
        output: bool = False,
    ) -> Compiled:
        """Compile `text` in the folder `work`, to its file `out`. places: flags that differ from machine to machine."""
        key = self.key(text, flags, folders)
        if key and (known := self.results.read(key)) is not None:
            try:
                found = json.loads(known)
                if not output or found["output"]:
                    return Compiled(0, found["log"], base64.b64decode(found["output"]))
            except (ValueError, KeyError):
                pass  # cut short: compiled again
        (work / "source.cu").write_text(text, encoding="utf-8")
        command = [self.program, *flags, *(f"-I{folder}" for folder in folders), *places]
        done = subprocess.run(
            [*command, "-MD", "-MF", "needs", "-o", "out", "source.cu"], cwd=work,
            capture_output=True, text=True, timeout=600, env=nvcc.nvcc_env(self.program),
        )  # fmt: skip
        made = (work / "out").read_bytes() if output and done.returncode == 0 else b""
        compiled = Compiled(done.returncode, done.stdout + done.stderr, made)
        if key and done.returncode == 0:
            self.knows_all(text, folders, work)
            whole = {"log": compiled.log, "output": base64.b64encode(made).decode()}
            self.results.write(key, json.dumps(whole).encode())
        return compiled

    def knows_all(self, text: str, folders: Sequence[Path], work: Path) -> None:
        """Raises AssertionError where nvcc read a file of ours that the key does not know of."""
        ours = self.included(text, folders)
        packages = Path(sys.prefix).resolve()  # nvcc's own headers, where it comes from PyPI
        needs = (work / "needs").read_text(encoding="utf-8").replace("\\\n", " ").split()
        for name in needs[needs.index(":") + 1 :]:
            path = (work / name).resolve()
            if path.is_relative_to(ROOT) and not path.is_relative_to(packages):
                assert os.path.relpath(path, ROOT) in ours, f"the key does not know of {name}"


@pytest.fixture(autouse=True)
def english(monkeypatch):
    """A command that spoke another language, as `--lang` asked, is the last to do so."""
    monkeypatch.setenv(words.VARIABLE, "en")


@pytest.fixture(scope="session")
def compiler(missing) -> Compiler:
    """Call it to compile. Without nvcc or a host compiler: skipped with the reason; in CI a failure.

    Results are kept in $CUDATUT_TEST_CACHE (otherwise .cache/tests), which CI keeps between runs.
    """
    try:
        program = nvcc.find_nvcc()
        nvcc.find_host_compiler()
    except ToolMissing as error:
        missing(str(error))
    return Compiler(program, kept.cache_folder() / "nvcc")
