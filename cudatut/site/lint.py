"""What a page of the book may not contain: typed measurements, and headings without an id.

    python -m cudatut.site lint

A number with a unit of time, rate or ratio was measured or computed somewhere: it comes from there
(`{{ example#cell["row"].field }}`), or it names its source (`{{ quote "570 ms" from "..." }}`). What nobody measured says what
it is (`{{ given "two seconds" as "setting" }}`). Limits that hold by definition (1024 threads, 48 KB) may be typed.
What a measurement is: `cudatut.site.measurements`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cudatut.finding import Finding
from cudatut.site import braces, measurements, other_words, references, tables, wording
from cudatut.site.plain import MARK, formula, plain

_TYPED_MESSAGE = (
    '"{0}" is a typed measurement: refer to a recording, {{{{ example#cell["row"].field }}}}, '
    'or quote its source, {{{{ quote "{0}" from "..." }}}}; '
    'what nobody measured says so, {{{{ given "{0}" as "prediction" }}}} (or goal, assumption, setting, count)'
)
_WORDS_MESSAGE = (
    '"{0}" is a typed measurement, and no reference can stand here: say it without the number'
)
_UNIT_MESSAGE = "'{0}' does not fit the reference before it: times are recorded in microseconds (/ 1e3 for ms), shares as parts of one (100 * for %)"

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*$")
_SETEXT = re.compile(r"^(=+|-+)\s*$")
_PARAGRAPH = re.compile(r"\s*[^\s|#-]")
_HAS_ID = re.compile(r"\{:?[^}]*#([^\s}]+)[^}]*\}\s*$")
_ASCII_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

# What is no prose for terms, replaced by a mark so that its neighbors do not run together.
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
# Fences that show what somebody says a program printed; all others are code, or made of recordings.
_PRINTED = ("", "text", "console", "output", "plain", "txt", "shell-session")
_COMMENT = re.compile(r"(?:#|//)\s(.*)")
_COMPUTED = re.compile(r"example|exercise|.*\bexec=")
_LANGUAGE = re.compile(r"[\w-]+|$")
# A line that the next one may go on, and how many characters of both make a sentence across them.
_GOES_ON = re.compile(r"\s*[^\s|#!?=<]")
_ACROSS = 60


def lint_text(markdown: str, file: str) -> list[Finding]:
    """Findings of one page, front matter included."""
    faults = [
        *_faults_of_lines(markdown),
        *_faults_of_tables(markdown),
        *_faults_of_headings(markdown),
    ]
    return [Finding(file, number, message) for number, message in sorted(faults)]


def _faults_of_lines(markdown: str) -> Iterator[tuple[int, str]]:
    before = last = ""
    display_math = False
    said = braces.stated(markdown)
    for number, line, kind, info in references.scan(markdown):
        delimits = kind == "prose" and line.strip() == "$$"
        display_math ^= delimits
        read = "" if delimits else _read(kind, line, info)
        if not read:
            before = last = ""
            continue
        text = formula(read) if display_math else plain(read, partial(braces.shown, stated=said))
        for typed in _measured(text, last):
            yield number, _TYPED_MESSAGE.format(typed)
        last = text if kind == "prose" and _GOES_ON.match(line) else ""
        if kind != "prose":
            continue
        for field in references.FIELD.finditer(line):
            if unit := braces.wrong_unit(field):
                yield number, _UNIT_MESSAGE.format(unit)
        if _SETEXT.match(line) and _PARAGRAPH.match(before):
            yield number, "underlined heading: write '## Heading { #its-id }' instead"
        before = line


def _measured(text: str, last: str) -> Iterator[str]:
    """The measurements of a line, and those that begin on the line before, `last`, of the same paragraph."""
    yield from measurements.found(text)
    if last and text.strip():
        end, begin = last[-_ACROSS:], text.strip()[:_ACROSS]
        whole = [*measurements.found(end), *measurements.found(begin)]
        yield from (one for one in measurements.found(f"{end}\n{begin}") if one not in whole)


def _read(kind: str, line: str, info: str) -> str:
    """What of a line somebody wrote for the reader: prose, titles, what a program is said to print, comments in code."""
    if kind == "code":
        if _LANGUAGE.findall(info)[0] in _PRINTED:
            return line
        comment = _COMMENT.search(line)
        return comment[1] if comment and not _COMPUTED.match(info) else ""
    titles = kind == "front" and line.startswith(("title:", "description:"))
    return line if kind == "prose" or titles else ""


def _faults_of_tables(markdown: str) -> Iterator[tuple[int, str]]:
    """Numbers that stand alone in their cell, with a unit of measurement in the head of their column."""
    for head, rows in tables.tables(markdown):
        for number, cells in rows:
            for unit, cell in zip(head, cells):
                if measurements.is_number(cell):
                    of = next(
                        filter(measurements.is_measurement, tables.with_units(cell, unit)), ""
                    )
                    if of:
                        yield number, _TYPED_MESSAGE.format(of)


def _faults_of_headings(markdown: str) -> Iterator[tuple[int, str]]:
    ids: dict[str, int] = {}
    for number, words, name in headings(markdown):
        if not name:
            yield (
                number,
                f"heading '{words}' has no id: add {{ #its-id }}, the same in both languages",
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


def lint_words(root: Path) -> list[Finding]:
    """Findings of what the site shows besides the pages (contents, glossary, labels, exercises), and of Chinese words anywhere."""
    found = [*other_words.of_docs(root / "docs"), *other_words.of_exercises(root / "examples")]
    typed = [
        Finding(path.relative_to(root).as_posix(), line, _WORDS_MESSAGE.format(text))
        for path, line, text in found
    ]
    return [*typed, *wording.findings(root / "docs", root / "examples")]


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
        line = pattern.sub(MARK, line)
    return line
