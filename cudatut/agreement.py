"""What a recording has to agree on with its example and with itself, where that can be told from the two alone.

A digest tells that nobody changed a recording after it was signed, and anybody can sign. So what follows from something
else is looked at again: the cells are those of the .py, the text of a result is that of its numbers, the title is the
header's. What its cells' code says of their results is asked by `cudatut.written`, its commit by `cudatut.provenance`.
"""

import copy
import datetime
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from cudatut import catalog, instrument, results
from cudatut.catalog import INSTALL_CELL, Example
from cudatut.fingerprint import meaning
from cudatut.results import MIME

# Without these, no kernel was compiled and run; CuPy is a rival, and may be missing.
TOOLCHAIN = ("cuda", "nvcc", "pycuda", "python", "numpy")
# The month of the project's first commit.
_BEGAN = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
# The parts of `results.Result.html`.
_ROW, _CELL, _NOTE = (
    re.compile(f"<{tag}>(.*?)</{tag}>", re.DOTALL) for tag in ("tr", "t[hd]", "p")
)
_CLOCKS_DIFFER = datetime.timedelta(days=1)


def problems(example: Example, metadata: dict[str, Any], cells: Sequence[Any]) -> Iterator[str]:
    """What does not agree in a recording; nothing for one that an honest run can have made.

    metadata, cells: those of a `recording.Recording` that is fresh and has no problems by itself.
    """
    text = catalog.read_text(example.path)
    slim = metadata.get("slim") is True
    if meaning.text_hash(text.encode()) == metadata["sources"][example.file]:
        yield from unlike(example, text, cells, slim)
        for what, said in (("title", example.title), ("requires", example.requires)):
            if metadata[what] != said:
                yield f"its {what} is {metadata[what]}, and that of the example is {said}"
    elif slim:
        yield from unlike(example, text, cells, slim)
    else:
        yield from _meaning(text, cells)
    if missing := [name for name in TOOLCHAIN if not metadata["toolchain"].get(name)]:
        yield f"its toolchain lacks {', '.join(missing)}"
    recorded = datetime.datetime.fromisoformat(metadata["recorded_at"])
    if not _BEGAN <= recorded <= datetime.datetime.now(datetime.UTC) + _CLOCKS_DIFFER:
        yield f"it was recorded at {metadata['recorded_at']}, before this book began or after today"
    yield from instrument.unsaid(metadata.get("instrument", {}))
    for cell in cells:
        yield from (f"cell '{cell.title}': {problem}" for problem in _outputs(cell, slim))


# --- its cells ---------------------------------------------------------------------------------------


def unlike(example: Example, text: str, cells: Sequence[Any], slim: bool) -> Iterator[str]:
    """Where the cells of a recording are not those that one of this text of the example has."""
    written = list(catalog.cells_of(text))
    if slim:  # has the code's titles alone
        wanted = [(title, kind, "") for title, kind, _ in written if kind == "code"]
    else:
        wanted = [(INSTALL_CELL, "code", example.first_cell()), *written]
    has = [(cell.title, cell.kind, cell.source) for cell in cells]
    if has == wanted:
        return
    if [title for title, *_ in has] != [title for title, *_ in wanted]:
        yield from _titles([title for title, *_ in has], [title for title, *_ in wanted])
    else:
        other = [one[0] for one, today in zip(has, wanted) if one != today]
        yield f"what stands in {_named(other)} is not what stands in {example.file}"


def _meaning(text: str, cells: Sequence[Any]) -> Iterator[str]:
    """Where code means something else than that of a text which was rewritten without effect since; `restamp` renews it."""
    code = [one for one in cells if one.kind == "code" and one.title != INSTALL_CELL]
    has = _means("".join(f"# %% {one.title}\n{one.source}\n" for one in code))
    written = _means(text)
    if list(has) != list(written):
        yield from _titles(list(has), list(written))
    elif other := [title for title in has if has[title] != written[title]]:
        yield f"what stands in {_named(other)} means something else than in its .py"


def _means(text: str) -> dict[str, str]:
    """What the code of each cell means, by the cells' titles; of code that cannot be read, its text."""
    with suppress(SyntaxError, ValueError):
        return dict(meaning.cells(text) or ())
    return {title: source for title, kind, source in catalog.cells_of(text) if kind == "code"}


def _titles(has: list[str], wanted: list[str]) -> Iterator[str]:
    if lacks := [title for title in wanted if title not in has]:
        yield f"it lacks {_named(lacks)} of its .py"
    if alien := [title for title in has if title not in wanted]:
        yield f"it has {_named(alien)}, which its .py has not"
    if not lacks and not alien:
        yield "its cells stand in another order than in its .py"


def _named(titles: list[str]) -> str:
    some = ", ".join(f"'{title}'" for title in titles[:3])
    more = f" and {len(titles) - 3} more" if len(titles) > 3 else ""
    return f"the cell{'s' if len(titles) > 1 else ''} {some}{more}"


# --- its outputs --------------------------------------------------------------------------------------


def _outputs(cell: Any, slim: bool) -> Iterator[str]:
    """Where a result is shown by another text than its own, or, in a slim recording, is shown at all."""
    known = iter(cell.read)
    for output in cell.outputs:
        data = output.get("data", {})
        result = next(known) if MIME in data else None
        if slim and set(data) != {MIME}:
            yield f"a slim recording has results alone, and here is {', '.join(data) or output['output_type']}"
        if slim or result is None:
            continue
        result = in_order(result, str(data.get("text/html")))
        shown = {"text/plain": result.text(), "text/html": result.html()}
        if other := [kind for kind, text in shown.items() if data.get(kind) != text]:
            yield (
                f"the {' and '.join(other)} of {results.short(result.heading())} is not what its numbers give "
                "(`python -m cudatut restamp` renews what is only older)"
            )


def in_order(result: results.Result, shown: str) -> results.Result:
    """A result with what it has by name in the order in which it was shown (HTML): a recording sorts names."""
    rows = [_CELL.findall(row) for row in _ROW.findall(shown)]
    match result:
        case results.Series(lines=named):
            field, order = "lines", (rows or [[]])[0][1:]
        case results.Profile(metrics=named):
            field, order = "metrics", [row[0] for row in rows[1:] if row]
        case results.Benchmark(missing=dict() as named):
            field, order = "missing", _NOTE.findall(shown)
        case _:
            return result
    place = {html.unescape(words): number for number, words in enumerate(order)}

    def of(name: str) -> int:
        # A rival that is missing stands there with the reason.
        words = f"{name}: no row. {named[name]}" if field == "missing" else name
        return place.get(words, len(place))

    result = copy.copy(result)
    setattr(result, field, {name: named[name] for name in sorted(named, key=of)})
    return result


# --- recordings beside each other ---------------------------------------------------------------------


def among(recordings: Iterable[Any]) -> Iterator[str]:
    """What does not agree between recordings: the GPU of a part, and what is said of a GPU's model.

    The book's own recordings of a part come from one GPU, since a chapter compares its numbers with another's.
    """
    models: dict[str, list[Any]] = {}
    parts: dict[str, list[Any]] = {}
    for one in recordings:
        models.setdefault(one.gpu, []).append(one)
        if not one.slim:
            parts.setdefault(one.name.partition("/")[0], []).append(one)
    for model, found in models.items():
        for key in ("compute_capability", "memory_bytes", "sm_count"):
            yield from _unlike(found, f"{key} of the {model}", key)
    for part, found in parts.items():
        yield from _unlike(found, f"GPU of {part}", "name")


def _unlike(recordings: list[Any], what: str, key: str) -> Iterator[str]:
    """Recordings whose GPU has another value than that of most."""
    usual = Counter(one.metadata["gpu"][key] for one in recordings).most_common(1)[0][0]
    for one in recordings:
        if (value := one.metadata["gpu"][key]) != usual:
            yield f"{one.file}: the {what} is {value}, and in most recordings {usual}"
