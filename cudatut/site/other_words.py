"""Typed measurements outside the pages: in the table of contents, the glossary, the labels and the exercises' headers.

These are words that the site shows as they stand, so no reference can be put into them: a number that was measured goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from cudatut.site import measurements
from cudatut.site.plain import plain

_HEADER = re.compile(r"# ---\n((?:#.*\n)*?)# ---\n")
# Keys whose values are read by programs, not shown.
_NOT_SHOWN = {"id", "chapter", "code", "fails", "requires", "level", "written", "terms"}


def of_docs(docs: Path) -> Iterator[tuple[Path, int, str]]:
    """File, line and text of each measurement that docs/*.yml and docs/labels/*.yml state."""
    for path in sorted(docs.glob("*.yml")):
        for line, _, value in _said(path.read_text("utf-8", "replace")):
            yield from ((path, line, text) for text in measurements.found(plain(value)))
    for path in sorted((docs / "labels").glob("*.yml")):
        for line, label, value in _said(path.read_text("utf-8", "replace")):
            # A label is a translation: it may say what the recording says.
            if next(measurements.found(plain(label)), None) is None:
                yield from ((path, line, text) for text in measurements.found(plain(value)))


def of_exercises(examples: Path) -> Iterator[tuple[Path, int, str]]:
    """File, line and text of each measurement that the header of an exercise states."""
    for path in sorted(examples.glob("*/*_exercises.py")):
        if header := _HEADER.match(path.read_text("utf-8", "replace")):
            text = "\n" + re.sub(r"(?m)^# ?", "", header[1])
            for line, _, value in _said(text):
                yield from ((path, line, found) for found in measurements.found(plain(value)))


def _said(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, key and value of each text that is shown; nothing for a file that is no YAML, which its reader refuses."""
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return
    yield from _scalars(root, "")


def _scalars(node: yaml.Node | None, key: str) -> Iterator[tuple[int, str, str]]:
    match node:
        case yaml.ScalarNode():
            yield node.start_mark.line + 1, key, node.value
        case yaml.SequenceNode():
            for one in node.value:
                yield from _scalars(one, key)
        case yaml.MappingNode():
            for name, value in node.value:
                if name.value not in _NOT_SHOWN:
                    yield from _scalars(value, name.value)
