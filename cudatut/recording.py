"""Recordings: executed notebooks beside their examples, read as plain JSON and never trusted blindly.

A recording is whole (every cell ran, all four sanitizers reported), untouched (its digest is that of what it holds), good
(no failed check, no error, no zero or NaN time, no sanitizer error) and fresh (every file that it was made from is
unchanged) before anything shows it.
Making one needs a GPU and lives in `cudatut.record.recorder`.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudatut import catalog, instrument, paths, results
from cudatut.errors import CudatutError
from cudatut.fingerprint.meaning import meaning_hash, text_hash
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
# What some recordings have besides: those made before it was recorded lack it.
_LATER = {
    "meanings": dict,
    "kernels": list,
    "instrument": dict,
    "rivals": dict,
    "launched": dict,
    "restamped": list,
}
_GPU = {"name": str, "compute_capability": str, "memory_bytes": int, "sm_count": int, "driver": str}


# file.cu(12), file.py:12, line 12
_LINES = re.compile(r"\.(?:cu|cuh|py)(?:\(\d|:\d)|\bline \d", re.IGNORECASE)


class MissingRecordingError(CudatutError):
    """An example that was never recorded."""


class DamagedRecordingError(CudatutError):
    """A recording that is no JSON, was cut short, or was not made by `python -m cudatut record`."""


class UnfitRecordingError(CudatutError):
    """A recording that must not be shown: a file that it was made from has changed, it was edited, or it is not good."""


class UnknownCellError(CudatutError):
    """A recording has no cell of this name; the message names those it has."""


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

    def cell(self, title: str) -> Cell:
        """The cell of this title. Raises UnknownCellError naming the cells that there are."""
        for cell in self.cells:
            if cell.title == title:
                return cell
        have = [cell.title for cell in self.cells if cell.kind == "code"]
        hint = catalog.did_you_mean(title, have)
        raise UnknownCellError(
            f"{self.name} has no cell '{title}'.{hint} Its cells: {', '.join(have)}."
        )

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

    def rewritten(self) -> list[str]:
        """Files (relative to examples/) whose text differs from that recorded, whatever they mean, or that are gone."""
        recorded = self.metadata["sources"]
        return [name for name, sha256 in hashes(recorded).items() if sha256 != recorded[name]]

    def stale(self) -> list[str]:
        """Files (relative to examples/) that mean something else than those recorded, or are gone; empty for a fresh one.

        Where outputs show the numbers of lines, the text counts. So does that of a file that the example read by itself.
        """
        if not (changed := self.rewritten()):
            return []
        recorded = {} if self.shows_lines() else self.metadata.get("meanings", {})
        now = meanings(name for name in changed if name in recorded)
        return [name for name in changed if name not in now or now[name] != recorded[name]]

    def outdated(self) -> list[str]:
        """What it was measured with and is measured otherwise today, such as 'timing 1, now 2'; empty for older recordings."""
        return instrument.outdated(self.metadata.get("instrument", {}))

    def shows_lines(self) -> bool:
        """Whether an output names the number of a line, as compilers, tracebacks, sanitizers and profilers do."""
        shown = (
            text
            for cell in self.cells
            for output in cell.outputs
            for text in (output.get("text", ""), json.dumps(output.get("data", {}).get(MIME, "")))
        )
        return any(map(_LINES.search, shown))

    def problems(self) -> list[str]:
        """Why this recording must not be shown, each naming its cell or sanitizer; empty for a good one."""
        found = [f"cell '{cell.title}'{why}" for cell in self.cells for why in _problems(cell)]
        errors = {entry["tool"]: entry["errors"] for entry in self.metadata["sanitizers"]}
        for tool in () if self.slim else SANITIZERS:
            if tool not in errors:
                found.append(f"{tool} was not run")
            elif errors[tool] > 0:
                found.append(f"{tool} found {errors[tool]} error{'s' if errors[tool] > 1 else ''}")
        return found


def _problems(cell: Cell) -> Iterator[str]:
    if cell.kind == "code" and not cell.executed and cell.title != INSTALL_CELL:
        yield " was not executed"
    for output in cell.outputs:
        if output["output_type"] == "error":
            yield f" raised {output.get('ename')}: {output.get('evalue')}"
    for result in cell.results():
        try:
            yield from (f": {problem}" for problem in results.read(result).problems())
        except ValueError as error:
            yield f": {error}"


def source_hash(path: Path) -> str | None:
    """SHA-256 of a text file whose lines end with \\n, whatever git made of them on this system; None if it is gone."""
    try:
        return text_hash(path.read_bytes())
    except OSError:
        return None


def meanings(files: Iterable[str]) -> dict[str, str]:
    """The hashes of what files of examples/ mean, without those of which only the text can tell (`fingerprint.meaning`)."""
    found = {}
    for name in sorted(files):
        with suppress(OSError):
            found[name] = meaning_hash(name, (paths.examples_dir() / name).read_bytes())
    return {name: meaning for name, meaning in found.items() if meaning}


def hashes(files: Iterable[str]) -> dict[str, str | None]:
    """`source_hash` of files of examples/, sorted by name."""
    return {name: source_hash(paths.examples_dir() / name) for name in sorted(files)}


def load(name: str) -> Recording:
    """The recording of an example, validated to be ours and of the right form; it may still be stale, edited or failed.

    Raises MissingRecordingError, DamagedRecordingError, or UnknownExampleError where there is no such example.
    """
    path = paths.examples_dir() / f"{name}.ipynb"
    try:
        return parse(name, path, path.read_bytes())
    except FileNotFoundError:
        example = catalog.get(name)
        if example.name != name:
            return load(example.name)
        reason = "is not there: the example has not been recorded"
        raise _refused(MissingRecordingError, name, path, reason) from None
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise _refused(DamagedRecordingError, name, path, reason) from error


def require_good(name: str) -> Recording:
    """The recording of an example, if it may be shown: whole, fresh and good.

    Raises MissingRecordingError, DamagedRecordingError or UnfitRecordingError; each message names the file, the reason and
    the command that mends it.
    """
    return _good(load(name))


def slim_path(gpu: str, name: str) -> Path:
    """Where the results of an example on another GPU lie: results/nvidia-h200/<name>.json."""
    return paths.results_dir() / re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") / f"{name}.json"


def on_other_gpus(name: str) -> list[Recording]:
    """The slim recordings of an example, one for each GPU that has one, by the folders' names. Raises as `require_good`."""
    found = []
    for path in sorted(paths.results_dir().glob(f"*/{name}.json")):
        slim = parse(name, path, path.read_bytes())
        gpu = slim.metadata["gpu"]["name"]
        if slim_path(gpu, name) != path:
            reason = f"is of another GPU than its folder, {gpu}"
            raise _refused(DamagedRecordingError, name, path, reason)
        found.append(_good(slim))
    return found


def every() -> list[Recording]:
    """Every recording of the examples that can be read, the book's own and the slim ones, whatever state it is in."""
    found = []
    for name in (example.name for example in catalog.examples(drafts=True)):
        own = paths.examples_dir() / f"{name}.ipynb"
        for path in (own, *sorted(paths.results_dir().glob(f"*/{name}.json"))):
            with suppress(CudatutError, OSError):
                found.append(parse(name, path, path.read_bytes()))
    return found


def orphans() -> list[str]:
    """Files of results/ that belong to no example, relative to it, sorted."""
    root = paths.results_dir()
    known = {f"{example.name}.json" for example in catalog.examples(drafts=True)}
    files = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(file for file in files if file.partition("/")[2] not in known)


def _good(recording: Recording) -> Recording:
    if stale := recording.stale():
        root = paths.examples_dir()
        reasons = ", ".join(
            f"examples/{file} {'changed' if (root / file).exists() else 'is gone'}"
            for file in stale
        )
        reason = f"is stale: {reasons} since it was recorded"
    elif outdated := recording.outdated():
        reason = f"was measured by another instrument: {', '.join(outdated)}"
    elif recording.edited():
        reason = "was edited after it was recorded: digest differs"
    elif problems := recording.problems():
        reason = f"must not be shown: {'; '.join(problems)}. Mend the example first"
    else:
        return recording
    raise _refused(UnfitRecordingError, recording.name, recording.path, reason)


def _refused(kind: type[CudatutError], name: str, path: Path, reason: str) -> CudatutError:
    """An error that names the file of a recording, what is wrong with it, and the command that mends it."""
    shown, mended = f"examples/{name}.ipynb", f"`python -m cudatut record {name}`"
    if path.suffix != ".ipynb":
        root = paths.results_dir()
        shown = path.relative_to(root.parent).as_posix()
        gpu = path.relative_to(root).parts[0]
        mended = f"`python -m cudatut record {name} --slim` on the {gpu}, or `git rm {shown}`"
    return kind(f"{shown} {reason}. On a machine with a GPU: {mended}")


# --- reading -------------------------------------------------------------------------------------


def parse(name: str, path: Path, raw: bytes) -> Recording:
    """A recording from the bytes of its file. Raises DamagedRecordingError with the reason and the mending command."""
    try:
        notebook = json.loads(raw)
        metadata = _metadata(name, path, notebook)
        cells = [_cell(cell) for cell in notebook["cells"]]
        if len({cell.title for cell in cells}) < max(1, len(cells)):
            raise ValueError("it has no cells, or two of one title")
        return Recording(name, path, metadata, cells)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        reason = f"it is not JSON, perhaps cut short or merged with conflicts ({error})"
    except ValueError as error:
        reason = str(error)
    except (LookupError, TypeError, AttributeError) as error:
        reason = f"it is not a notebook that cudatut made ({error!r})"
    raise _refused(DamagedRecordingError, name, path, f"is no recording: {reason}")


def _metadata(name: str, path: Path, notebook: dict[str, Any]) -> dict[str, Any]:
    """What a notebook says of its making. Raises ValueError saying what is wrong with it."""
    found = notebook["metadata"]["cudatut"]
    if found.get("schema") != SCHEMA:
        raise ValueError(
            f"its schema is {found.get('schema')!r}, and this cudatut reads schema {SCHEMA}"
        )
    for where, wanted in ((found, _METADATA), (found.get("gpu"), _GPU)):
        for key, type_ in wanted.items():
            if not isinstance(where.get(key), type_):
                raise ValueError(f"its metadata has {key} = {where.get(key)!r}")
    for key, type_ in _LATER.items():
        if not isinstance(found.get(key, type_()), type_):
            raise ValueError(f"its metadata has {key} = {found[key]!r}")
    if not re.fullmatch(r"[\d-]{10}T[\d:]{8}\+00:00", found["recorded_at"]):
        raise ValueError(f"its recorded_at is no time in UTC: {found['recorded_at']!r}")
    if found["name"] != name:
        raise ValueError(f"it is the recording of another example, {found['name']}")
    if f"{name}.py" not in found["sources"]:
        raise ValueError(f"its sources lack {name}.py")
    for entry in found["sanitizers"]:
        results.read(entry)
    if (found.get("slim") is True) != (path.suffix == ".json"):
        raise ValueError("only the results of another GPU, in results/, are slim, and all of them")
    return found


def _cell(cell: dict[str, Any]) -> Cell:
    kind = cell["cell_type"]
    if kind not in ("code", "markdown"):
        raise ValueError(f"it has a cell of the type {kind!r}")
    outputs = [_output(output) for output in cell["outputs"]] if kind == "code" else []
    executed = kind == "code" and cell["execution_count"] is not None
    return Cell(cell["id"], kind, _joined(cell["source"]), outputs, executed)


def _output(output: dict[str, Any]) -> dict[str, Any]:
    kind = output["output_type"]
    if kind == "stream":
        return output | {"text": _joined(output["text"])}
    if kind in ("display_data", "execute_result"):
        data = output["data"].items()
        joined = {mime: one if mime.endswith("json") else _joined(one) for mime, one in data}
        return output | {"data": joined}
    if kind != "error":
        raise ValueError(f"it has an output of the type {kind!r}")
    return output


def _joined(text: str | list[str]) -> str:
    """Multi-line text, which nbformat keeps as a list of lines."""
    return text if isinstance(text, str) else "".join(text)
