"""One word for one concept in the Chinese book: the patterns of `docs/wording.yml`, over pages, labels, exercises and overlays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cudatut import overlays, yaml_text
from cudatut.errors import CudatutError
from cudatut.finding import Finding
from cudatut.site import other_words, references

FILE = "wording.yml"
_HIDDEN = re.compile(r"`[^`]*`|\]\([^)]*\)|\{\{(?P<braces>.*?)\}\}|\$[^$]*\$|<[^>]*>")


class BadWordingError(CudatutError):
    """docs/wording.yml is not as it should be; the message says where."""


@dataclass(frozen=True)
class Rule:
    """A pattern of what is not said, what is said instead, and what may stand all the same."""

    never: re.Pattern[str]
    write: str
    but: tuple[str, ...] = ()

    def found(self, text: str) -> Iterator[str]:
        for one in self.but:
            text = text.replace(one, " " * len(one))
        for match in self.never.finditer(text):
            yield match[0].strip() or match[0]


@cache
def rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a file; none where there is no such file. Raises BadWordingError."""
    found: list[Rule] = []
    if not path.is_file():
        return ()
    for number, entry in enumerate(yaml_text.load(path.read_text(encoding="utf-8")) or [], 1):
        try:
            found.append(
                Rule(re.compile(entry["never"]), entry["write"], tuple(entry.get("but", ())))
            )
        except (KeyError, TypeError, AttributeError, re.error) as error:
            raise BadWordingError(
                f"docs/{FILE}: rule {number} needs `never:`, a pattern, and `write:` ({error!r})"
            ) from error
    return tuple(found)


def findings(docs: Path, examples: Path) -> list[Finding]:
    """What the Chinese book says otherwise than it should. Raises BadWordingError."""
    known, root = rules(docs / FILE), docs.parent
    return [
        Finding(path.relative_to(root).as_posix(), line, f"'{said}': write {rule.write}")
        for path, line, text in _texts(docs, examples)
        for rule in known
        for said in rule.found(text)
    ]


def _texts(docs: Path, examples: Path) -> Iterator[tuple[Path, int, str]]:
    """(file, line, text) of all Chinese; of a page what is prose, a comment, or printed."""
    for path in sorted((docs / "zh").rglob("*.md")):
        for number, line, kind, info in references.scan(path.read_text("utf-8", "replace")):
            if kind != "code" or not re.match(r"example|exercise|.*\bexec=", info):
                yield path, number, _HIDDEN.sub(lambda m: "{{}}" if m["braces"] else "`", line)
    for path in [*sorted((docs / "labels").glob("*.yml")), docs / "contents.yml"]:
        yield from ((path, *one) for one in other_words.chinese(path))
    yield from _of_glossary(docs / "glossary.yml")
    for path in other_words.exercises(examples):
        yield from ((path, *one) for one in other_words.chinese(path))
    for path in sorted(examples.rglob(overlays.FILE)):
        yield from ((path, pair.line, pair.words) for pair in overlays.load(path).values())


def _of_glossary(path: Path) -> Iterator[tuple[Path, int, str]]:
    """Its terms and what they mean; its synonyms are what others say."""
    lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
    for term in yaml_text.load("\n".join(lines)) or []:
        for text in filter(None, (term.get("zh"), term["means"]["zh"])):
            at = next((number for number, line in enumerate(lines, 1) if text[:20] in line), 0)
            yield path, at, text
