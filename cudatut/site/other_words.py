"""Typed measurements outside the pages: in the table of contents, the glossary, the labels and the exercises' headers.

These words are shown as they stand, so no reference can be put into them: a number that was measured goes. What an exercise
asks for has goals and settings ("to 1 %"): its header lists them, `given: ["1 %"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from cudatut.site import measurements
from cudatut.site.plain import plain

_HAN = re.compile(r"[\u4e00-\u9fff]")
_HEADER = re.compile(r"# ---\n((?:#.*\n)*?)# ---\n")
# Keys whose values are read by programs, not shown.
_NOT_SHOWN = {"id", "chapter", "code", "fails", "requires", "level", "written", "given"}


@dataclass(frozen=True)
class _Said:
    """One text of a YAML file: where it begins, its key, and what the mapping around it lists as given."""

    line: int
    key: str
    text: str
    given: frozenset[str]


def of_docs(docs: Path) -> Iterator[tuple[Path, int, str]]:
    """File, line and text of each measurement that docs/*.yml and docs/labels/*.yml state."""
    for path in sorted(docs.glob("*.yml")):
        yield from ((path, *one) for one in _typed(path.read_text("utf-8", "replace")))
    for path in sorted((docs / "labels").glob("*.yml")):
        for said in _texts(path.read_text("utf-8", "replace")):
            # A label is a translation: where the recording's own words state a number, so may the Chinese.
            if not any(measurements.found(plain(said.key))):
                yield from ((path, *one) for one in _measured(said))


def of_exercises(examples: Path) -> Iterator[tuple[Path, int, str]]:
    """File, line and text of each measurement that the header of an exercise states and does not list as given."""
    for path in exercises(examples):
        yield from ((path, *one) for one in _typed(_yaml(path)))


def exercises(examples: Path) -> list[Path]:
    """The files whose headers say what exercises ask for."""
    return sorted([*examples.glob("*/*_exercises.py"), *examples.glob("*/*/exercises.py")])


def chinese(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each Chinese text in a YAML file, or in the header of an exercise."""
    yield from ((said.line, said.text) for said in _texts(_yaml(path)) if _HAN.search(said.text))


def _yaml(path: Path) -> str:
    text = path.read_text("utf-8", "replace")
    if path.suffix != ".py":
        return text
    header = _HEADER.match(text)
    # One line for the '# ---' above, so that lines are those of the file.
    return "\n" + re.sub(r"(?m)^# ?", "", header[1]) if header else ""


def _typed(text: str) -> Iterator[tuple[int, str]]:
    for said in _texts(text):
        yield from _measured(said)


def _measured(said: _Said) -> Iterator[tuple[int, str]]:
    for found in measurements.found(plain(said.text)):
        if found not in said.given:
            yield said.line, found


def _texts(text: str) -> Iterator[_Said]:
    """All texts that are shown; none for a file that is no YAML, which its reader refuses."""
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        yield from _below(root, "", frozenset())
    except (yaml.YAMLError, RecursionError):
        return


def _below(node: yaml.Node | None, key: str, given: frozenset[str]) -> Iterator[_Said]:
    match node:
        case yaml.ScalarNode():
            yield _Said(node.start_mark.line + 1, key, node.value, given)
        case yaml.SequenceNode():
            for one in node.value:
                yield from _below(one, key, given)
        case yaml.MappingNode():
            named = [(n, one) for n, one in node.value if isinstance(n, yaml.ScalarNode)]
            listed = [one for name, one in named if name.value == "given"]
            given |= {said.text for one in listed for said in _below(one, "", given)}
            for name, one in named:
                if name.value not in _NOT_SHOWN:
                    yield from _below(one, name.value, given)
