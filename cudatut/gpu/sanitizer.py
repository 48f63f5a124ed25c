"""Run an example under compute-sanitizer."""

import itertools
import re
import shutil
import subprocess
import sys
import tempfile
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
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_bases = itertools.cycle(range(49152, 59152, _PORTS))


def run(
    path: Path | Sequence[Path], tool: str, timeout_s: float = 600, workers: int = 0
) -> Sanitizer:
    """Run a Python file (or several, one after the other in one process) under one tool ('memcheck', 'racecheck', 'initcheck', 'synccheck'); errors are counted, not raised.

    CUDATUT_TOOL tells the file that it is watched: `ct.size` picks small sizes, `ct.bench` runs each candidate once.
    Child processes (`ct.isolated`) are not watched. The result's `log` is the tool's report. workers: threads in which
    racecheck sorts what it has seen; 0 leaves it to the tool, which takes one per core, too many for several side by side.
    Raises ToolMissing, SanitizerFailed (the program itself failed, or ran past `timeout_s` seconds), ValueError.
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
        if tool == "racecheck" and workers:
            command += ["--racecheck-num-workers", str(workers)]
        command += [sys.executable, "-m", "cudatut.gpu.watched", *files]
        try:
            done = processes.run(
                command,
                timeout_s,
                # NumPy's references are small here, and threads for them would take the cores from runs side by side.
                env=_ONE_THREAD | running_tool.environment_for(tool),
            )
        except subprocess.TimeoutExpired as error:
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
