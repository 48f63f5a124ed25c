"""A recording's file: the executed notebook with its birth certificate, written whole or not at all."""

import copy
import datetime
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cudatut import paths, recording
from cudatut.errors import CudatutError
from cudatut.files import write_whole
from cudatut.record.notebook import RecordingFailed, install_cell
from cudatut.record.run import Executed
from cudatut.results import MIME, Sanitizer


class UnwritableError(CudatutError):
    """Recordings cannot be written where they belong."""


def write(executed: Executed, sanitizers: list[Sanitizer]) -> Path:
    """Put a recording in its place, in one step, if it is whole and good. Returns its path.

    Raises RecordingFailed otherwise, and UnwritableError; the old recording is untouched then.
    """
    import nbformat

    notebook = copy.deepcopy(executed.notebook)
    notebook.cells.insert(0, install_cell(executed.example.name))
    notebook.metadata["cudatut"] = _certificate(executed) | {
        "sanitizers": [sanitizer.json() for sanitizer in sanitizers]
    }
    nbformat.validate(notebook)
    return _keep(executed, notebook, executed.example.notebook)


def write_slim(executed: Executed) -> Path:
    """Put the results of a run on another GPU than the book's own into results/<gpu>/. Returns the path; raises as `write`."""
    import nbformat

    notebook = nbformat.v4.new_notebook()
    for cell in executed.notebook.cells:
        if cell.cell_type == "code":
            shown = [output for output in cell.outputs if MIME in output.get("data", {})]
            for output in shown:
                output.data = {MIME: output.data[MIME]}
            slim = nbformat.v4.new_code_cell(id=cell.id, outputs=shown, execution_count=1)
            notebook.cells.append(slim)
    notebook.metadata["cudatut"] = _certificate(executed) | {"slim": True, "sanitizers": []}
    path = recording.slim_path(executed.session["gpu"]["name"], executed.example.name)
    return _keep(executed, notebook, path)


def _certificate(executed: Executed) -> dict[str, Any]:
    example = executed.example
    if executed.session["gpu"] is None:
        raise RecordingFailed(example.name, "its kernel saw no GPU")
    return {
        "schema": recording.SCHEMA,
        "name": example.name,
        "title": example.title,
        "requires": example.requires,
        "sources": executed.sources,
        "gpu": executed.session["gpu"],
        "toolchain": executed.session["toolchain"],
        "recorded_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(executed.sources),
        "duration_s": executed.duration_s,
    }


def _keep(executed: Executed, notebook: Any, path: Path) -> Path:
    """Sign a notebook and write it, if it is whole, good and fresh."""
    name = executed.example.name
    made = recording.parse(
        name, path, _raw(notebook)
    )  # what will be read, not what was to be written
    if problems := made.problems():
        raise RecordingFailed(name, "; ".join(problems))
    if changed := made.stale():
        raise RecordingFailed(name, f"{', '.join(changed)} changed while it was being recorded")
    notebook.metadata["cudatut"]["digest"] = made.digest()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, _raw(notebook))
    except OSError as error:
        raise UnwritableError(f"{path} cannot be written: {error.strerror}") from error
    return path


def _raw(notebook: Any) -> bytes:
    """A notebook as the bytes of its file."""
    import nbformat

    return (nbformat.writes(notebook, version=4).rstrip("\n") + "\n").encode()


def commit(sources: Iterable[str]) -> str:
    """Commit that the sources come from, with "-dirty" if any of them differs from it; "unknown" without git.

    $CUDATUT_COMMIT, where it is set, says it instead: for a copy on another machine, which has no .git or an old one.
    """
    if said := os.environ.get("CUDATUT_COMMIT"):
        return said
    root = paths.repo_root()
    if root:
        examples = paths.examples_dir()
        head = _git(root, "rev-parse", "HEAD")
        if head:
            changed = _git(
                root, "status", "--porcelain", "--", *(str(examples / name) for name in sources)
            )
            return head + ("" if changed == "" else "-dirty")
    return "unknown"


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
