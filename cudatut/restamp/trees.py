"""The examples as they were at a commit: each file with the hashes of its text and of its meaning."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from cudatut.fingerprint import meaning
from cudatut.history import History

TOP = "examples/"
# What declares kernels, says how they are compiled, or is read for it.
_CODE = (".py", ".cu", ".cuh", ".h", ".hpp", ".cpp", ".txt", ".yml")


class Tree(Mapping[str, bytes]):
    """The files of examples/ at a commit, by their names relative to it; read when they are asked for."""

    def __init__(self, past: History, commit: str):
        self.commit, self._past = commit, past
        self._blobs = {
            name.removeprefix(TOP): one for name, one in past.files(commit, "examples").items()
        }

    def __getitem__(self, name: str) -> bytes:
        return self._past.blob(self._blobs[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._blobs)

    def __len__(self) -> int:
        return len(self._blobs)

    def __contains__(self, name: object) -> bool:
        return name in self._blobs

    def sha256(self, name: str) -> str | None:
        """The hash of a file's text, as a recording carries it; None where there is no such file."""
        return _text_hash(self._past, self._blobs[name]) if name in self else None

    def meaning(self, name: str) -> str | None:
        """The hash of what a file means; None where only its text can tell, and where there is no such file."""
        if name not in self:
            return None
        return _meaning_hash(self._past, self._blobs[name], PurePosixPath(name).suffix)

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """A temporary folder examples/ with all code."""
        with TemporaryDirectory(prefix="cudatut-tree-") as folder:
            root = Path(folder).resolve() / "examples"
            for name in self:
                if name.endswith(_CODE):
                    path = root / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(self[name])
            yield root


@cache
def tree(past: History, commit: str) -> Tree:
    """The examples at a commit (its full name), listed once."""
    return Tree(past, commit)


@cache
def _text_hash(past: History, blob: str) -> str:
    return meaning.text_hash(past.blob(blob))


@cache
def _meaning_hash(past: History, blob: str, suffix: str) -> str | None:
    return meaning.meaning_hash(f"file{suffix}", past.blob(blob))
