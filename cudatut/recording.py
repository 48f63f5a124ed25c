"""Recordings: executed notebooks beside their examples, read as plain JSON and never trusted blindly.

A recording is whole (every cell ran, all four sanitizers reported), untouched (its digest is that of what it holds), good
(no failed check, no error, no zero or NaN time, no sanitizer error) and fresh (every file that it was made from is
unchanged) before anything shows it.
Making one needs a GPU and lives in `cudatut.record.recorder`.
"""

import datetime
import difflib
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cudatut import catalog, paths, results
from cudatut.errors import CudatutError
from cudatut.results import MIME
from cudatut.tool import SANITIZERS

SCHEMA = 1
INSTALL_CELL = "install"

# What the metadata must hold, with the type of each.
_METADATA = {
    "name": str,
    "title": dict,
    "requires": str,
    "sources": dict,
    "gpu": dict,
    "toolchain": dict,
    "recorded_at": str,
    "commit": str,
    "duration_s": (int, float),
    "sanitizers": list,
}
_GPU = {"name": str, "compute_capability": str, "memory_bytes": int, "sm_count": int, "driver": str}


class MissingRecordingError(CudatutError):
    """An example that was never recorded."""


class DamagedRecordingError(CudatutError):
    """A recording that is no JSON, was cut short, or was not made by `python -m cudatut record`."""


class StaleRecordingError(CudatutError):
    """A recording made from files that have changed since."""


class EditedRecordingError(CudatutError):
    """A recording whose cells, outputs or metadata were changed after it was made: its digest differs."""


class FailedRecordingError(CudatutError):
    """A recording with a failed check, an error, a sanitizer error or an impossible time in it."""


class UnknownCellError(CudatutError):
    """A recording has no cell of this name; the message names those it has."""


def mend(name: str) -> str:
    """The command that makes a recording anew."""
    return f"python -m cudatut record {name}"


@dataclass(frozen=True)
class Cell:
    """One cell: `title` is its address, `kind` "code" or "markdown", `outputs` are nbformat 4 dicts with joined text."""

    title: str
    kind: str
    source: str
    outputs: list[dict[str, Any]]
    executed: bool

    def results(self) -> list[dict[str, Any]]:
        """The results (schema v1) that this cell showed, in order."""
        return [output["data"][MIME] for output in self.outputs if MIME in output.get("data", {})]


@dataclass(frozen=True)
class Recording:
    """A recording as it lies in its file. `metadata` is the notebook's `cudatut` metadata (schema in docs/en/contributing.md)."""

    name: str
    path: Path
    metadata: dict[str, Any]
    cells: list[Cell]

    @cached_property
    def _by_title(self) -> dict[str, Cell]:
        return {cell.title: cell for cell in self.cells}

    def cell(self, title: str) -> Cell:
        """The cell of this title. Raises UnknownCellError naming the cells that there are."""
        if title not in self._by_title:
            close = difflib.get_close_matches(title, self._by_title, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            have = ", ".join(cell.title for cell in self.cells if cell.kind == "code")
            raise UnknownCellError(f"{self.name} has no cell '{title}'.{hint} Its cells: {have}.")
        return self._by_title[title]

    def results(self, title: str) -> list[dict[str, Any]]:
        """The results (schema v1) that a cell showed, in order."""
        return self.cell(title).results()

    @property
    def slim(self) -> bool:
        """Results and provenance of another GPU than the book's own, without outputs and sanitizers."""
        return self.metadata.get("slim") is True

    def digest(self) -> str:
        """SHA-256 over all that the recording says: titles, sources and outputs of its cells, and its metadata.

        Over values, not over the file's text: how JSON is indented, or a text cut into lines, makes no difference.
        """
        cells = [[cell.title, cell.kind, cell.source, cell.outputs] for cell in self.cells]
        session = {key: value for key, value in self.metadata.items() if key != "digest"}
        canonical = json.dumps([session, cells], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def edited(self) -> bool:
        """Whether anything in it was changed after it was recorded."""
        return self.metadata.get("digest") != self.digest()

    def stale(self) -> list[str]:
        """Files (relative to examples/) that differ from those recorded, or are gone; empty for a fresh recording."""
        root = paths.examples_dir()
        return [
            name
            for name, sha256 in sorted(self.metadata["sources"].items())
            if source_hash(root / name) != sha256
        ]

    def problems(self) -> list[str]:
        """Why this recording must not be shown, each naming its cell or sanitizer; empty for a good one."""
        return [*self._cell_problems(), *self._sanitizer_problems()]

    def _cell_problems(self) -> Iterator[str]:
        for cell in self.cells:
            if cell.kind == "code" and not cell.executed and cell.title != INSTALL_CELL:
                yield f"cell '{cell.title}' was not executed"
            for output in cell.outputs:
                if output["output_type"] == "error":
                    yield f"cell '{cell.title}' raised {output.get('ename')}: {output.get('evalue')}"
            for result in cell.results():
                for problem in _result_problems(result):
                    yield f"cell '{cell.title}': {problem}"

    def _sanitizer_problems(self) -> Iterator[str]:
        if self.slim:
            return
        errors = {entry["tool"]: entry["errors"] for entry in self.metadata["sanitizers"]}
        for tool in SANITIZERS:
            if tool not in errors:
                yield f"{tool} was not run"
            elif errors[tool] > 0:
                yield f"{tool} found {errors[tool]} error{'s' if errors[tool] > 1 else ''}"


def _result_problems(result: dict[str, Any]) -> list[str]:
    try:
        return list(results.read(result).problems())
    except ValueError as error:
        return [str(error)]


def source_hash(path: Path) -> str | None:
    """SHA-256 of a text file whose lines end with \\n, whatever git made of them on this system; None if it is gone."""
    try:
        return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    except OSError:
        return None


def load(name: str) -> Recording:
    """The recording of an example, validated to be ours and of the right form; it may still be stale, edited or failed.

    Raises MissingRecordingError, DamagedRecordingError, or UnknownExampleError where there is no such example.
    """
    path = paths.examples_dir() / f"{name}.ipynb"
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        example = catalog.get(name)
        if example.name != name:
            return load(example.name)
        raise MissingRecordingError(
            f"{name} has not been recorded: {_shown(name)} is not there. On a machine with a GPU: `{mend(name)}`"
        ) from None
    except OSError as error:
        raise DamagedRecordingError(f"{_shown(name)} cannot be read: {error.strerror}") from error
    return parse(name, path, raw)


def parse(name: str, path: Path, raw: bytes) -> Recording:
    """A recording from the bytes of its file. Raises DamagedRecordingError with the reason and the mending command."""
    try:
        try:
            notebook = json.loads(raw)
        except ValueError as error:
            raise _Invalid(
                f"it is not JSON, perhaps cut short or merged with conflicts ({error})"
            ) from error
        return _recording(name, path, notebook)
    except _Invalid as invalid:
        slim = path.suffix != ".ipynb"
        raise DamagedRecordingError(
            f"{_shown_slim(path) if slim else _shown(name)} is no recording: {invalid}. "
            f"On a machine with a GPU: `{_mend_slim(name, path) if slim else mend(name)}`"
        ) from invalid


def require_good(name: str) -> Recording:
    """The recording of an example, if it may be shown: whole, fresh and good.

    Raises MissingRecordingError, DamagedRecordingError, StaleRecordingError, EditedRecordingError or
    FailedRecordingError; each message names the file, the reason and the command that mends it.
    """
    return _good(load(name), _shown(name), mend(name))


def slim_path(gpu: str, name: str) -> Path:
    """Where the results of an example on another GPU lie: results/nvidia-h200/<name>.json."""
    return paths.results_dir() / re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") / f"{name}.json"


def on_other_gpus(name: str) -> list[Recording]:
    """The slim recordings of an example, one for each GPU that has one, by the folders' names. Raises as `require_good`."""
    root = paths.results_dir()
    found = []
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        path = folder / f"{name}.json"
        if path.is_file():
            slim, shown = parse(name, path, path.read_bytes()), _shown_slim(path)
            gpu = slim.metadata["gpu"]["name"]
            if slim_path(gpu, name) != path:
                raise DamagedRecordingError(
                    f"{shown} is of another GPU than its folder, {gpu}: `git rm {shown}`"
                )
            found.append(_good(slim, shown, _mend_slim(name, path)))
    return found


def orphans() -> list[str]:
    """Files of results/ that belong to no example, relative to it, sorted."""
    root, names = paths.results_dir(), {example.name for example in catalog.examples(drafts=True)}
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return [
        file.as_posix()
        for file in files
        if file.suffix != ".json" or "/".join(file.with_suffix("").parts[1:]) not in names
    ]


def _good(recording: Recording, shown: str, command: str) -> Recording:
    stale = recording.stale()
    if stale:
        root = paths.examples_dir()
        reasons = ", ".join(
            f"examples/{file} {'changed' if (root / file).exists() else 'is gone'}"
            for file in stale
        )
        raise StaleRecordingError(
            f"{shown} is stale: {reasons} since it was recorded. On a machine with a GPU: `{command}`"
        )
    if not isinstance(recording.metadata.get("digest"), str):
        raise DamagedRecordingError(
            f"{shown} is not whole: it has no digest of its outputs, as recordings made before there was one. "
            f"On a machine with a GPU: `{command}`"
        )
    if recording.edited():
        raise EditedRecordingError(
            f"{shown} was edited after it was recorded: digest differs. On a machine with a GPU: `{command}`"
        )
    problems = recording.problems()
    if problems:
        raise FailedRecordingError(
            f"{shown} must not be shown: {'; '.join(problems)}. "
            f"Mend the example, then, on a machine with a GPU: `{command}`"
        )
    return recording


def _shown(name: str) -> str:
    return f"examples/{name}.ipynb"


def _shown_slim(path: Path) -> str:
    return path.relative_to(paths.results_dir().parent).as_posix()


def _mend_slim(name: str, path: Path) -> str:
    gpu = path.relative_to(paths.results_dir()).parts[0]
    return f"{mend(name)} --slim` on the {gpu}, or `git rm {_shown_slim(path)}"


class _Invalid(Exception):
    """Why a file is no recording."""


def _recording(name: str, path: Path, notebook: Any) -> Recording:
    if not isinstance(notebook, dict) or notebook.get("nbformat") != 4:
        raise _Invalid("it is not a notebook of format 4")
    metadata = (
        notebook.get("metadata", {}).get("cudatut")
        if isinstance(notebook.get("metadata"), dict)
        else None
    )
    if not isinstance(metadata, dict):
        raise _Invalid("it was not made by cudatut (the notebook has no 'cudatut' metadata)")
    _validate_metadata(name, metadata)
    if (metadata.get("slim") is True) != (path.suffix == ".json"):
        raise _Invalid("only the results of another GPU, in results/, are slim, and all of them")
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not cells:
        raise _Invalid("it has no cells")
    read = [_cell(number, cell) for number, cell in enumerate(cells)]
    titles = [cell.title for cell in read]
    for title in titles:
        if titles.count(title) > 1:
            raise _Invalid(f"it has two cells '{title}'")
    return Recording(name, path, metadata, read)


def _validate_metadata(name: str, metadata: dict[str, Any]) -> None:
    if metadata.get("schema") != SCHEMA:
        raise _Invalid(
            f"its schema is {metadata.get('schema')!r}, and this cudatut reads schema {SCHEMA}"
        )
    _validate_types("cudatut", metadata, _METADATA)
    _validate_types("cudatut.gpu", metadata["gpu"], _GPU)
    try:
        timed = datetime.datetime.fromisoformat(metadata["recorded_at"]).tzinfo is not None
    except ValueError:
        timed = False
    if not timed:
        raise _Invalid(f"its recorded_at is no time with its zone: {metadata['recorded_at']!r}")
    if metadata["name"] != name:
        raise _Invalid(f"it is the recording of another example, {metadata['name']}")
    if f"{name}.py" not in metadata["sources"]:
        raise _Invalid(f"its sources lack {name}.py")
    for entry in metadata["sanitizers"]:
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("errors"), int)
            or "tool" not in entry
        ):
            raise _Invalid(f"its metadata has a malformed sanitizer entry {entry!r}")


def _validate_types(where: str, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for key, type_ in wanted.items():
        if not isinstance(found.get(key), type_):
            raise _Invalid(f"its metadata has {where}.{key} = {found.get(key)!r}")


def _cell(number: int, cell: Any) -> Cell:
    kind = cell.get("cell_type") if isinstance(cell, dict) else None
    if (
        kind not in ("code", "markdown")
        or not isinstance(cell.get("id"), str)
        or "source" not in cell
    ):
        raise _Invalid(f"cell {number} is neither a code nor a markdown cell with id and source")
    title = cell["id"]
    outputs = cell.get("outputs", []) if kind == "code" else []
    if kind == "code" and (
        "outputs" not in cell or "execution_count" not in cell or not isinstance(outputs, list)
    ):
        raise _Invalid(f"cell '{title}' lacks its outputs")
    return Cell(
        title,
        kind,
        _joined(cell["source"]),
        [_output(title, output) for output in outputs],
        executed=cell.get("execution_count") is not None,
    )


def _output(title: str, output: Any) -> dict[str, Any]:
    kind = output.get("output_type") if isinstance(output, dict) else None
    if kind == "stream":
        return {**output, "text": _joined(output.get("text", ""))}
    if kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
        data = {
            mime: value if mime.endswith("json") else _joined(value)
            for mime, value in output["data"].items()
        }
        if MIME in data and not (
            isinstance(data[MIME], dict) and isinstance(data[MIME].get("kind"), str)
        ):
            raise _Invalid(f"cell '{title}' shows a result without a kind")
        return {**output, "data": data}
    if kind == "error":
        return output
    raise _Invalid(f"cell '{title}' has a malformed output")


def _joined(text: Any) -> str:
    """Multi-line text, which nbformat keeps as a list of lines."""
    if isinstance(text, str):
        return text
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        return "".join(text)
    raise _Invalid(f"there is {type(text).__name__} where text should be")
