"""Run a Python file under Nsight Compute (ncu), and have such a run ready before it is asked for.

A good part of a run passes before its process comes to the GPU: ncu, Python and the imports start. While the book is
recorded, memcheck, which comes first, notes what runs an example asks for (`note`). The example's process starts them
(`start_noted`) while another example has the GPU; they wait at a gate before they touch it (`tool.wait_at_gate`), and the
gate opens when the example asks (`report`).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path

from cudatut import tool
from cudatut.errors import ToolMissing


@dataclass(frozen=True)
class Run:
    """`options` tell ncu which launches of the file it looks at, and for which counters."""

    file: str
    options: tuple[str, ...]


class _Started:
    """A run under way; with `waits` it stands before the gate."""

    def __init__(self, run: Run, waits: bool):
        program = shutil.which("ncu")
        if program is None:
            raise ToolMissing("ncu (Nsight Compute) is not on PATH; it comes with the CUDA toolkit")
        self._folder = tempfile.TemporaryDirectory(dir=os.environ.get("CUDATUT_NOTES"))
        self._log, self._gate = (Path(self._folder.name, name) for name in ("ncu.csv", "gate"))
        command = [program, "--csv", "--page", "raw", "--print-units", "base"]
        command += ["--clock-control", "none", *run.options]
        # --kill: what the example does after the last of those launches is of no interest, and takes time.
        command += ["--kill", "yes", "--log-file", str(self._log)]
        command += [sys.executable, "-m", "cudatut.gpu.watched", run.file]
        env = tool.environment_for("ncu")
        if waits:
            env["CUDATUT_GATE"] = str(self._gate)
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
        )

    def finish(self, timeout_s: float) -> tuple[str, str]:
        """Open the gate and wait. Returns the report, and what the file printed. Raises subprocess.TimeoutExpired."""
        self._gate.touch()
        try:
            output, _ = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        report = self._log.read_text(errors="replace") if self._log.exists() else ""
        self._folder.cleanup()
        return report, output


_ahead: dict[Run, _Started] = {}


def report(run: Run, timeout_s: float) -> tuple[str, str]:
    """ncu's raw CSV page of a run, and what the file printed, from a run started ahead if there is one.

    One that ended without a word is started anew. Raises ToolMissing without ncu, subprocess.TimeoutExpired.
    """
    if started := _ahead.pop(run, None):
        found, output = started.finish(timeout_s)
        if any(line.startswith('"') for line in found.splitlines()):
            return found, output
    return _Started(run, waits=False).finish(timeout_s)


def note(run: Run) -> None:
    """Under memcheck, while the book is recorded: this run will be asked for."""
    folder = os.environ.get("CUDATUT_NOTES")
    if folder and tool.running() == "memcheck":
        with Path(folder, "runs").open("a", encoding="utf-8") as notes:
            notes.write(json.dumps(astuple(run)) + "\n")


def start_noted(file: str) -> None:
    """Start what was noted of this file, up to the gate. Raises ToolMissing without ncu."""
    notes = Path(os.environ.get("CUDATUT_NOTES", ""), "runs")
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.is_file() else []
    for name, options in map(json.loads, dict.fromkeys(lines)):
        if name == file:
            run = Run(name, tuple(options))
            _ahead[run] = _Started(run, waits=True)
