"""What the build of one language knows while it runs: the language, the page, and what went wrong.

MkDocs hands a custom fence the Markdown text only, neither the page nor the configuration; the plugin
puts both here. Each language is built by a process of its own, so there is one state per process.
"""

from __future__ import annotations

import logging
import posixpath
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from cudatut import catalog, failures, paths, recording
from cudatut.catalog import Example, UnknownExampleError
from cudatut.errors import CudatutError
from cudatut.finding import Finding
from cudatut.recording import Recording
from cudatut.site import locale, missing

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
    only: tuple[str, ...] = ()  # the chapters that a preview shows, such as "start/errors"
    # Whole programs that pages offer as files, by path below this language's root.
    programs: dict[str, str] = field(default_factory=dict)
    # The files of the pictures that pages show, likewise.
    pictures: dict[str, bytes] = field(default_factory=dict)
    # What `notebooks.recorded` found, as soon as it was asked.
    shown: list[Recording] | None = None
    _recordings: dict[str, list[Recording] | CudatutError] = field(default_factory=dict)
    _examples: dict[str, Example] = field(default_factory=dict)

    def example(self, name: str) -> Example:
        """An example, looked up once per build, as pages ask for each of them again and again. Raises as `catalog.get`."""
        if name not in self._examples:
            self._examples[name] = catalog.get(name)
        return self._examples[name]

    @cached_property
    def examples(self) -> list[Example]:
        """All examples that are not in progress, looked up once per build. Raises as `catalog.examples`."""
        return catalog.examples()

    def recordings(self, name: str) -> list[Recording]:
        """The recording of an example, and its slim ones from other GPUs, read once per build.

        Raises like `recording.require_good`, also for those that no page shows.
        """
        if name not in self._recordings:
            try:
                self._recordings[name] = self._read(name)
            except CudatutError as error:
                self._recordings[name] = error
        found = self._recordings[name]
        if isinstance(found, CudatutError):
            raise found.with_traceback(None)
        return found

    def record(self, name: str) -> Recording:
        """The recording of an example on the book's own GPU. Raises as `recordings`."""
        return self.recordings(name)[0]

    def _read(self, name: str) -> list[Recording]:
        if self.mode != "strict" and (failed := failures.reason(name)) is not None:
            return [missing.stand_in(name, failed)]
        try:
            own = recording.require_good(name)
            if self.mode == "strict":
                own = recording.at_home(own)
            return [own, *recording.on_other_gpus(name)]
        except CudatutError as error:
            if self.mode != "preview" or isinstance(error, UnknownExampleError):
                raise
            return [missing.stand_in(name, str(error))]

    def gpus(self, name: str, cell: str) -> list[tuple[str, list[dict]]]:
        """The results of a cell by GPU, the book's own first. Raises as `recordings`."""
        return [
            (record.gpu, record.results(cell))
            for record in self.recordings(name)
            if any(one.title == cell for one in record.cells)
        ]

    def report(self, problem: object) -> None:
        """Fail this build with `problem`, once it has gone through all pages."""
        if isinstance(problem, missing.MissingOutputError):  # the page says so in its place
            return
        named = isinstance(problem, Finding) or not self.page  # a finding says where it is
        line = str(problem) if named else f"docs/{self.lang}/{self.page}: {problem}"
        # Said of the recording before any page; or one stale recording is shown five times on a page.
        if str(problem) not in self.problems and line not in self.problems:
            self.problems.append(line)
            log.warning(line)

    def link(self, target: str) -> str:
        """URL of `target` (relative to this language's root) as seen from the page at work.

        Quoted: it can stand in an attribute as it is, and has no scheme, whatever its parts are called.
        """
        path, mark, anchor = target.partition("#")
        slash = "/" if path.endswith("/") or not path else ""
        relative = posixpath.relpath(path or ".", self.url or ".") + slash
        return quote(relative) + mark + quote(anchor, safe="=")


_state = State()


def current() -> State:
    """The state of the build that this process runs."""
    return _state


def begin(state: State) -> State:
    """Start a build, whose words are those of its language."""
    global _state
    _state = state
    locale.use(state.lang)
    return state
