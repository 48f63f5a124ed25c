"""Orders between streams: the checker of examples/measure, on traces written by hand."""

import pytest

from cudatut.book.measure import order
from cudatut.book.measure.order import Command


def work(name, stream, start=0.0, end=1.0, reads="", writes=""):
    return Command(
        "work", stream, None, name, start, end, frozenset(reads.split()), frozenset(writes.split())
    )


def named(commands, free=()):
    """For each work, the names of those that are certain to be done before it."""
    found = zip(commands, order.before(commands, free))
    return {
        one.name: {commands[number].name for number in known}
        for one, known in found
        if one.kind == "work"
    }


def test_a_stream_is_in_order_and_two_streams_are_not():
    found = named([work("A", "a"), work("B", "b"), work("C", "a")])
    assert found == {"A": set(), "B": set(), "C": {"A"}}


def test_a_wait_orders_what_lay_before_the_record_and_nothing_else():
    commands = [
        work("A", "a"),
        Command("record", "a", 1),
        work("late", "a"),
        work("early", "b"),
        Command("wait", "b", 1),
        work("B", "b"),
        Command("record", "b", 2),
        Command("wait", "c", 2),
        work("C", "c"),
    ]
    found = named(commands)
    assert found["early"] == set()
    assert found["B"] == {"A", "early"}
    assert found["C"] == {"A", "early", "B"}  # also what b itself has waited for


def test_the_last_record_before_the_wait_counts_and_an_event_never_recorded_orders_nothing():
    commands = [
        Command("wait", "b", 1),
        work("first", "b"),
        work("A", "a"),
        Command("record", "a", 1),
        work("A2", "a"),
        Command("record", "a", 1),
        Command("wait", "b", 1),
        work("A3", "a"),
        Command("record", "a", 1),
        work("B", "b"),
    ]
    assert named(commands)["first"] == set()
    assert named(commands)["B"] == {"first", "A", "A2"}


def test_the_default_stream_orders_itself_with_blocking_streams_alone():
    commands = [
        work("A", "a"),
        work("F", "free"),
        work("D", order.DEFAULT),
        work("B", "b"),
        work("G", "free"),
    ]
    found = named(commands, {"free"})
    assert found["D"] == {"A"} and found["B"] == {"A", "D"} and found["G"] == {"F"}
    assert named(commands)["D"] == {"A", "F"}


def test_an_event_of_the_default_stream_holds_all_blocking_streams():
    commands = [work("A", "a"), Command("record", order.DEFAULT, 1), Command("wait", "free", 1)]
    assert named([*commands, work("F", "free")], {"free"})["F"] == {"A"}


@pytest.mark.parametrize(
    "wait, known",
    [
        (Command("host"), {"A", "B"}),
        (Command("host", "a"), {"A"}),
        (Command("host", None, 7), {"B"}),
        (Command("host", None, 8), set()),
    ],
)
def test_what_the_host_has_waited_for_comes_before_all_that_follows(wait, known):
    commands = [work("A", "a"), work("B", "b"), Command("record", "b", 7), wait, work("C", "c")]
    assert named(commands)["C"] == known


def test_a_host_that_waits_for_one_stream_knows_nothing_of_a_later_default_stream():
    commands = [work("A", "a"), work("D", order.DEFAULT), Command("host", "a"), work("F", "free")]
    assert named(commands, {"free"})["F"] == {"A"}


def test_races_are_pairs_without_an_order_of_which_one_writes():
    fill, read = work("fill", "a", writes="x"), work("read", "b", reads="x", writes="y")
    assert order.races([fill, read]) == [("fill", "read", "x")]
    assert order.races([read, fill]) == [("read", "fill", "x")]
    ordered = [fill, Command("record", "a", 1), Command("wait", "b", 1), read]
    assert order.races(ordered) == []
    assert order.races([work("one", "a", reads="x"), work("other", "b", reads="x")]) == []
    both = order.races([work("A", "a", writes="x y"), work("B", "b", writes="y x")])
    assert both == [("A", "B", "x"), ("A", "B", "y")]


def test_a_buffer_is_used_again_too_early_until_a_second_event_says_that_it_is_free():
    def turns(mended):
        for i in range(3):
            if mended and i:
                yield Command("wait", "a", f"read {i - 1}")
            yield work(f"fill {i}", "a", writes="x")
            yield Command("record", "a", f"filled {i}")
            yield Command("wait", "b", f"filled {i}")
            yield work(f"use {i}", "b", reads="x")
            yield Command("record", "b", f"read {i}")

    assert order.races([*turns(True)]) == []
    wanted = {("use 0", "fill 1", "x"), ("use 0", "fill 2", "x"), ("use 1", "fill 2", "x")}
    assert set(order.races([*turns(False)])) == wanted


def test_who_waited_for_whom_and_what_overlapped():
    commands = [
        work("A", "a", 0, 10),
        work("B", "b", 0, 20),
        Command("record", "a", 1),
        Command("record", "b", 2),
        Command("wait", "c", 1),
        Command("wait", "c", 2),
        work("C", "c", 22, 30),
    ]
    assert order.waited(commands) == {"A": (None, 0.0), "B": (None, 0.0), "C": ("B", 2)}
    assert order.overtaken(commands) == 0
    assert order.overtaken([work("A", "a", 0, 10), work("C", "a", 5, 12)]) == 1
    assert order.at_once(commands) == 2 and order.at_once(commands, "C") == 1
    assert order.at_once([work("A", "a", 0, 10), work("B", "b", 10, 20)]) == 1


def note(kind, number, stream, **more):
    return kind, {"correlation_id": number, "stream_id": stream, **more}


def test_commands_come_from_the_records_in_the_order_of_the_calls():
    said = order.Log()
    said.does("fill", "a", writes="x")
    said.does("copy out", reads="x")
    said.does("again", "a", writes="x")
    notes = [
        note(order.cupti.KERNEL, 9, 13, start=5000, end=6000),
        note(1, 7, 7, start=3000, end=4000, copy_kind=2, flags_=0),
        note(order.cupti.KERNEL, 1, 13, start=1000, end=2000),
        note(36, 3, 13, event_id=4),
        note(38, 5, 7, type=2, cuda_event_id=4),
        note(38, 6, 0xFFFFFFFF, type=1, cuda_event_id=4),
        note(38, 10, 13, type=3, cuda_event_id=0xFFFFFFFF),
        note(38, 11, 0xFFFFFFFF, type=4, cuda_event_id=0xFFFFFFFF),
        note(38, 12, 0xFFFFFFFF, type=1, cuda_event_id=4, return_value=600),  # a query: not yet
    ]
    found = order.commands_of(notes, said.said)
    kinds = [(one.kind, one.stream, one.event) for one in found]
    assert kinds == [
        ("work", "a", None),
        ("record", "a", 4),
        ("wait", "default", 4),
        ("host", None, 4),
        ("work", "default", None),
        ("host", "default", None),  # a copy to the host that is not asynchronous
        ("work", "a", None),
        ("host", "a", None),
        ("host", None, None),
    ]
    assert (found[0].start, found[0].end) == (0, 1) and found[0].writes == {"x"}
    assert order.races(found) == []
    log = order.Log(found)
    assert list(log.timeline()) == ["fill", "copy out", "again"]
    assert log.timeline()["again"] == {"stream": "a", "begin": 4, "end": 5}


def test_times_are_exact_however_large_the_clock_is():
    said = order.Log()
    said.does("one", "a")
    since_1970 = 1_796_000_000_000_000_123
    times = {"start": since_1970, "end": since_1970 + 1001}
    (found,) = order.commands_of([note(order.cupti.KERNEL, 1, 13, **times)], said.said)
    assert (found.start, found.end) == (0, 1.001)


def test_a_trace_that_is_not_what_was_said_is_refused():
    kernels = [note(order.cupti.KERNEL, k, 13, start=k, end=k + 1) for k in (1, 2)]
    said = order.Log()
    said.does("one", "a")
    with pytest.raises(ValueError, match="named 1 kernels and copies, and the trace has 2"):
        order.commands_of(kernels, said.said)
    said.does("two", "b")
    with pytest.raises(ValueError, match="'one' was said to be in stream 'a'"):
        order.commands_of(kernels, said.said)


def test_while_a_tool_runs_the_process_nothing_is_watched(monkeypatch):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    with order.watched() as log:
        log.does("one")
    assert log.commands == [] and log.timeline() == {}
