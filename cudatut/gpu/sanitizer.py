"""Run an example under compute-sanitizer."""

import itertools
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cudatut import catalog, processes
from cudatut import tool as running_tool
from cudatut.errors import CudatutError, ToolMissing
from cudatut.results import Sanitizer, show
from cudatut.tool import SANITIZERS


class SanitizerFailed(CudatutError):
    """The program did not run to its end under the sanitizer, so its verdict is worth nothing."""


# Each tool talks to its process through one of ten ports, by default the same ten: tools side by side would try one
# another's. So every run gets ten of its own.
_PORTS = 10
# A tool that has reported so many errors, and works on so many seconds later, may never end: initcheck reports a copy of
# one large array that nothing wrote piece by piece, each with the stack of the host.
_FLOOD, _GRACE_S = 100, 15
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_bases = itertools.cycle(range(49152, 59152, _PORTS))


def run(
    path: Path | Sequence[Path], tool: str, timeout_s: float = 600, workers: int = 0
) -> Sanitizer:
    """Run a Python file (or several, one after the other in one process) under one tool ('memcheck', 'racecheck', 'initcheck', 'synccheck'); errors are counted, not raised.

    CUDATUT_TOOL tells the file that it is watched: `ct.size` picks small sizes, `ct.bench` runs each candidate once.
    Child processes (`ct.isolated`) are not watched. The result's `log` is the tool's report. workers: threads in which
    racecheck sorts what it has seen; 0 leaves it to the tool, which takes one per core, too many for several side by side.
    Raises ToolMissing, ValueError, SanitizerFailed: the program itself failed, or ran past `timeout_s` seconds, or the tool
    was ended, because it had reported a hundred errors and did not end in the seconds that followed.
    """
    if tool not in SANITIZERS:
        raise ValueError(f"'{tool}' is no sanitizer; there are {', '.join(SANITIZERS)}")
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        raise ToolMissing(
            "compute-sanitizer is not on PATH; it comes with the CUDA toolkit (bin/compute-sanitizer)"
        )
    files = [str(path)] if isinstance(path, Path) else [str(one) for one in path]
    names = ", ".join(Path(file).name for file in files)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sanitizer, "--tool", tool, "--target-processes", "application-only"]
        command += ["--report-api-errors", "no", "--log-file", str(log)]
        command += ["--port", str(next(_bases)), "--max-connections", str(_PORTS)]
        # Ten seconds by default, and on busy cores Python alone may take them before its first CUDA call.
        command += ["--launch-timeout", "60"]
        # More than a flood has: the last reports before it is ended may lie in a buffer.
        command += ["--print-limit", str(2 * _FLOOD)]
        if tool == "racecheck" and workers:
            command += ["--racecheck-num-workers", str(workers)]
        command += [sys.executable, "-m", "cudatut.gpu.watched", *files]
        flood = _Flood(log)
        try:
            done = processes.run(
                command,
                timeout_s,
                # NumPy's references are small here, and threads for them would take the cores from runs side by side.
                env=_ONE_THREAD | running_tool.environment_for(tool),
                enough=flood,
            )
        except subprocess.TimeoutExpired as error:
            if flood.over:
                raise SanitizerFailed(
                    f"{tool} was ended: it had reported {_FLOOD} errors in {names}, and {_GRACE_S} s later was still "
                    f"running. The first of them:\n{_first_lines(log)}"
                ) from error
            raise SanitizerFailed(
                f"{names} ran past {timeout_s:.0f} s under {tool}; use ct.size for a small size"
            ) from error
        report = log.read_text(errors="replace") if log.exists() else ""
    errors = count_errors(report)
    if errors is None or (done.returncode != 0 and errors == 0):
        said = (done.stdout + done.stderr).splitlines()
        tail = "\n".join([*report.splitlines()[-5:], *said[-15:]])
        raise SanitizerFailed(
            f"{names} did not run to its end under {tool} (exit status {done.returncode}):\n{tail}"
        )
    return Sanitizer(tool, errors, report)


class _Flood:
    """Whether a tool has reported very many errors, and still runs some seconds later."""

    def __init__(self, log: Path):
        self._log, self.over = log, False
        self._since: float | None = None

    def __call__(self) -> bool:
        if self._since is None and self._reported() >= _FLOOD:
            self._since = time.monotonic()
        self.over = self._since is not None and time.monotonic() - self._since > _GRACE_S
        return self.over

    def _reported(self) -> int:
        """Errors in the report so far: of each the first line is not indented, as is the report's own, the first."""
        report = self._log.read_text(errors="replace") if self._log.exists() else ""
        return len(re.findall(r"^=+ \w", report, flags=re.M)) - 1


def _first_lines(log: Path, count: int = 40) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[:count])


def count_errors(report: str) -> int | None:
    """Errors that a report of compute-sanitizer counts in its summary, or None if it has none (the program died)."""
    found = re.findall(r"ERROR SUMMARY: (\d+) error", report)
    found += re.findall(r"RACECHECK SUMMARY: (\d+) hazard", report)
    return max(map(int, found)) if found else None


def sanitize(source: str, tool: str = "memcheck", timeout_s: float = 600) -> Sanitizer:
    """Run an example ('start/errors'), a Python file or Python text under one sanitizer and show the count of errors.

    Nothing happens (0 errors, not shown) while another tool already runs this process. Raises as `run`.
    """
    if running_tool.running():
        return Sanitizer(tool, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snippet.py" if "\n" in source else Path(source)
        if "\n" in source:
            path.write_text(source, encoding="utf-8")
        elif path.suffix != ".py":
            path = catalog.get(source).path
        result = run(path, tool, timeout_s)
    show(result)
    return result
