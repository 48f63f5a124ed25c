"""Run Python in a child process of its own: for faults that poison a CUDA context for good."""

import subprocess
import sys
from dataclasses import dataclass

from cudatut import tool


@dataclass(frozen=True)
class Isolated:
    """How the child ended: its exit status and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def isolated(source: str, timeout_s: float = 60, env: dict[str, str] | None = None) -> Isolated:
    """Run `source` with this Python in a new process, with a CUDA context of its own.

    source: Python text. env: variables added to the environment. A sanitizer that runs this process does not follow.
    Raises subprocess.TimeoutExpired after `timeout_s` seconds; the child is then killed. While a tool runs this process
    it may take four times as long: others then share the GPU, and the recovery from a fault waits for all of them.
    """
    done = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        timeout=timeout_s * (4 if tool.running() else 1),
        env={**tool.environment_before(), **(env or {})},
    )
    return Isolated(done.returncode, done.stdout, done.stderr)
