"""The reader's own numbers beside the book's: what a program measured here, and what it measured on the book's GPU."""

from typing import Any

from cudatut import recording, results, tool
from cudatut.errors import CudatutError
from cudatut.results import Facts, format_value

TITLE = "measured here"


def yours(cell: str, values: dict[str, Any]) -> Facts:
    """Show what was measured here, each value beside that of the book.

        ct.yours("basics/coalescing#program", {"stride 8 beside stride 1": (1.24, "x")})

        stride 8 beside stride 1: yours 1.24x, H200 1.18x

    cell: the example and the cell whose recording holds the book's values, by the same names. values: name -> value, or
    (value, unit). While the book is recorded this shows facts, as `facts` does. Returns them. Raises TypeError as `facts`.
    """
    if tool.recording():
        return results.facts(TITLE, values)
    rows = [results.fact(name, value, "yours") for name, value in values.items()]
    gpu, book = _of_the_book(cell)
    for row in rows:
        beside = f", {gpu} {_said(book[row.name], row.unit)}" if row.name in book else ""
        print(f"{row.name}: yours {_said(row.value, row.unit)}{beside}")
    return Facts(TITLE, rows)


def _of_the_book(cell: str) -> tuple[str, dict[str, Any]]:
    """The GPU of the book's recording, and its values by name; nothing of one that is not there or has no such cell."""
    example, _, title = cell.partition("#")
    try:
        found = recording.load(example)
        shown = found.results(title)
    except CudatutError:  # the reader's own numbers need none
        return "", {}
    rows = [row for one in shown if one["kind"] == "facts" for row in one["rows"]]
    return found.gpu.removeprefix("NVIDIA "), {row["name"]: row["value"] for row in rows}


def _said(value: Any, unit: str | None) -> str:
    """A value as it is told beside another: of a measured one, more digits than are sure would only hide the difference."""
    if isinstance(value, float):
        value = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    text = format_value(value)
    return f"{text}{unit}" if unit == "x" else " ".join(filter(None, (text, unit)))
