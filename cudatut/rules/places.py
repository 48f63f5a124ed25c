"""Where in a file something stands that a rule speaks of."""

import re
from pathlib import Path

from cudatut import catalog, paths
from cudatut.finding import Finding


def finding(path: Path, line: int, message: str) -> Finding:
    """A finding in a file of the book."""
    return Finding(paths.shown(path), line, message)


def line_of_cell(path: Path, title: str) -> int:
    """The line of `# %% title` in a script; 0 where it has no such cell."""
    return _line(path, rf"^# %%[ \t]*(\[markdown\][ \t]*)?{re.escape(title)}[ \t]*$")


def line_of_exercise(path: Path, number: int) -> int:
    """The line of the header of a file of exercises on which exercise `number` begins; 0 where it has none."""
    return _line(path, rf"^#[ \t]+{number}:")


def _line(path: Path, pattern: str) -> int:
    text = catalog.read_text(path) if path.is_file() else ""
    found = re.search(pattern, text, re.MULTILINE)
    return text[: found.start()].count("\n") + 1 if found else 0
