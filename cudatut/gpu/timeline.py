"""A trace as a timeline, for the page of Perfetto: `python -m cudatut trace --perfetto FILE SCRIPT`.

One track for each thread of the host, one for what it waited for, one for each stream of the GPU, and arrows: from a call to
the work that it asked for, from work to the call that waited for it, and from work to work of another stream that had to come
later. The file is of Chrome's Trace Event Format, which Perfetto opens: JSON, times in microseconds.
"""

import functools
import json
import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudatut import tool, words
from cudatut.errors import CudatutError
from cudatut.files import write_whole
from cudatut.gpu import cupti, trace
from cudatut.gpu.running import run_file

# Kinds of CUPTI's records besides those of a trace, from cupti_activity.h.
_CONTEXT, _EVENT, _STREAM, _WAIT = 9, 36, 37, 38
_KINDS = (*trace.KINDS, _CONTEXT, _EVENT, _STREAM, _WAIT)
# CUpti_ActivitySynchronizationType; of CUpti_ActivityStreamFlag; CUpti_ActivityMemcpyKind and CUpti_ActivityFlag of copies.
_FOR_EVENT, _STREAM_FOR_EVENT, _FOR_STREAM, _FOR_ALL = 1, 2, 3, 4
_BLOCKING, _NON_BLOCKING, _DEFAULT = 1, 2, 3
_TO_HOST, _ASYNCHRONOUS = 2, 1

_PLACE = ("device_id", "context_id", "stream_id", "graph_id")
_SIZES = (
    *(f"{of}_{axis}" for of in ("grid", "block") for axis in "xyz"),
    *("registers_per_thread", "static_shared_memory", "dynamic_shared_memory"),
)
_FIELDS = {
    cupti.KERNEL: (*_PLACE, *_SIZES),
    _CONTEXT: ("context_id", "null_stream_id"),
    _STREAM: ("context_id", "stream_id", "flag"),
    _EVENT: ("correlation_id", "context_id", "stream_id", "event_id"),
    _WAIT: ("correlation_id", "context_id", "stream_id", "type", "cuda_event_id", "return_value"),
}
_OF_A_CALL, _OF_A_COPY = ("thread_id",), (*_PLACE, "copy_kind", "flags_")
_APIS = (4, 5)  # CUPTI_ACTIVITY_KIND_DRIVER and _RUNTIME

_say = words.section("timeline")

Stream = tuple[int, int]  # the numbers of its context, and its own
Done = dict[Stream, int]  # how many works of each stream are done: the first so many


@dataclass(frozen=True)
class Work(trace.Span):
    """A kernel, copy or memset: on which GPU and in which stream. about: what the page shows of it."""

    device: int = 0
    stream: Stream = (0, 0)
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Call(trace.Span):
    """A call of the API, by a thread of the host."""

    thread: int = 0


@dataclass(frozen=True)
class Step:
    """One thing that the host asked for.

    kind: "work" (by its place among the works), "record" or "wait" (of an event, by a stream), or "host": the host itself
    waits, for an event, for a stream, or, without either, for all of a context.
    """

    kind: str
    call: int
    context: int
    stream: Stream | None = None
    event: tuple[int, int] | None = None
    work: int = 0


@dataclass
class Seen:
    """What CUPTI saw of a program. steps: in the order of the calls. flags: of the streams of which it told how they are."""

    works: list[Work] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    flags: dict[Stream, int] = field(default_factory=dict)

    @functools.cached_property
    def many_contexts(self) -> bool:
        return len({work.stream[0] for work in self.works}) > 1

    def tables(self) -> trace.Trace:
        return trace.summarize(self.works, self.calls)


# --- from CUPTI to what was seen -----------------------------------------------------------------------------------------


def note(record: Any) -> tuple[int, tuple[Any, ...], dict[str, int]]:
    """What `read` needs of one record of CUPTI: its kind, what a trace needs of it, and more. What an older CUPTI lacks is 0."""
    kind = record.kind
    names = _FIELDS.get(kind, _OF_A_CALL if kind in _APIS else _OF_A_COPY)
    plain = trace.fields(record) if kind in trace.KINDS else ()
    return kind, plain, {name: int(getattr(record, name, 0)) for name in names}


def read(
    notes: Iterable[tuple[int, tuple[Any, ...], dict[str, int]]],
    name_of_call: Callable[[int, int], str],
) -> Seen:
    """What was seen, from notes; name_of_call(kind, number) knows the names of the API. Work that never ended is left out."""
    seen, steps = Seen(), list[tuple[int, int, Step]]()
    for kind, plain, of in notes:
        context, stream = of.get("context_id", 0), (of.get("context_id", 0), of.get("stream_id", 0))
        if kind == _CONTEXT:
            seen.flags[context, of["null_stream_id"]] = _DEFAULT
        elif kind == _STREAM:
            seen.flags[stream] = of["flag"]
        elif kind == _EVENT:
            event = (context, of["event_id"])
            steps.append((of["correlation_id"], 0, _step("record", of, stream, event)))
        elif kind == _WAIT:
            # A query that was answered 'not yet' is noted, too, and orders nothing.
            if of["return_value"] == 0 and (step := _wait(of, stream)):
                steps.append((of["correlation_id"], 0, step))
        else:
            works, calls = trace.read([(kind, plain)], name_of_call)
            seen.calls += [Call(**vars(one), thread=of["thread_id"]) for one in calls]
            for one in works:
                step = Step("work", one.call, context, stream, work=len(seen.works))
                steps.append((one.call, one.start, step))
                if of.get("copy_kind") == _TO_HOST and not of["flags_"] & _ASYNCHRONOUS:
                    steps.append((one.call, one.end, Step("host", one.call, context, stream)))
                seen.works.append(
                    Work(**vars(one), device=of["device_id"], stream=stream, about=_about(of))
                )
    seen.steps = [step for *_, step in sorted(steps, key=lambda step: step[:2])]
    return seen


def _step(kind: str, of: dict[str, int], stream: Stream | None, event: Any = None) -> Step:
    return Step(kind, of["correlation_id"], of["context_id"], stream, event)


def _wait(of: dict[str, int], stream: Stream) -> Step | None:
    event = (of["context_id"], of["cuda_event_id"])
    return {
        _STREAM_FOR_EVENT: _step("wait", of, stream, event),
        _FOR_EVENT: _step("host", of, None, event),
        _FOR_STREAM: _step("host", of, stream),
        _FOR_ALL: _step("host", of, None),
    }.get(of["type"])


def _about(of: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "grid_x" in of:
        found = {
            _say(name): " × ".join(str(of[f"{name}_{axis}"]) for axis in "xyz")
            for name in ("grid", "block")
        }
        found[_say("registers")] = of["registers_per_thread"]
        found[_say("shared")] = of["static_shared_memory"] + of["dynamic_shared_memory"]
    if of["graph_id"]:
        found[_say("graph")] = of["graph_id"]
    return found


# --- who had to wait for whom --------------------------------------------------------------------------------------------


def before(seen: Seen) -> Iterator[tuple[Step, Done, Done]]:
    """Each step, what is certain to be done when it begins, and what of this the thread that asked for it knew of.

    The rules of the chapter on streams: a stream is in order; it comes after what lay before an event that it has waited for;
    the legacy default stream comes after all earlier work of blocking streams, and these after it; what the host has waited
    for is done. Of a stream of which CUPTI told nothing, no order with the default stream is claimed.
    """
    thread_of = {call.call: call.thread for call in seen.calls}
    default = {stream[0]: stream for stream, flag in seen.flags.items() if flag == _DEFAULT}
    done = defaultdict[Stream, Done](dict)  # in each stream, before its next work
    recorded = dict[tuple[int, int], Done]()
    host = defaultdict[int | None, Done](dict)  # by thread
    for one in seen.steps:
        by_host = host[thread_of.get(one.call)]
        known = dict(by_host)
        if one.stream:
            _join(known, done[one.stream])
        if one.event and one.kind != "record":
            _join(known, recorded.get(one.event, {}))
        if one.kind == "host" and not one.stream and not one.event:
            _join(known, *(done[stream] for stream in [*done] if stream[0] == one.context))
        if one.kind != "host" and one.stream == default.get(one.context):
            blocking = [s for s in done if s[0] == one.context and seen.flags.get(s) == _BLOCKING]
            _join(known, *(done[stream] for stream in blocking))
        if one.kind == "work" and seen.flags.get(one.stream or (0, 0)) == _BLOCKING:
            _join(known, done.get(default.get(one.context, (0, 0)), {}))
        yield one, known, dict(by_host)
        if one.kind == "host":
            host[thread_of.get(one.call)] = known
        elif one.kind == "record" and one.event:
            recorded[one.event] = known
        elif one.stream:
            mine = done[one.stream].get(one.stream, 0) + (one.kind == "work")
            done[one.stream] = known | ({one.stream: mine} if mine else {})


def _join(known: Done, *others: Done) -> None:
    for other in others:
        for stream, count in other.items():
            known[stream] = max(known.get(stream, 0), count)


def awaited(seen: Seen) -> dict[int, int]:
    """Which work waited for which one of another stream, by their places among the works.

    Of all that is certain to be done before a work begins, it waited for the one that ended last; where this is of its own
    stream, or the host had waited for it before it asked, there is nothing to say.
    """
    found, last = dict[int, int](), defaultdict[Stream, list[int]](list)
    end_of = lambda place: seen.works[place].end  # noqa: E731
    for step, known, by_host in before(seen):
        if step.kind != "work" or step.stream is None:
            continue
        latest = seen.works[step.work].start + trace.SLACK_NS
        # Of the first so many works of a stream, the one that ended last.
        ended = {stream: last[stream][count - 1] for stream, count in known.items()}
        ended = {stream: place for stream, place in ended.items() if end_of(place) <= latest}
        if ended:
            stream = max(ended, key=lambda stream: end_of(ended[stream]))
            if stream != step.stream and known[stream] > by_host.get(stream, 0):
                found[step.work] = ended[stream]
        mine = last[step.stream]
        mine.append(max([*mine[-1:], step.work], key=end_of))
    return found


# --- from what was seen to events ----------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Slice:
    """A bar on a track. track: (which group of tracks, which of them, what it shows); rank: which comes first of one moment."""

    track: tuple[Any, ...]
    rank: int
    name: str
    category: str
    start: int
    end: int
    about: dict[str, Any] = field(default_factory=dict)
    row: int = 0
    arrows: list[tuple[str, int, str]] = field(default_factory=list)  # s or f, number, name


_CALL, _GPU, _PAUSE = range(3)


def events(seen: Seen, script: str = "") -> list[dict[str, Any]]:
    """Events of the Trace Event Format: names of tracks, bars in the order of their begin, and behind each its arrows.

    An arrow begins and ends with its bar, since Perfetto takes the bar that it has read last on the track at that moment.
    """
    calls = [_Slice(("host", one.thread, 0), _CALL, one.name, "call", one.start, one.end,
                    {_say("call"): one.call}) for one in seen.calls]  # fmt: skip
    works = [_Slice(("gpu", one.device, one.stream), _GPU, one.name, "work", one.start, one.end,
                    {_say("call"): one.call} | _bytes(one) | one.about) for one in seen.works]  # fmt: skip
    arrows: list[tuple[_Slice, _Slice, str]] = []
    asked: dict[int, _Slice] = {}
    for call, bar in sorted(zip(seen.calls, calls), key=lambda pair: pair[0].start):
        asked.setdefault(call.call, bar)  # the outermost
    for work, bar in zip(seen.works, works):
        if work.call in asked:
            arrows.append((asked[work.call], bar, _say("asked for")))
    for later, earlier in awaited(seen).items():
        whom = seen.works[earlier]
        works[later].about |= {
            _say("comes after"): f"{whom.name}, {_stream(whom.stream, seen)}",
            _say("gap"): round((seen.works[later].start - whom.end) / 1e3, 3),
        }
        arrows.append((works[earlier], works[later], _say("comes after")))
    pauses = [*_pauses(seen, works, arrows)]
    bars = [*calls, *works, *pauses]
    _into_rows(bars)
    return [*_tracks(bars, seen, script), *_drawn(bars, arrows)]


def _bytes(work: Work) -> dict[str, int]:
    return {} if work.bytes is None else {_say("bytes"): work.bytes}


def _pauses(
    seen: Seen, works: list[_Slice], arrows: list[tuple[_Slice, _Slice, str]]
) -> Iterator[_Slice]:
    """What each call waited for, and its rest, to which an arrow leads from the work that ended last."""
    ordered = sorted(seen.works, key=lambda work: work.end)
    ends = [work.end for work in ordered]
    bar_of = {id(work): bar for work, bar in zip(seen.works, works)}
    for call in seen.calls:
        near = slice(bisect_right(ends, call.start), bisect_right(ends, call.end + trace.SLACK_NS))
        rest = None
        for work, start, end in trace.waits(ordered[near], call):
            of = functools.partial(
                _Slice, ("host", call.thread, 1), _PAUSE, category="wait",
                about={_say("call"): call.call, _say("in stream"): _stream(work.stream, seen)},
            )  # fmt: skip
            if rest is None:
                rest = of(_say("after", work=work.name), start=end, end=call.end)
                arrows.append((bar_of[id(work)], rest, _say("waited for")))
                yield rest
            yield of(_say("waits for", work=work.name), start=start, end=end)


def _into_rows(bars: list[_Slice]) -> None:
    """Give a track as many rows as it needs: in a row of the host bars nest, as calls do, in one of the GPU none overlap."""
    rows = defaultdict[tuple[Any, ...], list[list[int]]](list)  # the ends of what is open in each
    for bar in sorted(bars, key=_order):
        mine = rows[bar.track]
        while bar.row < len(mine) and not _fits(bar, mine[bar.row]):
            bar.row += 1
        mine += [[]] if bar.row == len(mine) else []
        mine[bar.row].append(bar.end)


def _fits(bar: _Slice, open_ends: list[int]) -> bool:
    while open_ends and open_ends[-1] <= bar.start:
        open_ends.pop()
    return not open_ends or (bar.track[0] == "host" and bar.end <= open_ends[-1])


def _order(bar: _Slice) -> tuple[int, int, int]:
    return bar.start, bar.rank, -bar.end


def _numbers(bars: list[_Slice]) -> dict[tuple[Any, ...], tuple[int, int]]:
    """The numbers of process and thread by which a row goes: the host is process 1, the GPUs follow."""
    threads = dict[int, int]()
    for bar in sorted(bars, key=_order):
        if bar.track[0] == "host":
            threads.setdefault(bar.track[1], len(threads))
    devices = sorted({bar.track[1] for bar in bars if bar.track[0] == "gpu"})

    def place(row: tuple[Any, ...]) -> tuple[Any, ...]:
        (group, which, what), number = row
        return group == "gpu", threads[which] if group == "host" else which, what, number

    ordered = sorted({(bar.track, bar.row) for bar in bars}, key=place)
    return {
        row: (1 if row[0][0] == "host" else 2 + devices.index(row[0][1]), number)
        for number, row in enumerate(ordered, 101)  # apart from the numbers of processes
    }


def _tracks(bars: list[_Slice], seen: Seen, script: str) -> Iterator[dict[str, Any]]:
    threads = list[int]()
    named = set[int]()
    for (track, row), (process, number) in _numbers(bars).items():
        group, which, what = track
        if group == "host":
            threads += [] if which in threads else [which]
            name = _say("waits" if what else "thread", number=1 + threads.index(which))
        else:
            name = _stream(what, seen)
        name = _say("row", track=name, number=row + 1) if row else name
        of = {"ph": "M", "ts": 0, "pid": process, "tid": number}
        if process not in named:
            named.add(process)
            owner = _say("host", script=script) if group == "host" else f"GPU {which}"
            yield of | {"name": "process_name", "args": {"name": owner}}
            yield of | {"name": "process_sort_index", "args": {"sort_index": process}}
        yield of | {"name": "thread_name", "args": {"name": name}}
        yield of | {"name": "thread_sort_index", "args": {"sort_index": number}}


def _stream(stream: Stream, seen: Seen) -> str:
    context, number = stream
    kinds = {_DEFAULT: "default stream", _NON_BLOCKING: "non-blocking stream"}
    name = _say(kinds.get(seen.flags.get(stream, 0), "stream"), number=number)
    return _say("of a context", stream=name, context=context) if seen.many_contexts else name


def _drawn(
    bars: list[_Slice], arrows: list[tuple[_Slice, _Slice, str]]
) -> Iterator[dict[str, Any]]:
    bars = sorted(bars, key=_order)
    place_of = {id(bar): place for place, bar in enumerate(bars)}
    for number, (source, target, name) in enumerate(arrows, 1):
        # The other way round, if ever, only where the clocks of GPU and host disagree.
        if place_of[id(source)] < place_of[id(target)]:
            source.arrows.append(("s", number, name))
            target.arrows.append(("f", number, name))
    numbers, first = _numbers(bars), bars[0].start if bars else 0
    for bar in bars:
        process, row = numbers[bar.track, bar.row]
        of = {"ts": _us(bar.start - first), "pid": process, "tid": row}
        whole = {"ph": "X", "name": bar.name, "cat": bar.category, "dur": _us(bar.end - bar.start)}
        yield whole | of | {"args": bar.about}
        for phase, number, name in bar.arrows:
            arrow = {"ph": phase, "name": name, "cat": "arrow", "id": number} | of
            yield arrow | ({"bp": "e"} if phase == "f" else {})


def _us(ns: int) -> float:
    """Microseconds of which Perfetto gets these nanoseconds again: it multiplies by 1000 and drops what is behind the point."""
    us = ns / 1000
    return us if int(us * 1000) == ns else us + 1e-4


# --- running a program -------------------------------------------------------------------------------------------------


def destination(name: str) -> Path:
    """Where the file shall be, whatever folder the program goes to. Raises CudatutError where none can be written."""
    path = Path(name).absolute()
    if path.is_dir():
        raise CudatutError(_say("a folder", path=name))
    if not path.parent.is_dir():
        raise CudatutError(_say("no folder", path=name, folder=path.parent))
    if not os.access(path.parent, os.W_OK):
        raise CudatutError(
            _say("not written", path=name, reason=_say("no right", folder=path.parent))
        )
    return path


def run(script: Path, arguments: Sequence[str] = ()) -> tuple[int, Seen]:
    """As `trace.run`, but with all that a timeline needs. While a tool runs this process, the script runs and nothing is seen."""
    if tool.running():
        return run_file(script, arguments), Seen()
    notes: list[tuple[int, tuple[Any, ...], dict[str, int]]] = []

    def hear(records: list[Any]) -> None:
        # Copied, for they lie in a buffer that CUPTI takes back.
        notes.extend(map(note, records))

    status, name_of_call = trace.watch(script, arguments, _KINDS, hear)
    return status, read(notes, name_of_call)


def write(seen: Seen, path: Path, script: str = "") -> str:
    """Write the file, whole or not at all; returns what there is to say of it. Raises CudatutError."""
    if running := tool.running():
        return _say("a tool runs", tool=running)
    text = json.dumps({"traceEvents": events(seen, script)}, ensure_ascii=False)
    try:
        # Perfetto reads no pairs of \u escapes, and a name may hold what is no character.
        write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise CudatutError(_say("not written", path=path, reason=error.strerror)) from error
    return _say("written", path=path)
