"""What the build of one language knows while it runs: the language, the page, and what went wrong.

MkDocs hands a custom fence the Markdown text only, neither the page nor the configuration; the plugin
puts both here. Each language is built by a process of its own, so there is one state per process.
"""

from __future__ import annotations

import logging
import posixpath
from dataclasses import dataclass, field
from pathlib import Path

from cudatut import failures, paths, recording
from cudatut.catalog import UnknownExampleError
from cudatut.errors import CudatutError
from cudatut.recording import Recording
from cudatut.site import missing

# A warning under `mkdocs` makes a strict build fail after it has named every other problem too.
log = logging.getLogger("mkdocs.plugins.cudatut")


@dataclass
class State:
    """`docs` is the folder of this language's pages; `page` and `url` those of the page at work."""

    lang: str = "en"
    docs: Path = field(default_factory=lambda: (paths.repo_root() or Path.cwd()) / "docs" / "en")
    repo_url: str = ""
    page: str = ""
    url: str = ""
    problems: list[str] = field(default_factory=list)
    # "strict": whatever cannot be shown fails the build. "live": an example that failed on this machine costs its own
    # outputs. "preview": so does one that is not recorded, stale or damaged.
    mode: str = "strict"
    # Whole programs that pages offer as files, by path below this language's root.
    programs: dict[str, str] = field(default_factory=dict)
    _records: dict[str, object] = field(default_factory=dict)
    _others: dict[str, list[Recording]] = field(default_factory=dict)

    def record(self, name: str) -> Recording:
        """The recording of an example, read once per build; raises like `recording.require_good`."""
        if name not in self._records:
            try:
                self._records[name] = self._read(name)
            except CudatutError as error:
                self._records[name] = error
        found = self._records[name]
        if isinstance(found, CudatutError):
            raise found.with_traceback(None)
        return found

    def gpus(self, name: str, cell: str) -> list[tuple[str, list[dict]]]:
        """The results of a cell by GPU: the book's own first, then those of `results/`. Raises as `on_other_gpus`."""
        records = [self.record(name), *self.others(name)]
        return [
            (one.metadata["gpu"]["name"], one.results(cell))
            for one in records
            if any(one_cell.title == cell for one_cell in one.cells)
        ]

    def others(self, name: str) -> list[Recording]:
        """The slim recordings of an example, read once per build. Raises as `recording.on_other_gpus`."""
        if name not in self._others:
            self._others[name] = recording.on_other_gpus(name)
        return self._others[name]

    def _read(self, name: str) -> Recording:
        failed = failures.reason(name) if self.mode != "strict" else None
        if failed is not None:
            return missing.stand_in(name, failed)
        try:
            return recording.require_good(name)
        except UnknownExampleError:
            raise
        except CudatutError as error:
            if self.mode != "preview":
                raise
            return missing.stand_in(name, str(error))

    def report(self, problem: object) -> None:
        """Fail this build with `problem`, once it has gone through all pages."""
        if isinstance(problem, missing.MissingOutputError):  # the page says so in its place
            return
        if str(problem) in self.problems:  # said of the recording already, before any page
            return
        where = f"docs/{self.lang}/{self.page}: " if self.page else ""
        line = f"{where}{problem}"
        if line not in self.problems:  # one stale recording may be shown five times on a page
            self.problems.append(line)
            log.warning(line)

    def link(self, target: str) -> str:
        """URL of `target` (relative to this language's root) as seen from the page at work."""
        path, _, anchor = target.partition("#")
        start = self.url or "."
        relative = posixpath.relpath(path or ".", start)
        if path.endswith("/") or not path:
            relative += "/"
        return relative + (f"#{anchor}" if anchor else "")


_state = State()


def current() -> State:
    """The state of the build that this process runs."""
    return _state


def begin(state: State) -> State:
    """Start a build."""
    global _state
    _state = state
    return state
