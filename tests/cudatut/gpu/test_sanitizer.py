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
