"""An MPS daemon of one's own: started, asked, and ended in any case.

    with serving() as daemon:                  # raises Refused
        took_ms([job, job], env=daemon.env)    # both are its clients

Its pipes and its log lie in a folder of their own, so it serves only those who
are told of them. It ends with the block, after an exception too, and also when
the process that started it is killed.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import cudatut as ct

CONTROL = "nvidia-cuda-mps-control"


class Refused(ct.CudatutError):
    """This machine serves no MPS; the message says why."""


@dataclass(frozen=True)
class Daemon:
    """env: what a process needs to be its client."""

    control: str
    folder: str
    env: dict[str, str]

    def ask(self, command: str, limit_s: float = 10) -> str:
        """What the daemon answers. Raises Refused."""
        try:
            done = subprocess.run(
                [self.control],
                input=f"{command}\n",
                capture_output=True,
                text=True,
                timeout=limit_s,
                env={**ct.tool.environment_before(), **self.env},
            )
        except subprocess.TimeoutExpired:
            raise Refused(f"no answer to '{command}'") from None
        if done.returncode:
            raise Refused(f"{done.stdout}{done.stderr}".strip())
        return done.stdout.strip()

    def pids(self) -> list[int]:
        """Of the daemon, and of the servers that it has started."""
        found = []
        with suppress(OSError, ValueError):
            file = Path(self.folder, "pipe", f"{CONTROL}.pid")
            found.append(int(file.read_text(encoding="utf-8")))
        with suppress(Refused):
            answer = self.ask("get_server_list").split()
            found += [int(word) for word in answer if word.isdecimal()]
        return found


# --8<-- [start:serving]
# Waits until its input is closed: by us, or because we are no more. Then it
# ends the daemon.
GUARD = 'cat > /dev/null; echo quit | "$0"'


@contextmanager
def serving(limit_s: float = 20) -> Iterator[Daemon]:
    """Starts a daemon, and ends it. Raises Refused."""
    if ct.tool.running():
        raise Refused("a tool watches this process")
    control = shutil.which(CONTROL)
    if control is None:
        raise Refused(f"there is no {CONTROL} here")
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        own = {
            "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe",
            "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log",
        }
        for path in own.values():
            os.mkdir(path)
        daemon = Daemon(control, folder, own)
        guard = subprocess.Popen(
            ["sh", "-c", GUARD, control],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**ct.tool.environment_before(), **own},
            start_new_session=True,
        )
        pids: list[int] = []
        try:
            _start(daemon, limit_s)
            yield daemon
        finally:
            pids += daemon.pids()
            guard.stdin.close()
            _end(guard, pids, limit_s)


# --8<-- [end:serving]


def _start(daemon: Daemon, limit_s: float) -> None:
    # Its output goes to a file: the daemon keeps it open, and a pipe would
    # have to be waited for.
    said = Path(daemon.folder, "said")
    with said.open("w", encoding="utf-8") as file:
        try:
            done = subprocess.run(
                [daemon.control, "-d"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                timeout=limit_s,
                env={**ct.tool.environment_before(), **daemon.env},
            )
        except subprocess.TimeoutExpired:
            raise Refused("the daemon did not start in time") from None
    if done.returncode:
        why = said.read_text(encoding="utf-8").strip()
        raise Refused(why or f"the daemon ended with {done.returncode}")
    daemon.ask("get_default_active_thread_percentage")


def _end(guard: subprocess.Popen, pids: list[int], limit_s: float) -> None:
    """Until all have ended; who has not by then is killed."""
    give_up = time.monotonic() + limit_s
    while guard.poll() is None or any(map(running, pids)):
        if time.monotonic() > give_up:
            guard.kill()
            for pid in filter(running, pids):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            break
        time.sleep(0.02)
    guard.wait()


def running(pid: int) -> bool:
    """Is there such a process of MPS? One that has ended and that nobody has
    asked for is none.
    """
    try:
        stat = Path("/proc", str(pid), "stat").read_text(encoding="utf-8")
        words = Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return False
    state = stat.rpartition(")")[2].split()[0]
    return state not in "ZX" and b"cuda-mps" in words
