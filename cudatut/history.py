"""What git keeps of the commits that recordings name: whether they exist, when they were made, and their files."""

import subprocess
import threading
from functools import cache
from pathlib import Path

from cudatut import paths


class NoHistory(Exception):
    """There is no history to look into; the message says why, as a sentence's end."""


class History:
    """The history of one checkout, read through one `git cat-file --batch` that stays open."""

    def __init__(self, root: Path):
        self._root = root
        self._lock = threading.Lock()
        self._batch = subprocess.Popen(
            ["git", "-C", str(root), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._ancestors: frozenset[str] | None = None

    def _object(self, name: str) -> tuple[str, str, bytes] | None:
        """(SHA-1, type, content) of what git calls `name`, or None."""
        if "\n" in name:
            return None
        with self._lock:
            self._batch.stdin.write(f"{name}\n".encode())
            self._batch.stdin.flush()
            head = self._batch.stdout.readline().decode().split()
            if len(head) != 3:  # missing, or ambiguous
                return None
            content = self._batch.stdout.read(int(head[2]))
            self._batch.stdout.read(1)
        return head[0], head[1], content

    @cache  # noqa: B019 - a History lives as long as its process
    def commit(self, name: str) -> str | None:
        """The full name of a commit, or None where there is none of this name."""
        found = self._object(f"{name}^{{commit}}")
        return found[0] if found else None

    @cache  # noqa: B019
    def time(self, commit: str) -> int:
        """When a commit was made, in seconds since 1970."""
        _, _, content = self._object(f"{commit}^{{commit}}")
        head = content.partition(b"\n\n")[0].decode("utf-8", "replace")
        line = next(line for line in head.splitlines() if line.startswith("committer "))
        return int(line.rsplit(" ", 2)[1])

    def is_ancestor(self, commit: str) -> bool:
        """Whether a commit (its full name) is HEAD or comes before it."""
        if self._ancestors is None:
            listed = git(self._root, "rev-list", "HEAD") or ""
            self._ancestors = frozenset(listed.split())
        return commit in self._ancestors

    def text(self, commit: str, path: str) -> bytes | None:
        """A file, relative to the root of the repository, as it was at a commit; None if it was not there."""
        found = self._object(f"{commit}:{path}")
        return found[2] if found and found[1] == "blob" else None

    def files(self, commit: str, folder: str) -> list[str]:
        """The files below a folder at a commit, relative to the root of the repository."""
        listed = git(self._root, "ls-tree", "-r", "--name-only", "-z", commit, "--", f"{folder}/")
        return [name for name in (listed or "").split("\0") if name]


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


def git(root: Path, *arguments: str) -> str | None:
    """What git answers, without the line's end; None where it fails or is missing."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
