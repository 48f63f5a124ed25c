"""Runs under ncu that are started before they are asked for; a program of its name stands for ncu, the processes are real."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cudatut as ct
from cudatut import catalog
from cudatut.gpu import ncu, profile
from cudatut.record import recorder

FAKE = f"""#!{sys.executable}
import pathlib, subprocess, sys
log = pathlib.Path(sys.argv[sys.argv.index("--log-file") + 1])
target = sys.argv[sys.argv.index("--log-file") + 2 :]
value = subprocess.run(target, capture_output=True, text=True).stdout.strip()
log.write_text(f'"ID","Kernel Name","n"\\n"","","byte"\\n"0","add","{{value}}"\\n' if value else "nothing")
"""
# Says when it started and when it came to the GPU.
TARGET = """
import os, sys, time
from cudatut import tool
open(os.environ["TRACE"], "a").write("started\\n")
tool.wait_at_gate()
open(os.environ["TRACE"], "a").write("on the GPU\\n")
print(1 + ("CUDATUT_GATE" in os.environ))
"""


@pytest.fixture
def example(tmp_path, monkeypatch):
    fake, target = tmp_path / "ncu", tmp_path / "add.py"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    target.write_text(TARGET)
    notes = tmp_path / "notes"
    notes.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("CUDATUT_NOTES", str(notes))
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    monkeypatch.setattr(ncu, "_ahead", {})
    return str(target)


def traced(example, count, seconds=20):
    """The lines of the trace, as soon as there are so many."""
    trace, deadline = Path(example).with_name("trace"), time.monotonic() + seconds
    while time.monotonic() < deadline:
        lines = trace.read_text().split("\n")[:-1] if trace.exists() else []
        if len(lines) >= count:
            return lines
        time.sleep(0.02)
    raise AssertionError(f"only {lines}")


def noted(example, monkeypatch, metric="n"):
    """Let memcheck see what the example asks for."""
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    ct.profile(example, "add", [metric])
    monkeypatch.delenv("CUDATUT_TOOL")


def value(profile):
    return profile.metrics["n"]["value"]


def test_a_noted_run_waits_before_the_gpu_until_it_is_asked_for(example, monkeypatch):
    noted(example, monkeypatch)
    ncu.start_noted(example)
    assert traced(example, 1) == ["started"]
    time.sleep(0.3)
    assert traced(example, 1) == ["started"]
    assert value(ct.profile(example, "add", ["n"])) == 2  # that very process
    assert traced(example, 2) == ["started", "on the GPU"]
    assert value(ct.profile(example, "add", ["n"])) == 1  # it serves once


def test_another_run_than_the_noted_one_is_started_when_asked_for(example, monkeypatch):
    noted(example, monkeypatch, metric="other")
    ncu.start_noted(example)
    ncu.start_noted("elsewhere.py")
    assert len(ncu._ahead) == 1
    assert value(ct.profile(example, "add", ["n"])) == 1
    (waiting,) = ncu._ahead.values()
    waiting._process.kill()  # with it the file's process, whose parent it is, ends
    waiting._process.communicate()


def test_one_started_ahead_that_says_nothing_is_started_anew(example, monkeypatch):
    noted(example, monkeypatch)
    ncu.start_noted(example)
    (waiting,) = ncu._ahead.values()
    traced(example, 1)
    waiting._process.kill()
    assert value(ct.profile(example, "add", ["n"])) == 1


def test_whoever_waits_ends_with_its_parent(example):
    wait = (
        "import os; from cudatut import tool; print(os.getpid(), flush=True); tool.wait_at_gate()"
    )
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {wait!r}], stdout=subprocess.PIPE, text=True)\n"
        "print(child.stdout.readline(), flush=True)\n"
        "time.sleep(0.5)\n"
    )
    env = recorder.environment() | {"CUDATUT_GATE": example + ".gate"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=60)
    pid, deadline = int(done.stdout), time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError(f"{pid} still waits")


def test_a_notebook_that_is_recorded_finds_its_run_started(example, monkeypatch, book):
    """The notebook's own process starts it, before the first cell."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    body = (
        "# %% profile\nimport os\nimport cudatut as ct\nfrom cudatut import tool\n"
        "tool.wait_at_gate()\n"
        "if tool.running(): print(1 + ('CUDATUT_GATE' in os.environ), flush=True)\n"
        "profile = ct.profile('a/add', 'add', ['n'])\n"
        "# %% value\nprint(profile.metrics['n']['value'])\n"
    )
    book.example("a/add", body)
    path = str(catalog.get("a/add").path)
    noted(path, monkeypatch)
    executed = recorder.record_notebook(catalog.get("a/add"))
    assert executed.notebook.cells[-1].outputs[0].text == "2.0\n"


def test_only_memcheck_notes_and_only_while_the_book_is_recorded(example, monkeypatch):
    run = ncu.Run(example, ("--launch-count", "1"))
    ncu.note(run)
    monkeypatch.setenv("CUDATUT_TOOL", "racecheck")
    ncu.note(run)
    notes = Path(os.environ["CUDATUT_NOTES"], "runs")
    assert not notes.exists()
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    ncu.note(run)
    assert json.loads(notes.read_text()) == [example, ["--launch-count", "1"]]
    monkeypatch.delenv("CUDATUT_NOTES")
    ncu.note(run)


def test_several_launches_come_from_a_run_started_ahead_too(example, monkeypatch):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    assert profile.profile_launches(example, "add", ["n"], launches=1) == []
    profile.profile_kernels(example, ["add"], ["n"])
    monkeypatch.delenv("CUDATUT_TOOL")
    ncu.start_noted(example)
    assert len(ncu._ahead) == 2
    assert profile.profile_launches(example, "add", ["n"], launches=1) == [{"n": 2}]
    assert value(profile.profile_kernels(example, ["add"], ["n"])["add"]) == 2
