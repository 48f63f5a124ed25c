"""The project's files agree with each other: address, version, locks, READMEs, wheel, Makefile."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
TOML = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = TOML["project"]
ADDRESS = PROJECT["urls"]["Repository"]
LOCKS = ("site", "test", "gpu")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tracked() -> list[Path]:
    """Text files under version control; all that git would add, where nothing is committed yet."""
    if not shutil.which("git"):
        pytest.skip("git is not installed, so which files are the project's cannot be known")
    command = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    binary = {".png", ".woff2", ".ico", ".jpg", ".gguf"}
    return [path for path in paths if path.is_file() and path.suffix not in binary]


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags (!ENV, !!python/name:...) do not matter here."""


Loader.add_multi_constructor("", lambda loader, suffix, node: None)


def test_repository_address() -> None:
    assert yaml.load(text("mkdocs.yml"), Loader)["repo_url"] == ADDRESS
    assert yaml.safe_load(text("CITATION.cff"))["repository-code"] == ADDRESS
    owner = ADDRESS.removeprefix("https://github.com/")
    assert f"github.repository == '{owner}'" in text(".github/workflows/gpu.yml")
    for name in ("README.md", "README.zh.md"):
        assert f"git clone {ADDRESS} " in text(name)
        assert f"git+{ADDRESS}'" in text(name)
    # No other spelling anywhere, such as that of a fork.
    for path in tracked():
        for found in re.findall(r"github\.com[/:]([\w.-]+/cudatut)\b", path.read_text("utf-8")):
            assert found == owner, f"{path}: github.com/{found}"


def test_version() -> None:
    version = PROJECT["version"]
    assert yaml.safe_load(text("CITATION.cff"))["version"] == version
    assert re.search(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)[1] == version
    assert f'__version__ = "{version}"' in text("cudatut/__init__.py")


def test_nothing_of_one_machine() -> None:
    """No path of somebody's home, no package index, no file that a lock would take from a disk."""
    own = Path(__file__).name
    patterns = [
        r"(?<![\w.-])/(?:(?:home|Users)/(?!somebody)|work/|root/)\w+",
        r"registry\.npmjs",
        r"file:///",
        r"--(?:extra-)?index-url",
    ]
    pattern = re.compile("|".join([*patterns, r"files\.pythonhosted", r"pypi\.org/simple"]))
    for path in tracked():
        if path.name == own:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = pattern.search(line)
            assert not found, f"{path.relative_to(ROOT)}:{number}: {found[0]}"


def pins(name: str) -> dict[str, str]:
    """Requirement (name and marker) to version; asserts that each has a hash."""
    found = {}
    for entry in re.split(r"\n(?=\S)", text(f"requirements/{name}.lock").strip()):
        match = re.match(r"([\w.\[\]-]+)==(\S+)\s*(;[^\\\n]*)?", entry)
        assert match, f"{name}.lock: {entry.splitlines()[0]}"
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry)
        assert hashes, f"{name}.lock: {match[1]} has no hash"
        found[f"{match[1]}{(match[3] or '').strip()}"] = match[2]
    return found


def test_locks() -> None:
    """Every package with a hash, the same versions in each, and all that pyproject.toml asks for."""
    site, test, gpu = map(pins, LOCKS)
    assert set(site.items()) <= set(test.items()), "make lock: site.lock is not part of test.lock"
    shared = test.keys() & gpu.keys()
    assert {name: test[name] for name in shared} == {name: gpu[name] for name in shared}
    extras = PROJECT["optional-dependencies"]
    for lock, names in (
        (site, ["docs"]),
        (test, ["docs", "record", "llm", "nvcc", "test"]),
        (gpu, ["docs", "record", "gpu", "vendor", "llm", "test"]),
    ):
        locked = {re.match(r"[\w-]+", name)[0] for name in lock}
        wanted = [*PROJECT["dependencies"], *(item for name in names for item in extras[name])]
        for requirement in wanted:
            assert re.match(r"[\w-]+", requirement)[0] in locked, f"make lock: {requirement}"


def test_what_builds_is_locked_too() -> None:
    """build.lock has what builds packages without wheels, at the versions that the other locks have."""
    build = pins("build")
    assert {"setuptools", "wheel"} <= set(build)
    for requirement in TOML["dependency-groups"]["build"]:
        assert re.match(r"[\w-]+", requirement)[0] in build, f"make lock: {requirement}"
    for name in LOCKS:
        other = pins(name)
        for package in build.keys() & other.keys():
            assert build[package] == other[package], f"make lock: {package} of {name}.lock"


def installs(kind: str, folder: Path) -> list[list[str]]:
    """The commands by which requirements/venv.py installs, none of which is run."""
    script = runpy.run_path(str(ROOT / "requirements" / "venv.py"))
    set_up, ran = script["set_up"], []
    set_up.__globals__["run"] = lambda command, *_: ran.append(list(map(str, command)))
    folder.mkdir()
    set_up(str(folder), kind)
    return [command for command in ran if "pip" in command]


@pytest.mark.parametrize("kind", LOCKS)
def test_nothing_is_downloaded_that_no_lock_pins(kind: str, tmp_path: Path) -> None:
    """Neither a package nor what builds one: for the latter pip would make an environment of its own, without hashes."""
    locks = []
    for command in installs(kind, tmp_path / kind):
        assert "--no-build-isolation" in command, command
        assert "--require-hashes" in command or "--no-deps" in command, command
        locks += [Path(command[at + 1]).name for at, word in enumerate(command) if word == "-r"]
    assert locks == ["build.lock", f"{kind}.lock"]  # in this order


def test_no_recipe_installs_anything_itself() -> None:
    """All else goes through requirements/venv.py, but the tool that makes the locks."""
    recipes = [ROOT / "Makefile", ROOT / ".ci" / "run", *(ROOT / ".github/workflows").iterdir()]
    found = [
        line.strip()
        for path in recipes
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bpip3? install\b|\buv (pip|sync|add|tool)\b|\bnpm (i|install)\b", line)
    ]
    assert [line for line in found if ".cache/lock/" not in line] == []


def test_extras() -> None:
    assert {"gpu", "vendor", "llm", "record", "docs", "test"} <= set(
        PROJECT["optional-dependencies"]
    )
    assert PROJECT["requires-python"] == ">=3.11"


def outline(name: str) -> tuple[list[int], list[str]]:
    """Levels of the headings, and the lines of code, without comments."""
    content = text(name)
    levels = [len(match) for match in re.findall(r"^(#+) ", content, re.MULTILINE)]
    code = [
        line.strip() for line in content.splitlines() if line.startswith("    ") and line.strip()
    ]
    return levels, code


def test_readmes_say_the_same() -> None:
    english, chinese = outline("README.md"), outline("README.zh.md")
    assert english == chinese
    links = [
        {link.replace("docs/zh/", "docs/en/") for link in re.findall(r"\]\(([^)]+)\)", text(name))}
        for name in ("README.md", "README.zh.md")  # each leads to the pages in its language
    ]
    assert links[0] - {"README.zh.md"} == links[1] - {"README.md"}
    for command in ("make site", "make live", "make test"):
        assert command in english[1]


@pytest.mark.parametrize("name", ["README.md", "README.zh.md", "CONTRIBUTING.md"])
def test_links_of_the_repository(name: str) -> None:
    content = text(name)
    links = re.findall(r"\]\(([^)#]+)\)", content) + re.findall(
        r"(?:src|srcset)=\"([^\"]+)\"", content
    )
    for link in links:
        assert re.match(r"https?://", link) or (ROOT / link).exists(), f"{name}: {link}"


@pytest.mark.parametrize("name", ["README.md", "README.zh.md", "CONTRIBUTING.md"])
def test_make_targets_exist(name: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", text("Makefile"), re.MULTILINE))
    named = re.findall(r"(?:`|^    )make ((?:\w+=\S* )*)([a-z-]+)", text(name), re.MULTILINE)
    assert named and {target for _, target in named} <= targets


def test_ci_runs_the_readmes_command() -> None:
    assert text(".ci/run").rstrip().splitlines()[-1].removeprefix("exec ") == "make test"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_wheel_holds_the_examples(installed: Path) -> None:
    """`pip install` alone is enough to run the examples: sources and recordings are in the wheel."""
    (wheel,) = installed.parent.parent.glob("wheel/*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for path in (ROOT / "examples").rglob("*"):
        if path.suffix in (".py", ".cu", ".cuh", ".ipynb") and not path.name.startswith("."):
            assert f"cudatut/examples/{path.relative_to(ROOT / 'examples').as_posix()}" in names
    recordings = [path for path in (ROOT / "recordings").rglob("*") if path.is_file()]
    assert recordings
    for path in recordings:
        if "/." not in path.as_posix():
            assert f"cudatut/{path.relative_to(ROOT).as_posix()}" in names
    for name in (
        "gpu/nvcc.py",
        "gpu/probes.cu",
        "contents.yml",
        "exercises.yml",
        "site/locale/zh.yml",
    ):
        assert f"cudatut/{name}" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "site/"))]
    assert len(names) == len(set(names))


def set_up(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess:
    command = [python, ROOT / "requirements" / "venv.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_environment_as_it_is() -> None:
    """`make VENV=` uses the interpreter it is given."""
    done = set_up("", "site")
    assert done.returncode == 0 and done.stdout.strip() == sys.executable


def test_environment_without_venv_module(tmp_path: Path) -> None:
    """Debian's python3 without python3-venv: the message says what to install."""
    code = (
        "import importlib.util as u, runpy, sys; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'ensurepip' else real(name, *a)\n"
        f"sys.argv = ['venv.py', {str(tmp_path / 'x')!r}, 'site']\n"
        f"runpy.run_path({str(ROOT / 'requirements' / 'venv.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr and "VENV=" in done.stderr
    assert not (tmp_path / "x").exists()


def test_environment_of_an_old_python(tmp_path: Path) -> None:
    code = (
        "import runpy, sys; sys.version_info = (3, 9, 2)\n"
        f"sys.argv = ['venv.py', {str(tmp_path / 'x')!r}, 'site']\n"
        f"runpy.run_path({str(ROOT / 'requirements' / 'venv.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "Python 3.11 or newer" in done.stderr


def test_link_check_can_fail(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text('<a href="a/#there">x</a><a href="a/#not">y</a>')
    (tmp_path / "a" / "index.html").write_text('<h1 id="there"></h1><img src="../gone.png">')
    command = [sys.executable, ROOT / "tests" / "check_links.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "index.html: 'a/#not': no such anchor" in done.stdout
    assert "a/index.html: '../gone.png' leads nowhere" in done.stdout
    assert "#there" not in done.stdout


def test_links_of_the_site(built_site: Path) -> None:
    command = [sys.executable, ROOT / "tests" / "check_links.py", built_site]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
