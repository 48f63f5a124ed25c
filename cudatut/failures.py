"""Why an example could not be recorded on this machine, kept in recordings/.failed, out of git.

`make live` builds the pages of all other examples, and shows the reason where this example's outputs would be.
"""

from pathlib import Path

from cudatut import paths
from cudatut.files import write_whole


def _file(name: str = "") -> Path:
    """Where the reason for an example is kept; without a name, the folder of all."""
    return paths.recordings_dir() / ".failed" / name


def keep(name: str, reason: str) -> None:
    """Remember why the last recording of an example failed. Where the folder cannot be written, nothing is kept."""
    try:
        _file(name).parent.mkdir(parents=True, exist_ok=True)
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
    files = (path for path in _file().rglob("*") if path.is_file())
    return sorted(path.relative_to(_file()).as_posix() for path in files)
