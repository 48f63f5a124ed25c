"""What git keeps of the commits that recordings name: whether they exist, when they were made, and their files."""

import re
import subprocess
import threading
import weakref
from functools import cache
from pathlib import Path
from typing import Any

from cudatut import paths
from cudatut.errors import CudatutError

_HEXADECIMAL = re.compile(r"[0-9a-f]{4,64}")
_FOUND = re.compile(r"([0-9a-f]{40,64}) (\w+) (\d+)\n")  # what `git cat-file --batch` says first


class NoHistory(Exception):
    """There is no history to look into; the message says why, as a sentence's end."""


class History:
    """The history of one checkout, read through one `git cat-file --batch` that stays open."""

    def __init__(self, root: Path):
        self._root = root
        self._lock = threading.Lock()
        self._batch: Any = subprocess.Popen(  # its pipes are there, which its type does not say
            ["git", "-C", str(root), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        weakref.finalize(self, _end, self._batch)
        self._ancestors: tuple[str | None, frozenset[str]] = (None, frozenset())
        self._commits: dict[str, str | None] = {}  # by names that cannot come to mean another one
        self._times: dict[str, int] = {}

    def _object(self, name: str) -> tuple[str, str, bytes] | None:
        """(SHA-1, type, content) of what git calls `name`, or None."""
        if "\n" in name or name.startswith(":"):  # a colon: what git is about to commit
            return None
        with self._lock:
            self._batch.stdin.write(f"{name}\n".encode())
            self._batch.stdin.flush()
            head = _FOUND.fullmatch(self._batch.stdout.readline().decode())
            if head is None:  # missing, or ambiguous
                return None
            content = self._batch.stdout.read(int(head[3]))
            self._batch.stdout.read(1)
        return head[1], head[2], content

    def _content(self, name: str) -> bytes:
        """The content of an object that git itself has named. Raises CudatutError where it is not there."""
        if found := self._object(name):
            return found[2]
        raise CudatutError(f"git cannot read {name} here; a clone with all objects has it")

    def commit(self, name: str) -> str | None:
        """The full name of a commit, or None where there is none of this name."""
        if not _HEXADECIMAL.fullmatch(name):  # what `HEAD` is changes while a process lives
            return self._commit(name)
        if name not in self._commits:
            self._commits[name] = self._commit(name)
        return self._commits[name]

    def _commit(self, name: str) -> str | None:
        found = self._object(f"{name}^{{commit}}")
        return found[0] if found else None

    def time(self, commit: str) -> int:
        """When a commit was made, in seconds since 1970."""
        if commit not in self._times:
            self._times[commit] = self._time(commit)
        return self._times[commit]

    def _time(self, commit: str) -> int:
        content = self._content(f"{commit}^{{commit}}")
        head = content.partition(b"\n\n")[0].decode("utf-8", "replace")
        line = next(line for line in head.splitlines() if line.startswith("committer "))
        return int(line.rsplit(" ", 2)[1])

    def is_ancestor(self, commit: str) -> bool:
        """Whether a commit (its full name) is HEAD or comes before it."""
        if self._ancestors[0] != (head := self.commit("HEAD")):
            listed = git(self._root, "rev-list", "HEAD") or ""
            self._ancestors = head, frozenset(listed.split())
        return commit in self._ancestors[1]

    def text(self, commit: str, path: str) -> bytes | None:
        """A file, relative to the root of the repository, as it was at a commit; None if it was not there."""
        found = self._object(f"{commit}:{path}")
        return found[2] if found and found[1] == "blob" else None

    def files(self, commit: str, folder: str) -> dict[str, str]:
        """The files below a folder at a commit, relative to the root of the repository, and the blob of each."""
        listed = git(self._root, "ls-tree", "-r", "-z", commit, "--", f"{folder}/") or ""
        found = (line.partition("\t") for line in listed.split("\0") if " blob " in line)
        return {name: head.split()[2] for head, _, name in found}

    def blob(self, blob: str) -> bytes:
        """The content of a blob that `files` named."""
        return self._content(blob)

    def changes(self, *files: str, at: str = "HEAD") -> list[str]:
        """The commits that changed one of these files (relative to the root of the repository), `at` or before it, the last one
        first.
        """
        return (git(self._root, "log", "--format=%H", at, "--", *files) or "").split()

    def changed(self, folder: str) -> list[str]:
        """The files below a folder that differ from HEAD or are not in it, relative to the root of the repository."""
        asked = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
        listed = git(self._root, *asked, "--", f"{folder}/", strip=False) or ""
        return [line[3:] for line in listed.split("\0") if line]


def _end(batch: Any) -> None:
    """git ends where its input does."""
    batch.stdin.close()
    batch.stdout.close()
    batch.wait()


@cache
def history() -> History:
    """The history of the checkout that the examples lie in. Raises NoHistory for a zip, a shallow clone, or without git."""
    return of(paths.examples_dir().parent)


def of(root: Path) -> History:
    """The history of the checkout in this folder as it is now. Raises as `history`."""
    top = git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != root.resolve():
        raise NoHistory("this is no clone, or git is missing")
    if git(root, "rev-parse", "--is-shallow-repository") != "false":
        raise NoHistory("the clone is shallow (`git fetch --unshallow` gets the rest)")
    return History(root)


def git(root: Path, *arguments: str, strip: bool = True) -> str | None:
    """What git answers, unless told otherwise without blanks around it; None where it fails or is missing."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode:
        return None
    return done.stdout.strip() if strip else done.stdout
