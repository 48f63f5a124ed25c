"""What the build of one language knows while it runs: the language, the page, and what went wrong.

MkDocs hands a custom fence the Markdown text only, neither the page nor the configuration; the plugin
puts both here. Each language is built by a process of its own, so there is one state per process.
"""

from __future__ import annotations

import logging
import posixpath
from dataclasses import dataclass, field
from pathlib import Path

from cudatut import paths

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

    def report(self, problem: object) -> None:
        """Fail this build with `problem`, once it has gone through all pages."""
        where = f"docs/{self.lang}/{self.page}: " if self.page else ""
        line = f"{where}{problem}"
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
