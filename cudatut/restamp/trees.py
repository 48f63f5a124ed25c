"""The examples as they were at a commit, and the machine code of what they declare there."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from cudatut import paths, tool
from cudatut.errors import CudatutError
from cudatut.history import History

_READ = (".py", ".cu", ".cuh", ".h", ".hpp", ".cpp", ".txt", ".yml")


class Tree(Mapping[str, bytes]):
    """The files of examples/ at a commit, by their names relative to it; read when they are asked for."""

    def __init__(self, past: History, commit: str):
        self.past, self.commit = past, commit
        top = "examples/"
        self._names = [name.removeprefix(top) for name in past.files(commit, "examples")]

    def __getitem__(self, name: str) -> bytes:
        if (found := self.past.text(self.commit, f"examples/{name}")) is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """A temporary folder examples/ with what declares kernels."""
        with tempfile.TemporaryDirectory(prefix="cudatut-tree-") as folder:
            root = Path(folder).resolve() / "examples"
            for name in self._names:
                if name.endswith(_READ):
                    path = root / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(self[name])
            yield root


@cache
def tree(past: History, commit: str) -> Tree:
    """The examples at a commit, listed once."""
    return Tree(past, commit)


class Compiler:
    """The machine code of kernels at commits. Compiling costs minutes, so what was compiled once is kept in a cache."""

    def __init__(self, past: History):
        self._past = past
        self._known: dict[tuple[str, str], tuple[set[str], dict[str, Any]]] = {}

    def declared(self, commit: str, arch: str, files: Iterable[str]) -> dict[str, Any]:
        """What `compiled.kernels` says of the tree at a commit, of at least these files. Raises CudatutError."""
        wanted = set(files)
        asked, known = self._known.get((commit, arch), (set(), {}))
        if not wanted <= asked:
            # Most of the time goes to reading the tree: all files asked for so far at once.
            asked = asked | wanted
            known = self._run(commit, "declared", arch, *sorted(asked))
            self._known[commit, arch] = asked, known
        return known

    def recorded(self, commit: str, kernels: list[dict[str, Any]]) -> list[str | None]:
        """The digests that kernels of a recording have at a commit. Raises CudatutError."""
        return self._run(commit, "recorded", given=json.dumps(kernels))

    def _run(self, commit: str, *arguments: str, given: str = "") -> Any:
        with tree(self._past, commit).on_disk() as root:
            done = subprocess.run(
                [sys.executable, "-m", "cudatut.restamp.compiled", *arguments],
                capture_output=True,
                text=True,
                input=given,
                env=tool.environment() | {"CUDATUT_EXAMPLES": str(root)},
            )
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise CudatutError(f"the kernels at {commit[:12]} could not be compiled: {said}")
        return json.loads(done.stdout)


def working_tree() -> dict[str, Path]:
    """The files of examples/ now, by their names relative to it."""
    root = paths.examples_dir()
    return {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
