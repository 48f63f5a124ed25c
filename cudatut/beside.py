"""The reader's own numbers beside the book's: what a program measured here, and what it measured on the book's GPU."""

from collections.abc import Iterator
from typing import Any

from cudatut import recording, results, tool, words
from cudatut.errors import CudatutError
from cudatut.results import Facts, format_value

TITLE = "measured here"
_say = words.section("beside")


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
    found = Facts(TITLE, rows)
    for line in lines(*_of_the_book(cell), found):
        print(line)
    return found


def lines(gpu: str, book: Facts, own: Facts) -> Iterator[str]:
    """What is told of each value: the reader's own, and that of the book where it has one of this name."""
    known = {row.name: row.value for row in book.rows}
    for row in own.rows:
        told = {"name": row.name, "own": _said(row.value, row.unit)}
        if row.name in known:
            value = _said(known[row.name], row.unit)
            yield _say("beside", gpu=gpu.removeprefix("NVIDIA "), value=value, **told)
        else:
            yield _say("alone", **told)


def _of_the_book(cell: str) -> tuple[str, Facts]:
    """The GPU of the book's recording, and the facts of this cell; none of one that is not there or has no such cell."""
    example, _, title = cell.partition("#")
    try:
        found = recording.load(example)
        shown = map(results.read, found.results(title))
        rows = [row for one in shown if isinstance(one, Facts) for row in one.rows]
    except (CudatutError, ValueError):  # the reader's own numbers need none
        return "", Facts(TITLE, [])
    return found.gpu, Facts(TITLE, rows)


def _said(value: Any, unit: str | None) -> str:
    """A value as it is told beside another: of a measured one, more digits than are sure would only hide the difference."""
    if isinstance(value, float):
        value = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    text = format_value(value)
    return f"{text}{unit}" if unit == "x" else " ".join(filter(None, (text, unit)))
