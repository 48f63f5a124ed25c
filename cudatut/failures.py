"""Why an example could not be recorded on this machine, kept beside its recording and out of git.

`make live` builds the pages of all other examples, and shows the reason where this example's outputs would be.
"""

from pathlib import Path

from cudatut import paths
from cudatut.files import write_whole


def _file(name: str) -> Path:
    path = paths.examples_dir() / name
    return path.with_name(f".{path.name}.failed")


def keep(name: str, reason: str) -> None:
    """Remember why the last recording of an example failed. Where the folder cannot be written, nothing is kept."""
    try:
        write_whole(_file(name), (reason.strip() + "\n").encode())
    except OSError:
        return


def forget(name: str) -> None:
    """The example has been recorded: no reason is left."""
    _file(name).unlink(missing_ok=True)


def reason(name: str) -> str | None:
    """Why the last recording of an example failed on this machine, or None where none failed."""
    try:
        return _file(name).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def names() -> list[str]:
    """Examples whose last recording failed on this machine, sorted."""
    root = paths.examples_dir()
    found = (path.relative_to(root) for path in root.rglob(".*.failed"))
    return sorted(path.with_name(path.stem[1:]).as_posix() for path in found)
