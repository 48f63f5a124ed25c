"""What a page of the book may not contain: typed measurements, and headings without an id.

    python -m cudatut.site lint

A number with a unit of time, rate or ratio was measured or computed somewhere: it comes from there
(`{{ example#cell["row"].field }}`), or it names its source (`{{ quote "570 ms" from "..." }}`).
Limits that hold by definition (1024 threads, 48 KB) may be typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cudatut.site import references

# ASCII throughout: Chinese has no spaces, so 快了38倍 must end a word at 了.
# Digits that are a value of their own: not the tail of a name (H100), a version, an address (sm_90) or a decade (1990s).
_NUMBER = r"(?<![\w.#/&;-])(?!(?:19|20)\d0s\b)(?:\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_UNITS = (
    r"(?:ns|us|µs|μs|ms|s|secs?|seconds?|milliseconds?|microseconds?|nanoseconds?)(?![\w'’])",
    r"(?:纳秒|微秒|毫秒|秒)",
    r"[kKMGTP]?i?[Bb](?:ytes?)?(?:/|\s?per\s?)(?:s|sec|second)(?!\w)",
    r"(?:[kKMGTPE]?FLOP|[kKMGTPE]?OP)S?(?:/|\s?per\s?)(?:s|sec|second)(?!\w)",
    r"[kKMGTPE]FLOPS(?!\w)",
    r"(?:[%％]|per\s?cent\b|percent\b)",
    r"(?:倍)",
    r"times\s+(?:as\s+)?(?:faster|slower|fast|slow|more|less|quicker|longer|shorter)\b",
    # A ratio, not a shape: 32 x 32, 2×n and 4 × `N` are sizes.
    r"[×xX](?![\w])(?!\s*(?:\d|[A-Za-zα-ω]\b|[¤(]))",
)
_TYPED = re.compile(
    rf"{_NUMBER}[\s\u00a0\u202f]*(?:{'|'.join(_UNITS)})|百分之[\s\u00a0\u202f]*[\d.]+", re.ASCII
)
_TYPED_MESSAGE = (
    '"{0}" is a typed measurement: refer to a recording, {{{{ example#cell["row"].field }}}}, '
    'or quote its source, {{{{ quote "{0}" from "..." }}}}'
)

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*$")
_SETEXT = re.compile(r"^(=+|-+)\s*$")
_PARAGRAPH = re.compile(r"\s*[^\s|#-]")
_HAS_ID = re.compile(r"\{:?[^}]*#([^\s}]+)[^}]*\}\s*$")
_ASCII_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

# What is no prose, replaced by a blank of the same kind so that its neighbors do not run together.
_NO_PROSE = (
    references.FIELD,
    re.compile(r"<!--.*?-->"),
    references.CODE_SPAN,
    references.MATH,
    re.compile(r"\]\([^)\s]*(?=[)\s])"),
    re.compile(r"<[^>\s][^>]*>"),
    re.compile(r"\bhttps?://\S+"),
    re.compile(r"\{:?\s*[#.][^}]*\}"),
)


@dataclass(frozen=True)
class Finding:
    """One thing to mend: `file` as given, `line` from 1."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def lint_text(markdown: str, file: str) -> list[Finding]:
    """Findings of one page, front matter included."""
    faults = [*_faults_of_lines(markdown), *_faults_of_headings(markdown)]
    return [Finding(file, number, message) for number, message in sorted(faults)]


def _faults_of_lines(markdown: str) -> Iterator[tuple[int, str]]:
    before = ""
    display_math = False
    for number, line, kind, _ in references.scan(markdown):
        if kind == "prose" and line.strip() == "$$":
            display_math = not display_math
        in_front = kind == "front" and line.startswith(("title:", "description:"))
        if not in_front and (kind != "prose" or display_math):
            before = ""
            continue
        for text in typed_measurements(line):
            yield number, _TYPED_MESSAGE.format(text)
        if _SETEXT.match(line) and _PARAGRAPH.match(before):
            yield number, "underlined heading: write '## Heading { #its-id }' instead"
        before = line


def _faults_of_headings(markdown: str) -> Iterator[tuple[int, str]]:
    ids: dict[str, int] = {}
    for number, words, name in headings(markdown):
        if not name:
            yield (
                number,
                f"heading '{words}' has no id: add {{ #its-id }}, as in the other language",
            )
        elif not _ASCII_ID.fullmatch(name):
            yield number, f"heading id '{name}': use a-z, 0-9 and - only"
        elif ids.setdefault(name, number) != number:
            yield number, f"heading id '{name}' stands on line {ids[name]} already"


def headings(markdown: str) -> Iterator[tuple[int, str, str]]:
    """Line, words and explicit id of each heading of a page; "" where one has none."""
    for number, line, kind, _ in references.scan(markdown):
        if kind == "prose" and (heading := _HEADING.match(line)):
            found = _HAS_ID.search(heading[2])
            yield number, heading[2], found[1] if found else ""


def lint_files(files: list[Path], root: Path) -> list[Finding]:
    """Findings of several pages; files are named relative to `root`."""
    found = []
    for path in files:
        markdown = path.read_text("utf-8", "replace")  # MkDocs refuses a page that is not UTF-8
        found += lint_text(markdown, path.relative_to(root).as_posix())
    return found


def pages(docs: Path) -> list[Path]:
    """Every Markdown page under a folder, sorted."""
    return sorted(docs.rglob("*.md"))


def prose(line: str) -> str:
    """A line without its code, formulas, addresses, references and attributes."""
    for pattern in _NO_PROSE:
        line = pattern.sub(" ¤ ", line)
    return line


def typed_measurements(line: str) -> list[str]:
    """Typed measurements in one line of prose, as they stand there."""
    return [match[0] for match in _TYPED.finditer(prose(line))]
