"""The values of two recordings of one example that differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from html import escape
from typing import Any, NamedTuple

from cudatut.recording import Recording
from cudatut.results import format_value
from cudatut.site.references import values_of

# How sure a number is, what it cost beside, and what follows from others: a table shows them beside what is listed.
_BESIDE = frozenset(
    ("p20_us", "p80_us", "ratio_low", "ratio_high", "of_peak", "host_us", "mhz", "cycles", "times")
)


class _Result(NamedTuple):
    """A result of a recording, found by what it says of itself, since others may have come before it."""

    cell: str
    kind: str
    name: str
    nth: int  # of the cell's results of this kind and name

    def label(self) -> str:
        return f"{self.cell} ({self.kind} {self.name})"


class _Place(NamedTuple):
    """Where a value of a result stands: as a reference writes it behind the cell, and the x of a point on a line."""

    at: str
    x: float | None = None


@dataclass(frozen=True)
class Move:
    """One value: what it was and what it is; None where there was or is none."""

    cell: str  # example#cell
    label: str  # which begins with it
    before: Any
    after: Any

    @property
    def ratio(self) -> float | None:
        """How many times as large it is; None for what is no number, or was 0."""
        return ratio(self.before, self.after)

    @property
    def far(self) -> float:
        """How many times as large or as small; infinite for what is no number, changed its sign, or came or went."""
        found = self.ratio or 0
        return max(found, 1 / found) if found > 0 else math.inf

    def text(self) -> str:
        was, now = (
            "–" if one is None else escape(format_value(one)) for one in (self.before, self.after)
        )
        return f"{was} → {now}"


def ratio(before: Any, after: Any) -> float | None:
    numbers = all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in (before, after)
    )
    return after / before if numbers and before else None


def moves(name: str, before: Recording, after: Recording, least: float) -> Iterator[Move]:
    """What differs by more than `least` (0.02: two per cent), words and verdicts always; of a line the point that moved most."""
    old, new = _results(before), _results(after)
    for result in new | old:
        where = f"{name}#{result.cell}"
        if result in old and result in new:
            yield from _moves(where, old[result], new[result], least)
        else:
            was, now = ("there" if result in side else None for side in (old, new))
            yield Move(where, f"{name}#{result.label()}", was, now)


def _moves(where: str, old: dict[_Place, Any], new: dict[_Place, Any], least: float) -> Iterator[Move]:  # fmt: skip
    farthest: dict[str, tuple[float, Move]] = {}
    for place in new | old:
        was, now = old.get(place), new.get(place)
        if was != now:
            point = "" if place.x is None else f" at {format_value(place.x)}"
            move = Move(where, f"{where}{place.at}{point}", was, now)
            if move.far > 1 + least and move.far > farthest.get(place.at, (0.0,))[0]:
                farthest[place.at] = move.far, move
    yield from (move for _, move in farthest.values())


def _results(one: Recording) -> dict[_Result, dict[_Place, Any]]:
    found: dict[_Result, dict[_Place, Any]] = {}
    for cell in one.cells:
        seen: Counter[tuple[str, str]] = Counter()
        for data, read in zip(cell.results(), cell.read):
            if isinstance(read, ValueError):  # of a schema that is no longer read
                continue
            kind, name = read.kind, str(getattr(read, fields(read)[0].name))
            found[_Result(cell.title, kind, name, seen[kind, name])] = _values(data)
            seen[kind, name] += 1
    return found


def _values(result: dict[str, Any]) -> dict[_Place, Any]:
    rates = {row["name"] for row in result.get("rows", ()) if row.get("value") is not None}
    found: dict[_Place, Any] = {}
    for at, value in values_of(result).items():
        row, _, field = at.rpartition(".")
        of_a_rate = field == "median_us" and row[2:-2] in rates  # its rate is listed
        if value is not None and field not in _BESIDE and not of_a_rate:
            found[_Place(at)] = value
    if isinstance(many := result.get("measured"), list):  # of a claim
        found[_Place(".measured")] = tuple(many)
    for line, points in (result.get("lines") or {}).items():
        found |= {_Place(f'.lines["{line}"]', x): y for x, y in points}
    return found
