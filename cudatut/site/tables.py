"""The tables that somebody typed into a page, in Markdown or in HTML: their heads, and their rows with line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudatut.site import references
from cudatut.site.plain import plain

Row = tuple[int, list[str]]

_RULE = re.compile(r"[\s>]*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?\s*")
_BAR = re.compile(r"(?<!\\)\|")
_HTML_ROW = re.compile(r"<tr\b.*?(?=</tr>|<tr\b|</table>)", re.S | re.I)
_HTML_CELL = re.compile(r"<t([hd])\b[^>]*>(.*?)(?=</t[hd]>|<t[hd]\b|$)", re.S | re.I)


def tables(markdown: str) -> Iterator[tuple[list[str], list[Row]]]:
    """The head of each table as text, and its rows: number of the line, cells as text."""
    yield from _of_markdown(markdown)
    if "<table" in markdown.lower():
        yield from _of_html(markdown)


def with_units(cell: str, head: str) -> Iterator[str]:
    """A cell with what may be its unit: the head of its column, the last part of it, or what stands in brackets."""
    for unit in (head, *re.split(r"[,，(（]", head)[1:]):
        yield f"{cell.strip()} {unit.strip(' )）')}"


def _of_markdown(markdown: str) -> Iterator[tuple[list[str], list[Row]]]:
    before, head, rows = "", None, list[Row]()
    # Behind the last line stands an empty one, which ends any table.
    for number, line, kind, _ in references.scan(markdown + "\n"):
        is_row = kind == "prose" and "|" in line
        if head is not None and is_row:
            rows.append((number, _cells(line)))
        elif head is not None:
            yield head, rows
            head = None
        elif is_row and _RULE.fullmatch(line) and "|" in before:
            head, rows = _cells(before), []
        before = line if is_row else ""


def _cells(line: str) -> list[str]:
    return [plain(cell).strip() for cell in _BAR.split(line.strip(" \t>").strip("|"))]


def _of_html(markdown: str) -> Iterator[tuple[list[str], list[Row]]]:
    head: list[str] = []
    rows: list[Row] = []
    for row in _HTML_ROW.finditer(markdown):
        found = _HTML_CELL.findall(row[0])
        cells = [plain(text).strip() for _, text in found]
        if found and all(kind.lower() == "h" for kind, _ in found):
            yield head, rows
            head, rows = cells, []
        else:
            rows.append((markdown[: row.start()].count("\n") + 1, cells))
    yield head, rows
