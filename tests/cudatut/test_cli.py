"""The command line: exit statuses and messages a reader can act on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cudatut import cli, recording
from cudatut.errors import CudatutError, NoGpuError
from cudatut.gpu import device, sanitizer
from cudatut.record import recorder
from cudatut.results import Sanitizer

NO_GPU = "no NVIDIA driver (libcuda.so.1 not found)"


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # for children
    monkeypatch.setattr(device, "why_no_gpu", lambda: NO_GPU)


@pytest.fixture
def states(book):
    """One example of each state."""
    for name in ("a/fresh", "a/stale", "a/failed", "a/damaged", "a/never"):
        book.example(name)
        if name != "a/never":
            book.recorded(name)
    book.example("a/stale", "# %% changed\n1\n")
    failed = book.notebook("a/failed")
    failed["metadata"]["cudatut"]["sanitizers"][0]["errors"] = 1
    book.recorded("a/failed", failed)
    book.file(book.whole("a/damaged"), "{")
    return book


def test_list(states, capsys):
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "a/damaged",
        "a/failed",
        "a/fresh",
        "a/never",
        "a/stale",
    ]
    assert (
        "fresh" in lines[2] and "NVIDIA Test, 2026-11-20" in lines[2] and "Vector add" in lines[2]
    )
    assert "not recorded" in lines[3]
    # The columns are as wide as the longest name.
    assert {line.index("sm_75") for line in lines} == {len("a/damaged") + 2}


def test_list_json(states, capsys):
    assert cli.main(["list", "--json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert {name: entry["state"] for name, entry in found.items()} == {
        "a/damaged": "damaged",
        "a/failed": "failed",
        "a/fresh": "fresh",
        "a/never": "not recorded",
        "a/stale": "stale",
    }
    assert [name for name, entry in found.items() if entry["fresh"]] == ["a/fresh"]
    assert found["a/fresh"]["recorded"] == {
        "gpu": "NVIDIA Test",
        "recorded_at": "2026-11-20T12:00:00+00:00",
    }
    assert found["a/never"]["recorded"] is None and found["a/damaged"]["recorded"] is None
    assert found["a/fresh"]["title"] == {"en": "Vector add", "zh": "向量加法"}
    assert found["a/fresh"]["requires"] == "sm_75" and found["a/fresh"]["sources"] == ["a/fresh.py"]


def test_status(states, capsys):
    assert cli.main(["status"]) == 1
    out = capsys.readouterr().out
    assert "examples/a/stale.py changed" in out and "memcheck found 1 error" in out
    assert (
        "cut short" in out
        and "recordings/<gpu>/a/never.ipynb is not there: the example has not been recorded" in out
        and "a/fresh" not in out
    )
    assert "4 recordings need a GPU: `python -m cudatut record --stale`" in out


def test_an_edited_recording_is_named(book, capsys):
    book.example("a/add")
    edit_the_time(book.recorded("a/add"))
    assert cli.main(["status"]) == 1
    out = capsys.readouterr().out
    assert "recordings/nvidia-test/a/add.ipynb was edited after it was recorded" in out
    assert "`python -m cudatut record a/add`" in out and len(out.splitlines()) < 10
    assert cli.main(["list"]) == 0
    assert " edited " in capsys.readouterr().out


def edit_the_time(path):
    text = path.read_text("utf-8")
    assert '"median_us": 2.0' in text
    path.write_text(text.replace('"median_us": 2.0', '"median_us": 1.0'), "utf-8")


def test_replay_says_so_first(book, no_gpu, capsys):
    book.example("a/fresh")
    echo = {
        "output_type": "execute_result",
        "execution_count": 3,
        "metadata": {},
        "data": {"text/plain": "{}"},
    }
    book.recorded("a/fresh", book.notebook("a/fresh", echo))
    assert cli.main(["run", "a/fresh"]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"[{NO_GPU}: this replays the recording made on 2026-11-20 on an NVIDIA Test]"
    assert others[:2] == ["hello", "world"] and others[2].startswith("check add: passed (31")
    assert others[3].startswith("benchmark add (") and len(others) == 6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a/stale", "examples/a/stale.py changed"),
        ("a/failed", "memcheck found 1 error"),
        ("a/damaged", "cut short"),
        ("a/never", f"{NO_GPU}, and there is no recording to replay"),
        ("a/frsh", "Did you mean a/fresh?"),
    ],
)
def test_what_cannot_be_replayed(states, no_gpu, capsys, name, message):
    assert cli.main(["run", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert captured.err.startswith("cudatut: ") and message in captured.err


def test_run_with_a_gpu_runs_the_file(book, monkeypatch, capfd):
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    book.example(
        "a/x", "# %% a\nimport sys, cudatut\nprint('ran', cudatut.__name__)\nsys.exit(3)\n"
    )
    assert cli.main(["run", "a/x"]) == 3
    assert capfd.readouterr().out == "ran cudatut\n"


def test_an_example_that_needs_more_is_replayed(book, monkeypatch, capsys):
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    monkeypatch.setattr(device, "gpu_lacks", lambda requires: f"it needs {requires}")
    book.example("a/fresh")
    book.recorded("a/fresh")
    assert cli.main(["run", "a/fresh"]) == 0
    assert capsys.readouterr().out.startswith("[it needs sm_75: this replays the recording")
    book.example("a/never")
    assert cli.main(["run", "a/never"]) == 2
    assert "it needs sm_75, and there is no recording to replay" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "error", "module"),
    [
        ("ct.find_nvcc()", "ToolMissing: CUDATUT_NVCC is 'no-such-nvcc'", "nvcc.py"),
        ("ct.catalog.get('a/y')", "UnknownExampleError: there is no example 'a/y'", "catalog.py"),
    ],
)  # one in a room of the package, one above the rooms
def test_an_error_of_ours_shows_the_lines_of_the_file_alone(
    book, monkeypatch, capfd, call, error, module
):
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    monkeypatch.delenv("CUDATUT_DEBUG", raising=False)
    book.example("a/x", f"# %% a\nimport cudatut as ct\ndef f():\n    {call}\nf()\n")
    monkeypatch.setenv("CUDATUT_NVCC", "no-such-nvcc")
    assert cli.main(["run", "a/x"]) == 1
    err = capfd.readouterr().err
    assert error in err.splitlines()[-1]
    assert "x.py" in err and module not in err and "runpy" not in err
    monkeypatch.setenv("CUDATUT_DEBUG", "1")
    assert cli.main(["run", "a/x"]) == 1
    assert module in capfd.readouterr().err


PROGRAM = """import sys
import cudatut
if __name__ == "__main__":
    print("argv", sys.argv[1:])
    sys.exit(4)
"""


def test_a_program_among_the_examples_is_run_with_its_arguments(book, monkeypatch, capfd):
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    book.file("a/tuner.py", PROGRAM)
    assert cli.main(["run", "a/tuner.py", "4096", "--most", "5"]) == 4
    assert capfd.readouterr().out == "argv ['4096', '--most', '5']\n"


def test_without_a_gpu_a_program_says_that_there_is_nothing_to_replay(book, no_gpu, capfd):
    book.file("a/tuner.py", PROGRAM)
    assert cli.main(["run", "a/tuner.py"]) == 2
    out, err = capfd.readouterr()
    assert out == "" and err == f"cudatut: a/tuner.py needs a GPU, and has no recording: {NO_GPU}\n"


def test_without_a_gpu_a_program_may_name_what_is_replayed(book, no_gpu, capfd):
    book.example("a/fresh")
    book.recorded("a/fresh")
    book.file("a/chat.py", 'REPLAY = "a/fresh"\n' + PROGRAM)
    for name in ("a/chat", "a/chat.py"):
        assert cli.main(["run", name, "--prompt", "hi"]) == 0
        out = capfd.readouterr().out
        assert "this replays the recording" in out and "argv" not in out


def test_an_example_is_no_program(book, no_gpu, capsys):
    """By its file's name too it is replayed."""
    book.example("a/fresh")
    book.recorded("a/fresh")
    assert cli.main(["run", "a/fresh.py"]) == 0
    assert "this replays the recording" in capsys.readouterr().out


def test_an_example_takes_no_arguments(book, no_gpu, capsys):
    book.example("a/fresh")
    book.recorded("a/fresh")
    assert cli.main(["run", "a/fresh", "4096"]) == 2
    assert capsys.readouterr().err == "cudatut: a/fresh takes no arguments: 4096\n"


@pytest.mark.parametrize(
    "name", ["../outside.py", "outside.py", "a/ladder.py", "a/add_exercises.py", "a/gone.py"]
)
def test_nothing_else_is_a_program(book, monkeypatch, capsys, tmp_path, name):
    """Not a file of the reader's, a module that examples share, the beginnings of exercises."""
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outside.py").write_text(PROGRAM)  # beside examples/
    book.file("a/ladder.py", "print('argv')\n")
    book.file("a/add_exercises.py", "print('argv')\n")
    assert cli.main(["run", name]) == 2
    out, err = capsys.readouterr()
    assert "argv" not in out and err.startswith("cudatut: ")


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0 and capsys.readouterr().out.startswith("cudatut ")


def test_record_without_gpu(book, no_gpu, capsys):
    book.example("a/x")
    assert cli.main(["record"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("cudatut: ") and "Traceback" not in captured.err
    assert recording.whole_path("a/x") is None


def test_debug_shows_the_traceback(book, no_gpu, monkeypatch):
    monkeypatch.setenv("CUDATUT_DEBUG", "1")
    book.example("a/x")
    with pytest.raises(NoGpuError):
        cli.main(["record"])


@pytest.mark.parametrize(("failed", "status"), [(False, 0), (True, 1)])
def test_record_reports_and_fails(book, monkeypatch, capsys, failed, status):
    def record_all(examples, *, slim, jobs, progress):
        assert ([example.name for example in examples], slim, jobs) == (["a/x"], False, 3)
        outcomes = [
            recorder.Outcome("a/x", "recorded"),
            recorder.Outcome("a/z", "skipped", "needs sm_90a"),
        ]
        if failed:
            outcomes.append(recorder.Outcome("a/y", "failed", "a/y, cell 'check': raised"))
        for outcome in outcomes:
            progress.outcome(outcome)
        return outcomes

    monkeypatch.setattr(recorder, "record_all", record_all)
    book.example("a/x")
    assert cli.main(["record", "a/x", "--stale", "--jobs", "3"]) == status
    captured = capsys.readouterr()
    assert "1 recorded" in captured.out and "1 skipped" in captured.out
    assert "needs sm_90a" in captured.err
    assert ("untouched): a/y, cell 'check': raised" in captured.err) == failed


def test_record_takes_shards_and_slim(book, monkeypatch, capsys):
    asked = []

    def chosen(names, *, only_stale, shard):
        asked.append((names, only_stale, shard))
        return ["the examples"]

    def record_all(examples, *, slim, jobs, progress):
        asked.append((examples, slim, jobs))
        return []

    monkeypatch.setattr(recorder, "chosen", chosen)
    monkeypatch.setattr(recorder, "record_all", record_all)
    book.example("a/x")
    assert cli.main(["record", "--shard", "2/3", "--stale"]) == 0
    assert cli.main(["record", "a/x", "--slim"]) == 0
    assert asked == [
        ([], True, "2/3"),
        (["the examples"], False, None),
        (["a/x"], False, None),
        (["the examples"], True, None),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shard", "4/3"], "--shard 4/3: write 2/3 for the second of three parts, or long"),
        (["--slim", "--stale"], "--stale looks at the book's own recordings"),
    ],
)
def test_what_record_refuses(book, capsys, arguments, message):
    book.example("a/x")
    assert cli.main(["record", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_names_parts_and_patterns(book, capsys):
    for name in ("a/one", "a/one_solutions", "a/two", "b/three", "c/draft"):
        book.example(name)
    book.file("drafts.txt", "c/*\nb/d*\n")
    book.example("b/draft")
    assert cli._named([]) == []
    assert cli._named(["a/two", "a"]) == ["a/two", "a/one", "a/one_solutions"]
    assert cli._named(["a/one*", "b/"]) == ["a/one", "a/one_solutions", "b/three"]
    assert cli._named(["examples/a/one.py"]) == ["a/one"]
    assert cli._named(["c"]) == ["c/draft"]
    assert cli.main(["record", "d"]) == 2
    assert "there is no example 'd'" in capsys.readouterr().err


def test_nothing_to_record(book, capsys):
    book.example("a/fresh")
    book.recorded("a/fresh")
    assert cli.main(["record", "--stale"]) == 0
    assert "nothing to record" in capsys.readouterr().out


def test_sanitize(book, monkeypatch, capsys):
    def run(path, tool, timeout_s):
        if path.stem == "dies" and tool == "initcheck":
            raise CudatutError("it died")
        return Sanitizer(tool, 2 if (path.stem, tool) == ("racy", "racecheck") else 0, "the log")

    monkeypatch.setattr(recorder, "probe_gpu", lambda: {"name": "T4", "compute_capability": (7, 5)})
    monkeypatch.setattr(sanitizer, "run", run)
    monkeypatch.setenv("PYTHONPATH", "")
    for name in ("a/fine", "a/racy", "a/dies"):
        book.example(name)
    book.example("a/new", requires="sm_90a")
    assert cli.main(["sanitize", "a/fine", "a/new"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["a/fine", "0", "0", "0", "0"]
    assert "a/new   skipped: needs sm_90a, and this is T4" in out
    assert cli.main(["sanitize"]) == 1
    captured = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in captured.out.splitlines()[1:]}
    assert rows["a/racy"] == ["0", "2", "0", "0"] and rows["a/dies"] == ["0", "0", "failed", "0"]
    assert "a/racy under racecheck:\nthe log" in captured.err
    assert "a/dies under initcheck: it died" in captured.err


def test_sanitize_without_gpu(book, no_gpu, capsys):
    book.example("a/x")
    assert cli.main(["sanitize"]) == 2
    assert capsys.readouterr().err.startswith("cudatut: ")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["rcord"],
        ["record", "--jobs", "0"],
        ["record", "--jobs", "x"],
        ["run"],
        ["tune"],
        ["tune", "gemm", "--most", "0"],
        ["results"],  # slim recordings took its place
    ],
)
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m cudatut" in capsys.readouterr().err


def test_a_size_to_tune_for_is_not_required(capsys):
    with pytest.raises(SystemExit):
        cli.main(["tune"])
    assert "required: LADDER\n" in capsys.readouterr().err


def test_running_a_part_names_its_examples(states, capsys):
    assert cli.main(["run", "a"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("cudatut: a is a part, and `run` runs one example. Its examples: a/")
    assert "a/fresh" in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("output", "status", "says"),
    [
        (">&-", 0, ""),
        pytest.param(
            ">/dev/full",
            2,
            "cudatut: the output cannot be written: No space left on device\n",
            marks=pytest.mark.skipif(
                not Path("/dev/full").exists(), reason="this system has no /dev/full"
            ),
        ),
    ],
)
def test_an_output_that_takes_nothing(output, status, says):
    command = f"{sys.executable} -m cudatut list {output}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, says)


def test_a_closed_pipe_is_no_error(states):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m cudatut list --json | true; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_traced_program_gives_its_status(monkeypatch, capsys):
    from cudatut.gpu import trace

    asked = []

    def run(script, arguments):
        asked.append((script, arguments))
        return 7, trace.Trace()

    monkeypatch.setattr(trace, "find", lambda name: f"found {name}")
    monkeypatch.setattr(trace, "run", run)
    assert cli.main(["trace", "mine.py", "1", "--two"]) == 7
    assert asked == [("found mine.py", ["1", "--two"])]
    assert "no call of the CUDA API" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="no pipe that nobody reads, no /dev/full")
def test_an_output_that_takes_nothing_more():
    """`| head` ends a command in silence; a full disk is said in one line. Python itself has nothing to add."""
    import os

    command = [sys.executable, "-m", "cudatut", "list"]
    read, write = os.pipe()
    os.close(read)
    gone = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (gone.returncode, gone.stderr) == (0, "")
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "cudatut: the output cannot be written: No space left on device\n"
