"""Recording: real kernels run CPU-only examples; only the GPU's name and the sanitizers' verdicts are made up."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from cudatut import catalog, failures, recording
from cudatut.errors import NoGpuError
from cudatut.record import outputs, recorder
from cudatut.results import Sanitizer
from cudatut.tool import SANITIZERS

pytest.importorskip("nbclient")
pytest.importorskip("jupytext")
pytest.importorskip("ipykernel")

# What stands for the GPU in these examples' own kernels.
WITH_GPU = """
import cudatut as ct
from cudatut import paths, session
from cudatut.results import Benchmark, Check, Row
session._gpu = lambda: {"name": "NVIDIA Test", "compute_capability": "9.0", "memory_bytes": 8, "sm_count": 1, "driver": "1"}
"""


def clean(paths: list[Path], tool: str, timeout_s: float) -> Sanitizer:
    return Sanitizer(tool, 0)


def record(*names, sanitize=clean, **options):
    examples = [catalog.get(name) for name in names]
    return recorder.record_examples(examples, "NVIDIA Test", (9, 0), sanitize, **options)


def results(*names, **options):
    return {outcome.name: outcome for outcome in record(*names, **options)}


def test_a_whole_recording(book):
    book.file("start/add.cu", "// read only while running\n")
    book.file("start/helper.py", "WORD = 'helped'\n")
    book.example(
        "start/add",
        "# %% [markdown]\n# One **idea**.\n\n"
        f"# %% setup\n{WITH_GPU}"
        "import os, sys, importlib\n"
        'paths.note_read(paths.examples_dir() / "start" / ("add" + ".cu"))\n'
        'print(importlib.import_module("hel" + "per").WORD, os.environ["CUDATUT_RECORDING"], os.listdir())\n'
        'print("numpy is there:", "numpy" in sys.modules)\n'
        "# %% output\n"
        'for i in range(3): print(f"\\r{i}/2", end="", flush=True)\n'
        'print("\\nafter", flush=True)\n'
        'os.system("echo from-C")\n'
        "print(paths.examples_dir() / 'start' / 'add.cu', os.getcwd(), ct.__file__)\n"
        "ct\n"
        "# %% bench\n"
        'ct.show(Check("add", True, 3, 0.0, 0.0, 1e-5, 1e-5))\n'
        'print("between")\n'
        'ct.show(Benchmark("add", "GB/s", 9.0, [Row("x", 1.0, 1.0, 1.0, 2.0, None, False, None)], 5))\n',
    )
    seen = []
    (outcome,) = record("start/add", progress=recorder.Progress(step=seen.append))
    assert (outcome.status, outcome.reason) == ("recorded", "")
    assert seen == ["start/add setup", "start/add output", "start/add bench"]

    good = recording.require_good("start/add")
    assert [cell.title for cell in good.cells] == ["install", "md-1", "setup", "output", "bench"]
    assert "%pip install" in good.cell("install").source
    assert good.cell("md-1").source == "One **idea**."
    # What takes long to import was, before the process had its turn.
    assert good.cell("setup").outputs[0]["text"] == "helped 1 []\nnumpy is there: True\n"
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
    assert left == {"add.cu", "add.ipynb", "add.py", "helper.py"}

    # The same run again differs in nothing but when it was and how long it took.
    record("start/add")
    again = json.loads(good.path.read_text("utf-8"))
    first = json.loads(raw)
    for notebook in (first, again):
        for key in ("recorded_at", "duration_s", "commit", "digest"):
            del notebook["metadata"]["cudatut"][key]
    assert again == first


def test_output_of_c_stays_in_its_cell_and_in_order(book):
    """Device printf is C's: a line that turned up a cell later would be shown beneath other code."""
    cells = "# %% setup\nimport ctypes, os, sys\nlibc = ctypes.CDLL(None)\nfrom IPython.display import display\n"
    for n in range(60):
        cells += f'# %% c{n}\nprint("py{n}")\n_ = libc.printf("核{n}\\n".encode())\n'
        cells += 'print("after")\n' if n % 2 else ""
        cells += (
            'libc.printf(b"shown\\n"); display({"text/plain": "x"}, raw=True)\n'
            if n % 3 == 0
            else ""
        )
        cells += '_ = os.system("echo child >&2")\n' if n % 5 == 0 else ""
    book.example("a/c", cells)
    executed = recorder.record_notebook(catalog.get("a/c"))
    for n, cell in enumerate(executed.notebook.cells[1:]):
        got = [output.get("text", "display") for output in cell.outputs]
        want = f"py{n}\n核{n}\n" + ("after\n" if n % 2 else "")
        want = [f"{want}shown\n", "display"] if n % 3 == 0 else [want]
        assert got == want + (["child\n"] if n % 5 == 0 else []), cell.id


def test_a_loop_that_runs_in_this_thread_keeps_its_tasks(book):
    """Recording from a notebook, or beside Playwright: their tasks are not ours to cancel."""
    book.example("a/one", "# %% check\nprint('one')\n")

    async def main():
        other = asyncio.create_task(asyncio.sleep(0.01, "done"))
        executed = recorder.record_notebook(catalog.get("a/one"))
        assert executed.notebook.cells[-1].outputs[0].text == "one\n"
        return await other

    assert asyncio.run(main()) == "done"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_failures_are_named_leave_the_old_recording_and_stop_nobody(book, tmp_path):
    child = tmp_path / "child"
    cells = {
        "hangs": "import subprocess, time\n# %% loop\n"
        f"child = subprocess.Popen(['sleep', '1000']); open({str(child)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(1000)\n",
        "raises": "# %% check\nx = 1\nraise ct.CheckError('element 3: got 1, expected 2')\n",
        "dies": "import os\n# %% crash\nos.kill(os.getpid(), 11)\n",
        "unnoticed": "# %% quiet\nct.show(Check('sum', False, 3, 1.0, 1.0, 1e-5, 1e-5))\n",
        "instant": "# %% bench\nct.show(Benchmark('b', 'us', None, [Row('x', 0.0, 0.0, 0.0, None, None, False, None)]))\n",
        "edited": "# %% edit\nopen(paths.examples_dir() / 'a/edited.py', 'a').write('# more')\n",
        "good": "# %% check\nprint('fine')\n",
        "newer": "# %% check\n1\n",
    }
    for name, text in cells.items():
        limit, requires = (6 if name == "hangs" else 60), ("sm_100" if name == "newer" else "sm_75")
        book.example(
            f"a/{name}", f"# %% setup\n{WITH_GPU}{text}", timeout_s=limit, requires=requires
        )
        book.file(f"a/{name}.ipynb", "the old recording")
    failures.keep("a/good", "it failed before")
    started = time.monotonic()
    found = results(*(f"a/{name}" for name in cells))
    assert time.monotonic() - started < 120
    reasons = {name.removeprefix("a/"): outcome.reason for name, outcome in found.items()}
    statuses = {name.removeprefix("a/"): outcome.status for name, outcome in found.items()}
    assert statuses == dict.fromkeys(cells, "failed") | {"good": "recorded", "newer": "skipped"}
    assert (
        reasons["hangs"]
        == "a/hangs, cell 'loop': ran past the example's limit of 6 s and was ended"
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
        old = (book.root / f"a/{name}.ipynb").read_text("utf-8") == "the old recording"
        assert old == (name != "good"), name
    # Nothing half written is left. The reasons are, for `make live`; not for what was recorded or skipped.
    left = {path.name for path in book.root.rglob(".*") if path.is_file()}
    failed = set(cells) - {"good", "newer"}
    assert left == {f".{name}.failed" for name in failed}
    assert failures.reason("a/unnoticed") == reasons["unnoticed"]
    if os.name == "posix":
        deadline = time.monotonic() + 10
        while alive(int(child.read_text())) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not alive(int(child.read_text()))


@pytest.fixture
def executed(book):
    """An example as if it had run, for what happens after that."""
    book.example("a/add", "# %% check\nprint(1)\n")
    example = catalog.get("a/add")
    notebook = recorder.notebook_of(example)
    notebook.cells[0].execution_count = 1
    session = {
        "gpu": {
            "name": "G",
            "compute_capability": "9.0",
            "memory_bytes": 8,
            "sm_count": 1,
            "driver": "1",
        }
    }
    session["toolchain"] = {}
    sources = {"a/add.py": recording.source_hash(example.path)}
    return recorder.Executed(example, notebook, session, 1.0, sources)


FOUR = [Sanitizer(tool, 0) for tool in SANITIZERS]


def test_write(executed):
    recorder.write(executed, FOUR)
    recording.require_good("a/add")
    recorder.write(executed, FOUR)  # over the one that is there
    assert os.stat(executed.example.notebook).st_mode & 0o444 == 0o444


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: e.session.update(gpu=None), "its kernel saw no GPU"),
        (
            lambda e: e.example.path.write_text("changed"),
            "a/add.py changed while it was being recorded",
        ),
        (
            lambda e: e.notebook.cells[0].update(execution_count=None),
            "cell 'check' was not executed",
        ),
    ],
)
def test_what_is_not_good_is_not_written(executed, change, reason):
    executed.example.notebook.write_text("old")
    change(executed)
    with pytest.raises(recorder.RecordingFailed, match=reason):
        recorder.write(executed, FOUR)
    assert executed.example.notebook.read_text() == "old"
    assert sorted(os.listdir(executed.example.path.parent)) == ["add.ipynb", "add.py"]


def test_what_is_not_whole_is_not_written(executed):
    with pytest.raises(recorder.RecordingFailed, match="synccheck was not run"):
        recorder.write(executed, FOUR[:3])
    assert not executed.example.notebook.exists()


def test_sanitizers_decide_and_run_before_what_is_timed(book, monkeypatch, executed):
    events = []

    def ran(example, on_cell, turn):
        events.append("notebook")
        return recorder.Executed(
            example,
            executed.notebook,
            executed.session,
            1.0,
            {f"{example.name}.py": recording.source_hash(example.path)},
        )

    def sanitize(paths, tool, timeout_s):
        events.append("sanitizer")
        assert timeout_s == 60 * recorder.SANITIZER_TIME
        (path,) = paths  # as many jobs as examples
        if path.stem == "racy" and tool == "racecheck":
            return Sanitizer(
                tool, 2, "========= Error: Race reported between Read access\n========="
            )
        if path.stem == "broken" and tool == "memcheck":
            raise RuntimeError("no such tool")
        return Sanitizer(tool, 0)

    monkeypatch.setattr(recorder, "record_notebook", ran)
    names = ["a/add", "a/racy", "a/broken"]
    for name in names:
        book.example(name)
    found = results(*names, sanitize=sanitize, jobs=3)
    assert events == ["sanitizer"] * 12 + ["notebook"] * 3
    assert [found[name].status for name in names] == ["recorded", "failed", "failed"]
    assert "racecheck found 2 errors\n    ========= Error: Race reported" in found["a/racy"].reason
    assert "memcheck did not finish: no such tool" in found["a/broken"].reason
    assert not (book.root / "a/racy.ipynb").exists()


@pytest.fixture
def no_notebooks(monkeypatch):
    monkeypatch.setattr(recorder, "record_notebook", lambda *_: RuntimeError("not here"))


def test_examples_follow_each_other_under_a_tool_so_that_kernels_are_compiled_once(
    book, monkeypatch, no_notebooks
):
    monkeypatch.setattr(recorder, "_BATCH", 1)
    names, order = ["a/one", "a/two", "a/three"], {tool: [] for tool in SANITIZERS}
    seen, lock = [], threading.Lock()

    def sanitize(paths, tool, timeout_s):
        assert lock.acquire(blocking=False)  # one job: one at a time
        time.sleep(0.02)
        lock.release()
        order[tool] += [path.stem for path in paths]
        if tool != recorder.RACECHECK:
            seen.append(tool)
        return Sanitizer(tool, 0)

    for name in names:
        book.example(name)
    results(*names, sanitize=sanitize, jobs=1)
    assert seen == ["memcheck"] * 3 + ["initcheck"] * 3 + ["synccheck"] * 3
    # Racecheck begins at the other end, and at its end whoever has nothing else to do helps: nobody runs twice.
    assert order["racecheck"] == ["three", "two", "one"]
    assert all(sorted(stems) == ["one", "three", "two"] for stems in order.values())


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


def test_whose_fault_it_is(book, monkeypatch, executed):
    def ran(example, on_cell, turn):
        sources = {f"{example.name}.py": recording.source_hash(example.path)}
        return recorder.Executed(example, executed.notebook, executed.session, 1.0, sources)

    monkeypatch.setattr(recorder, "record_notebook", ran)
    names = ["a/add", "a/bad", "a/good"]
    for name in names:
        book.example(name)

    def sanitize(paths, tool, timeout_s):
        return Sanitizer(tool, sum(path.stem == "bad" for path in paths), "========= it")

    found = results(*names, sanitize=sanitize, jobs=1)
    assert [found[name].status for name in names] == ["recorded", "failed", "recorded"]


def test_a_watched_process_runs_each_file_as_if_it_were_alone(book, tmp_path):
    for part in "ab":
        book.file(f"{part}/beside.py", f"WHERE = '{part}'\n")
        book.file(
            f"{part}/one.py",
            "import sys, gc, beside\n"
            "print(__name__, sys.argv, beside.WHERE, sum(type(o).__name__ == 'Mine' for o in gc.get_objects()))\n"
            "class Mine: pass\n"
            "kept = Mine(); kept.itself = kept\n"
            "sys.exit()\n",
        )
    book.file("b/bad.py", "raise SystemExit('stop')\n")
    files = [str(book.root / name) for name in ("a/one.py", "b/one.py", "b/bad.py", "a/one.py")]
    code = f"from cudatut import watched; watched.activate = lambda: None; watched.main({files!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=recorder.environment()
    )
    said = [f"__main__ [{files[0]!r}] a 0", f"__main__ [{files[1]!r}] b 0"]
    assert done.stdout.splitlines() == said and done.stderr.strip() == "stop"
    assert done.returncode == 1


def test_what_measures_no_time_runs_side_by_side(book):
    for name in ("a/one", "a/two", "a/three"):
        book.example(name, f"# %% check\nprint('{name}')\n", alone=False)
    book.example("a/timed", "# %% check\nprint('a/timed')\n")
    found = results("a/one", "a/two", "a/three", "a/timed", sanitize=clean, jobs=3)
    # They ran, each in its own kernel; what they lack is a GPU.
    assert {o.reason for o in found.values()} == {
        f"{name}: its kernel saw no GPU" for name in found
    }


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("# %%\nx = 1\n", "the cell that begins with `x = 1` needs a title"),
        ("# %% Check It\nx = 1\n", "needs a title"),
        ("# %% md-1\nx = 1\n", "needs a title"),
        ("# %% a\n1\n# %% a\n2\n", "cell 'a': this title is used twice"),
        ("# %% install\n1\n", "cell 'install': this title is used twice, or is cudatut's own"),
        ("# %% [raw]\n# x\n", "a 'raw' cell"),
    ],
)
def test_cells_without_an_address(book, cells, reason):
    book.example("a/add", cells)
    with pytest.raises(recorder.RecordingFailed) as caught:
        recorder.record_all(["a/add"])
    assert reason in str(caught.value) and str(caught.value).startswith("a/add")


def test_no_gpu_is_said_before_anything_runs(book, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    book.example("a/add", "# %% check\nopen('/nowhere/x', 'w')\n")
    with pytest.raises(NoGpuError, match="driver"):
        recorder.record_all(["a/add"])


def test_unknown_name_is_said_before_anything_runs(book):
    book.example("a/add")
    with pytest.raises(catalog.UnknownExampleError, match="a/add"):
        recorder.record_all(["a/add", "a/ad"])


def test_nothing_stale_needs_no_gpu(book):
    book.example("a/add")
    book.recorded("a/add")
    assert recorder.record_all(only_stale=True) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_read_only_checkout_is_refused(monkeypatch):
    # Not tmp_path: root drops its rights here, and must still be able to read the folder.
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "a").mkdir()
        (root / "a/add.py").write_text(
            "# ---\n# jupyter:\n#   cudatut: {title: {en: x, zh: y}, requires: sm_75}\n# ---\n# %% a\n1\n"
        )
        monkeypatch.setenv("CUDATUT_EXAMPLES", folder)
        root.chmod(0o755)
        (root / "a").chmod(0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            with pytest.raises(
                recorder.UnwritableError, match=r"a: Permission denied.*CUDATUT_EXAMPLES"
            ):
                recorder.record_all()
        finally:
            os.seteuid(user)
            (root / "a").chmod(0o755)


def test_carriage_returns():
    assert outputs.without_overwritten("a\rb\rc\nd\r\ne\r") == "c\nd\ne"


def test_scrubbed_paths(book, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    scrub = outputs.scrubber()
    here = Path(recorder.__file__).parent
    assert scrub(f"{here}/kernel.py:3 {here.parent}") == "cudatut/gpu/kernel.py:3 ."
    # Another folder, wherever the checkout lies.
    assert not scrub(f"{here.parent}2/x").startswith(".")
    assert scrub("/home/somebody/x /home/somebodyelse/x") == "~/x /home/somebodyelse/x"
    assert scrub(f"{tempfile.gettempdir()}/tmpab_12cd/kernel.cu") == "$TMPDIR/kernel.cu"
    assert scrub(f"{tempfile.gettempdir()}/ipykernel_123/456.py:2") == "cell:2"
    assert scrub(f"{book.root}/a/x.cu(3): error") == "examples/a/x.cu(3): error"
    assert scrub("/usr/local/cuda/bin/nvcc 3/4 a/b") == "/usr/local/cuda/bin/nvcc 3/4 a/b"


def test_commit(tmp_path, monkeypatch):
    run = recorder._git
    root = tmp_path / "checkout"
    (root / "examples").mkdir(parents=True)
    monkeypatch.setattr(recorder.paths, "repo_root", lambda: root)
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(root / "examples"))
    monkeypatch.delenv("CUDATUT_COMMIT", raising=False)
    source = root / "examples" / "x.py"
    source.write_text("1\n")
    assert recorder.commit(["x.py"]) == "unknown"
    if run(root, "init", "-q") is None:
        pytest.skip("no git")
    run(root, "add", "examples/x.py")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    assert run(root, *author, "commit", "-q", "-m", "x") is not None
    head = run(root, "rev-parse", "HEAD")
    (root / "other").write_text("untracked")
    assert recorder.commit(["x.py"]) == head
    source.write_text("2\n")
    assert recorder.commit(["x.py"]) == f"{head}-dirty"
    monkeypatch.setenv("CUDATUT_COMMIT", "abc")  # the .git of a copy may be an old one
    assert recorder.commit(["x.py"]) == "abc"


def test_children_have_a_folder_for_notes_and_bytecode_while_recording(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code = "import json; print(json.__cached__)"
    with recorder._scratch():
        folder = Path(os.environ["CUDATUT_NOTES"])
        assert folder.is_dir()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert Path(done.stdout.strip()).is_relative_to(folder)
        assert Path(done.stdout.strip()).is_file()
    assert not folder.exists()
    assert "PYTHONPYCACHEPREFIX" not in os.environ and "CUDATUT_NOTES" not in os.environ
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    with recorder._scratch():
        assert "PYTHONPYCACHEPREFIX" not in os.environ


def test_an_interrupt_ends_recording_at_once(book, monkeypatch):
    """Ctrl-C must not read as 'this example failed, on to the next'."""
    book.example("a/one", "# %% wait\nimport time; time.sleep(60)\n")
    book.example("a/two")
    started = time.monotonic()

    def interrupt(what):
        signal.setitimer(signal.ITIMER_REAL, 1.0)

    def on_alarm(number, frame):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, on_alarm)
    try:
        with pytest.raises(KeyboardInterrupt):
            record("a/one", "a/two", progress=recorder.Progress(step=interrupt))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert time.monotonic() - started < 40


def test_an_unforeseen_error_stops_nobody(book, monkeypatch):
    book.example("a/one")
    book.example("a/two")

    def break_down(example, on_cell, turn):
        raise ValueError(f"broken {example.name}")

    monkeypatch.setattr(recorder, "record_notebook", break_down)
    found = results("a/one", "a/two")
    assert found["a/two"].status == "failed"
    assert found["a/two"].reason == "a/two: ValueError('broken a/two')"


def test_the_next_process_is_there_before_the_one_that_runs_has_ended_and_no_two_run(
    book, monkeypatch, tmp_path
):
    trace = tmp_path / "trace"
    trace.write_text("")
    monkeypatch.setenv("TRACE", str(trace))
    work = """
import os, psutil, time
begin = time.time()
trace = open(os.environ["TRACE"], "r+")
alone = not any(psutil.pid_exists(int(line.split()[0])) for line in trace)
time.sleep(5)
print(os.getpid(), psutil.Process().create_time(), begin, time.time(), alone, file=trace, flush=True)
"""
    names = ["a/one", "a/two", "a/three"]
    for name in names:
        book.example(name, f"# %% work{work}")
    results(*names)
    runs = [line.split() for line in trace.read_text().splitlines()]
    assert len(runs) == 3 and all(run[4] == "True" for run in runs)
    times = [tuple(map(float, run[1:4])) for run in runs]
    for (_, _, ended), (created, begin, _) in itertools.pairwise(times):
        assert created < ended < begin
