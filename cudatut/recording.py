"""Recordings: executed notebooks, apart from their examples in a folder for each GPU, read as plain JSON and never trusted blindly.

A recording is whole (every cell ran, all four sanitizers reported), untouched (its digest is that of what it holds), good
(no failed check, no error, no zero or NaN time, no sanitizer error) and fresh (every file that it was made from is
unchanged) before anything shows it.
Making one needs a GPU and lives in `cudatut.record.recorder`.
"""

import glob
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cudatut import agreement, catalog, certificate, instrument, paths, results
from cudatut.catalog import INSTALL_CELL
from cudatut.errors import CudatutError
from cudatut.fingerprint.meaning import meaning_hash, text_hash
from cudatut.results import MIME, Result
from cudatut.tool import SANITIZERS

DIRTY = "-dirty"  # behind the commit of a recording that was made from changed files
_TITLE = re.compile(r"[a-z0-9-]{1,64}")  # of a cell: its address
# Of the metadata, what is about the code, and may be written anew without a GPU. All else a run tells of itself.
_OF_THE_CODE = frozenset(
    ("schema", "name", "title", "requires", "sources", "meanings", "restamped", "digest")
)
# file.cu(12), file.py:12, line 12
_LINES = re.compile(r"\.(?:cu|cuh|py)(?:\(\d|:\d)|\bline \d", re.IGNORECASE)


class MissingRecordingError(CudatutError):
    """An example that was never recorded."""


class DamagedRecordingError(CudatutError):
    """A recording that is no JSON, was cut short, or was not made by `python -m cudatut record`."""


class UnfitRecordingError(CudatutError):
    """A recording that must not be shown: a file that it was made from has changed, it was edited, or it is not good."""


class StaleRecordingError(UnfitRecordingError):
    """One that shows what the code did before it, or its instrument, changed."""


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

    @cached_property
    def read(self) -> list[Result | ValueError]:
        """The same as objects, each read once; in the place of one that cannot be read the reason."""
        return list(map(_read, self.results()))


def results_alone(outputs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of a cell's outputs those that are results, and of these the data alone: what a slim recording keeps."""
    return [
        {**one, "data": {MIME: one["data"][MIME]}} for one in outputs if MIME in one.get("data", {})
    ]


# What a slim recording's certificate says in place of the sanitizers' verdicts.
SLIM: dict[str, Any] = {"slim": True, "sanitizers": []}


def _read(result: Any) -> Result | ValueError:
    try:
        return results.read(result)
    except ValueError as error:
        return error


@dataclass(frozen=True)
class Recording:
    """A recording as it lies in its file. `metadata` is the notebook's `cudatut` metadata (schema in docs/en/contributing.md).

    colab: the GPU that its notebook asks Colab for, by Colab's name; None where it asks for none, as slim recordings.
    """

    name: str
    path: Path
    metadata: dict[str, Any]
    cells: list[Cell]
    colab: str | None = None

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

    @property
    def dirty(self) -> bool:
        """Whether it was made from files that no commit has: what it ran can be compared with nothing."""
        return self.metadata["commit"].endswith(DIRTY)

    @property
    def gpu(self) -> str:
        """The name of the GPU that it was made on."""
        return self.metadata["gpu"]["name"]

    @property
    def file(self) -> str:
        """The name of its file, as messages have it: recordings/<gpu>/<name>.ipynb, or .json where it is slim."""
        return _file(self.name, self.path)

    def digest(self) -> str:
        """SHA-256 over all that the recording says: titles, sources and outputs of its cells, and its metadata.

        Over values, not over the file's text: how JSON is indented, or a text cut into lines, makes no difference.
        """
        cells = [[cell.title, cell.kind, cell.source, cell.outputs] for cell in self.cells]
        session = {key: value for key, value in self.metadata.items() if key != "digest"}
        canonical = json.dumps([session, cells], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def measured(self) -> bytes:
        """What it says was measured, by what and when, as JSON: all that a restamp leaves as it is.

        The outputs by their cells' titles, a result as its data alone, and the metadata; nothing of the code, of the
        example's name, or of its title.
        """
        shown = {cell.title: list(map(_measured, cell.outputs)) for cell in self.cells}
        shown = {title: outputs for title, outputs in shown.items() if outputs}
        run = {key: self.metadata[key] for key in self.metadata if key not in _OF_THE_CODE}
        return json.dumps([run, shown], sort_keys=True, separators=(",", ":")).encode()

    def measurement(self) -> str:
        """SHA-256 of what was `measured`."""
        return hashlib.sha256(self.measured()).hexdigest()

    def slimmed(self) -> "Recording":
        """What would be left of it beside another GPU's whole one: the results, and no verdicts of sanitizers."""
        cells = [replace(cell, outputs=results_alone(cell.outputs)) for cell in self.cells]
        return replace(self, cells=cells, metadata=self.metadata | SLIM)

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
            for text in (output.get("text", ""), json.dumps(_measured(output).get("data", "")))
        )
        return any(map(_LINES.search, shown))

    def problems(self) -> list[str]:
        """Why this recording must not be shown, each naming its cell or sanitizer; empty for a good one."""
        found = [f"cell '{cell.title}'{why}" for cell in self.cells for why in _problems(cell)]
        entries = self.metadata["sanitizers"]
        if self.slim and entries:
            found.append("no sanitizer watches what is slim")
        for tool in () if self.slim else SANITIZERS:
            match [entry["errors"] for entry in entries if entry["tool"] == tool]:
                case []:
                    found.append(f"{tool} was not run")
                case [0]:
                    pass
                case [errors]:
                    found.append(f"{tool} found {errors} error{'s' if errors != 1 else ''}")
                case _:
                    found.append(f"{tool} is told more than once")
        return found

    def disagreements(self) -> list[str]:
        """What does not fit in a good and fresh one: beside its example, and in itself; see `cudatut.agreement`."""
        return list(agreement.problems(catalog.get(self.name), self.metadata, self.cells))


def _problems(cell: Cell) -> Iterator[str]:
    if cell.kind == "code" and not cell.executed and cell.title != INSTALL_CELL:
        yield " was not executed"
    for output in cell.outputs:
        if output["output_type"] == "error":
            yield f" raised {output.get('ename')}: {output.get('evalue')}"
    for result in cell.read:
        try:
            found = [result] if isinstance(result, ValueError) else result.problems()
            yield from (f": {problem}" for problem in found)
        except ValueError as error:  # a rule for numbers that is given something else
            yield f": {error}"


def _measured(output: dict[str, Any]) -> dict[str, Any]:
    """An output, of a result without the text and the HTML that are made of its data."""
    data = output.get("data", {})
    return output | {"data": {MIME: data[MIME]}} if MIME in data else output


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
    path = whole_path(name)
    if path is None:
        example = catalog.get(name)
        if example.name != name:
            return load(example.name)
        reason = "is not there: the example has not been recorded"
        path = paths.recordings_dir() / "<gpu>" / f"{name}.ipynb"
        raise _refused(MissingRecordingError, name, path, reason)
    try:
        return parse(name, path, path.read_bytes())
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise _refused(DamagedRecordingError, name, path, reason) from error


def require_good(name: str) -> Recording:
    """The recording of an example, if it may be shown: whole, fresh and good.

    Raises MissingRecordingError, DamagedRecordingError or UnfitRecordingError; each message names the file, the reason and
    the command that mends it.
    """
    return good(load(name))


def good(recording: Recording) -> Recording:
    """The recording, if it may be shown. Raises UnfitRecordingError naming its file, the reason and the mending command."""
    kind: type[CudatutError] = UnfitRecordingError
    if stale := recording.stale():
        root = paths.examples_dir()
        reasons = ", ".join(
            f"examples/{file} {'changed' if (root / file).exists() else 'is gone'}"
            for file in stale
        )
        without = "If no run can notice it, `python -m cudatut restamp` accepts it"
        kind, reason = StaleRecordingError, f"is stale: {reasons} since it was recorded. {without}"
    elif outdated := recording.outdated():
        kind = StaleRecordingError
        reason = f"was measured by another instrument: {', '.join(outdated)}"
    elif recording.edited():
        reason = "was edited after it was recorded: digest differs"
    elif not recording.path.is_relative_to(folder_of(gpu := recording.gpu)):
        reason = f"is of another GPU than its folder, {gpu}"
    elif problems := recording.problems():
        reason = f"must not be shown: {'; '.join(problems)}. Mend the example first"
    elif problems := recording.disagreements():
        reason = f"does not agree with its example or with itself: {'; '.join(problems)}"
    else:
        return recording
    raise _refused(kind, recording.name, recording.path, reason)


# --- where they lie --------------------------------------------------------------------------------

HOME = "home.txt"  # in recordings/: the folder of the GPU that the book is recorded on
# What a recording of that GPU has to say, for the whole book to be measured in one way.
_AT_HOME = {"instrument": "which instrument measured it", "rivals": "the versions of its rivals"}


def home() -> str:
    """The folder of the GPU that is the book's home; "" while it has none."""
    path = paths.recordings_dir() / HOME
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def at_home(recording: Recording) -> Recording:
    """A good recording, if the published book may show it as its own: of the home GPU, its provenance told whole.

    Raises UnfitRecordingError as `good`.
    """
    if not (where := home()):
        return recording
    lacking = [what for key, what in _AT_HOME.items() if key not in recording.metadata]
    if not recording.path.is_relative_to(paths.recordings_dir() / where):
        reason = f"is not of the book's GPU, {where}"
    elif lacking:
        reason = f"does not say {' and '.join(lacking)}"
    elif recording.dirty:
        reason = "was made from files that no commit has"
    else:
        return recording
    raise _refused(UnfitRecordingError, recording.name, recording.path, reason)


_FOLDER = 100  # characters; no GPU's name is near that


def gpu_folder(gpu: str) -> str:
    """What a folder for a GPU is called, among the recordings and in addresses of pages: nvidia-h200 for "NVIDIA H200"."""
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")[:_FOLDER]


def folder_of(gpu: str) -> Path:
    """Where what a GPU measured lies: recordings/nvidia-h200."""
    return paths.recordings_dir() / gpu_folder(gpu)


def own_path(gpu: str, name: str) -> Path:
    """Where the whole recording of an example on a GPU lies: recordings/nvidia-h200/<name>.ipynb."""
    return folder_of(gpu) / f"{name}.ipynb"


def slim_path(gpu: str, name: str) -> Path:
    """Where the results of an example on another GPU lie: recordings/nvidia-h200/<name>.json."""
    return folder_of(gpu) / f"{name}.json"


def whole_paths(name: str) -> list[Path]:
    """The files of the whole recordings of an example: there should be one at most."""
    return sorted(paths.recordings_dir().glob(f"*/{glob.escape(name)}.ipynb"))


def whole_path(name: str) -> Path | None:
    """Where the recording of an example lies, on whichever GPU it was made: recordings/<gpu>/<name>.ipynb; None without one.

    Raises DamagedRecordingError where there are two.
    """
    found = whole_paths(name)
    if len(found) > 1:
        others = ", ".join(_file(name, path) for path in found[1:])
        raise _refused(DamagedRecordingError, name, found[0], f"is not the only one: {others}")
    return found[0] if found else None


def on_other_gpus(name: str) -> list[Recording]:
    """The slim recordings of an example that may be shown, one for each GPU that has one, by the folders' names.

    What is wrong with the others stops nobody; `status` tells it.
    """
    return [one for one in of_other_gpus(name) if isinstance(one, Recording)]


def of_other_gpus(name: str) -> Iterator[Recording | CudatutError]:
    """The same, and for each that may not be shown the reason, as `require_good` raises it."""
    for path in sorted(paths.recordings_dir().glob(f"*/{glob.escape(name)}.json")):
        try:
            yield good(parse(name, path, path.read_bytes()))
        except CudatutError as error:
            yield error


def every() -> list[Recording]:
    """Every recording of the examples that can be read, the book's own and the slim ones, whatever state it is in."""
    found = []
    for name in (example.name for example in catalog.examples(drafts=True)):
        files = paths.recordings_dir().glob(f"*/{name}.*")
        for path in sorted(files, key=lambda path: (path.suffix == ".json", path)):
            with suppress(CudatutError, OSError):
                found.append(parse(name, path, path.read_bytes()))
    return found


def orphans() -> list[str]:
    """Files of recordings/ that belong to no example, relative to it, sorted; no hidden ones."""
    root = paths.recordings_dir()
    names = [example.name for example in catalog.examples(drafts=True)]
    known = {f"{name}{ending}" for name in names for ending in (".ipynb", ".json")}
    files = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(
        file
        for file in files
        if file.partition("/")[2] not in known and file != HOME and "/." not in f"/{file}"
    )


def _refused(kind: type[CudatutError], name: str, path: Path, reason: str) -> CudatutError:
    """An error that names the file of a recording, what is wrong with it, and the command that mends it."""
    shown, mended = _file(name, path), f"`python -m cudatut record {name}`"
    if path.suffix != ".ipynb":
        gpu = path.relative_to(paths.recordings_dir()).parts[0]
        mended = f"`python -m cudatut record {name} --slim` on the {gpu}, or `git rm {shown}`"
    return kind(f"{shown} {reason}. On a machine with a GPU: {mended}")


def _file(name: str, path: Path) -> str:
    return path.relative_to(paths.recordings_dir().parent).as_posix()


# --- reading -------------------------------------------------------------------------------------


def parse(name: str, path: Path, raw: bytes) -> Recording:
    """A recording from the bytes of its file. Raises DamagedRecordingError with the reason and the mending command."""
    try:
        # As text: of bytes, json would guess another encoding than that which readers of the file take.
        notebook = json.loads(raw.decode(), object_pairs_hook=_object)
        if b"\\ud" in raw.lower():
            _require_characters(notebook)
        metadata = certificate.read(notebook["metadata"].get("cudatut"), name, path)
        cells = [_cell(cell) for cell in _list(notebook["cells"])]
        if len({cell.title for cell in cells}) < max(1, len(cells)):
            raise ValueError("it has no cells, or two of one title")
        colab = notebook["metadata"].get("colab", {}).get("gpuType")
        return Recording(name, path, metadata, cells, colab)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        reason = f"it is not JSON, perhaps cut short or merged with conflicts ({error})"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = str(error)
    except (LookupError, TypeError, AttributeError, OverflowError) as error:
        reason = f"it is not a notebook that cudatut made ({error!r})"
    raise _refused(DamagedRecordingError, name, path, f"is no recording: {reason}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Of two values of one name, readers of the file would take this one or that."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it says {results.short(doubled)} twice in one place")
    return found


def _require_characters(notebook: Any) -> None:
    """Raises ValueError for half of a character, which no file and no page can hold."""
    try:
        json.dumps(notebook, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("it holds half of a character (a lone surrogate)") from error


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"it has {results.short(value)} where a list should be")
    return value


def _cell(cell: dict[str, Any]) -> Cell:
    kind, title = cell["cell_type"], cell["id"]
    if kind not in ("code", "markdown"):
        raise ValueError(f"it has a cell of the type {results.short(kind)}")
    if not (isinstance(title, str) and _TITLE.fullmatch(title)):
        raise ValueError(f"it has a cell called {results.short(title)}: use a-z, 0-9 and -")
    outputs = [_output(output) for output in _list(cell["outputs"])] if kind == "code" else []
    executed = kind == "code" and cell["execution_count"] is not None
    return Cell(title, kind, _joined(cell["source"]), outputs, executed)


def _output(output: dict[str, Any]) -> dict[str, Any]:
    kind = output["output_type"]
    if kind == "stream":
        if output["name"] not in ("stdout", "stderr"):
            raise ValueError(f"it has a stream called {results.short(output['name'])}")
        return output | {"text": _joined(output["text"])}
    if kind in ("display_data", "execute_result"):
        data = output["data"].items()
        joined = {mime: one if mime.endswith("json") else _joined(one) for mime, one in data}
        return output | {"data": joined}
    if kind != "error":
        raise ValueError(f"it has an output of the type {results.short(kind)}")
    return output


def _joined(text: str | list[str]) -> str:
    """Multi-line text, which nbformat keeps as a list of lines."""
    if isinstance(text, str):
        return text
    if not isinstance(text, list):
        raise ValueError(f"it has {results.short(text)} where a text should be")
    return "".join(text)
