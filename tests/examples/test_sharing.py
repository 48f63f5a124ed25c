"""Sharing one GPU, without one: counted work, who is left behind by whom, and a daemon that ends in any case.

The daemon here is a stand-in, a script of the same name that starts a process, writes down its number, and ends it at `quit`.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cudatut import tool
from cudatut.book.memory.sharing import clients, daemon

STAND_IN = """#!/bin/sh
pid="$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
if [ "$1" = -d ]; then
  [ -n "$REFUSES" ] && { echo "no permission"; exit 1; }
  sh -c "$HOLDS"'while :; do sleep 0.05; done # cuda-mps' & echo $! > "$pid"
  exit 0
fi
while read -r command; do
  case $command in
    quit) kill -TERM "$(cat "$pid")" ;;
    get_server_list) cat "$pid" ;;
    *) echo 100.0 ;;
  esac
done
"""


@pytest.fixture
def control(tmp_path, monkeypatch):
    file = tmp_path / daemon.CONTROL
    file.write_text(STAND_IN, encoding="utf-8")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return file


def gone(pids: list[int], limit_s: float = 10) -> bool:
    give_up = time.monotonic() + limit_s
    while any(map(daemon.running, pids)) and time.monotonic() < give_up:
        time.sleep(0.02)
    return not any(map(daemon.running, pids))


def test_many_steps_at_once_are_the_steps_one_by_one():
    values = np.arange(100, dtype="uint32")
    for steps in range(40):
        assert np.array_equal(clients.expected(100, steps), values)
        values = values * np.uint32(clients.A) + np.uint32(clients.C)


def test_pieces_end_where_the_clock_jumps():
    assert clients.pieces([0, 5, 9, 200_000, 200_004]) == [[0, 9], [200_000, 200_004]]
    assert clients.pieces([3]) == [[3, 3]]


def test_the_daemon_ends_with_its_block(control):
    with daemon.serving() as served:
        pids = served.pids()
        assert pids and all(map(daemon.running, pids))
        assert served.ask("get_server_list") == str(pids[0])
    assert not any(map(daemon.running, pids)) and not Path(served.folder).exists()


def test_the_daemon_ends_after_a_failure(control):
    with pytest.raises(ZeroDivisionError), daemon.serving() as served:
        pids = served.pids()
        raise ZeroDivisionError
    assert not any(map(daemon.running, pids)) and not Path(served.folder).exists()


def test_a_daemon_that_does_not_end_is_killed(control, monkeypatch):
    monkeypatch.setenv("HOLDS", "trap : TERM; ")
    begin = time.monotonic()
    with daemon.serving(limit_s=0.5) as served:
        pids = served.pids()
    assert gone(pids, 1) and time.monotonic() - begin < 5


def test_the_daemon_ends_when_its_program_is_killed(control):
    program = (
        "from cudatut.book.memory.sharing.daemon import serving\n"
        "import time\n"
        "with serving() as served:\n"
        "    print(*served.pids(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env=tool.environment(),
    ) as child:
        pids = [int(word) for word in child.stdout.readline().split()]
        assert pids and all(map(daemon.running, pids))
        child.send_signal(signal.SIGKILL)
    assert gone(pids)


def test_a_machine_that_refuses_says_why(control, monkeypatch):
    monkeypatch.setenv("REFUSES", "1")
    with pytest.raises(daemon.Refused, match="no permission"), daemon.serving():
        pass
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(daemon.Refused, match="there is no nvidia-cuda-mps"), daemon.serving():
        pass


def test_no_daemon_while_a_tool_watches(control, monkeypatch):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    with pytest.raises(daemon.Refused, match="a tool watches"), daemon.serving():
        pass


def test_no_process_is_left_when_one_is_not_ready_in_time(monkeypatch):
    started = []
    start = clients._start

    def sleeping(*arguments):
        one = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(one)
        return one

    monkeypatch.setattr(clients, "_start", sleeping)
    with pytest.raises(clients.WorkerError, match="in time"):
        clients.together([clients.Job("count")] * 2, limit_s=0.2)
    assert len(started) == 2 and all(one.poll() is not None for one in started)
    assert start is not sleeping


def test_a_process_that_fails_says_why(monkeypatch):
    def failing(*arguments):
        return subprocess.Popen(
            [sys.executable, "-c", "raise SystemExit('no GPU for me')"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    monkeypatch.setattr(clients, "_start", failing)
    (one,) = clients.together([clients.Job("count")])
    assert one == clients.Outcome([], "no GPU for me")
    with pytest.raises(clients.WorkerError, match="no GPU for me"):
        clients.took_ms({"one": [clients.Job("count")]})


WORKS = """
import sys, time
from cudatut.book.memory.sharing import clients

class Work:
    sms = 4
    def __init__(self, job):
        self.job = job
    def launch(self, amount, launches):
        time.sleep(1e-3 * amount * launches)
    def wait(self, give_up):
        pass
    def found(self):
        return {"kernel": self.job.kernel}

clients._Work = Work
raise SystemExit(clients.main(sys.argv[1]))
"""


def test_plans_follow_each_other_in_the_same_processes(monkeypatch):
    monkeypatch.setattr(clients, "COMMAND", (sys.executable, "-c", WORKS))
    short, long = clients.Job("short", amount=10), clients.Job("long", amount=40, launches=2)
    one, other = clients.together([short], [long, short], rounds=2)
    assert [turn["kernel"] for turn in one.rounds] == ["short", "short", "long", "long"]
    assert [turn.get("kernel") for turn in other.rounds] == [None, None, "short", "short"]
    took = clients.took_ms({"alone": [short], "two": [short, long]}, rounds=2)
    assert {name: len(times) for name, times in took.items()} == {"alone": 2, "two": 2}
    assert all(10 <= ms < 79 for ms in took["alone"]) and all(ms >= 80 for ms in took["two"])
    with pytest.raises(clients.WorkerError, match="error in it"):
        clients.without_error(clients.Outcome([], "error in it"))
