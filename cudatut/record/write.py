"""A recording's file: the executed notebook with its birth certificate, written whole or not at all."""

import copy
import datetime
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cudatut import certificate, instrument, paths, recording
from cudatut.catalog import INSTALL_CELL
from cudatut.errors import CudatutError
from cudatut.files import write_whole
from cudatut.history import git
from cudatut.record.run import Executed
from cudatut.recording import DamagedRecordingError, UnfitRecordingError
from cudatut.results import Sanitizer
from cudatut.to_notebook import RecordingFailed, install_cell, raw


class UnwritableError(CudatutError):
    """Recordings cannot be written where they belong."""


def write(executed: Executed, sanitizers: list[Sanitizer]) -> None:
    """Put a recording in its place, in one step, if it is whole and good.

    Raises RecordingFailed otherwise, and UnwritableError; the old recording is untouched then.
    """
    notebook = copy.deepcopy(executed.notebook)
    notebook.cells.insert(0, install_cell(executed.example))
    verdicts = [sanitizer.json() for sanitizer in sanitizers]
    gpu, name = executed.gpu["name"], executed.example.name
    path = recording.own_path(gpu, name)
    _keep(executed, notebook, path, verdicts, {})
    # An example has one whole recording, on whichever GPU, and each GPU has one of it.
    recording.slim_path(gpu, name).unlink(missing_ok=True)
    for other in recording.whole_paths(name):
        if other != path:
            slim_down(name, other)


def slim_down(name: str, path: Path) -> None:
    """Leave of another GPU's whole recording what pages offer beside the book's own, if it may be shown.

    Raises UnwritableError; the whole one is untouched then.
    """
    import nbformat

    with suppress(UnfitRecordingError, DamagedRecordingError):  # nothing of it may be shown
        old = recording.good(recording.parse(name, path, path.read_bytes()))
        if not old.dirty:
            whole = nbformat.reads(path.read_text("utf-8"), as_version=4)
            slim = _thinned(whole.cells)
            slim.metadata["cudatut"] = whole.metadata["cudatut"] | recording.SLIM
            _sign(name, slim, recording.slim_path(old.gpu, name))
    path.unlink()


def write_slim(executed: Executed) -> None:
    """Put the results of a run on another GPU than the book's own into recordings/<gpu>/. Raises as `write`."""
    path = recording.slim_path(executed.gpu["name"], executed.example.name)
    _keep(executed, _thinned(executed.notebook.cells), path, [], recording.SLIM)


def _thinned(cells: Iterable[Any]) -> Any:
    """A notebook with the titles and the results of the cells alone."""
    import nbformat

    notebook = nbformat.v4.new_notebook()
    for cell in cells:
        if cell.cell_type == "code" and cell.id != INSTALL_CELL:
            shown = map(nbformat.from_dict, recording.results_alone(cell.outputs))
            slim = nbformat.v4.new_code_cell(id=cell.id, outputs=list(shown), execution_count=1)
            notebook.cells.append(slim)
    return notebook


def _keep(
    executed: Executed, notebook: Any, path: Path, verdicts: list[Any], more: dict[str, Any]
) -> None:
    """Certify a notebook, and write it as `_sign` does."""
    example = executed.example
    notebook.metadata["cudatut"] = {
        "schema": certificate.SCHEMA,
        "name": example.name,
        "title": example.title,
        "requires": example.requires,
        "sources": executed.sources,
        "meanings": executed.meanings,
        "kernels": executed.session["kernels"],
        # Of libraries that were measured beside our kernels: their versions, and the kernels that they launched.
        "rivals": executed.session["rivals"].get("versions", {}),
        "launched": executed.session["rivals"].get("kernels", {}),
        # The verdicts of the sanitizers are the instrument's, too.
        "instrument": instrument.used([*executed.session["used"], *["checking"] * bool(verdicts)]),
        "gpu": executed.gpu,
        "toolchain": executed.session["toolchain"],
        "recorded_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(executed.sources),
        "duration_s": executed.duration_s,
        "sanitizers": verdicts,
    } | more
    _sign(example.name, notebook, path)


def _sign(name: str, notebook: Any, path: Path) -> None:
    """Write a certified notebook, if it is whole, good and fresh."""
    import nbformat

    nbformat.validate(notebook)
    # Read back what is to be written: that is what must be good.
    made = recording.parse(name, path, raw(notebook))
    if problems := made.problems():
        raise RecordingFailed(name, "; ".join(problems))
    if changed := made.stale():
        reason = f"{', '.join(changed)} changed while it was being recorded"
        raise RecordingFailed(name, reason)
    if problems := made.disagreements():
        raise RecordingFailed(name, "; ".join(problems))
    notebook.metadata["cudatut"]["digest"] = made.digest()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, raw(notebook))
    except OSError as error:
        raise UnwritableError(f"{path} cannot be written: {error.strerror}") from error


def commit(sources: Iterable[str]) -> str:
    """Commit that the sources and the instrument come from, with "-dirty" if any of them differs from it; "unknown" without git.

    $CUDATUT_COMMIT, where it is set, says it instead: for a copy on another machine, which has no .git or an old one.
    """
    if said := os.environ.get("CUDATUT_COMMIT"):
        return said
    root, examples = paths.repo_root(), paths.examples_dir()
    if root is None or not (head := git(root, "rev-parse", "HEAD")):
        return "unknown"
    files = [*(str(examples / name) for name in sources), *map(str, instrument.files())]
    changed = git(root, "status", "--porcelain", "--", *files)
    return head if changed == "" else f"{head}-dirty"
