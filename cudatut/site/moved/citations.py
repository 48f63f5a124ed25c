"""The numbers that sentences and figures of the pages take from recordings, and what each came to in a set of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cudatut.errors import CudatutError
from cudatut.recording import Recording
from cudatut.site import references, state, told
from cudatut.site.moved.snapshot import Snapshot
from cudatut.site.state import State

_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])")  # of a sentence
_CELL = re.compile(r"[a-z0-9_]+(?:/[a-z0-9_]+)+#[a-z0-9-]+")
_LITERAL = re.compile(r"""(["'])([a-z0-9_]+(?:/[a-z0-9_]+)+#.+?)\1\s*[,)]""")


@dataclass(frozen=True)
class Citation:
    """What stands between the braces of a sentence (or in a figure's code), where, and the sentence around it."""

    body: str
    place: str  # docs/en/start/hello.md:12
    sentence: str  # as it is written; "" for a figure


@dataclass
class Pages:
    """What the pages of a snapshot take from recordings: numbers cited, and cells shown whole."""

    citations: list[Citation] = field(default_factory=list)
    shown: dict[str, list[str]] = field(default_factory=dict)  # example#cell -> places


def pages(snapshot: Snapshot) -> Pages:
    found = Pages()
    for path, text in snapshot.texts("docs", ".md"):
        for number, line, kind, info in references.scan(text):
            place = f"{path}:{number}"
            if kind == "prose":
                found.citations += _cited(line, place)
            elif (
                kind == "code"
                and info.partition(" ")[0] == "example"
                and (cell := _CELL.search(line))
            ):
                found.shown.setdefault(cell[0], []).append(place)
    for path, text in snapshot.texts("docs/figures", ".py"):
        for number, line in enumerate(text.splitlines(), 1):
            found.citations += [
                Citation(one[2], f"{path}:{number}", "") for one in _LITERAL.finditer(line)
            ]
    return found


def _cited(line: str, place: str) -> Iterator[Citation]:
    code = [span.span() for span in references.CODE_SPAN.finditer(line)]
    # A full stop between braces ends no sentence.
    masked = references.FIELD.sub(lambda one: "x" * len(one[0]), line)
    ends = [0, *(one.end() for one in _END.finditer(masked)), len(line)]
    for one in references.FIELD.finditer(line):
        if references.refers(one[1]) and not any(a <= one.start() < b for a, b in code):
            begin = max(end for end in ends if end <= one.start())
            stop = min(end for end in ends if end >= one.end())
            yield Citation(one[1].strip(), place, line[begin:stop].strip())


# --- what they come to -----------------------------------------------------------------------------


@dataclass
class _Reading(State):
    """A build's state whose recordings are those of a snapshot, stale or not."""

    of: Snapshot = field(kw_only=True)

    def _read(self, name: str) -> list[Recording]:
        return [self.of.recording(name)]


@contextmanager
def reading(snapshot: Snapshot) -> Iterator[None]:
    """Within it, references are resolved by the recordings of a snapshot."""
    outside = state.current()
    state.begin(_Reading(of=snapshot))
    try:
        yield
    finally:
        state.begin(outside)


def texts(
    snapshot: Snapshot, bodies: Iterable[str]
) -> dict[str, tuple[str, references.Value | None]]:
    """What a page shows for each of these, and the value behind it; "–" and None where a snapshot has no such number."""
    found: dict[str, tuple[str, references.Value | None]] = {}
    with reading(snapshot):
        for body in bodies:
            try:
                found[body] = (
                    references.formatted(body),
                    references.value(references.parts(body)[0]),
                )
            except CudatutError:
                found[body] = "–", None
    return found


def sentence(snapshot: Snapshot, one: Citation, was: str) -> str:
    """A citation's sentence as a page of a snapshot has it, the number marked beside what it `was`."""

    def shown(match: re.Match) -> str:
        try:
            if telling := told.read(match[1]):
                return telling.text
            text = references.formatted(match[1])
        except CudatutError:
            text = "–"
        return f"~~{was}~~ **{text}**" if match[1].strip() == one.body else text

    with reading(snapshot):
        return references.FIELD.sub(shown, one.sentence)
