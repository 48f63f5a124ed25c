"""The repository's recordings and pages, as they lie in the checkout or as they were at a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial

from cudatut import history, paths, recording
from cudatut.errors import CudatutError
from cudatut.recording import MissingRecordingError, Recording

RECORDINGS = {"examples": ".ipynb", "results": ".json"}


class Snapshot:
    """Recordings by name (start/errors; another GPU's: nvidia-h200/start/errors), and pages by path."""

    def __init__(self, commit: str | None = None):
        """commit: any name that git knows; None for the checkout as it is. Raises CudatutError."""
        self._root = paths.examples_dir().parent
        self._past: tuple[history.History, str] | None = None
        self.commit: str | None = None
        if commit is None:
            return
        try:
            past = history.of(self._root)
        except history.NoHistory as error:
            raise CudatutError(f"there is no commit to compare with: {error}") from error
        self.commit = past.commit(commit)
        if self.commit is None:
            raise CudatutError(f"{commit} is no commit here; give a hash, a branch or a tag")
        self._past = past, self.commit

    @cache  # noqa: B019 - two of them live as long as their command
    def files(self, folder: str) -> dict[str, Callable[[], bytes]]:
        """The files below a folder by their paths in the repository, each with what reads it."""
        if self._past:
            past, commit = self._past
            blobs = past.files(commit, folder)
            return {path: partial(past.blob, blob) for path, blob in blobs.items()}
        found = sorted((self._root / folder).rglob("*"))
        return {
            one.relative_to(self._root).as_posix(): one.read_bytes for one in found if one.is_file()
        }

    @cached_property
    def recordings(self) -> dict[str, bytes]:
        """Every recording's file, read; notebooks that are none, those of the exercises, among them."""
        return {
            path.partition("/")[2].removesuffix(suffix): read()
            for folder, suffix in RECORDINGS.items()
            for path, read in self.files(folder).items()
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
        for path, read in self.files(folder).items():
            if path.endswith(suffix):
                yield path, read().decode("utf-8", "replace")
