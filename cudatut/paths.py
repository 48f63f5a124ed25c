"""Where things are: the examples and the repository."""

import os
import sys
from functools import cache
from pathlib import Path

from cudatut import words

READ = "cudatut.read"  # the event of Python's audit hooks by which `note_read` tells of a file
_say = words.section("paths")


@cache  # asked thousands of times: where each file of each recording is
def repo_root() -> Path | None:
    """Root of the checkout that this package runs from, or None when it is installed elsewhere."""
    root = Path(__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").is_file() and (root / "examples").is_dir() else None


@cache
def repository() -> str:
    """Address of the project's repository, from pyproject.toml or from what pip kept of it."""
    if root := repo_root():
        import tomllib

        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return project["urls"]["Repository"]
    from importlib.metadata import metadata

    urls = (entry.partition(", ") for entry in metadata("cudatut").get_all("Project-URL", []))
    return next(address for label, _, address in urls if label == "Repository")


def pip_install(extra: str) -> str:
    """The command that installs what this extra of pyproject.toml holds, from where this cudatut runs.

    The project is not on PyPI: in a checkout it is the checkout that pip is given, elsewhere the repository.
    """
    if root := repo_root():
        here = "." if root == Path.cwd().resolve() else str(root)
        return f"pip install -e '{here}[{extra}]'"
    return f"pip install 'cudatut[{extra}] @ git+{repository()}'"


def environment(group: str) -> str:
    """The command that gives .venv of a checkout what a group of pyproject.toml holds; what `make` runs first."""
    return f"python tools/environment.py .venv {group}"


def examples_dir() -> Path:
    """Folder of the examples: $CUDATUT_EXAMPLES, else the checkout's, else the copy inside the installed package."""
    if override := os.environ.get("CUDATUT_EXAMPLES"):
        return Path(override).resolve()
    return (repo_root() or Path(__file__).resolve().parent) / "examples"


def docs_dir() -> Path:
    """Folder of the pages, beside the examples; an installed package has none."""
    return examples_dir().parent / "docs"


def shown(path: Path) -> str:
    """A file's name in messages: relative to the folder that holds the examples and the pages."""
    root = examples_dir().parent
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def recordings_dir() -> Path:
    """Folder of what GPUs measured: $CUDATUT_RECORDINGS, else recordings/ beside the examples."""
    override = os.environ.get("CUDATUT_RECORDINGS")
    return Path(override).resolve() if override else examples_dir().parent / "recordings"


def resolve_source(path: str | os.PathLike) -> Path:
    """Absolute path of a kernel file: as given if absolute, else relative to the examples, else to the working folder.

    Raises FileNotFoundError naming every place that was looked at.
    """
    path = Path(path)
    places = [path] if path.is_absolute() else [examples_dir() / path, Path.cwd() / path]
    for place in places:
        if place.is_file():
            return place.resolve()
    looked = ", ".join(str(place) for place in places)
    raise FileNotFoundError(_say("no kernel file", path=path, places=looked))


def note_read(path: str | os.PathLike) -> None:
    """Remember that this process used an example file in a way that cudatut cannot see: its recording depends on it."""
    # An event, since `cudatut.fingerprint.ran`, which follows what runs, imports this module.
    sys.audit(READ, path)
