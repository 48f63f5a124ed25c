"""The project's files agree with each other: address, version, READMEs, wheel, Makefile."""

import os
import re
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
    """No path of somebody's home, no package index, no file of somebody's disk."""
    anywhere = re.compile(
        r"(?<![\w.-])/(?:(?:home|Users)/(?!somebody)|work/|root/)\w+"
        r"|registry\.npmjs|file:///|--(?:extra-)?index-url"
    )
    pypi = re.compile(r"files\.pythonhosted|pypi\.org/simple")
    # The lock has to name an index. That it is PyPI alone, tests/test_environment.py sees.
    names_pypi = ("uv.lock", "Makefile", "tools/environment.py", "tests/test_environment.py")
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = anywhere.search(line) or (name not in names_pypi and pypi.search(line))
            assert not found, f"{name}:{number}: {found[0]}"


def test_no_recipe_installs_anything_itself() -> None:
    """All goes through tools/environment.py."""
    recipes = [ROOT / "Makefile", ROOT / ".ci" / "run", *(ROOT / ".github/workflows").iterdir()]
    found = [
        line.strip()
        for path in recipes
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bpip3? install\b|\buv (pip|sync|add|tool)\b|\bnpm (i|install)\b", line)
    ]
    assert found == []


def test_extras_and_groups() -> None:
    """What readers install is an extra; what is only for this checkout is a group."""
    assert {"gpu", "vendor", "llm", "record", "nvcc"} <= set(PROJECT["optional-dependencies"])
    groups = {"uv", "build", "lint", "site", "print", "test", "gpu"}
    assert groups == set(TOML["dependency-groups"])
    assert PROJECT["requires-python"] == ">=3.11"


def test_messages_name_extras_and_groups_that_exist() -> None:
    """pip only warns of an extra that is not there, and installs nothing of it."""
    asked = {"pip_install": set(), "environment": set()}
    for path in sorted((ROOT / "cudatut").rglob("*.py")):
        for function, names in re.findall(
            r"""paths\.(pip_install|environment)\(["']([\w,]+)["']\)""",
            path.read_text(encoding="utf-8"),
        ):
            asked[function] |= set(names.split(","))
    assert asked["pip_install"] and asked["pip_install"] <= set(PROJECT["optional-dependencies"])
    assert asked["environment"] and asked["environment"] <= set(TOML["dependency-groups"])


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
    lines = re.findall(r"^([\w-]+(?: [\w-]+)*):", text("Makefile"), re.MULTILINE)
    targets = {target for line in lines for target in line.split()}
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
        "words.yml",
        "site/locale/zh.yml",
    ):
        assert f"cudatut/{name}" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "site/"))]
    assert len(names) == len(set(names))


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


def test_links_of_a_site_for_an_address(tmp_path: Path) -> None:
    """As it is published: the page for what is missing has links that begin with the address's path."""
    from cudatut.site.publishing import robots

    (tmp_path / "robots.txt").write_text(robots("https://example.org/book"))
    (tmp_path / "zh").mkdir()
    (tmp_path / "zh" / "index.html").write_text('<h1 id="top"></h1>')
    good = '<a href="/book/">x</a><a href="/book/zh/#top">x</a><a href="https://example.org/book/zh/">x</a>'
    (tmp_path / "index.html").write_text("")
    (tmp_path / "404.html").write_text(good)
    command = [sys.executable, ROOT / "tests" / "check_links.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "3 links inside the site, 0 broken" in done.stdout, done.stdout
    for bad in ("/zh/", "/book/en/", "/book/zh/#not", "https://example.org/book/en/"):
        (tmp_path / "404.html").write_text(f'<a href="{bad}">x</a>')
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1 and "1 broken" in done.stdout, f"{bad}: {done.stdout}"


def test_links_of_the_site(built_site: Path) -> None:
    command = [sys.executable, ROOT / "tests" / "check_links.py", built_site]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
