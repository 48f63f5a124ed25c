"""The timeline for Perfetto: what is made of CUPTI's records, told by records made up; without a GPU and without cupti-python."""

import json
import os
import random
import sys
from types import SimpleNamespace

import pytest
from perfetto_page import drawn

from cudatut import cli, tool, words
from cudatut.book.measure import order
from cudatut.errors import CudatutError, NoGpuError
from cudatut.gpu import cupti, device, timeline

US = 1000  # nanoseconds
CALLS = {1: "cuLaunchKernel", 2: "cuMemcpyDtoH_v2", 3: "cuCtxSynchronize", 4: "cudaMemcpy_v3020", 5: "cuStreamWaitEvent_ptsz",
         6: "cuEventRecord", 7: "cuMemAlloc_v2"}  # fmt: skip
LAUNCH, COPY_BACK, SYNCHRONIZE, RUNTIME_COPY, WAIT_EVENT, RECORD, ALLOC = CALLS
DEFAULT, A, B, FREE = 7, 13, 14, 15  # streams, as CUPTI numbers them


def api(start, end, number, cbid, thread=1, kind=4):
    return SimpleNamespace(kind=kind, start=start * US, end=end * US, correlation_id=number, cbid=cbid, thread_id=thread)  # fmt: skip


def kernel(start, end, number, name="spin", stream=DEFAULT, **more):
    sizes = dict.fromkeys(timeline._SIZES, 1)
    place = {"device_id": 0, "context_id": 1, "stream_id": stream, "graph_id": 0}
    return SimpleNamespace(
        **{"kind": cupti.KERNEL, "start": start * US, "end": end * US, "correlation_id": number, "name": name}
        | sizes | place | more
    )  # fmt: skip


def copy(start, end, number, stream=DEFAULT, copy_kind=2, flags=0):
    return SimpleNamespace(
        kind=1, start=start * US, end=end * US, correlation_id=number, bytes=4096, copy_kind=copy_kind, flags_=flags,
        device_id=0, context_id=1, stream_id=stream, graph_id=0,
    )  # fmt: skip


def record(number, stream, event):
    return SimpleNamespace(kind=36, correlation_id=number, context_id=1, stream_id=stream, event_id=event)  # fmt: skip


def waits(number, kind, stream=0xFFFFFFFF, event=0xFFFFFFFF, answer=0):
    return SimpleNamespace(
        kind=38, type=kind, correlation_id=number, context_id=1, stream_id=stream, cuda_event_id=event, return_value=answer
    )  # fmt: skip


def made(stream, flag):
    return SimpleNamespace(kind=37, context_id=1, stream_id=stream, flag=flag)


CONTEXT = SimpleNamespace(kind=9, context_id=1, null_stream_id=DEFAULT)
STREAMS = [CONTEXT, made(A, 1), made(B, 1), made(FREE, 2)]


def seen_of(*records):
    return timeline.read(map(timeline.note, records), lambda kind, number: CALLS[number])


def page(*records, script="mine.py"):
    events = timeline.events(seen_of(*records), script)
    return drawn(json.dumps({"traceEvents": events}))


# A launch returns at once; its kernel runs 5,000 us; the copy that was called right after it stands 5,500 us.
WAITING = [
    CONTEXT,
    api(0, 10, 4, LAUNCH),
    kernel(12, 5012, 4),
    api(20, 5520, 5, COPY_BACK),
    copy(5015, 5515, 5),
]


def test_a_copy_waited_for_the_kernel_before_it():
    found = page(*WAITING)
    assert found.owners == ["host: mine.py", "GPU 0"]
    assert found.tracks == ["thread 1", "thread 1 waits", "stream 7 (default)"]
    assert found.on("thread 1") == ["cuLaunchKernel", "cuMemcpyDtoH"]
    assert found.on("stream 7 (default)") == ["spin", "copy DtoH"]
    assert found.between("asked for") == {("cuLaunchKernel", "spin"), ("cuMemcpyDtoH", "copy DtoH")}
    # As in the table: from the call's own begin, and without its own copy.
    waiting, rest = found.called("waits for spin"), found.called("after spin")
    assert (waiting.start, waiting.end) == (20 * US, 5012 * US)
    assert (rest.start, rest.end) == (5012 * US, 5520 * US)
    assert waiting.args == {"number of the call": 5, "its stream": "stream 7 (default)"}
    assert found.between("waited for") == {("spin", "after spin")}
    assert seen_of(*WAITING).tables()["cuMemcpyDtoH"].waiting_ms == pytest.approx(4.992)


def test_what_the_page_shows_of_work():
    found = page(
        api(0, 1, 1, LAUNCH),
        kernel(2, 3, 1, grid_x=128, block_x=32, block_y=8, static_shared_memory=64,
               dynamic_shared_memory=1024, registers_per_thread=40, graph_id=3),
        copy(4, 5, 2),
    )  # fmt: skip
    assert found.called("spin").args == {
        "number of the call": 1, "grid": "128 × 1 × 1", "block": "32 × 8 × 1", "registers per thread": 40,
        "bytes of shared memory per block": 1088, "number of the CUDA graph": 3,
    }  # fmt: skip
    assert found.called("copy DtoH").args == {"number of the call": 2, "bytes": 4096}


def test_several_waits_of_one_call_and_the_work_that_let_it_go_on():
    found = page(
        kernel(0, 100, 1, "a", A), kernel(50, 150, 2, "b", B), kernel(160, 180, 3, "c", B),
        api(10, 200, 4, SYNCHRONIZE),
    )  # fmt: skip
    bars = [
        (bar.name, bar.start // US, bar.end // US) for bar in found.bars if "waits" in bar.track
    ]
    assert bars == [
        ("waits for a", 10, 50), ("waits for b", 50, 150), ("waits for c", 160, 180), ("after c", 180, 200),
    ]  # fmt: skip
    assert found.between("waited for") == {("c", "after c")}


def test_a_call_of_the_runtime_and_the_drivers_call_in_it():
    found = page(
        api(0, 10, 1, LAUNCH), kernel(12, 80, 1, "k"),
        api(20, 100, 2, RUNTIME_COPY, kind=5), api(25, 95, 3, COPY_BACK), copy(82, 90, 3),
    )  # fmt: skip
    assert found.on("thread 1") == ["cuLaunchKernel", "cudaMemcpy", "cuMemcpyDtoH"]
    bars = [
        (bar.name, bar.start // US, bar.end // US) for bar in found.bars if "waits" in bar.track
    ]
    # The outer one waited for the copy of the inner one, too.
    assert sorted(bars) == [
        ("after copy DtoH", 90, 100), ("after k", 80, 95), ("waits for copy DtoH", 82, 90), ("waits for k", 20, 80),
        ("waits for k", 25, 80),
    ]  # fmt: skip


def test_the_outer_one_of_two_calls_with_one_number_asked_for_the_work():
    found = page(api(5, 8, 1, LAUNCH), api(0, 10, 1, RUNTIME_COPY, kind=5), kernel(12, 20, 1))
    assert found.between("asked for") == {("cudaMemcpy", "spin")}


def test_two_threads():
    found = page(
        api(0, 10, 1, LAUNCH, thread=555), api(4, 30, 2, LAUNCH, thread=222), api(40, 90, 3, SYNCHRONIZE, thread=222),
        kernel(20, 80, 1, "k"), kernel(80, 85, 2, "l"),
    )  # fmt: skip
    assert found.tracks == ["thread 1", "thread 2", "thread 2 waits", "stream 7"]
    assert found.on("thread 2") == ["cuLaunchKernel", "cuCtxSynchronize"]
    assert found.on("thread 2 waits") == ["waits for k", "waits for l", "after l"]


def test_what_overlaps_in_a_stream_gets_rows():
    found = page(*(kernel(10 * n, 10 * n + 15, n + 1, f"k{n}", A) for n in range(4)))
    assert found.tracks == ["stream 13", "stream 13, row 2"]
    assert found.on("stream 13") == ["k0", "k2"] and found.on("stream 13, row 2") == ["k1", "k3"]


def test_calls_that_overlap_without_nesting_get_rows():
    found = page(api(0, 10, 1, LAUNCH), api(5, 15, 2, LAUNCH), api(6, 9, 3, LAUNCH))
    assert found.tracks == ["thread 1", "thread 1, row 2"]
    assert len(found.on("thread 1")) == 2


def test_work_that_never_ended_is_left_out():
    found = page(api(0, 10, 1, LAUNCH), kernel(12, 0, 1, "endless"), kernel(12, 20, 2, "k"))
    assert found.tracks == ["thread 1", "stream 7"] and found.on("stream 7") == ["k"]
    assert found.arrows == []


def test_nothing_seen_is_a_page_with_nothing():
    assert page() == drawn('{"traceEvents": []}')
    # Records that say how the streams are, and no work.
    assert page(*STREAMS, record(1, A, 1), waits(2, 4)).bars == []


def test_no_arrow_leads_back_in_time():
    """The clocks of GPU and host may differ by a microsecond: a kernel seems to begin before it was asked for."""
    found = page(api(10, 20, 1, LAUNCH), kernel(9, 30, 1))
    assert found.arrows == [] and found.called("spin").args["number of the call"] == 1
    assert page(api(10, 20, 1, LAUNCH), kernel(10, 30, 1)).arrows != []  # at the same moment


def test_contexts_and_gpus():
    found = page(
        *STREAMS, SimpleNamespace(kind=9, context_id=2, null_stream_id=20),
        kernel(0, 1, 1, "k"), kernel(0, 1, 2, "l", 20, context_id=2, device_id=3),
    )  # fmt: skip
    assert found.owners == ["GPU 0", "GPU 3"]
    assert found.tracks == ["stream 7 (default), context 1", "stream 20 (default), context 2"]


def test_in_chinese(monkeypatch):
    monkeypatch.setenv(words.VARIABLE, "zh")
    found = page(*WAITING, *STREAMS, kernel(6000, 6001, 9, "k", FREE))
    assert found.owners == ["主机：mine.py", "GPU 0"]
    assert found.tracks[:3] == ["线程 1", "线程 1 的等待", "流 7（默认流）"]
    assert found.tracks[3] == "流 15（非阻塞）"
    assert found.called("spin").args["网格"] == "1 × 1 × 1"


# --- orders between streams ------------------------------------------------------------------------


def test_a_stream_waits_for_an_event_of_another():
    found = page(
        *STREAMS,
        api(0, 1, 1, LAUNCH), kernel(10, 100, 1, "first", A),
        api(2, 3, 2, RECORD), record(2, A, 5),
        api(4, 5, 3, LAUNCH), kernel(12, 40, 3, "beside", B),
        api(6, 7, 4, WAIT_EVENT), waits(4, 2, B, 5),
        api(8, 9, 5, LAUNCH), kernel(102, 120, 5, "second", B),
        api(10, 11, 6, LAUNCH), kernel(122, 130, 6, "third", B),
    )  # fmt: skip
    assert found.between("has to come after") == {("first", "second")}
    second = found.called("second")
    assert second.args["has to come after"] == "first, stream 13"
    assert second.args["us since its end"] == 2.0
    assert "has to come after" not in found.called("third").args


def test_of_two_it_waited_for_the_one_that_ended_last():
    records = [
        kernel(0, 100, 1, "a", A), kernel(0, 200, 2, "b", B), record(3, A, 1), record(4, B, 2),
        waits(5, 2, FREE, 1), waits(6, 2, FREE, 2), kernel(205, 210, 7, "c", FREE),
    ]  # fmt: skip
    assert page(*STREAMS, *records).between("has to come after") == {("b", "c")}


def test_the_default_stream_and_blocking_streams():
    found = page(
        *STREAMS, kernel(0, 10, 1, "a", A), kernel(0, 50, 2, "free", FREE), kernel(11, 20, 3, "default"),
        kernel(21, 30, 4, "b", B), kernel(2, 5, 5, "free too", FREE),
    )  # fmt: skip
    assert found.between("has to come after") == {("a", "default"), ("default", "b")}
    # Of streams of which CUPTI told nothing, no order is claimed.
    without = page(CONTEXT, kernel(0, 10, 1, "a", A), kernel(11, 20, 3, "default"))
    assert without.between("has to come after") == set()


def test_what_the_host_had_waited_for_is_not_said_again():
    records = [
        api(0, 1, 1, LAUNCH), kernel(0, 10, 1, "a", A), api(2, 15, 2, SYNCHRONIZE), waits(2, 4),
        api(16, 17, 3, LAUNCH), kernel(18, 20, 3, "default"),
    ]  # fmt: skip
    assert page(*STREAMS, *records).between("has to come after") == set()
    # Of what another thread has waited for, this one knows nothing.
    records[4].thread_id = 2
    assert page(*STREAMS, *records).between("has to come after") == {("a", "default")}


def test_a_question_that_was_answered_not_yet_orders_nothing():
    """CUDA_ERROR_NOT_READY of cuEventQuery, which CUPTI notes as it notes a wait."""
    for answer, arrows in ((600, {("a", "default")}), (0, set())):
        records = [kernel(0, 10, 1, "a", A), record(2, A, 1), waits(3, 1, event=1, answer=answer)]
        found = page(*STREAMS, *records, kernel(12, 20, 4, "default"))
        assert found.between("has to come after") == arrows


def test_no_order_is_claimed_that_the_times_contradict():
    records = [kernel(0, 100, 1, "a", A), record(2, A, 1), waits(3, 2, B, 1)]
    overlapping = kernel(50, 60, 4, "b", B)
    assert page(*STREAMS, *records, overlapping).between("has to come after") == set()


NUMBERS = {order.DEFAULT: DEFAULT, "a": A, "b": B, "free": FREE}


def random_program(chance):
    """The same commands for the chapter's checker and as CUPTI's records."""
    commands, records, time = [], [], 0
    for number in range(1, chance.randint(2, 25)):
        kind = chance.choice(["work", "work", "record", "wait", "host"])
        name, event = chance.choice([*NUMBERS]), chance.randint(1, 3)
        stream = NUMBERS[name]
        if kind == "work":
            time += 1
            commands.append(order.Command("work", name, None, str(number), time, time))
            records.append(kernel(time, time, number, str(number), stream))
        elif kind == "record":
            commands.append(order.Command("record", name, event))
            records.append(record(number, stream, event))
        elif kind == "wait":
            commands.append(order.Command("wait", name, event))
            records.append(waits(number, 2, stream, event))
        else:
            which = chance.choice(["event", "stream", "all"])
            commands.append(order.Command("host", name if which == "stream" else None, event if which == "event" else None))  # fmt: skip
            records.append({"event": waits(number, 1, event=event), "stream": waits(number, 3, stream),
                            "all": waits(number, 4)}[which])  # fmt: skip
    return commands, records


@pytest.mark.sweep(25)
@pytest.mark.parametrize("seed", range(200))
def test_the_orders_are_those_of_the_chapters_checker(seed):
    commands, records = random_program(random.Random(seed))
    expected = [
        {commands[number].name for number in known}
        for one, known in zip(commands, order.before(commands, {"free"}))
        if one.kind == "work"
    ]
    seen, found = seen_of(*STREAMS, *records), []
    of_stream = {}
    for step, known, _ in timeline.before(seen):
        if step.kind == "work":
            found.append({name for stream, n in known.items() for name in of_stream[stream][:n]})
            of_stream.setdefault(step.stream, []).append(seen.works[step.work].name)
    assert found == expected
    # And what it waited for is what the checker says, unless this is of its own stream or the host knew.
    late = {seen.works[b].name: seen.works[a].name for b, a in timeline.awaited(seen).items()}
    checked = {name: whom for name, (whom, _) in order.waited(commands, {"free"}).items()}
    stream_of = {one.name: one.stream for one in commands}
    for step, _, by_host in timeline.before(seen):
        if step.kind == "work":
            name = seen.works[step.work].name
            whom = checked[name]
            knew = {one for stream, n in by_host.items() for one in of_stream[stream][:n]}
            own = whom is None or stream_of[whom] == stream_of[name] or whom in knew
            assert late.get(name) == (None if own else whom)


@pytest.mark.sweep(25)
@pytest.mark.parametrize("seed", range(200))
def test_whatever_the_records_perfetto_draws_each_of_them(seed):
    chance = random.Random(seed)
    some = lambda most: chance.randint(0, most)  # noqa: E731
    records = [*STREAMS] if seed % 2 else []
    names = ["k", "乘法<float, 3>", "💥", 'back\\slash "quoted"\n', "\x00\x7f"]
    for _ in range(some(40)):
        start, number = some(300), some(30)
        end = chance.choice([start, start + some(5), start + some(300), 0, start - 1])
        records.append(chance.choice([
            api(start, end, number, chance.choice([*CALLS]), some(2), chance.choice([4, 5])),
            kernel(start, end, number, chance.choice(names), chance.choice([*NUMBERS.values()])),
            copy(start, end, number, chance.choice([*NUMBERS.values()]), some(11), some(1)),
            record(number, chance.choice([*NUMBERS.values()]), some(3)),
            waits(number, some(5), chance.choice([*NUMBERS.values(), 0xFFFFFFFF]), some(3), 600 * some(1)),
        ]))  # fmt: skip
    for one in records:
        if hasattr(one, "start") and one.end > 0:
            one.start, one.end = one.start + (shift := some(999)), one.end + max(shift, some(999))
    found = page(*records)
    whole = [one for one in records if hasattr(one, "start") and one.end >= one.start and one.end]
    assert len([bar for bar in found.bars if "waits" not in bar.track]) == len(whole)


# --- the file --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_perfetto_gets_each_nanosecond(seed):
    chance = random.Random(seed)
    for ns in [
        *range(3000),
        *(chance.randrange(10 ** chance.randint(1, 14)) for _ in range(20_000)),
    ]:
        assert int(timeline._us(ns) * 1000.0) == ns
        assert int(json.loads(json.dumps(timeline._us(ns))) * 1000.0) == ns


def test_the_file_is_written_whole(tmp_path):
    path = tmp_path / "时间线.json"
    path.write_text("old")
    seen = seen_of(*WAITING, kernel(6000, 6001, 8, "💥 乘法"), kernel(6002, 6003, 9, "lone \ud83d"))
    said = timeline.write(seen, path, "mine.py")
    assert str(path) in said and "https://ui.perfetto.dev" in said and "not uploaded" in said
    raw = path.read_bytes()
    found = drawn(raw)
    assert "💥 乘法" in found.on("stream 7 (default)") and "lone ?" in found.on(
        "stream 7 (default)"
    )
    assert b"\\ud83d" not in raw, "Perfetto reads no pairs of escapes"
    assert os.listdir(tmp_path) == [path.name]


def test_what_cannot_be_written_is_said_and_what_was_there_stays(tmp_path, monkeypatch):
    path = tmp_path / "timeline.json"
    path.write_text("old")

    def full(path, raw):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(timeline, "write_whole", full)
    with pytest.raises(CudatutError, match=r"written to .*timeline.json: No space left on device"):
        timeline.write(timeline.Seen(), path)
    assert path.read_text() == "old"


def test_a_bad_place_is_refused_before_the_program_runs(tmp_path, monkeypatch, capsys):
    script = tmp_path / "mine.py"
    script.write_text("print('ran')")
    monkeypatch.chdir(tmp_path)
    for name, said in (
        (".", ". is a folder: name a file"),
        ("no/such/t.json", "there is no folder"),
        ("", "is a folder"),
    ):
        assert cli.main(["trace", "--perfetto", name, str(script)]) == 2
        out, err = capsys.readouterr()
        assert "ran" not in out and said in err and len(err.splitlines()) == 1
    monkeypatch.setattr(timeline.os, "access", lambda *_: False)
    with pytest.raises(CudatutError, match=f"no right to write to {tmp_path}"):
        timeline.destination("t.json")


def test_the_place_is_that_from_where_the_command_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert timeline.destination("t.json") == tmp_path / "t.json"


# --- running programs ------------------------------------------------------------------------------


class Cupti:
    """As much of cupti.cupti as is used, handing out records at the flush."""

    CallbackDomain = SimpleNamespace(DRIVER_API=0, RUNTIME_API=1)

    def __init__(self):
        self.enabled = set()

    def activity_enable(self, kind):
        self.enabled.add(kind)

    def activity_disable(self, kind):
        self.enabled.discard(kind)

    def activity_register_callbacks(self, requested, completed):
        self.completed = completed

    def activity_flush_all(self, flag):
        assert self.enabled == {1, 2, 22, 9, 10, 36, 37, 38}, "calls are the program's alone"
        self.completed(WAITING)

    def get_callback_name(self, domain, cbid):
        return CALLS[cbid]


@pytest.fixture
def gpu(monkeypatch, as_a_script):
    driver = SimpleNamespace(cuCtxSynchronize=lambda: 0)
    monkeypatch.setattr(device, "installed_driver", lambda: driver)
    monkeypatch.setattr(cupti, "_cupti", Cupti)
    monkeypatch.setattr(cupti, "_registered", False)
    monkeypatch.delitem(sys.modules, "pycuda", raising=False)
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)


def test_the_command_prints_the_tables_and_writes_the_file(gpu, tmp_path, monkeypatch, capsys):
    script = tmp_path / "mine.py"
    script.write_text("import os, sys; os.chdir('/'); print(sys.argv[1:]); sys.exit(3)")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["trace", "--perfetto", "t.json", "mine.py", "a", "--perfetto", "b"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("['a', '--perfetto', 'b']\n\nGPU work")
    assert out.endswith("not uploaded.\n") and f"The timeline is in {tmp_path / 't.json'}." in out
    assert drawn((tmp_path / "t.json").read_bytes()).owners == ["host: mine.py", "GPU 0"]
    # Without the option: the same tables, and no file.
    (tmp_path / "t.json").unlink()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cupti, "_registered", False)
    monkeypatch.setattr(Cupti, "activity_flush_all", lambda self, flag: self.completed(WAITING[1:]))
    assert cli.main(["trace", "mine.py", "a"]) == 3
    plain = capsys.readouterr().out
    assert "perfetto" not in plain and plain.splitlines()[2:] == out.splitlines()[2:-2]
    assert os.listdir(tmp_path) == ["mine.py"]


def test_under_a_tool_the_script_runs_and_nothing_is_written(gpu, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "running", lambda: "memcheck")
    monkeypatch.setattr(cupti, "_cupti", lambda: pytest.fail("it listens"))
    script = tmp_path / "mine.py"
    script.write_text("print('ran')")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["trace", "--perfetto", "t.json", "mine.py"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ran\n") and "memcheck runs this process" in out
    assert os.listdir(tmp_path) == ["mine.py"]


def test_without_a_gpu(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(device, "installed_driver", lambda: None)
    with pytest.raises(NoGpuError, match="nothing to trace here"):
        timeline.run(tmp_path / "mine.py")
