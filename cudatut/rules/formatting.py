"""Formatting: Python by ruff, CUDA C++ by clang-format, with the settings of the checkout."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cudatut import paths
from cudatut.errors import ToolMissing
from cudatut.finding import Finding
from cudatut.rules.places import finding

_MEND = "run `make format`"


def of_python(files: Sequence[Path], root: Path) -> list[Finding]:
    """What ruff finds in these files of the checkout `root`. Raises ToolMissing."""
    if not files:
        return []
    linted = _ruff(["check", "--output-format=json"], files, root)
    found = [
        finding(Path(one["filename"]), one["location"]["row"], _as_sentence(one))
        for one in json.loads(linted.stdout)
    ]
    for path in files:
        if _ruff(["format", "--check", "--quiet"], [path], root).returncode:
            found.append(finding(path, 0, f"ruff would format this otherwise: {_MEND}"))
    return found


def _as_sentence(one: dict) -> str:
    cure = f": {_MEND}" if one.get("fix") else f" ({one['url']})" if one.get("url") else ""
    return f"ruff says {one['code'] or 'that it cannot read this'}, {one['message']}{cure}"


def _ruff(command: list[str], files: Sequence[Path], root: Path) -> subprocess.CompletedProcess:
    if importlib.util.find_spec("ruff") is None:
        raise ToolMissing(f"ruff is not installed: `{paths.environment('lint')}`")
    ruff = [sys.executable, "-m", "ruff", *command, *map(str, files)]
    done = subprocess.run(ruff, cwd=root, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise ToolMissing(f"ruff does not run: {done.stderr.strip()}")
    return done


def of_cuda(files: Sequence[Path], root: Path) -> list[Finding]:
    """What clang-format would write otherwise, the first place in each file. Raises ToolMissing."""
    if not files:
        return []
    if importlib.util.find_spec("clang_format") is None:
        raise ToolMissing(f"clang-format is not installed: `{paths.environment('lint')}`")
    program = [sys.executable, "-c", "import clang_format; clang_format.clang_format()"]
    done = subprocess.run(
        [*program, "--dry-run", "--Werror", *map(str, files)],
        cwd=root,
        capture_output=True,
        text=True,
    )
    found: dict[Path, Finding] = {}
    for line in done.stderr.splitlines():
        file, _, rest = line.partition(": error: ")
        place, _, _ = file.rpartition(":")  # without the column
        name, _, number = place.rpartition(":")
        if rest and number.isdecimal():
            path = root / name
            said = finding(path, int(number), f"clang-format would write this otherwise: {_MEND}")
            found.setdefault(path, said)
    if done.returncode and not found:
        raise ToolMissing(f"clang-format does not run: {done.stderr.strip()}")
    return list(found.values())
