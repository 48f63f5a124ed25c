"""Reads a timeline as Perfetto does, and refuses what Perfetto would leave out or draw elsewhere.

Its trace processor takes events in the order of their times. Bars of one thread have to nest; an arrow begins and ends at the
bar that was read last on its track; times are nanoseconds, what is behind the point dropped.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Bar:
    track: str
    name: str
    start: int
    end: int
    args: dict


@dataclass
class Drawn:
    """What Perfetto draws. arrows: (name, name of the first bar, name of the second)."""

    bars: list[Bar] = field(default_factory=list)
    arrows: list[tuple[str, str, str]] = field(default_factory=list)
    tracks: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)

    def on(self, track: str) -> list[str]:
        return [bar.name for bar in self.bars if bar.track == track]

    def called(self, name: str) -> Bar:
        (bar,) = (bar for bar in self.bars if bar.name == name)
        return bar

    def between(self, name: str) -> set[tuple[str, str]]:
        """The bars between which arrows of this name lead."""
        return {(source, target) for called, source, target in self.arrows if called == name}


def drawn(text: str | bytes) -> Drawn:
    """What is drawn of a file. AssertionError where an event is not of the format."""
    data = json.loads(text)
    assert list(data) == ["traceEvents"]
    found = Drawn()
    tracks: dict[tuple[int, int], dict[str, Any]] = {}  # by process and thread
    owners: dict[int, dict[str, Any]] = {}  # by process
    stacks: dict[int, list[Bar]] = defaultdict(list)
    begun: dict[int, tuple[str, str, str]] = {}
    ended: set[int] = set()
    latest = 0
    for event in data["traceEvents"]:
        number, owner, phase = event["tid"], event["pid"], event["ph"]
        assert type(number) is int and type(owner) is int and number > 0 and owner > 0
        assert number not in owners, "a thread of the number of a process is its main thread"
        assert isinstance(event["name"], str) and event["name"]
        now = nanoseconds(event["ts"])
        if phase == "M":
            process = event["name"].startswith("process")
            of = owners.setdefault(owner, {}) if process else tracks.setdefault((owner, number), {})
            (argument,) = event["args"]
            assert event["name"].endswith(argument) and argument not in of
            of |= event["args"]
            continue
        assert {"name", "sort_index"} == {*tracks[owner, number]} == {*owners[owner]}
        assert now >= latest, "in the order of time"
        latest, stack = now, stacks[number]
        if phase == "X":
            bar = Bar(
                tracks[owner, number]["name"],
                event["name"],
                now,
                now + nanoseconds(event["dur"]),
                event["args"],
            )
            while stack and stack[-1].end <= bar.start:
                stack.pop()
            assert not stack or bar.end <= stack[-1].end, f"{bar} neither in nor behind {stack[-1]}"
            stack.append(bar)
            found.bars.append(bar)
        elif phase == "s":
            assert event["id"] not in begun
            begun[event["id"]] = (event["name"], event["cat"], stack[-1].name)
        else:
            assert phase == "f" and event["bp"] == "e"
            name, category, source = begun[event["id"]]
            assert (name, category) == (event["name"], event["cat"]) and event["id"] not in ended
            ended.add(event["id"])
            found.arrows.append((name, source, stack[-1].name))
    assert ended == {*begun}, "each arrow has an end"
    assert {*tracks} == {*((owner, number) for owner, number in tracks if stacks[number])}
    assert len({number for _, number in tracks}) == len(tracks)
    found.tracks = [one["name"] for one in tracks.values()]
    found.owners = [one["name"] for one in owners.values()]
    return found


def nanoseconds(us: float) -> int:
    assert isinstance(us, int | float) and us >= 0
    return int(us * 1000.0)
