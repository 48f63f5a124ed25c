"""Child processes: in whose group they run, and what is left of them when their time is over."""

import os
import signal
import subprocess
import sys
import time

import pytest

from cudatut import processes

pytestmark = pytest.mark.skipif(not hasattr(os, "getpgrp"), reason="process groups are POSIX")
_GROUP = [sys.executable, "-c", "import os; print(os.getpgrp())"]


@pytest.mark.parametrize("recording", [False, True])
def test_a_child_leads_a_group_of_its_own_except_in_a_recording(monkeypatch, recording):
    """What ends a notebook kills the notebook's group: a child that left it would go on."""
    monkeypatch.setenv("CUDATUT_RECORDING", "1" if recording else "0")
    group = int(processes.run(_GROUP, 60, os.environ).stdout)
    assert (group == os.getpgrp()) is recording


@pytest.mark.parametrize("recording", [False, True])
def test_a_child_past_its_time_is_ended_and_this_process_is_not(monkeypatch, recording):
    """In a recording the child leads no group: to kill 'its' group would miss it, or hit ours."""
    monkeypatch.setenv("CUDATUT_RECORDING", "1" if recording else "0")
    start = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run([sys.executable, "-c", "import time; time.sleep(600)"], 1, os.environ)
    assert time.monotonic() - start < 300
    assert not processes.under_way


def test_a_child_is_ended_once_it_is_enough():
    command, asked = [sys.executable, "-c", "import time; time.sleep(600)"], []
    start = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run(command, 50, os.environ, enough=lambda: asked.append(1) or len(asked) == 2)
    assert len(asked) == 2 and time.monotonic() - start < 300
    assert not processes.under_way


def test_while_it_is_never_enough_all_that_a_child_says_comes_back_and_its_time_ends():
    code = "import time\nfor i in range(4): print(i, flush=True); time.sleep(0.4)"
    done = processes.run([sys.executable, "-c", code], 60, os.environ, enough=lambda: False)
    assert done.stdout.split() == list("0123")
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run([sys.executable, "-c", code], 1, os.environ, enough=lambda: False)


def test_what_a_child_says_and_how_it_ends_comes_back():
    command = [sys.executable, "-c", "import sys; print('out'); sys.exit('err')"]
    done = processes.run(command, 60, os.environ)
    assert (done.returncode, done.stdout, done.stderr) == (1, "out\n", "err\n")


_CHILD = "from cudatut import processes; processes.end_with_parent(); print('begun', flush=True); "


def test_a_child_that_watches_its_parent_ends_as_any_other():
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD + "print('done')"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with child:
        assert (
            child.stdout.read() == "begun\ndone\n"
        )  # and nothing of a thread that is still reading
        assert child.wait(60) == 0


def test_a_child_ends_with_a_parent_that_was_killed():
    code = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdin=subprocess.PIPE); "
        "child.wait()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, _CHILD + "import time; time.sleep(600)"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout.readline() == "begun\n"
        parent.kill()
        assert (
            parent.stdout.read() == ""
        )  # it comes to its end when the child, which holds it, has ended


def test_without_groups_a_leader_is_ended_alone(monkeypatch):
    """As on Windows."""
    ended = []
    monkeypatch.delattr(os, "killpg")
    monkeypatch.setattr(os, "kill", lambda *given: ended.append(given))
    processes.kill(123)
    assert ended == [(123, signal.SIGTERM)]


def test_what_is_ended_is_waited_for():
    """It leaves no zombie, and says how it ended."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True
    )
    processes.end(child)
    assert child.returncode is not None and child.returncode != 0
