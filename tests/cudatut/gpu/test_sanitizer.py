"""compute-sanitizer: what its reports count, and with which arguments it is started."""

import itertools
import os

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
