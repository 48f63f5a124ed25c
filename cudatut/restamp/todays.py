"""What a recording shows besides what was measured, as it is today: its title, its cells' text, the text of its results,
and the GPU that its notebook asks Colab for.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from cudatut import catalog, results, runs_on
from cudatut.recording import Recording
from cudatut.results import MIME
from cudatut.to_notebook import install_cell, notebook_of


def due(one: Recording) -> tuple[str, ...]:
    """What a recording shows otherwise than today, in words; empty where it is as it would be written now."""
    outputs = (output for cell in one.cells for output in cell.outputs)
    found = []
    if catalog.script_in(one.name, one.rewritten()) or any(_in_other_words(outputs)):
        found.append("its results are told in today's words")
    if not one.slim and one.colab != (gpu := runs_on.colab(catalog.get(one.name).requires)):
        now, before = (name or "no GPU that Colab has" for name in (gpu, one.colab))
        found.append(f"its notebook asks Colab for {now}, and no more for {before}")
    return tuple(found)


def renew(one: Recording, notebook: dict[str, Any]) -> None:
    """Give a recording's notebook (JSON of nbformat 4) the title, text and metadata of its .py, and its results today's words.

    The results themselves and all other outputs stay. Those of another GPU have no text.
    """
    example = catalog.get(one.name)
    notebook["metadata"]["cudatut"] |= {"title": example.title, "requires": example.requires}
    if not one.slim:
        known = {cell["id"]: cell for cell in notebook["cells"]}
        made = notebook_of(example)
        notebook["metadata"] |= made.metadata
        notebook["cells"] = [install_cell(example), *made.cells]
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code" and cell["id"] in known:
                cell |= {key: known[cell["id"]][key] for key in ("outputs", "execution_count")}
    outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", ()))
    for data, mime, text in _in_other_words(outputs):
        data[mime] = text.splitlines(keepends=True)


def _in_other_words(
    outputs: Iterable[dict[str, Any]],
) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Of outputs that tell a result in other words than today's: their data, the MIME type, and today's words."""
    for data in (output["data"] for output in outputs if MIME in output.get("data", {})):
        result = results.read(data[MIME])
        for mime, text in (("text/plain", result.text()), ("text/html", result.html())):
            if mime in data and _words(text) != _words("".join(data[mime])):
                yield data, mime, text


def _words(text: str) -> list[str]:
    """The words of a text or of HTML. A notebook's file has lost the order of lines and columns, which the text kept."""
    return sorted(re.findall(r"[^\s<>]+", text))
