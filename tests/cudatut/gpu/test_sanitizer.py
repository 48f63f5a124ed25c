"""compute-sanitizer: what its reports count, and with which arguments it is started."""

import itertools
import os
import time
from pathlib import Path

import pytest

from cudatut.gpu import sanitizer


@pytest.mark.parametrize(
    ("report", "errors"),
    [
        ("========= ERROR SUMMARY: 0 errors", 0),
        ("========= ERROR SUMMARY: 1 error", 1),
        ("========= RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)", 3),
        ("========= COMPUTE-SANITIZER\n", None),
    ],
)
def test_sanitizer_reports_are_counted(report, errors):
    assert sanitizer.count_errors(report) == errors


def test_an_unknown_sanitizer_is_refused(tmp_path):
    with pytest.raises(ValueError, match="leakcheck"):
        sanitizer.run(tmp_path / "x.py", "leakcheck")


def test_sanitizers_side_by_side_share_neither_ports_nor_cores(tmp_path, monkeypatch):
    """The arguments of the real tool, kept by a program of its name; what the tool does with them is tests/gpu's matter."""
    fake = tmp_path / "compute-sanitizer"
    fake.write_text(
        "#!/usr/bin/env python3\n"
        "import pathlib, sys\n"
        "arguments = sys.argv\n"
        "log = pathlib.Path(arguments[arguments.index('--log-file') + 1])\n"
        "log.write_text(' '.join(arguments) + '\\nERROR SUMMARY: 0 errors')\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    tools = ("racecheck", "racecheck", "memcheck")
    seen = [sanitizer.run(tmp_path / "x.py", tool, workers=2).log.split() for tool in tools]
    ports = [int(arguments[arguments.index("--port") + 1]) for arguments in seen]
    of_each = {int(arguments[arguments.index("--max-connections") + 1]) for arguments in seen}
    assert all(abs(a - b) >= max(of_each) for a, b in itertools.combinations(ports, 2))
    assert ["--racecheck-num-workers" in arguments for arguments in seen] == [True, True, False]
    alone = sanitizer.run(tmp_path / "x.py", "racecheck").log
    assert "--racecheck-num-workers" not in alone  # the tool takes what cores there are


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_run_past_its_time_takes_the_watched_process_with_it(tmp_path, monkeypatch):
    """The real tool starts the process that it watches; left behind, it would go on using the GPU beside what is timed."""
    child = tmp_path / "child"
    fake = tmp_path / "compute-sanitizer"
    fake.write_text(
        f"#!/bin/sh\nsleep 60 & echo $! > {child}.new && mv {child}.new {child}\nwait\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(sanitizer.SanitizerFailed, match="ran past 2 s under memcheck"):
        sanitizer.run(tmp_path / "x.py", "memcheck", timeout_s=2)
    assert not _runs(int(child.read_text()))


_ERROR = (
    "========= Host API memory access error at host access to 0x7f00 of size 2 bytes\n"
    "=========     Uninitialized access at 0x7f00 on access by cudaMemcpy source\n"
    "=========         Host Frame: cuMemcpyDtoH_v2 [0x1000] in libcuda.so.1\n"
    "=========\n"
)


def _reporting(tmp_path, monkeypatch, errors: int, then: str) -> None:
    """A program of the tool's name that writes so many errors into its log, and then does something else."""
    fake = tmp_path / "compute-sanitizer"
    fake.write_text(
        "#!/usr/bin/env python3\nimport pathlib, sys, time\n"
        "log = pathlib.Path(sys.argv[sys.argv.index('--log-file') + 1])\n"
        f"report = '========= COMPUTE-SANITIZER\\n' + {errors} * {_ERROR!r}\n"
        f"log.write_text(report)\n{then}\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sanitizer, "_GRACE_S", 1)


def test_a_flood_of_errors_is_ended_and_its_first_are_told(tmp_path, monkeypatch):
    _reporting(tmp_path, monkeypatch, sanitizer._FLOOD, "time.sleep(120)")
    start = time.monotonic()
    with pytest.raises(sanitizer.SanitizerFailed) as failed:
        sanitizer.run(tmp_path / "x.py", "initcheck", timeout_s=100)
    assert time.monotonic() - start < 60
    assert "it had reported 100 errors in x.py" in str(failed.value)
    assert "on access by cudaMemcpy source" in str(failed.value)


@pytest.mark.parametrize(
    ("errors", "then"),
    [
        (sanitizer._FLOOD - 1, "time.sleep(3)"),  # fewer, and long after them it still runs
        (10 * sanitizer._FLOOD, ""),  # more, and at its end
    ],
)
def test_a_tool_that_ends_has_its_errors_counted(tmp_path, monkeypatch, errors, then):
    end = f"log.write_text(report + '========= ERROR SUMMARY: {errors} errors\\n')"
    _reporting(tmp_path, monkeypatch, errors, f"{then}\n{end}")
    assert sanitizer.run(tmp_path / "x.py", "initcheck", timeout_s=60).errors == errors


def test_what_the_tool_prints_is_enough_to_notice_a_flood(tmp_path, monkeypatch):
    """What it has not flushed when it is looked at must not keep the count below the bound."""
    then = "log.write_text(' '.join(sys.argv) + '\\n========= ERROR SUMMARY: 0 errors')"
    _reporting(tmp_path, monkeypatch, 0, then)
    arguments = sanitizer.run(tmp_path / "x.py", "memcheck").log.split()
    printed = int(arguments[arguments.index("--print-limit") + 1])
    assert printed >= sanitizer._FLOOD + 8192 // 100  # a buffer full of short reports


def _runs(process: int) -> bool:
    """Whether a process still runs a second from now; one that ended and was not waited for does not."""
    for _ in range(10):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("status", [1, 3, 139])
def test_a_program_that_ends_badly_without_an_error_is_not_clean(tmp_path, monkeypatch, status):
    """It raised, or crashed, before the tool saw anything: no error was counted, because nothing ran."""
    end = "log.write_text(report + '========= ERROR SUMMARY: 0 errors\\n')"
    _reporting(
        tmp_path, monkeypatch, 0, f"{end}\nprint('Traceback: no such array')\nsys.exit({status})"
    )
    with pytest.raises(
        sanitizer.SanitizerFailed, match=f"did not run to its end.*status {status}"
    ) as failed:
        sanitizer.run(tmp_path / "x.py", "memcheck", timeout_s=60)
    assert "no such array" in str(failed.value) and "ERROR SUMMARY" in str(failed.value)


def test_the_errors_of_a_program_that_then_ends_badly_are_counted(tmp_path, monkeypatch):
    """An illegal address ends the program: what the tool has found is its verdict."""
    end = "log.write_text(report + '========= ERROR SUMMARY: 2 errors\\n')"
    _reporting(tmp_path, monkeypatch, 2, f"{end}\nsys.exit(1)")
    assert sanitizer.run(tmp_path / "x.py", "memcheck", timeout_s=60).errors == 2


@pytest.mark.parametrize(
    "lines",
    [
        ("ERROR SUMMARY: 0 errors", "ERROR SUMMARY: 7 errors"),
        ("ERROR SUMMARY: 7 errors", "ERROR SUMMARY: 0 errors"),
        (
            "ERROR SUMMARY: 0 errors",
            "RACECHECK SUMMARY: 7 hazards displayed (7 errors, 0 warnings)",
        ),
        ("RACECHECK SUMMARY: 0 hazards displayed", "ERROR SUMMARY: 7 errors"),
        ("ERROR SUMMARY: 7 errors", "ERROR SUMMARY: 3 errors", "ERROR SUMMARY: 0 errors"),
    ],
)
def test_of_several_summaries_the_worst_counts(lines):
    assert sanitizer.count_errors("".join(f"========= {line}\n" for line in lines)) == 7


@pytest.fixture
def watched(monkeypatch):
    """What `sanitize` would run: (path, tool, seconds, text), and what it shows."""
    seen, shown = [], []

    def run(path, tool, timeout_s):
        seen.append((path, tool, timeout_s, path.read_text(encoding="utf-8")))
        return sanitizer.Sanitizer(tool, 3)

    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(sanitizer, "run", run)
    monkeypatch.setattr(sanitizer, "show", shown.append)
    return seen, shown


def test_a_text_a_file_or_an_example_is_watched(watched, tmp_path):
    seen, shown = watched
    file = tmp_path / "mine.py"
    file.write_text("x = 1")
    assert sanitizer.sanitize("import cudatut\nx = 2\n", "racecheck", 7).errors == 3
    sanitizer.sanitize(str(file))
    sanitizer.sanitize("start/hello")
    assert [text for *_, text in seen][:2] == ["import cudatut\nx = 2\n", "x = 1"]
    assert [one[1:3] for one in seen] == [("racecheck", 7), ("memcheck", 600), ("memcheck", 600)]
    assert seen[2][0].as_posix().endswith("examples/start/hello/chapter.py") and len(shown) == 3


def test_what_is_watched_already_is_not_watched_again(watched, monkeypatch):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    assert sanitizer.sanitize("start/hello", "racecheck") == sanitizer.Sanitizer("racecheck", 0)
    assert watched == ([], [])


def test_what_failed_is_told_by_the_last_lines(tmp_path, monkeypatch):
    """Of the tool's report five, of what the program said fifteen."""
    end = "log.write_text('\\n'.join(f'report {i}.' for i in range(9)))"
    _reporting(
        tmp_path, monkeypatch, 0, f"{end}\n[print(f'said {{i}}.') for i in range(20)]\nsys.exit(1)"
    )
    with pytest.raises(sanitizer.SanitizerFailed) as failed:
        sanitizer.run(tmp_path / "x.py", "memcheck", timeout_s=60)
    lines = str(failed.value).splitlines()[1:]
    assert lines == [f"report {i}." for i in range(4, 9)] + [f"said {i}." for i in range(5, 20)]
