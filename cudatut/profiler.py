"""Read hardware counters of one launch with Nsight Compute (ncu)."""

import csv
import io
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import tool
from .errors import ToolMissing
from .results import Profile, show


def profile(
    example: str, kernel: str, metrics: Sequence[str], skip: int = 0, timeout_s: float = 300
) -> Profile | None:
    """Run an example once more under ncu, and show counters of one launch of `kernel`.

    example: name ('start/first_optimisation') or Python file. kernel: its plain name; of a template 'gemm', since ncu
    knows a function by its name alone: arguments ('gemm<128>') are dropped, and launches of every instance count.
    metrics: as `ncu --query-metrics` lists them, such as 'dram__bytes_read.sum'. skip: launches of that kernel to pass
    over first.
    ncu replays the launch as often as it needs to; the clocks are left as they are.

    Returns a Profile (values in ncu's base units), or None after a note when ncu is missing or may not read counters;
    while an example is recorded that is a ToolMissing. While a tool already runs this process: NaNs, not shown.
    """
    if tool.running():
        return Profile(kernel, {name: {"value": math.nan, "unit": ""} for name in metrics})
    try:
        (counters,) = _run(_path(example), kernel, list(metrics), skip, 1, timeout_s)
        result = Profile(kernel, counters)
    except ToolMissing as error:
        if tool.recording():
            raise
        show(f"no counters: {error}")
        return None
    show(result)
    return result


def profile_launches(
    example: str,
    kernel: str,
    metrics: Sequence[str],
    launches: int,
    skip: int = 0,
    timeout_s: float = 300,
) -> list[dict[str, float]]:
    """Counters of several launches from one run of an example: a dict of values by metric for each, in order.

    kernel: a plain name as in `profile`, or 'regex:...' for any of several kernels. Nothing is shown: what a page says
    of so many numbers is for the caller to choose. The rest is as in `profile`, but an empty list where there is
    nothing to tell.
    """
    if tool.running():
        return []
    try:
        found = _run(_path(example), kernel, list(metrics), skip, launches, timeout_s)
    except ToolMissing as error:
        if tool.recording():
            raise
        show(f"no counters: {error}")
        return []
    return [{name: counter["value"] for name, counter in launch.items()} for launch in found]


def _path(example: str) -> Path:
    if example.endswith(".py"):
        return Path(example)
    from . import catalog

    return catalog.get(example).path


def _run(
    path: Path, kernel: str, metrics: list[str], skip: int, launches: int, timeout_s: float
) -> list[dict[str, dict[str, Any]]]:
    ncu = shutil.which("ncu")
    if ncu is None:
        raise ToolMissing("ncu (Nsight Compute) is not on PATH; it comes with the CUDA toolkit")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [
            ncu,
            "--csv",
            "--page",
            "raw",
            "--print-units",
            "base",
            "--clock-control",
            "none",
        ]
        # --kill: what the example does after that launch is of no interest, and takes time.
        command += ["--kernel-name", function_name(kernel), "--launch-skip", str(skip)]
        command += ["--launch-count", str(launches)]
        command += ["--kill", "yes"]
        command += [
            "--metrics",
            ",".join(metrics),
            "--log-file",
            str(log),
            sys.executable,
            str(path),
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=tool.environment_for("ncu"),
        )
        report = log.read_text(errors="replace") if log.exists() else ""
    if "ERR_NVGPUCTRPERM" in report + done.stdout:
        raise ToolMissing(
            "this user may not read GPU counters; see https://developer.nvidia.com/ERR_NVGPUCTRPERM "
            "(run as administrator, or set NVreg_RestrictProfilingToAdminUsers=0)"
        )
    return parse_launches(report, kernel, metrics, launches, done.stdout + done.stderr)


def function_name(kernel: str) -> str:
    """What ncu's --kernel-name compares: 'gemm' for 'gemm<128>' and 'tiles::gemm<128>'; 'regex:...' stays."""
    return kernel if kernel.startswith("regex:") else kernel.partition("<")[0].rpartition("::")[2]


def parse_report(
    report: str, kernel: str, metrics: list[str], output: str = ""
) -> dict[str, dict[str, Any]]:
    """`parse_launches` for the first launch alone."""
    return parse_launches(report, kernel, metrics, 1, output)[0]


def parse_launches(
    report: str, kernel: str, metrics: list[str], launches: int, output: str = ""
) -> list[dict[str, dict[str, Any]]]:
    """Values and units of `metrics` from ncu's raw CSV page: a row of names, a row of units, then one row per launch.

    Raises ToolMissing if the report holds fewer launches of `kernel` or lacks a metric; `output` is quoted then.
    """
    rows = list(
        csv.reader(io.StringIO("\n".join(x for x in report.splitlines() if x.startswith('"'))))
    )
    if len(rows) < 2 + launches:
        tail = "\n".join([*report.splitlines()[-5:], *output.splitlines()[-10:]])
        wanted = "no launch" if launches == 1 else f"fewer than {launches} launches"
        raise ToolMissing(f"ncu recorded {wanted} of '{kernel}':\n{tail}")
    names, units = rows[0], rows[1]
    missing = [name for name in metrics if name not in names]
    if missing:
        raise ToolMissing(
            f"ncu reported no {', '.join(missing)} for '{kernel}': unknown on this GPU?"
        )
    found = [dict(zip(names, zip(values, units))) for values in rows[2 : 2 + launches]]
    return [
        {
            name: {"value": float(row[name][0].replace(",", "")), "unit": row[name][1]}
            for name in metrics
        }
        for row in found
    ]
