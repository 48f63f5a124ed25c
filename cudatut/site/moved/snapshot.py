"""The repository's recordings and pages, as they lie in the checkout or as they were at a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial

from cudatut import history, paths, recording
from cudatut.errors import CudatutError
from cudatut.recording import MissingRecordingError, Recording

# Where recordings lie, and where they lay until November 2026.
FOLDERS = ("recordings", "examples", "results")


def name_of(path: str) -> str | None:
    """The name of a recording from its path in the repository, of today or of before; None for another file.

    Notebooks of exercises, which are no recordings, have one, too.
    """
    folder, _, file = path.partition("/")
    name, _, suffix = file.rpartition(".")
    match folder, suffix:
        case ("recordings", "ipynb"):  # the only whole one of an example, on whichever GPU
            return name.partition("/")[2]
        case ("recordings" | "results", "json") | ("examples", "ipynb"):
            return name
    return None


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
    def _paths(self) -> dict[str, str]:
        """Every recording's path in the repository by its name."""
        listed = [path for folder in FOLDERS for path in self.files(folder)]
        return {name: path for path in listed if (name := name_of(path)) is not None}

    @cached_property
    def recordings(self) -> dict[str, bytes]:
        """Every recording's file, read; notebooks that are none, those of the exercises, among them."""
        return {
            name: self.files(path.partition("/")[0])[path]() for name, path in self._paths.items()
        }

    def recording(self, name: str) -> Recording:
        """A recording by its name, in whatever state it is. Raises MissingRecordingError, DamagedRecordingError."""
        if name not in self.recordings:
            raise MissingRecordingError(f"there was no recording of {name}")
        path = self._root / self._paths[name]
        example = name if path.suffix == ".ipynb" else name.partition("/")[2]
        return recording.parse(example, path, self.recordings[name])

    def texts(self, folder: str, suffix: str) -> Iterator[tuple[str, str]]:
        """(path, text) of the files below a folder whose names end so."""
        for path, read in self.files(folder).items():
            if path.endswith(suffix):
                yield path, read().decode("utf-8", "replace")
