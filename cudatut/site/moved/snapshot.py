"""The repository's recordings and pages, as they lie in the checkout or as they were at a commit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

from cudatut import history, paths, recording
from cudatut.errors import CudatutError
from cudatut.recording import MissingRecordingError, Recording

RECORDINGS = {"examples": ".ipynb", "results": ".json"}


class Snapshot:
    """Recordings by name (start/errors; another GPU's: nvidia-h200/start/errors), and pages by path."""

    def __init__(self, commit: str | None = None):
        """commit: any name that git knows; None for the checkout as it is. Raises CudatutError."""
        self._root, self._past = paths.examples_dir().parent, None
        self.commit = commit
        if commit is None:
            return
        try:
            self._past = history.of(self._root)
        except history.NoHistory as error:
            raise CudatutError(f"there is no commit to compare with: {error}") from error
        self.commit = self._past.commit(commit)
        if self.commit is None:
            raise CudatutError(f"{commit} is no commit here; give a hash, a branch or a tag")

    @cache  # noqa: B019 - two of them live as long as their command
    def files(self, folder: str) -> dict[str, Path | str]:
        """The files below a folder by their paths in the repository, each with what `read` reads it by."""
        if self._past:
            return self._past.files(self.commit, folder)
        found = sorted((self._root / folder).rglob("*"))
        return {one.relative_to(self._root).as_posix(): one for one in found if one.is_file()}

    def read(self, file: Path | str) -> bytes:
        return file.read_bytes() if isinstance(file, Path) else self._past.blob(file)

    @cached_property
    def recordings(self) -> dict[str, bytes]:
        """Every recording's file, read; notebooks that are none, those of the exercises, among them."""
        return {
            path.partition("/")[2].removesuffix(suffix): self.read(file)
            for folder, suffix in RECORDINGS.items()
            for path, file in self.files(folder).items()
            if path.endswith(suffix)
        }

    def recording(self, name: str) -> Recording:
        """A recording by its name, in whatever state it is. Raises MissingRecordingError, DamagedRecordingError."""
        if name not in self.recordings:
            raise MissingRecordingError(f"there was no recording of {name}")
        raw, own = self.recordings[name], name.split("/")[0] not in self._gpus
        if own:
            return recording.parse(name, paths.examples_dir() / f"{name}.ipynb", raw)
        path = paths.results_dir() / f"{name}.json"
        return recording.parse(name.partition("/")[2], path, raw)

    @cached_property
    def _gpus(self) -> set[str]:
        return {path.split("/")[1] for path in self.files("results")}

    def texts(self, folder: str, suffix: str) -> Iterator[tuple[str, str]]:
        """(path, text) of the files below a folder whose names end so."""
        for path, file in self.files(folder).items():
            if path.endswith(suffix):
                yield path, self.read(file).decode("utf-8", "replace")
