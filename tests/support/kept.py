"""What tests made before is found again: entries in a folder, by the SHA-256 of all that they were made from.

The folder is $CUDATUT_TEST_CACHE, which CI keeps between runs, otherwise .cache/tests. What is kept there may be deleted at any time.
Whoever asks says what an entry depends on; two that depend on the same are the same.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cudatut.files import write_whole

ROOT = Path(__file__).resolve().parents[2]
DAYS = 30  # that an entry which nobody asks for is kept


def cache_folder() -> Path:
    named = os.environ.get("CUDATUT_TEST_CACHE")
    return Path(named) if named else ROOT / ".cache" / "tests"


class Kept:
    """The entries of one kind. most: how many at most; those that nobody asked for longest go first."""

    def __init__(self, folder: Path, most: int | None = None) -> None:
        self.folder = folder
        found = sorted(((_age(entry), entry) for entry in folder.glob("[!.]*")), reverse=True)
        over = len(found) - most if most is not None else 0
        for place, (age, entry) in enumerate(found):
            if place < over or age > DAYS * 86_400:
                _remove(entry)

    @staticmethod
    def key(*parts: Any) -> str:
        """Of everything that an entry depends on, as JSON can write it."""
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def read(self, key: str) -> bytes | None:
        """An entry's bytes, or None where there is none."""
        path = self.folder / key
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:  # none, or just removed by another process
            return None
        return data

    def write(self, key: str, data: bytes, executable: bool = False) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / key, data)
        if executable:
            (self.folder / key).chmod(0o755)

    def made(self, key: str, make: Callable[[Path], None]) -> Path:
        """The entry's path: a file or folder that `make` makes at the path it is given, unless it is there. Made by one process."""
        path = self.folder / key
        with locked(self.folder / f".lock-{key[:2]}"):  # few files, and hardly ever two keys
            if not path.exists():
                part = self.folder / f".{key}.part"
                _remove(part)  # what a killed process left
                make(part)
                part.rename(path)
            os.utime(path)
        return path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the file stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _age(path: Path) -> float:
    """Seconds since somebody asked for an entry; none for one that is just removed."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
