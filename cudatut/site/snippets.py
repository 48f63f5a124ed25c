"""Regions of kernels on pages, by pymdownx.snippets; one that is not there is reported like all else that is wrong.

pymdownx.snippets itself can only raise, which ends the build with a traceback and hides what is wrong on other pages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markdown import Markdown
from pymdownx.snippets import SnippetExtension, SnippetPreprocessor

from cudatut import catalog, paths
from cudatut.site import overlaid, state

_PRIORITY = 32  # as pymdownx.snippets has it: before fences are read


class Preprocessor(SnippetPreprocessor):
    """Reports to the build what it does not find, and leaves nothing in its place."""

    path = ""  # of the snippet at work

    def __init__(self, config: dict[str, Any], md: Markdown):
        super().__init__({**config, "check_paths": False}, md)

    def get_snippet_path(self, path: str) -> str | None:
        self.path, found = path, super().get_snippet_path(path)
        if found is None:
            state.current().report(f"the snippet '{path}': there is no such file below examples/")
        return found

    def parse_snippets(
        self, lines: list[str], file_name: str | None = None, **options: bool
    ) -> list[str]:
        """The lines of a page or, with `file_name`, of a snippet, which has the comments of the page's language."""
        found = super().parse_snippets(lines, file_name, **options)
        if not file_name:
            return found
        file = catalog.relative(Path(file_name), paths.examples_dir())
        return overlaid.code("\n".join(found), file).split("\n")

    def extract_section(self, section: str, lines: list[str]) -> list[str]:
        marks = filter(None, map(self.RE_SNIPPET_SECTION.match, lines))
        known = dict.fromkeys(mark["name"] for mark in marks if mark["type"].lower() == "start")
        if section not in known:
            has = f"its regions are {', '.join(known)}" if known else "it has no regions"
            state.current().report(
                f"the snippet '{self.path}:{section}': the file has no such region; {has}"
            )
            return []
        return super().extract_section(section, lines)


class Extension(SnippetExtension):
    """As pymdownx.snippets, with the preprocessor above."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Called by Markdown."""
        super().extendMarkdown(md)
        md.preprocessors.register(Preprocessor(self.getConfigs(), md), "snippet", _PRIORITY)


def makeExtension(**options: Any) -> Extension:
    """Called by Markdown, by this name."""
    return Extension(**options)
