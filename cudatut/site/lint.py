"""What a page of the book may not contain: typed measurements, and headings without an id.

    python -m cudatut.site lint

A number with a unit of time, rate or ratio was measured or computed somewhere: it comes from there
(`{{ example#cell["row"].field }}`), or it names its source (`{{ quote "570 ms" from "..." }}`).
Limits that hold by definition (1024 threads, 48 KB) may be typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cudatut.site import references

# ASCII throughout: Chinese has no spaces, so 快了38倍 must end a word at 了. Digits that are a value of their own: not the tail of a name (H100), a version or an address (sm_90).
_NUMBER = r"(?<![\w.#/&;-])(?:\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)"
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
_TYPED = re.compile(rf"({_NUMBER})[\s\u00a0\u202f]*(?:{'|'.join(_UNITS)})", re.ASCII)
_DECADE = re.compile(r"(?:19|20)\d0s$")
_BEFORE = re.compile(r"百分之\s*[\d.]+")

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*$")
_SETEXT = re.compile(r"^(=+|-+)\s*$")
_HAS_ID = re.compile(r"\{:?[^}]*#([^\s}]+)[^}]*\}\s*$")
_ASCII_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

# What is no prose, replaced by a blank of the same kind so that its neighbors do not run together.
_NO_PROSE = (
    references.FIELD,
    re.compile(r"<!--.*?-->"),
    re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)"),
    re.compile(r"(?<![\\$])(\$\$?)(?=\S)(.+?)(?<=\S)\1"),
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
    front, body, offset = split_front_matter(markdown)
    findings = [
        Finding(file, number, _typed_message(text))
        for number, line in enumerate(front.split("\n"), 1)
        if line.startswith(("title:", "description:"))
        for text in typed_measurements(line)
    ]
    ids: dict[str, int] = {}
    before = ""
    display_math = False
    for number, line, in_code in references.lines(body):
        at = number + offset
        if not in_code and line.strip() == "$$":
            display_math = not display_math
        if in_code or display_math:
            before = ""
            continue
        findings += [Finding(file, at, _typed_message(text)) for text in typed_measurements(line)]
        heading = _HEADING.match(line)
        if heading:
            findings += _heading(heading[2], file, at, ids)
        elif (
            _SETEXT.match(line)
            and before.strip()
            and not before.lstrip().startswith(("|", "-", "#"))
        ):
            findings.append(
                Finding(file, at, "underlined heading: write '## Heading { #its-id }' instead")
            )
        before = line
    return findings


def lint_files(files: list[Path], root: Path) -> list[Finding]:
    """Findings of several pages; files are named relative to `root`."""
    findings = []
    for path in files:
        name = path.relative_to(root).as_posix()
        try:
            findings += lint_text(path.read_text(encoding="utf-8"), name)
        except UnicodeDecodeError as error:
            findings.append(Finding(name, 1, f"not UTF-8: {error}"))
    return findings


def pages(docs: Path) -> list[Path]:
    """Every Markdown page under a folder, sorted."""
    return sorted(docs.rglob("*.md"))


def typed_measurements(line: str) -> list[str]:
    """Typed measurements in one line of prose, as they stand there."""
    for pattern in _NO_PROSE:
        line = pattern.sub(" ¤ ", line)
    found = [match[0] for match in _TYPED.finditer(line) if not _DECADE.search(match[0])]
    return found + [match[0] for match in _BEFORE.finditer(line)]


def split_front_matter(markdown: str) -> tuple[str, str, int]:
    """(front matter, body, lines before the body)."""
    match = re.match(r"---[ \t]*\n.*?\n---[ \t]*\n", markdown, re.DOTALL)
    if not match:
        return "", markdown, 0
    return match[0], markdown[match.end() :], match[0].count("\n")


def heading_ids(markdown: str) -> list[str]:
    """Explicit ids of a page's headings, in order; "" where one has none."""
    _, body, _ = split_front_matter(markdown)
    out = []
    for _, line, in_code in references.lines(body):
        match = None if in_code else _HEADING.match(line)
        if match:
            found = _HAS_ID.search(match[2])
            out.append(found[1] if found else "")
    return out


def _heading(text: str, file: str, line: int, ids: dict[str, int]) -> list[Finding]:
    match = _HAS_ID.search(text)
    if not match:
        return [
            Finding(
                file,
                line,
                f"heading '{text}' has no id: add {{ #its-id }}, the same in both languages",
            )
        ]
    name = match[1]
    if not _ASCII_ID.fullmatch(name):
        return [Finding(file, line, f"heading id '{name}': use a-z, 0-9 and - only")]
    if name in ids:
        return [Finding(file, line, f"heading id '{name}' stands on line {ids[name]} already")]
    ids[name] = line
    return []


def _typed_message(text: str) -> str:
    return (
        f'"{text.strip()}" is a typed measurement: refer to a recording, '
        '{{ example#cell["row"].field }}, or quote its source, '
        f'{{{{ quote "{text.strip()}" from "..." }}}}'
    )
