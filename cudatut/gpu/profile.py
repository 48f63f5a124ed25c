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

from cudatut import catalog, tool
from cudatut.errors import ToolMissing
from cudatut.results import Profile, show


def profile(
    example: str, kernel: str, metrics: Sequence[str], skip: int = 0, timeout_s: float = 300
) -> Profile | None:
    """Run an example once more under ncu, and show counters of one launch of `kernel`.

    example: name ('start/first_optimization') or Python file. kernel: its plain name; of a template 'gemm', since ncu
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
        report, output = _report(example, _launches_of(kernel, skip), metrics, 1, timeout_s)
        result = Profile(kernel, parse_report(report, kernel, list(metrics), output))
    except ToolMissing as error:
        if tool.recording():
            raise
        show(f"no counters: {error}")
        return None
    show(result)
    return result


def profile_kernels(
    example: str, kernels: Sequence[str], metrics: Sequence[str], timeout_s: float = 300
) -> dict[str, Profile]:
    """As `profile`, the first launch of each of several kernels from one run of an example; in the order of `kernels`.

    Where there is nothing to tell the dict is empty.
    """
    names = [function_name(kernel) for kernel in kernels]
    # Of any stream, each of these functions when it is launched for the first time.
    which = ["--kernel-id", f"::regex:^({'|'.join(names)})$:1"]
    if tool.running():
        return {
            kernel: Profile(kernel, {name: {"value": math.nan, "unit": ""} for name in metrics})
            for kernel in kernels
        }
    try:
        report, output = _report(example, which, metrics, len(names), timeout_s)
        counters = parse_launches(report, ", ".join(names), list(metrics), len(names), output)
        found = dict(zip((_launched(row) for row in _rows(report)[2]), counters))
        if missing := set(names) - set(found):
            raise ToolMissing(f"ncu recorded no launch of {', '.join(sorted(missing))}")
    except ToolMissing as error:
        if tool.recording():
            raise
        show(f"no counters: {error}")
        return {}
    profiles = {kernel: Profile(kernel, found[name]) for kernel, name in zip(kernels, names)}
    for result in profiles.values():
        show(result)
    return profiles


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
        report, output = _report(example, _launches_of(kernel, skip), metrics, launches, timeout_s)
        found = parse_launches(report, kernel, list(metrics), launches, output)
    except ToolMissing as error:
        if tool.recording():
            raise
        show(f"no counters: {error}")
        return []
    return [{name: counter["value"] for name, counter in launch.items()} for launch in found]


def _path(example: str) -> Path:
    return Path(example) if example.endswith(".py") else catalog.get(example).path


def _launches_of(kernel: str, skip: int) -> list[str]:
    """ncu's options; --launch-skip counts launches of that kernel alone."""
    return ["--kernel-name", function_name(kernel), "--launch-skip", str(skip)]


def _report(
    example: str, which: list[str], metrics: Sequence[str], launches: int, timeout_s: float
) -> tuple[str, str]:
    """ncu's raw CSV page of a run of the example, and what the example printed.

    Raises ToolMissing where ncu is missing or may not read counters, subprocess.TimeoutExpired.
    """
    program = shutil.which("ncu")
    if program is None:
        raise ToolMissing("ncu (Nsight Compute) is not on PATH; it comes with the CUDA toolkit")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "ncu.csv")
        command = [program, "--csv", "--page", "raw", "--print-units", "base"]
        command += ["--clock-control", "none", *which, "--launch-count", str(launches)]
        # --kill: what the example does after the last of those launches is of no interest, and takes time.
        command += ["--metrics", ",".join(metrics), "--kill", "yes", "--log-file", str(log)]
        command += [sys.executable, "-m", "cudatut.gpu.watched", str(_path(example))]
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
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
    return report, done.stdout


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
    names, units, rows = _rows(report)
    if len(rows) < launches:
        tail = "\n".join([*report.splitlines()[-5:], *output.splitlines()[-10:]])
        wanted = "no launch" if launches == 1 else f"fewer than {launches} launches"
        raise ToolMissing(f"ncu recorded {wanted} of '{kernel}':\n{tail}")
    missing = [name for name in metrics if name not in names]
    if missing:
        raise ToolMissing(
            f"ncu reported no {', '.join(missing)} for '{kernel}': unknown on this GPU?"
        )
    return [
        {
            name: {"value": float(row[name].replace(",", "")), "unit": units[name]}
            for name in metrics
        }
        for row in rows[:launches]
    ]


def _launched(row: dict[str, str]) -> str:
    """The plain name of the kernel that a row is of: 'gemm' for 'void tiles::gemm<128>(float *)'."""
    return function_name(row["Kernel Name"].partition("(")[0]).split()[-1]


def _rows(report: str) -> tuple[list[str], dict[str, str], list[dict[str, str]]]:
    """Columns of a raw CSV page, their units, and its launches."""
    lines = [line for line in report.splitlines() if line.startswith('"')]
    table = list(csv.reader(io.StringIO("\n".join(lines))))
    names, units = table[:2] if len(table) > 1 else ([], [])
    return names, dict(zip(names, units)), [dict(zip(names, row)) for row in table[2:]]
