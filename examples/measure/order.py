"""Work in streams: what is certain to be done before what, from a trace.

    with order.watched() as log:
        log.does("fill", "a", writes="x")     # said before each kernel and copy
        fill(x, grid=1, block=256, stream=a)
        ...
    order.races(log.commands)                 # pairs that touch one buffer

CUPTI knows streams, events and times. What a kernel reads and writes it does
not know: this the program says, in the order in which it hands out the work.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import cudatut as ct
from cudatut.gpu import cupti

# Kinds of CUPTI's records, and of its waits: cupti_activity.h.
_COPY, _MEMSET, _CALL, _EVENT, _WAIT = 1, 2, 4, 36, 38
_KINDS = (cupti.KERNEL, _COPY, _MEMSET, _EVENT, _WAIT)
_FOR_EVENT, _STREAM_FOR_EVENT, _FOR_STREAM, _FOR_ALL = 1, 2, 3, 4
_TO_HOST, _ASYNCHRONOUS = 2, 1
DEFAULT = "default"


@dataclass(frozen=True)
class Command:
    """One thing that the host asked for.

    kind: "work" (a kernel or a copy), "record" or "wait" (of an event, by its
    number), or "host": the host itself waits, for an event, for a stream, or,
    without either, for everything. start, end: of work, in microseconds, in a
    trace since its first work began.
    reads, writes: the names of its buffers.
    """

    kind: str
    stream: Any = None
    event: Any = None
    name: str = ""
    start: float = 0.0
    end: float = 0.0
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


# --8<-- [start:before]
def before(
    commands: Iterable[Command], free: Collection[Any] = ()
) -> list[set[int]]:
    """For each command: the numbers of the works that are done when it begins.

    commands: in the order in which the host gave them. free: the streams that
    do not wait for the default stream, nor it for them.
    """
    done = defaultdict(set)  # in each stream, before its next work
    recorded, host, answer = {}, set(), []
    for number, one in enumerate(commands):
        known = host | done[one.stream]
        if one.kind == "host" and one.event is one.stream is None:
            known = known.union(*done.values())
        if one.kind in ("wait", "host"):
            known = known | recorded.get(one.event, set())
        if one.kind != "host" and one.stream == DEFAULT:
            others = [stream for stream in done if stream not in free]
            known = known.union(*(done[stream] for stream in others))
        if one.kind == "work" and one.stream not in free:
            known = known | done[DEFAULT]
        answer.append(known)
        if one.kind == "work":
            done[one.stream] = known | {number}
        elif one.kind == "wait":
            done[one.stream] = known
        elif one.kind == "record":
            recorded[one.event] = known
        else:
            host = known
    return answer


# --8<-- [end:before]


# --8<-- [start:races]
def races(
    commands: Sequence[Command], free: Collection[Any] = ()
) -> list[tuple[str, str, str]]:
    """Pairs of works without an order that touch one buffer, at least one of
    them writing: (earlier call, later call, buffer).
    """
    found, known = [], before(commands, free)
    for b, later in enumerate(commands):
        for a in sorted(set(range(b)) - known[b]):
            one = commands[a]
            both = one.writes & (later.reads | later.writes)
            both |= one.reads & later.writes
            found += [(one.name, later.name, buffer) for buffer in sorted(both)]
    return found


# --8<-- [end:races]


def waited(
    commands: Sequence[Command], free: Collection[Any] = ()
) -> dict[str, tuple[str | None, float]]:
    """Who waited for whom: for each work, by its name, the one of the works
    before it that ended last, and how many microseconds later it began itself.
    """
    found = {}
    for one, known in zip(commands, before(commands, free)):
        if one.kind == "work":
            last = max(
                (commands[number] for number in known),
                key=lambda other: other.end,
                default=None,
            )
            gap = one.start - last.end if last else 0.0
            found[one.name] = (last.name if last else None, gap)
    return found


def overtaken(
    commands: Sequence[Command],
    free: Collection[Any] = (),
    slack_us: float = 1.0,
) -> int:
    """How many ordered pairs overlapped all the same: 0, or `before` is wrong.

    slack_us: how far the clock that CUPTI reads may be off.
    """
    return sum(
        later.start < commands[number].end - slack_us
        for later, known in zip(commands, before(commands, free))
        if later.kind == "work"
        for number in known
    )


def at_once(commands: Iterable[Command], part: str = "") -> int:
    """How many works were under way at the same time, at most; of those whose
    names contain `part`.
    """
    steps = []
    for one in commands:
        if one.kind == "work" and part in one.name:
            steps += [(one.start, 1), (one.end, -1)]
    most = now = 0
    for _, step in sorted(steps):  # an end before a begin of the same moment
        now += step
        most = max(most, now)
    return most


# --- from CUPTI to commands ---------------------------------------------------


@dataclass
class Log:
    """What a program says of its work, and in the end the commands that CUPTI
    saw. Empty while a tool runs this process.
    """

    commands: list[Command] = field(default_factory=list)
    said: list[tuple[str, Any, frozenset[str], frozenset[str]]] = field(
        default_factory=list
    )

    def does(
        self,
        name: str,
        stream: Any = DEFAULT,
        reads: str = "",
        writes: str = "",
    ) -> None:
        """Said before a kernel, copy or memset: its name, the name of its
        stream, and the buffers that it reads and writes, with blanks between.
        """
        buffers = frozenset(reads.split()), frozenset(writes.split())
        self.said.append((name, stream, *buffers))

    def works(self) -> list[Command]:
        """The works, in the order of the calls."""
        return [one for one in self.commands if one.kind == "work"]

    def timeline(self) -> dict[str, dict[str, Any]]:
        """A row for each work: its stream, and begin and end in microseconds
        since the first one began.
        """
        works = self.works()
        first = min((one.start for one in works), default=0.0)
        return {
            one.name: {
                "stream": str(one.stream),
                "begin": one.start - first,
                "end": one.end - first,
            }
            for one in works
        }


@contextmanager
def watched() -> Iterator[Log]:
    """While the block runs, CUPTI listens; its commands are there afterwards.

    All of the block's kernels, copies and memsets have to be said. What the
    host learns by asking (`query`) may not be in the trace. Raises ToolMissing
    without cupti-python, ValueError where the trace is not what was said.
    """
    log, notes = Log(), []

    def hear(records: list[Any]) -> None:
        notes.extend(
            (record.kind, fields(record))
            for record in records
            if record.kind in _KINDS
        )

    if ct.tool.running():  # it listens itself, and only one can
        yield log
        return
    # The calls, too: all that they ask for then has their numbers.
    with cupti.listen((_CALL, *_KINDS), hear):
        yield log
    log.commands = commands_of(notes, log.said)


def fields(record: Any) -> dict[str, Any]:
    """What `commands_of` needs of one record of CUPTI."""
    names = {
        _COPY: ("start", "end", "copy_kind", "flags_"),
        _EVENT: ("event_id",),
        _WAIT: ("type", "cuda_event_id", "return_value"),
    }.get(record.kind, ("start", "end"))
    return {
        name: int(getattr(record, name, 0))
        for name in ("correlation_id", "stream_id", *names)
    }


def commands_of(
    notes: Iterable[tuple[int, dict[str, Any]]],
    said: Sequence[tuple[str, Any, frozenset[str], frozenset[str]]],
) -> list[Command]:
    """Commands in the order of the calls, from (kind, fields of the record)."""
    notes = sorted(notes, key=lambda note: note[1]["correlation_id"])
    works = [of for kind, of in notes if kind not in (_EVENT, _WAIT)]
    if len(works) != len(said):
        raise ValueError(
            f"the program named {len(said)} kernels and copies, and the trace "
            f"has {len(works)}"
        )
    names = {of["stream_id"]: one[1] for of, one in zip(works, said)}
    for of, one in zip(works, said):
        if names[of["stream_id"]] != one[1]:
            raise ValueError(
                f"{one[0]!r} was said to be in stream {one[1]!r}, but ran in "
                f"{names[of['stream_id']]!r}"
            )
    # Nanoseconds since 1970 are too many for a float.
    first = min((of["start"] for of in works), default=0)
    commands, rest = [], iter(said)
    for kind, of in notes:
        stream = names.get(of["stream_id"], of["stream_id"])
        if kind == _EVENT:
            commands.append(Command("record", stream, of["event_id"]))
        elif kind == _WAIT:
            # A query that was answered 'not yet' is noted, too; it orders nothing.
            if not of.get("return_value"):
                commands.append(_waits(of, stream))
        else:
            name, _, reads, writes = next(rest)
            start, end = ((of[at] - first) / 1e3 for at in ("start", "end"))
            commands.append(
                Command("work", stream, None, name, start, end, reads, writes)
            )
            asynchronous = of.get("flags_", _ASYNCHRONOUS) & _ASYNCHRONOUS
            if of.get("copy_kind") == _TO_HOST and not asynchronous:
                commands.append(Command("host", stream))  # the call waits
    return commands


def _waits(of: dict[str, Any], stream: Any) -> Command:
    if of["type"] == _STREAM_FOR_EVENT:
        return Command("wait", stream, of["cuda_event_id"])
    if of["type"] == _FOR_EVENT:
        return Command("host", None, of["cuda_event_id"])
    return Command("host", stream if of["type"] == _FOR_STREAM else None)
