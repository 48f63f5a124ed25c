"""Recording: real kernels run CPU-only examples; only the GPU's name and the sanitizers' verdicts are made up."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import jupyter_client.launcher
import pytest

import cudatut
from cudatut import catalog, failures, recording
from cudatut.errors import CudatutError, NoGpuError, ToolMissing
from cudatut.record import recorder, run
from cudatut.record.run import Executed
from cudatut.record.write import UnwritableError
from cudatut.results import Sanitizer
from cudatut.tool import SANITIZERS

pytest.importorskip("nbclient")
pytest.importorskip("jupytext")
pytest.importorskip("ipykernel")


def clean(paths: list[Path], tool: str, timeout_s: float) -> Sanitizer:
    return Sanitizer(tool, 0)


def record(*names, sanitize=clean, **options):
    examples = [catalog.get(name) for name in names]
    return recorder.record_examples(examples, "NVIDIA Test", (9, 0), sanitize, **options)


def results(*names, **options):
    return {outcome.name: outcome for outcome in record(*names, **options)}


def test_a_whole_recording(book, with_gpu):
    book.file("start/add.cu", "// read only while running\n")
    book.file("start/helper.py", "WORD = 'helped'\n")
    book.example(
        "start/add",
        "# %% [markdown]\n# One **idea**.\n\n"
        f"# %% setup\n{with_gpu}"
        "import os, sys, importlib\n"
        'paths.note_read(paths.examples_dir() / "start" / ("add" + ".cu"))\n'
        'print(importlib.import_module("cudatut.book.start.hel" + "per").WORD, os.environ["CUDATUT_RECORDING"], os.listdir())\n'
        "# %% output\n"
        'for i in range(3): print(f"\\r{i}/2", end="", flush=True)\n'
        'print("\\nafter", flush=True)\n'
        'os.system("echo from-C")\n'
        "print(paths.examples_dir() / 'start' / 'add.cu', os.getcwd(), ct.__file__)\n"
        "ct\n"
        "# %% bench\n"
        'ct.show(Check("add", True, 3, 0.0, 0.0, 1e-5, 1e-5))\n'
        'print("between")\n'
        'ct.show(Benchmark("add", "GB/s", 9.0, [Row("x", 1.0, 1.0, 1.0, 2.0, 2 / 9, False, None, 2000)], 5))\n',
    )
    seen = []
    (outcome,) = record("start/add", progress=recorder.Progress(step=seen.append))
    assert (outcome.status, outcome.reason) == ("recorded", "")
    assert seen == ["start/add setup", "start/add output", "start/add bench"]

    good = recording.require_good("start/add")
    assert [cell.title for cell in good.cells] == ["install", "md-1", "setup", "output", "bench"]
    assert "%pip install" in good.cell("install").source
    assert good.cell("md-1").source == "One **idea**."
    assert good.cell("setup").outputs[0]["text"] == "helped 1 []\n"
    (stream, shown) = good.cell("output").outputs
    assert (
        stream["text"]
        == "2/2\nafter\nfrom-C\nexamples/start/add.cu $TMPDIR/work cudatut/__init__.py\n"
    )
    assert shown["data"]["text/plain"] == "<module 'cudatut' from 'cudatut/__init__.py'>"
    assert [result["kind"] for result in good.results("bench")] == ["check", "benchmark"]
    assert [output["output_type"] for output in good.cell("bench").outputs] == [
        "display_data",
        "stream",
        "display_data",
    ]
    metadata = good.metadata
    assert sorted(metadata["sources"]) == ["start/add.cu", "start/add.py", "start/helper.py"]
    assert metadata["title"] == {"en": "Vector add", "zh": "向量加法"}
    assert metadata["toolchain"]["python"].startswith("3.")
    assert [entry["tool"] for entry in metadata["sanitizers"]] == list(SANITIZERS)
    assert metadata["recorded_at"].endswith("+00:00") and len(metadata["recorded_at"]) == 25

    raw = good.path.read_text("utf-8")
    for trace in (
        str(book.root),
        str(Path.home()) + "/",
        tempfile.gettempdir() + "/",
        "cudatut-session",
        '"execution"',
    ):
        assert trace not in raw
    counts = [
        cell["execution_count"] for cell in json.loads(raw)["cells"] if cell["cell_type"] == "code"
    ]
    assert counts == [None, 1, 2, 3]
    left = {path.name for path in (book.root / "start").iterdir()} - {"__pycache__"}
    assert left == {"add.cu", "add.py", "helper.py"}
    assert good.file == "recordings/nvidia-test/start/add.ipynb"

    # The same run again differs in nothing but when it was and how long it took.
    record("start/add")
    again = json.loads(good.path.read_text("utf-8"))
    first = json.loads(raw)
    for notebook in (first, again):
        for key in ("recorded_at", "duration_s", "commit", "digest"):
            del notebook["metadata"]["cudatut"][key]
    assert again == first


def test_failures_are_named_leave_the_old_recording_and_stop_nobody(
    book, tmp_path, monkeypatch, with_gpu
):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    cells = {
        "hangs": "import subprocess, time\n# %% start\n"
        f"out = open({str(pipe)!r}, 'w')\nprint('child', file=out, flush=True)\n"
        "child = subprocess.Popen(['sleep', '1000'], stdout=out)\n"
        "# %% loop\ntime.sleep(1000)\n",
        "raises": "# %% check\nx = 1\nraise ct.CheckError('element 3: got 1, expected 2')\n",
        "dies": "import os\n# %% crash\nos.kill(os.getpid(), 11)\n",
        "unnoticed": "# %% quiet\nct.show(Check('sum', False, 3, 1.0, 1.0, 1e-5, 1e-5))\n",
        "instant": "# %% bench\nct.show(Benchmark('b', 'us', None, [Row('x', 0.0, 0.0, 0.0, None, None, False, None)], 5))\n",
        "edited": "# %% edit\nopen(paths.examples_dir() / 'a/edited.py', 'a').write('# more')\n",
        "good": "# %% check\nprint('fine')\n",
        "newer": "# %% check\n1\n",
    }
    for name, text in cells.items():
        requires = "sm_100" if name == "newer" else "sm_75"
        book.example(f"a/{name}", f"# %% setup\n{with_gpu}{text}", timeout_s=600, requires=requires)
        book.file(book.whole(f"a/{name}"), "the old recording")
    failures.keep("a/good", "it failed before")

    # A clock that goes on only where the example hangs: the others have all the time that they need.
    clock = 0.0

    def begins(cell):
        nonlocal clock
        clock += 1000 if cell == "a/hangs loop" else 0

    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: clock))
    found = results(*(f"a/{name}" for name in cells), progress=recorder.Progress(step=begins))
    reasons = {name.removeprefix("a/"): outcome.reason for name, outcome in found.items()}
    statuses = {name.removeprefix("a/"): outcome.status for name, outcome in found.items()}
    assert statuses == dict.fromkeys(cells, "failed") | {"good": "recorded", "newer": "skipped"}
    assert (
        reasons["hangs"]
        == "a/hangs, cell 'loop': ran past the example's limit of 600 s and was ended"
    )
    assert reasons["raises"] == (
        "a/raises, cell 'check': raised CheckError: element 3: got 1, expected 2 "
        "(line 2: `raise ct.CheckError('element 3: got 1, expected 2')`)"
    )
    assert reasons["dies"].startswith("a/dies, cell 'crash': the process died")
    assert reasons["unnoticed"] == "a/unnoticed: cell 'quiet': the check 'sum' failed"
    assert (
        "a/instant: cell 'bench': the benchmark 'b' has median_us = 0.0 for 'x'"
        in reasons["instant"]
    )
    assert "changed while it was being recorded" in reasons["edited"]
    assert reasons["newer"] == "needs sm_100, and NVIDIA Test is sm_90"
    for name in cells:
        old = book.whole(f"a/{name}").read_text("utf-8") == "the old recording"
        assert old == (name != "good"), name
    # Nothing half written is left. The reasons are, for `make live`; not for what was recorded or skipped.
    assert not [path for path in book.root.parent.rglob(".*") if path.is_file()]
    assert set(failures.names()) == {f"a/{name}" for name in set(cells) - {"good", "newer"}}
    assert failures.reason("a/unnoticed") == reasons["unnoticed"]
    # What the example that hung had started has ended too: nobody holds the pipe any more.
    assert os.read(reader, 100) == b"child\n"
    assert select.select([reader], [], [], 60)[0] and os.read(reader, 100) == b""
    os.close(reader)


@pytest.fixture
def ran(monkeypatch, executed, as_if_run):
    """Every example runs as if it were a good one; their names, in order."""
    names = []

    def record_notebook(example, on_cell):
        names.append(example.name)
        sources = {f"{example.name}.py": recording.source_hash(example.path)}
        return Executed(example, as_if_run(example), executed.session, 1.0, sources, {})

    monkeypatch.setattr(recorder, "record_notebook", record_notebook)
    return names


def test_sanitizers_decide_and_run_before_what_is_timed(book, ran):
    sanitized = []

    def sanitize(paths, tool, timeout_s):
        assert not ran and timeout_s == 60 * recorder.SANITIZER_TIME
        (path,) = paths  # as many jobs as examples
        sanitized.append((path.stem, tool))
        if path.stem == "racy" and tool == "racecheck":
            return Sanitizer(
                tool, 2, "========= Error: Race reported between Read access\n========="
            )
        if path.stem == "broken" and tool == "memcheck":
            raise RuntimeError("no such tool")
        return Sanitizer(tool, 0)

    names = ["a/add", "a/racy", "a/broken"]
    for name in names:
        book.example(name)
    found = results(*names, sanitize=sanitize, jobs=3)
    assert len(sanitized) == len(set(sanitized)) == 12
    assert ran == ["a/add"], "what a sanitizer refuses takes no time alone on the GPU"
    assert [found[name].status for name in names] == ["recorded", "failed", "failed"]
    assert "racecheck found 2 errors\n    ========= Error: Race reported" in found["a/racy"].reason
    assert "memcheck did not finish: no such tool" in found["a/broken"].reason
    assert not book.whole("a/racy").exists()


def test_what_a_sanitizer_finds_is_said_and_kept_at_once(book, ran):
    said, kept = [], []

    def done(what):
        said.append(what)
        kept.append(failures.reason("a/racy"))

    def sanitize(paths, tool, timeout_s):
        return Sanitizer(tool, 2, "========= Error: Race") if tool == "racecheck" else clean(tool)

    def clean(tool):
        return Sanitizer(tool, 0)

    book.example("a/racy")
    results("a/racy", sanitize=sanitize, jobs=1, progress=recorder.Progress(done=done))
    (at,) = (n for n, what in enumerate(said) if "racecheck" in what)
    assert said[at].endswith(": racecheck found 2 errors")
    assert "Error: Race" in kept[at], "also if recording is ended before the last example"
    assert not any("found" in what for n, what in enumerate(said) if n != at)


def test_what_is_recorded_now_has_not_failed(book, ran):
    """Its own reason is forgotten, and no other's."""
    book.example("a/add")
    for name in ("a/add", "a/other"):
        failures.keep(name, "it failed before")
    assert results("a/add")["a/add"].status == "recorded"
    assert failures.names() == ["a/other"]


def test_a_report_is_kept_as_far_as_a_page_has_room():
    """Of a long one the first lines that say something."""
    log = "=========\n\n" + "\n".join(f"========= line {n}" for n in range(30))
    said = recorder._not_clean("memcheck", Sanitizer("memcheck", 30, log))
    assert said.splitlines() == [
        "memcheck found 30 errors",
        *(f"    ========= line {n}" for n in range(20)),
    ]


def test_how_long_a_tool_took_is_said_with_the_number_of_its_examples(book, ran, monkeypatch):
    times = iter(range(0, 1000, 7))
    monkeypatch.setattr(recorder, "time", SimpleNamespace(monotonic=lambda: next(times)))
    for name in ("a/add", "a/two"):
        book.example(name)
    said = []
    results("a/add", "a/two", jobs=1, progress=recorder.Progress(done=said.append))
    assert said.count("a/two memcheck (7.0 s for 2)") == 1
    assert said[-2:] == ["a/add", "a/two"]


@pytest.mark.parametrize(("sanitize", "together"), [(clean, 3 * len(SANITIZERS) + 1), (None, 1)])
def test_progress_knows_how_much_each_phase_has_to_do(book, ran, sanitize, together):
    """And what else was begun has ended before the first notebook that measures time."""
    for name in ("a/add", "a/two", "a/untimed"):
        book.example(name, alone=name != "a/untimed")
    said, before = [], []
    progress = recorder.Progress(start=lambda *phase: said.append(phase))
    examples, wait = ("a/add", "a/two", "a/untimed"), lambda: before.extend(ran)
    found = results(*examples, sanitize=sanitize, progress=progress, before_timed=wait)
    assert said == [("side by side", together), ("alone on the GPU", 2)]
    assert before == ["a/untimed"] and ran[1:] == ["a/add", "a/two"]
    assert {one.status for one in found.values()} == {"recorded"}


@pytest.fixture
def no_notebooks(monkeypatch):
    monkeypatch.setattr(recorder, "record_notebook", lambda *_: RuntimeError("not here"))


def test_examples_follow_each_other_under_a_tool_so_that_kernels_are_compiled_once(
    book, monkeypatch, no_notebooks
):
    monkeypatch.setattr(recorder, "_BATCH", 1)
    names, order = ["a/one", "a/two", "a/three"], {tool: [] for tool in SANITIZERS}
    seen, threads = [], set()

    def sanitize(paths, tool, timeout_s):
        threads.add(threading.get_ident())
        order[tool] += [path.stem for path in paths]
        if tool != recorder.RACECHECK:
            seen.append(tool)
        return Sanitizer(tool, 0)

    for name in names:
        book.example(name)
    results(*names, sanitize=sanitize, jobs=1)
    assert len(threads) == 1  # one job: one at a time
    assert seen == ["memcheck"] * 3 + ["initcheck"] * 3 + ["synccheck"] * 3
    # Racecheck begins at the other end, and at its end whoever has nothing else to do helps: nobody runs twice.
    assert order["racecheck"] == ["three", "two", "one"]
    assert all(sorted(stems) == ["one", "three", "two"] for stems in order.values())


def test_racecheck_begins_with_what_took_longest(book, monkeypatch, no_notebooks):
    monkeypatch.setattr(recorder, "_BATCH", 1)
    order = []

    def sanitize(paths, tool, timeout_s):
        if tool == recorder.RACECHECK:
            order.extend(path.stem for path in paths)
        return Sanitizer(tool, 0)

    for name, seconds in {"a/long": 90.5, "a/short": 0.5, "a/longer": 130.0}.items():
        book.example(name)
        notebook = book.notebook(name)
        notebook["metadata"]["cudatut"]["duration_s"] = seconds
        book.recorded(name, notebook)
    book.example("a/new")
    results("a/long", "a/short", "a/new", "a/longer", sanitize=sanitize, jobs=1)
    assert order == ["longer", "long", "new", "short"]


def test_examples_share_a_process_under_a_tool_until_something_is_found(book, no_notebooks):
    names = [f"a/e{number}" for number in range(7)]
    calls = []

    def sanitize(paths, tool, timeout_s):
        stems = [path.stem for path in paths]
        calls.append((tool, stems))
        if tool == "memcheck" and "e2" in stems:
            return Sanitizer(tool, 3, "========= Invalid __global__ write")
        if tool == "initcheck" and "e3" in stems:
            raise RuntimeError("it hung")
        return Sanitizer(tool, 0)

    for name in names:
        book.example(name)
    found = results(*names, sanitize=sanitize, jobs=2)
    first, second = [f"e{n}" for n in (0, 2, 4, 6)], [f"e{n}" for n in (1, 3, 5)]
    for tool in SANITIZERS:
        assert (tool, first) in calls and (tool, second) in calls
    alone = {(tool, *stems) for tool, stems in calls if len(stems) == 1}
    assert alone == {("memcheck", stem) for stem in first} | {("initcheck", s) for s in second}
    assert len(calls) == 2 * len(SANITIZERS) + len(alone)
    assert {outcome.status for outcome in found.values()} == {"failed"}  # they have no notebooks


def test_a_process_under_a_tool_has_the_time_of_its_longest_example(book, no_notebooks):
    """Twice that where several share it; a short example among them takes none of it away."""
    limits = set()

    def sanitize(paths, tool, timeout_s):
        limits.add(timeout_s)
        return Sanitizer(tool, 0)

    book.example("a/short", timeout_s=60)
    book.example("a/long", timeout_s=600)
    results("a/short", "a/long", sanitize=sanitize, jobs=1)
    assert limits == {2 * 600 * recorder.SANITIZER_TIME}


def test_whose_fault_it_is(book, ran):
    names = ["a/add", "a/bad", "a/good"]
    for name in names:
        book.example(name)

    def sanitize(paths, tool, timeout_s):
        return Sanitizer(tool, sum(path.stem == "bad" for path in paths), "========= it")

    found = results(*names, sanitize=sanitize, jobs=1)
    assert [found[name].status for name in names] == ["recorded", "failed", "recorded"]


# Tells a server that it has begun, and goes on when the server says so.
MEET = """# %% meet
import socket
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    assert server.recv(1)
print({name!r})
"""


def test_what_measures_no_time_runs_side_by_side(book):
    """Each of the three goes on only when all have begun; one after the other, the first would wait in vain."""
    names = ["a/one", "a/two", "a/three"]
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        address = str(Path(folder, "meet"))  # a short path, as these must be
        server.bind(address)
        server.listen()

        def greet():
            here = [server.accept()[0] for _ in names]
            for one in here:
                one.sendall(b".")
                one.close()

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        for name in names:
            book.example(name, MEET.format(address=address, name=name), alone=False)
        found = results(*names, sanitize=clean, jobs=3)
    # They ran, each in its own kernel; what they lack is a GPU.
    assert {o.reason for o in found.values()} == {
        f"{name}: its kernel saw no GPU" for name in names
    }


# --- nothing else lives while something is timed ---------------------------------------------------


@pytest.fixture
def children(monkeypatch):
    """Log of all children of this process: ("begin", pid) and, when one was waited for, ("end", pid); words by pid."""
    log, commands, lock = [], {}, threading.Lock()

    class Logged(subprocess.Popen):
        _code = None

        def __init__(self, command, *more, **options):
            # Said before it begins: it may have ended before this returns.
            with lock:
                log.append(("begin", self))
            try:
                super().__init__(command, *more, **options)
            except BaseException:
                with lock:
                    log.append(("end", self))
                raise
            commands[self.pid] = (
                command if isinstance(command, str) else " ".join(map(str, command))
            )

        @property
        def returncode(self):
            return self._code

        @returncode.setter
        def returncode(self, code):
            if code is not None and self._code is None:
                with lock:
                    log.append(("end", self))
            self._code = code

    monkeypatch.setattr(subprocess, "Popen", Logged)
    monkeypatch.setattr(jupyter_client.launcher, "Popen", Logged)

    def found():
        return [(event, child.pid) for event, child in log], commands

    return found


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A GPU and a compute-sanitizer that are not there."""
    tools = tmp_path / "tools"
    tools.mkdir()
    sanitizer = tools / "compute-sanitizer"
    sanitizer.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "log = pathlib.Path(sys.argv[sys.argv.index('--log-file') + 1])\n"
        "log.write_text('ERROR SUMMARY: 0 errors')\n"
    )
    sanitizer.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", "")  # recording sets it
    monkeypatch.setenv("CUDATUT_NVCC", "no-such-nvcc")  # nothing is compiled ahead
    gpu = {"name": "NVIDIA Test", "compute_capability": (9, 0)}
    monkeypatch.setattr(recorder, "probe_gpu", lambda: gpu)


def test_while_a_timed_notebook_runs_no_other_process_of_ours_lives(
    book, machine, children, with_gpu, tmp_path
):
    pids = tmp_path / "pids"
    note = f"import os\nprint({{name!r}}, os.getpid(), file=open({str(pids)!r}, 'a'))\n"
    for name in ("a/first", "a/untimed", "a/second", "a/unhurried"):
        cells = f"# %% setup\n{with_gpu}# %% work\n{note.format(name=name)}"
        book.example(name, cells, alone=name in ("a/first", "a/second"))
    outcomes = recorder.record_all(recorder.chosen(), jobs=3)
    assert [(o.status, o.reason) for o in outcomes] == [("recorded", "")] * 4

    log, commands = children()
    kernels = dict(line.split() for line in pids.read_text().splitlines())
    timed = {int(kernels["a/first"]), int(kernels["a/second"])}
    # Nobody was overlooked: four kernels, the sanitizers, what compiles CUB, git.
    assert {int(pid) for pid in kernels.values()} <= set(commands) and len(kernels) == 4
    for word, count in (("compute-sanitizer", 8), ("compile_ahead", 1), ("git -C", 8)):
        assert sum(word in command for command in commands.values()) >= count, word
    alive = set()
    for event, pid in log:
        (alive.add if event == "begin" else alive.discard)(pid)
        others = [commands[other] for other in alive if alive & timed and other not in timed]
        assert not others and len(alive & timed) <= 1, (event, commands[pid], others)
    assert not alive


@pytest.mark.parametrize(
    ("cores", "asked", "jobs", "workers"),
    [(None, None, 1, 1), (2, None, 2, 2), (8, None, 8, 4), (64, None, 15, 12), (16, 8, 8, 8), (2, 9, 9, 1)],
)  # fmt: skip
def test_how_many_runs_share_the_cores(book, machine, monkeypatch, cores, asked, jobs, workers):
    """As many as there are cores, at most 15; those of racecheck, a third of them, share the cores to compile."""
    taken, started, waited = [], [], []

    def begin(command, **options):
        started.append(command)
        return nullcontext(SimpleNamespace(wait=lambda: waited.append(1)))

    def examples(*given, before_timed, **options):
        before_timed()
        taken.append((given, options))

    monkeypatch.setattr(recorder.os, "cpu_count", lambda: cores)
    monkeypatch.setattr(recorder, "record_examples", examples)
    monkeypatch.setattr(recorder, "subprocess", SimpleNamespace(Popen=begin, DEVNULL=None))
    book.example("a/add")
    recorder.record_all(recorder.chosen(), jobs=asked)
    ((ones, gpu, capability, sanitize), options) = taken[0]
    assert ([one.name for one in ones], gpu, capability) == (["a/add"], "NVIDIA Test", (9, 0))
    assert (options["jobs"], sanitize.keywords) == (jobs, {"workers": workers})
    assert len(started) == len(waited) == 1 and "compile_ahead" in started[0][-1]
    # The kernels and the sanitizers' children import this cudatut.
    assert str(Path(cudatut.__file__).parents[1]) in os.environ["PYTHONPATH"].split(os.pathsep)


# --- which are recorded ----------------------------------------------------------------------------


@pytest.fixture
def shelf(book):
    """Fourteen examples whose recordings took from 1 to 300 s; two are long, three were never recorded."""
    seconds = [300, 120, 90, 60, 45, 30, 20, 10, 5, 2, 1]
    for number, took in enumerate(seconds):
        name = f"p{number % 3}/e{number}"
        book.example(name, alone=number != 3, long=number in (0, 4))
        notebook = book.notebook(name)
        notebook["metadata"]["cudatut"]["duration_s"] = took
        book.recorded(name, notebook)
    for name in ("p0/new", "p1/new", "p2/new"):
        book.example(name)
    return book


def names(examples):
    return [example.name for example in examples]


LONG = ["p0/e0", "p1/e4"]


def test_long_runs_are_recorded_by_name_or_when_their_files_change(shelf):
    assert [example.name for example in catalog.examples() if example.long] == LONG
    everything = names(catalog.examples())
    assert names(recorder.chosen()) == [name for name in everything if name not in LONG]
    assert names(recorder.chosen(LONG[:1])) == LONG[:1]
    assert names(recorder.chosen(shard="long")) == LONG
    assert names(recorder.chosen(only_stale=True)) == ["p0/new", "p1/new", "p2/new"]
    shelf.example(LONG[1], "# %% changed\n1\n", long=True)
    assert names(recorder.chosen()) == [name for name in everything if name != LONG[0]]
    assert names(recorder.chosen(shard="long")) == LONG
    assert names(recorder.chosen(shard="long", only_stale=True)) == LONG[1:]
    assert names(recorder.chosen(["p2/e2", "p2/e2"], only_stale=True)) == []
    with pytest.raises(catalog.UnknownExampleError, match="p2/e3"):
        recorder.chosen(["p2/e3"])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 20])
def test_shards_are_a_partition_of_the_short_examples(shelf, count):
    shards = [names(recorder.chosen(shard=f"{n}/{count}")) for n in range(1, count + 1)]
    short = [e.name for e in catalog.examples() if not e.long]
    assert sorted(name for shard in shards for name in shard) == short
    assert all(shard == sorted(shard) for shard in shards)
    # Of a few names, and of what is stale, too: nothing is lost where each part is recorded by itself.
    few = short[::2]
    of_few = [names(recorder.chosen(few, shard=f"{n}/{count}")) for n in range(1, count + 1)]
    assert sorted(name for shard in of_few for name in shard) == few
    stale = [
        names(recorder.chosen(shard=f"{n}/{count}", only_stale=True)) for n in range(1, count + 1)
    ]
    assert sorted(name for shard in stale for name in shard) == names(
        recorder.chosen(only_stale=True)
    )


def test_shards_take_about_as_long(book):
    """By the last recordings, the longest first; beside others an example takes little of the whole."""
    seconds = {"a/one": 50, "a/two": 50, "a/three": 100, "a/untimed": 400}
    for name, took in seconds.items():
        book.example(name, alone=name != "a/untimed")
        notebook = book.notebook(name)
        notebook["metadata"]["cudatut"]["duration_s"] = took
        book.recorded(name, notebook)
    shards = [names(recorder.chosen(shard=f"{n}/3")) for n in (1, 2, 3)]
    assert shards == [["a/three"], ["a/one", "a/untimed"], ["a/two"]]
    halves = [names(recorder.chosen(shard=f"{n}/2")) for n in (1, 2)]
    assert sorted(halves) == [["a/one", "a/two"], ["a/three", "a/untimed"]]


def test_what_an_example_is_taken_to_last(book):
    """Its cells and the start of its process; one of eight side by side; a guess where it was never recorded."""
    for name, alone in (("a/new", True), ("a/untimed", False), ("a/known", True)):
        book.example(name, alone=alone)
    notebook = book.notebook("a/known")
    notebook["metadata"]["cudatut"]["duration_s"] = 20.0
    book.recorded("a/known", notebook)
    seconds = {one.name: recorder._seconds(one) for one in catalog.examples()}
    assert seconds == {"a/new": 6 + 4, "a/untimed": (6 + 4) / 8, "a/known": 20 + 4}


@pytest.mark.parametrize(
    "shard", ["0/3", "4/3", "2", "2/", "/3", "-1/3", "a/b", "1/0", "1/2/3", "short"]
)
def test_what_is_no_shard(shelf, shard):
    with pytest.raises(CudatutError, match=f"--shard {re.escape(shard)}: write 2/3"):
        recorder.chosen(shard=shard)


# --- results of other GPUs -------------------------------------------------------------------------


def test_slim_recordings_hold_results_and_provenance_alone(book, machine, with_gpu):
    book.example(
        "a/add",
        f"# %% [markdown]\n# One idea.\n# %% setup\n{with_gpu}print('a line')\n"
        "# %% bench\nct.show(Check('add', True, 3, 0.0, 0.0, 1e-5, 1e-5))\nprint('between')\n"
        "ct.show(Benchmark('add', 'GB/s', 9.0, [Row('x', 1.0, 1.0, 1.0, 2.0, 2 / 9, False, None, 2000)], 5))\n",
    )
    own = book.notebook("a/add")
    own["metadata"]["cudatut"]["gpu"]["name"] = "NVIDIA Home"
    own = book.recorded("a/add", own, agree=False).read_bytes()
    (outcome,) = recorder.record_all(recorder.chosen(["a/add"]), slim=True)
    assert (outcome.status, outcome.reason) == ("recorded", "")
    path = recording.slim_path("NVIDIA Test", "a/add")
    files = {file for file in path.parents[2].rglob("*") if file.is_file()}
    assert files == {path, book.whole("a/add", "NVIDIA Home")}
    (slim,) = recording.on_other_gpus("a/add")
    assert slim.path == path and slim.slim and not slim.edited()
    assert [cell.title for cell in slim.cells] == ["setup", "bench"]
    assert [result["kind"] for result in slim.results("bench")] == ["check", "benchmark"]
    assert slim.metadata["gpu"]["name"] == "NVIDIA Test" and slim.metadata["sources"]
    assert slim.metadata["sanitizers"] == []
    raw = path.read_text("utf-8")
    for left_out in ("between", "a line", "text/plain", "text/html", "One idea", "ct.show"):
        assert left_out not in raw
    assert own == recording.whole_path("a/add").read_bytes()  # the book's own is another matter


def test_slim_recordings_need_no_sanitizer_and_run_one_at_a_time(book, machine, ran, monkeypatch):
    for name in ("a/add", "a/two"):
        book.example(name, alone=False)
    workers, pool = [], recorder.ThreadPoolExecutor
    monkeypatch.setattr(recorder, "ThreadPoolExecutor", lambda n: workers.append(n) or pool(n))
    monkeypatch.setenv("PATH", "/nowhere")  # no compute-sanitizer
    outcomes = recorder.record_all(recorder.chosen(), slim=True)
    assert {outcome.status for outcome in outcomes} == {"recorded"} and ran == ["a/add", "a/two"]
    assert set(workers) == {1}
    assert not list(book.root.parent.rglob("*.ipynb"))


def test_a_failure_on_another_gpu_says_nothing_of_the_book(book, with_gpu):
    """`make live` shows a reason where the book's own recording failed; this is none."""
    book.example("a/bad", f"# %% setup\n{with_gpu}raise ValueError('no')\n")
    book.example("a/good", f"# %% setup\n{with_gpu}")
    failures.keep("a/good", "it failed before")
    found = results("a/bad", "a/good", sanitize=None)
    assert [outcome.status for outcome in found.values()] == ["failed", "recorded"]
    assert not recording.slim_path("NVIDIA Test", "a/bad").exists()
    assert failures.names() == ["a/good"]


# --- what is refused before anything runs ----------------------------------------------------------


def test_no_gpu_is_said_before_anything_runs(book, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    book.example("a/add", "# %% check\nopen('/nowhere/x', 'w')\n")
    with pytest.raises(NoGpuError, match="driver"):
        recorder.record_all(recorder.chosen(["a/add"]))


@pytest.fixture
def driver(monkeypatch):
    """A driver with a GPU; what is installed beside it."""
    installed = {"pycuda", "ipykernel", "jupytext", "nbclient"}
    gpus = {0: ("NVIDIA First", (9, 0)), 2: ("NVIDIA Third", (12, 0))}
    monkeypatch.setattr(recorder.device, "why_no_gpu", lambda: None)
    monkeypatch.setattr(recorder.device, "name_and_capability", gpus.__getitem__)
    monkeypatch.setattr(recorder, "find_spec", lambda name: name if name in installed else None)
    monkeypatch.delenv("CUDA_DEVICE", raising=False)
    return installed


def test_the_gpu_is_the_first_or_the_one_that_was_asked_for(driver, monkeypatch):
    first = {"name": "NVIDIA First", "compute_capability": (9, 0)}
    assert recorder.probe_gpu() == first
    monkeypatch.setenv("CUDA_DEVICE", "2")
    assert recorder.probe_gpu()["name"] == "NVIDIA Third"
    driver.remove("pycuda")
    with pytest.raises(NoGpuError, match="there is a GPU, but no PyCUDA; .*doctor"):
        recorder.probe_gpu()
    monkeypatch.setattr(recorder.device, "why_no_gpu", lambda: "the driver shows no GPU")
    with pytest.raises(NoGpuError, match="^the driver shows no GPU; .*doctor"):
        recorder.probe_gpu()


def test_what_is_not_installed_is_said_before_anything_runs(book, driver):
    book.example("a/add")
    driver -= {"jupytext", "nbclient"}
    with pytest.raises(ToolMissing, match=r"recording needs jupytext, nbclient: .*pip install"):
        recorder.record_all(recorder.chosen(["a/add"]))


def test_no_sanitizer_is_said_before_anything_runs(book, machine, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    book.example("a/add", "# %% check\nopen('/nowhere/x', 'w')\n")
    with pytest.raises(ToolMissing, match="compute-sanitizer is not on PATH"):
        recorder.record_all(recorder.chosen(["a/add"]))


def test_nothing_stale_needs_no_gpu(book):
    book.example("a/add")
    book.recorded("a/add")
    assert recorder.chosen(only_stale=True) == []
    assert recorder.record_all([]) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize("slim", [False, True])
@pytest.mark.parametrize("folder", [".", "recordings"])  # without recordings, and with some
def test_read_only_checkout_is_refused(monkeypatch, slim, folder):
    # Not tmp_path: root drops its rights here, and must still be able to read the folder.
    with tempfile.TemporaryDirectory() as base:
        root = Path(base)
        (root / "examples/a").mkdir(parents=True)
        (root / folder).mkdir(exist_ok=True)
        (root / "examples/a/add.py").write_text(
            "# ---\n# jupyter:\n#   cudatut: {title: {en: x, zh: y}, requires: sm_75}\n# ---\n# %% a\n1\n"
        )
        monkeypatch.setenv("CUDATUT_EXAMPLES", str(root / "examples"))
        monkeypatch.delenv("CUDATUT_RECORDINGS", raising=False)
        root.chmod(0o755)
        (root / folder).chmod(0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            said = "recordings: Permission denied.*CUDATUT_RECORDINGS"
            with pytest.raises(UnwritableError, match=said):
                recorder.record_all(recorder.chosen(), slim=slim)
        finally:
            os.seteuid(user)
            (root / folder).chmod(0o755)


# --- what stops it, and what does not --------------------------------------------------------------


def test_an_interrupt_ends_recording_at_once(book, monkeypatch):
    """Ctrl-C must not read as 'this example failed, on to the next'."""
    book.example(
        "a/one",
        "# %% wait\nimport os, signal, time\nos.kill(os.getppid(), signal.SIGUSR1)\ntime.sleep(1000)\n",
    )
    book.example("a/two")
    seen, errors = [], []
    execute = recorder.record_notebook

    def noted(example, on_cell):
        try:
            return execute(example, on_cell)
        except Exception as error:
            errors.append(str(error))
            raise

    def interrupted(number, frame):
        raise KeyboardInterrupt

    monkeypatch.setattr(recorder, "record_notebook", noted)
    old = signal.signal(signal.SIGUSR1, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            record("a/one", "a/two", progress=recorder.Progress(step=seen.append))
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert seen == ["a/one wait"]
    (error,) = errors  # it was ended, and did not run to its limit
    assert error.startswith("a/one, cell 'wait': the process died")


def test_an_unforeseen_error_stops_nobody(book, monkeypatch):
    book.example("a/one")
    book.example("a/two")

    def break_down(example, on_cell):
        raise ValueError(f"broken {example.name}")

    monkeypatch.setattr(recorder, "record_notebook", break_down)
    found = results("a/one", "a/two")
    assert found["a/two"].status == "failed"
    assert found["a/two"].reason == "a/two: ValueError('broken a/two')"


def test_one_error_of_a_sanitizer_is_one_too_many(book, with_gpu):
    """And a sanitizer that failed is no clean one."""
    book.example("a/one", f"# %% [markdown]\n# One.\n# %% setup\n{with_gpu}")

    def found(errors):
        return lambda paths, tool, timeout_s: Sanitizer(tool, errors if tool == "memcheck" else 0)

    outcome = results("a/one", sanitize=found(1))["a/one"]
    assert outcome.status == "failed" and "memcheck found 1 errors" in outcome.reason
    assert not book.whole("a/one").exists()
    assert results("a/one", sanitize=found(0))["a/one"].status == "recorded"
