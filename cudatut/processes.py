"""Child processes that, when they are ended, take with them what they have started.

A tool such as compute-sanitizer starts the process that it watches. To kill the tool alone leaves that process behind, and
it goes on computing on the GPU beside whatever is timed next.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from cudatut import tool

under_way: set[int] = set()  # ids of processes, each the leader of a group
_LOOK_S = 0.5


def run(
    command: Sequence[str],
    timeout_s: float,
    env: Mapping[str, str],
    enough: Callable[[], bool] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process group of its own and return what it said; past `timeout_s` the whole group is killed.

    In a recording it stays in the notebook's group, which is killed with all that the notebook has started.
    enough: asked twice a second; once it says so, the time is over.
    Raises subprocess.TimeoutExpired, OSError.
    """
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=not tool.recording(),
    )
    under_way.add(process.pid)
    try:
        stdout, stderr = _communicate(process, timeout_s, enough)
    except BaseException:  # its time is over, or Ctrl-C, which does not reach another group
        end(process)
        raise
    finally:
        under_way.discard(process.pid)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _communicate(
    process: subprocess.Popen, timeout_s: float, enough: Callable[[], bool] | None
) -> tuple[str, str]:
    if enough is None:
        return process.communicate(timeout=timeout_s)
    last = time.monotonic() + timeout_s
    while True:  # what the process has said until then is kept from one time to the next
        try:
            return process.communicate(timeout=min(_LOOK_S, timeout_s))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= last or enough():
                raise


def end(process: subprocess.Popen) -> None:
    """Kill the leader of a group and what it has started: then all they had on the GPU is free."""
    under_way.discard(process.pid)
    kill(process.pid)
    process.kill()  # one that leads no group
    process.wait()


def end_with_parent() -> None:
    """End this process as soon as its parent is gone, however that ended: for a child whose stdin is a pipe of the parent's.

    The pipe closes with the parent, on every system. The parent must write nothing, and keep it open.
    """

    def watch() -> None:
        os.read(0, 1)  # not sys.stdin: Python could not close what a thread is reading when it ends
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def kill(leader: int) -> None:
    """Kill a group by its leader's id; nothing happens if it is gone."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(leader, signal.SIGKILL)
        else:
            os.kill(leader, signal.SIGTERM)  # Windows: ends the process at once
