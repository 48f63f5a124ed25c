"""What stands in the place of a recording that cannot be shown: the example's code, and the reason.

A strict build has none of these. Two others do: `build --live`, after an example failed on this machine's GPU, and
`preview`, which shows pages whose examples have not been recorded yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from cudatut import catalog
from cudatut.errors import CudatutError
from cudatut.recording import Cell, Recording
from cudatut.site.locale import text


class MissingOutputError(CudatutError):
    """Something asks for an output of an example that has none here; the message says why."""


@dataclass(frozen=True)
class StandIn(Recording):
    """An example without outputs. `reason` says why there are none."""

    reason: str = ""

    def results(self, title: str) -> list[dict[str, Any]]:
        """Raises MissingOutputError with the reason, or UnknownCellError."""
        self.cell(title)
        raise MissingOutputError(f"{self.name} has no outputs: {self.reason}")


def stand_in(name: str, reason: str) -> StandIn:
    """The example's cells as they are in its .py, none of them executed. Raises UnknownExampleError."""
    # Here, since it knows GPUs, which figures load without.
    from cudatut.to_notebook import notebook_of

    example = catalog.get(name)
    made = notebook_of(example).cells
    cells = [Cell(one.id, one.cell_type, one.source, [], executed=False) for one in made]
    metadata = {
        "name": example.name,
        "title": example.title,
        "requires": example.requires,
        "sources": dict.fromkeys(example.sources(), ""),
    }
    return StandIn(example.name, example.path, metadata, cells, reason=reason)


def note_html(record: StandIn, lang: str) -> str:
    """What a page shows in the place of an output."""
    words = escape(text("missing.output", lang, example=record.name))
    return (
        f'<div class="ct-result ct-missing"><p>{words}</p><pre class="ct-output">'
        f"{escape(record.reason)}</pre></div>"
    )


def number_html(error: MissingOutputError) -> str:
    """What a page shows in the place of a number in prose."""
    return f"<span class='ct-missing' title='{escape(str(error))}'>–</span>"
