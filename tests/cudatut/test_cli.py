"""The command line: exit statuses and messages a reader can act on."""

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudatut import cli, recording
from cudatut.errors import CheckError, CudatutError, NoGpuError
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


# --- what is asked for, and with which words --------------------------------------------------------


@pytest.fixture
def flushed(monkeypatch):
    """The lines that are printed so that whoever waits sees them at once, in a pipe too."""
    import builtins

    lines, plain = [], print

    def noting(*words, **how):
        if how.get("flush"):
            lines.append(" ".join(map(str, words)))
        plain(*words, **how)

    monkeypatch.setattr(builtins, "print", noting)
    return lines


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ("doctor", {"speaks": True}),
        ("list", {"json": False, "speaks": False}),
        ("list --json", {"json": True}),
        ("run a/x 1 --two", {"name": "a/x", "arguments": ["1", "--two"], "speaks": True}),
        ("trace x.py -n 3", {"script": "x.py", "arguments": ["-n", "3"], "speaks": True, "perfetto": None}),
        ("trace --perfetto t.json x.py", {"script": "x.py", "arguments": [], "perfetto": "t.json"}),
        ("record", {"names": [], "jobs": None, "stale": False, "shard": None, "slim": False}),
        ("record a b/c --jobs 1", {"names": ["a", "b/c"], "jobs": 1, "speaks": False}),
        ("status", {"compile": False, "speaks": False}),
        ("restamp a/x", {"names": ["a/x"], "speaks": False}),
        ("digests a/x", {"names": ["a/x"], "commit": None, "measured": None}),
        ("moved a/x", {"names": ["a/x"], "before": "HEAD", "after": None, "least": 2, "most": None}),
        ("moved --after B --least 1 --most 9", {"after": "B", "least": 1, "most": 9}),
        ("sanitize a --jobs 2", {"names": ["a"], "jobs": 2, "speaks": False}),
        ("try gemm x.cu", {"ladder": "gemm", "file": "x.cu", "speaks": True}),
        ("tune gemm", {"ladder": "gemm", "sizes": (), "most": None, "speaks": False}),
        ("tune gemm 512 8x8x8 --most 3", {"sizes": ["512", "8x8x8"], "most": 3}),
        ("exercise", {"chapter": None, "number": None, "level": None, "speaks": True}),
        ("new a/x --en E", {"chapter": "a/x", "en": "E", "zh": "", "speaks": False}),
        ("new a/x --zh Z", {"en": "", "zh": "Z"}),
        ("check a/x a/y", {"chapters": ["a/x", "a/y"], "speaks": False}),
    ],
)  # fmt: skip
def test_what_is_asked_for(arguments, asked):
    found = vars(cli._parser().parse_args(arguments.split()))
    assert {name: found[name] for name in asked} == asked
    assert ("lang" in found) == found["speaks"]
    assert found["run"].__name__ == f"_{arguments.split()[0]}"


@pytest.mark.parametrize(
    ("arguments", "lang"),
    [
        (["--lang", "zh"], "zh"),
        (["--lang=zh"], "zh"),
        (["run", "x", "--lang", "en", "y"], "en"),
        (["--lang"], None),
        (["--lang", "fr"], None),
        (["--lang=fr", "zh"], None),
        (["zh"], None),
        (["--long=zh"], None),
    ],
)
def test_the_language_that_is_asked_for(arguments, lang):
    assert cli._asked_for(arguments) == lang


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", ""])
def test_what_is_no_positive_number(text):
    assert cli._positive("1") == 1 and cli._positive("20") == 20
    with pytest.raises(argparse.ArgumentTypeError, match=f"^'{text}' is no positive number$"):
        cli._positive(text)


def test_help_in_chinese_is_broken_at_the_width_of_the_terminal():
    form = cli._ChineseHelp("x", width=24)
    assert form._split_lines("中" * 12, 20) == ["中" * 10, "中" * 2]
    assert form._fill_text("中" * 12, 20, "  ") == f"  {'中' * 10}\n  {'中' * 2}"


def stand_in(monkeypatch, name, does):
    """Another function of the command `name`."""

    def run(options):
        return does()

    run.__name__, run.__doc__ = f"_{name}", name
    monkeypatch.setattr(cli, f"_{name}", run)


def raising(error):
    def does():
        raise error

    return does


@pytest.mark.parametrize(
    ("error", "status", "says", "dropped"),
    [
        (CudatutError("no"), 2, "cudatut: no\n", 0),
        (BrokenPipeError(), 0, "", 1),
        (OSError(28, "full"), 2, "cudatut: the output cannot be written: full\n", 1),
        (OSError(5, "failed"), 2, "cudatut: the output cannot be written: failed\n", 1),
        (KeyboardInterrupt(), 130, "cudatut: interrupted\n", 0),
    ],
)
def test_how_a_command_ends_that_cannot_go_on(monkeypatch, capsys, error, status, says, dropped):
    drops = []
    monkeypatch.delenv("CUDATUT_DEBUG", raising=False)
    monkeypatch.setattr(cli, "_drop_output", lambda: drops.append(1))
    stand_in(monkeypatch, "list", raising(error))
    assert cli.main(["list"]) == status
    assert capsys.readouterr().err == says and len(drops) == dropped


@pytest.mark.parametrize("error", [OSError(28, "full", "x.txt"), OSError(2, "no such thing")])
def test_an_error_of_a_file_is_no_error_of_the_output(monkeypatch, error):
    stand_in(monkeypatch, "list", raising(error))
    with pytest.raises(OSError):
        cli.main(["list"])


def test_a_command_gives_its_status(monkeypatch):
    stand_in(monkeypatch, "doctor", lambda: 7)
    assert cli.main(["doctor"]) == 7


# --- each command -----------------------------------------------------------------------------------


def test_a_list_has_columns(states, capsys):
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:4] == [
        "a/fresh    sm_75   fresh         NVIDIA Test, 2026-11-20             Vector add",
        "a/never    sm_75   not recorded  -                                   Vector add",
    ]
    assert cli.main(["list", "--json"]) == 0
    assert capsys.readouterr().out.startswith('[\n  {\n    "name": "a/damaged",\n')


@pytest.mark.parametrize(
    ("holds", "state"),
    [
        (["stale", "edited", "problems", "disagreements"], "stale"),
        (["edited", "problems", "disagreements"], "edited"),
        (["problems", "disagreements"], "failed"),
        (["disagreements"], "disagrees"),
        ([], "fresh"),
    ],
)
def test_the_first_state_that_holds_is_named(book, monkeypatch, holds, state):
    book.example("a/x")
    book.recorded("a/x")
    for name in ("stale", "edited", "problems", "disagreements"):
        monkeypatch.setattr(recording.Recording, name, lambda self, name=name: name in holds)
    told = {"gpu": "NVIDIA Test", "recorded_at": "2026-11-20T12:00:00+00:00"}
    assert cli._state("a/x") == (state, told)


def test_restamp_takes_names_and_counts(book, monkeypatch, capsys, flushed):
    from cudatut.restamp import accept

    asked = []

    def restamp(recordings, say):
        asked.append([one.name for one in recordings])
        say("looking")
        return [SimpleNamespace(refused=refused) for refused in refusals]

    monkeypatch.setattr(accept, "restamp", restamp)
    for name in ("a/x", "a/y"):
        book.example(name)
        book.recorded(name)
    refusals = ["", "no", "no"]
    assert cli.main(["restamp"]) == 1
    refusals = [""]
    assert cli.main(["restamp", "a/y"]) == 0
    assert asked == [["a/x", "a/y"], ["a/y"]] and flushed == ["looking"] * 2
    assert capsys.readouterr().out == (
        "looking\n1 restamped, 2 need a GPU\nlooking\n1 restamped, 0 need a GPU\n"
    )


@pytest.mark.parametrize(("problems", "status"), [(["one"], 1), ([], 0)])
def test_status_says_what_is_compiled_where_it_is_asked_to(
    monkeypatch, capsys, flushed, problems, status
):
    module = importlib.import_module("cudatut.status")

    def found(compiling):
        if compiling:
            compiling("compiling a kernel")
        return SimpleNamespace(problems=problems, lines=lambda: ["one line", "another"])

    monkeypatch.setattr(module, "status", found)
    assert cli.main(["status"]) == status and flushed == []
    assert capsys.readouterr().out == "one line\nanother\n"
    assert cli.main(["status", "--compile"]) == status and flushed == ["compiling a kernel"]


def test_moved_takes_commits_names_and_limits(book, monkeypatch, capsys):
    from cudatut.site.moved import report

    asked = []
    monkeypatch.setattr(report, "moved", lambda *given: asked.append(given) or "the report\n")
    book.example("a/x")
    assert cli.main(["moved"]) == 0
    assert (
        cli.main(["moved", "a/x", "--before", "A", "--after", "B", "--least", "5", "--most", "900"])
        == 0
    )
    assert asked == [
        ("HEAD", None, frozenset(), 0.02, None),
        ("A", "B", frozenset(["a/x"]), 0.05, 900),
    ]
    assert capsys.readouterr().out == "the report\n" * 2


@pytest.mark.parametrize("asked", [["--lang", "en"], ["--lang=en"]])
def test_a_language_may_be_asked_for_behind_an_example(book, no_gpu, capsys, asked):
    book.example("a/fresh")
    book.recorded("a/fresh")
    assert cli.main(["run", "a/fresh", *asked]) == 0
    assert "this replays the recording" in capsys.readouterr().out
    assert cli.main(["run", "a/fresh", *asked, "4096"]) == 2


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("mine.py", "A file of your own is run by Python itself: `python mine.py`."),
        ("mine.cu", "A kernel of your own is ranked by `python -m cudatut try LADDER mine.cu`."),
        ("mine.txt", None),
        ("gone.py", None),
    ],
)
def test_a_file_of_the_readers_own_has_its_own_command(
    book, monkeypatch, capsys, tmp_path, name, advice
):
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    monkeypatch.chdir(tmp_path)
    for file in ("mine.py", "mine.cu", "mine.txt"):
        Path(file).write_text("x")
    assert cli.main(["run", name]) == 2
    err = capsys.readouterr().err
    said = f"cudatut: `run` runs the examples of the book, and {name} is none. {advice}\n"
    assert (err == said) == bool(advice) and ("there is no example" in err) == (advice is None)


def test_a_replay_shows_streams_and_displays_and_no_values(book, no_gpu, capsys, flushed):
    book.example("a/fresh")
    text = {"output_type": "stream", "name": "stderr", "text": "a warning\n"}
    shown = {"metadata": {}, "data": {"text/plain": "a display", "image/png": ""}}
    value = {**shown, "data": {"text/plain": "a value"}, "execution_count": 3}
    drawn = {**shown, "data": {"image/png": ""}}
    outputs = [
        text,
        {"output_type": "display_data", **shown},
        {"output_type": "execute_result", **value},
        {"output_type": "display_data", **drawn},
    ]
    book.recorded("a/fresh", book.notebook("a/fresh", *outputs))
    assert cli.main(["run", "a/fresh"]) == 0
    out, err = capsys.readouterr()
    assert err == "a warning\n" and "a display\n" in out and "a value" not in out
    assert {"a warning\n", "a display"} <= set(flushed) and flushed[0].startswith(f"[{NO_GPU}")


def test_what_a_display_says_in_the_readers_language(monkeypatch):
    class Result:
        def text(self, lang):
            return f"in {lang}"

    monkeypatch.setattr(cli.results, "read", lambda found: Result())
    data = {cli.results.MIME: {"kind": "facts"}, "text/plain": "plain"}
    for lang, whole in (("en", "plain"), ("zh", "in zh")):
        monkeypatch.setattr(cli.words, "language", lambda lang=lang: lang)
        assert cli._shown(data) == whole
        assert cli._shown({"text/plain": "plain"}) == "plain" and cli._shown({}) == ""


def test_a_trace_stands_behind_what_the_program_said(monkeypatch, capsys):
    from cudatut.gpu import trace

    monkeypatch.setattr(trace, "find", lambda name: name)
    monkeypatch.setattr(
        trace, "run", lambda script, arguments: (0, SimpleNamespace(show=lambda: print("shown")))
    )
    assert cli.main(["trace", "mine.py"]) == 0
    assert capsys.readouterr().out == "\nshown\n"


def test_what_became_of_recordings_is_counted(book, monkeypatch, capsys):
    outcomes = [
        recorder.Outcome(f"a/{n}", state)
        for n, state in enumerate(("skipped", "recorded", "recorded"))
    ]
    monkeypatch.setattr(recorder, "chosen", lambda names, **asked: [])
    monkeypatch.setattr(recorder, "record_all", lambda examples, **asked: outcomes)
    assert cli.main(["record"]) == 0
    assert capsys.readouterr() == ("2 recorded, 1 skipped\n", "")
    outcomes.append(recorder.Outcome("a/y", "failed", "a/y raised"))
    assert cli.main(["record"]) == 1
    out, err = capsys.readouterr()
    assert out == "1 failed, 2 recorded, 1 skipped\n"
    assert err == "failed (the old one, if any, is untouched): a/y raised\n"


def test_the_table_of_the_sanitizer(book, monkeypatch, capsys, flushed):
    asked = []

    def run(path, tool, timeout_s):
        asked.append((path.name, tool, timeout_s))
        errors = 3 if tool == "racecheck" and path.stem == "racy" else 0
        return Sanitizer(tool, errors, "the log")

    def supports(capability, requires):
        assert capability == (7, 5)
        return requires == "sm_75"

    monkeypatch.setattr(recorder, "probe_gpu", lambda: {"name": "T4", "compute_capability": (7, 5)})
    monkeypatch.setattr(device, "supports", supports)
    monkeypatch.setattr(sanitizer, "run", run)
    book.example("a/racy", timeout_s=5)
    book.example("a/newer", requires="sm_90a")
    assert cli.main(["sanitize", "--jobs", "1"]) == 1
    out, err = capsys.readouterr()
    tools = cli.SANITIZERS
    assert asked == [("racy.py", tool, recorder.SANITIZER_TIME * 5) for tool in tools]
    counts = "  ".join(f"{3 if tool == 'racecheck' else 0:>9}" for tool in tools)
    assert out.splitlines() == [
        "         " + "  ".join(f"{tool:>9}" for tool in tools),
        "a/newer  skipped: needs sm_90a, and this is T4",
        f"a/racy   {counts}",
    ]
    assert err == "\na/racy under racecheck:\nthe log\n" and flushed == out.splitlines()[1:]


def test_a_try_is_ranked_or_not_correct_or_not_there(monkeypatch, capsys):
    from cudatut.gpu import trial

    def attempt(ladder, file):
        if file == "wrong.cu":
            raise CheckError("element 3")
        if file == "gone.cu":
            raise FileNotFoundError("gone.cu is not there")
        return SimpleNamespace(text=lambda: f"{file} on {ladder}")

    monkeypatch.setattr(trial, "attempt", attempt)
    assert cli.main(["try", "gemm", "mine.cu"]) == 0
    assert cli.main(["try", "gemm", "wrong.cu"]) == 1
    assert cli.main(["try", "gemm", "gone.cu"]) == 2
    out, err = capsys.readouterr()
    assert out == "mine.cu on gemm\n"
    assert err == "not correct yet, so not timed: element 3\ncudatut: gone.cu is not there\n"


def test_tune_says_how_far_it_is(monkeypatch, flushed):
    from cudatut.gpu import tuning

    asked = []

    def tune(ladder, sizes, most, say):
        asked.append((ladder, list(sizes), most))
        say("candidate 1")

    monkeypatch.setattr(tuning, "tune", tune)
    assert cli.main(["tune", "gemm", "512", "--most", "4"]) == 0
    assert asked == [("gemm", ["512"], 4)] and flushed == ["candidate 1"]


def test_a_chapter_is_begun_and_what_comes_next_is_said(monkeypatch, capsys):
    new = importlib.import_module("cudatut.authoring.new")

    asked = []
    file = cli.paths.examples_dir() / "basics" / "warps.py"
    monkeypatch.setattr(new, "new", lambda *given: asked.append(given) or [file])
    assert cli.main(["new", "examples/basics/warps.py", "--en", "Warps", "--zh", "线程束"]) == 0
    assert asked == [("basics/warps", "Warps", "线程束")]
    assert capsys.readouterr().out == (
        "wrote examples/basics/warps.py\n"
        "`python -m cudatut check basics/warps` says what is still to be written, and\n"
        "`python -m cudatut.site preview basics/warps --serve` shows the pages while you write.\n"
    )


def test_several_chapters_are_checked_and_one_that_is_not_fit_is_enough(
    monkeypatch, capsys, flushed
):
    check = importlib.import_module("cudatut.authoring.check")

    def judged(name, say):
        say(f"looking at {name}")
        return check.Verdict(["one", "two"] if name == "a/bad" else [], [])

    monkeypatch.setattr(check, "check", judged)
    assert cli.main(["check", "a/bad", "a/good"]) == 1
    out, err = capsys.readouterr()
    assert out.split("\n") == [
        "one",
        "two",
        "a/bad: 2 things to mend",
        "",
        "a/good: nothing to mend",
        "",
    ]
    assert err.splitlines() == flushed == ["looking at a/bad", "looking at a/good"]


@pytest.mark.parametrize("command", [["new", "a/b"], ["check", "a/b"]])
@pytest.mark.parametrize(
    ("missing", "named"),
    [(["mkdocs", "nbformat"], "mkdocs and nbformat"), (["nbformat"], "nbformat")],
)
def test_authors_need_what_builds_pages(monkeypatch, capsys, command, missing, named):
    monkeypatch.setattr(
        cli.importlib.util, "find_spec", lambda name: None if name in missing else "x"
    )
    assert cli.main(command) == 2
    cure = f"`{cli.paths.environment('test')}` brings what pages and tests need"
    assert capsys.readouterr().err == f"cudatut: writing a chapter needs {named}: {cure}\n"


def test_which_exercise_is_asked_for(monkeypatch, capsys):
    from cudatut import exercises

    asked = []
    one = SimpleNamespace(name="a/b 2")
    monkeypatch.setattr(
        exercises, "get", lambda chapter, number: asked.append((chapter, number)) or one
    )
    monkeypatch.setattr(exercises, "listing", lambda *given: [*map(str, given)])
    monkeypatch.setattr(exercises, "write", lambda *given: asked.append(given[1:]) or "a_b_2.py")
    monkeypatch.setattr(exercises, "forget", lambda which: "kept.json")
    monkeypatch.setattr(exercises, "started", lambda *given, solution: f"{given[1]} {solution}\n")
    monkeypatch.setattr(exercises, "write_notebooks", lambda: ["one.ipynb", "two.ipynb"])

    def said(arguments):
        assert cli.main(["exercise", *arguments.split()]) == 0
        return capsys.readouterr().out

    assert said("") == "None\nNone\nen\n" and said("a/b --level easy") == "a/b\neasy\nen\n"
    assert said("a/b 2 --solution") == "en True\n" and asked == [("a/b", 2)]
    assert said("a/b 2 --out x --solution").startswith("wrote a_b_2.py\n") and asked[2] == (
        "x",
        "en",
        True,
    )
    assert said("a/b 2").splitlines() == [
        "wrote a_b_2.py",
        "Write your part into it, then run it, and it checks itself: python a_b_2.py",
    ]
    assert asked[4] == (None, "en", False)
    assert said("--forget") == "all progress was removed from kept.json\n"
    assert said("a/b 2 --forget") == "the progress of a/b 2 was removed from kept.json\n"
    assert said("--write-notebooks") == "one.ipynb\ntwo.ipynb\n2 notebooks written\n"
    for arguments in ("--solution", "a/b --solution", "--out x", "a/b --forget"):
        assert cli.main(["exercise", *arguments.split()]) == 2
        assert "say which exercise" in capsys.readouterr().err


# --- how far recording has come ---------------------------------------------------------------------

ODD = "[red]a/x :smile: " + "x" * 200


def progressing():
    with cli._progress() as progress:
        progress.start("recording 12", 2)
        progress.step("a/x under memcheck")
        progress.done(ODD)
        progress.outcome(recorder.Outcome("a/x", "recorded"))
        progress.outcome(recorder.Outcome("a/z", "skipped", "needs sm_90a"))
        progress.outcome(recorder.Outcome("a/y", "failed", "a/y, cell 'check': raised"))


def test_in_a_log_progress_is_a_line_each(capsys):
    """As it is, whatever stands in brackets, and however long."""
    progressing()
    assert capsys.readouterr().err.rstrip("\n").splitlines() == [
        "recording 12: 2",
        f"  ran {ODD}",
        "recorded  a/x",
        "skipped   a/z needs sm_90a",
        "failed    a/y, cell 'check': raised",
    ]


def test_on_a_terminal_progress_is_a_bar(monkeypatch, capsys):
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "300", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    progressing()
    err = capsys.readouterr().err
    assert "1/2" in err and ODD in err and "recording 12" in err and "  ran " not in err
    assert "skipped   a/z needs sm_90a" in err and "recording 12: 2" not in err  # in one color
