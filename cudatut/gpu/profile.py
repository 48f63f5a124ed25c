"""Read hardware counters of one launch with Nsight Compute (ncu)."""

import csv
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cudatut import catalog, processes, tool, words
from cudatut.errors import ToolMissing
from cudatut.fingerprint import ran
from cudatut.results import Metric, Profile, show

_TIMEOUT_S = 300
_say = words.section("profile")


def profile(example: str, kernel: str, metrics: Sequence[str], skip: int = 0) -> Profile | None:
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
        return _unmeasured(kernel, metrics)
    with _noted_if_missing():
        (found,) = _counters(example, kernel, _launches_of(kernel, skip), metrics)
        result = Profile(kernel, found.metrics)
        show(result)
        return result
    return None


@contextmanager
def _noted_if_missing() -> Iterator[None]:
    """A note instead of ToolMissing, unless an example is recorded."""
    try:
        yield
    except ToolMissing as error:
        if tool.recording():
            raise
        show(_say("no counters", error=error))


def _unmeasured(kernel: str, metrics: Sequence[str]) -> Profile:
    return Profile(kernel, {name: Metric(math.nan, "") for name in metrics})


def profile_kernels(
    example: str, kernels: Sequence[str], metrics: Sequence[str]
) -> dict[str, Profile]:
    """As `profile`, the first launch of each of several kernels from one run of an example; in the order of `kernels`.

    Where there is nothing to tell the dict is empty.
    """
    if tool.running():
        return {kernel: _unmeasured(kernel, metrics) for kernel in kernels}
    names = [function_name(kernel) for kernel in kernels]
    # Of any stream, each of these functions when it is launched for the first time.
    which = ["--kernel-id", f"::regex:^({'|'.join(names)})$:1"]
    with _noted_if_missing():
        counted = _counters(example, ", ".join(names), which, metrics, len(names))
        found = {one.kernel: one.metrics for one in counted}
        if missing := set(names) - set(found):
            raise ToolMissing(_say("not launched", names=", ".join(sorted(missing))))
        profiles = {kernel: Profile(kernel, found[name]) for kernel, name in zip(kernels, names)}
        for result in profiles.values():
            show(result)
        return profiles
    return {}


def profile_launches(
    example: str, kernel: str, metrics: Sequence[str], launches: int, skip: int = 0
) -> list[dict[str, float]]:
    """Counters of several launches from one run of an example: a dict of values by metric for each, in order.

    kernel: a plain name as in `profile`, or 'regex:...' for any of several kernels. Nothing is shown: what a page says
    of so many numbers is for the caller to choose. The rest is as in `profile`, but an empty list where there is
    nothing to tell.
    """
    if tool.running():
        return []
    with _noted_if_missing():
        found = _counters(example, kernel, _launches_of(kernel, skip), metrics, launches)
        return [{name: one[name] for name in metrics} for one in found]
    return []


def _launches_of(kernel: str, skip: int) -> list[str]:
    """ncu's options; --launch-skip counts launches of that kernel alone."""
    return ["--kernel-name", function_name(kernel), "--launch-skip", str(skip)]


def _counters(
    example: str, kernel: str, which: list[str], metrics: Sequence[str], launches: int = 1
) -> list[Profile]:
    """Counters of each launch, under the name of its function, from a run of the example. which: options of ncu's.

    Raises ToolMissing where ncu is missing, may not read counters or counted less than was asked;
    subprocess.TimeoutExpired.
    """
    program = shutil.which("ncu")
    if program is None:
        raise ToolMissing(_say("no ncu"))
    path = Path(example) if example.endswith(".py") else catalog.get(example).path
    ran.use("profiling")
    ran.file(path)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "ncu.csv")
        command = [program, "--csv", "--page", "raw", "--print-units", "base"]
        command += ["--clock-control", "none", *which, "--launch-count", str(launches)]
        # --kill: what the example does after the last of those launches is of no interest, and takes time.
        command += ["--metrics", ",".join(metrics), "--kill", "yes", "--log-file", str(log)]
        command += [sys.executable, "-m", "cudatut.gpu.watched", str(path)]
        done = processes.run(command, _TIMEOUT_S, tool.environment_for("ncu"))
        report = log.read_text(errors="replace") if log.exists() else ""
    said = done.stdout + done.stderr
    if "ERR_NVGPUCTRPERM" in report + said:
        raise ToolMissing(_say("no right"))
    return parse(report, said, kernel, metrics, launches)


def function_name(kernel: str) -> str:
    """What ncu's --kernel-name compares: 'gemm' for 'gemm<128>' and 'tiles::gemm<128>'; 'regex:...' stays."""
    return kernel if kernel.startswith("regex:") else kernel.partition("<")[0].rpartition("::")[2]


def parse(
    report: str, output: str, kernel: str, metrics: Sequence[str], launches: int
) -> list[Profile]:
    """Each launch of ncu's raw CSV page, under the name of its function: below the head a row of units, then one per launch.

    Raises ToolMissing if the report holds fewer launches of `kernel` or lacks a metric; `output` is quoted then.
    """
    lines = [line for line in report.splitlines() if line.startswith('"')]
    units, *rows = [*csv.DictReader(lines)] or [{}]
    if len(rows) < launches:
        tail = "\n".join([*report.splitlines()[-5:], *output.splitlines()[-10:]])
        key = "no launch" if launches == 1 else "fewer launches"
        raise ToolMissing(_say(key, launches=launches, kernel=kernel, tail=tail))
    if missing := [name for name in metrics if name not in units]:
        raise ToolMissing(_say("no metric", metrics=", ".join(missing), kernel=kernel))
    found = []
    for row in rows[:launches]:
        # Of 'void tiles::gemm<128>(float *)' the plain name.
        launched = function_name(row.get("Kernel Name", kernel).partition("(")[0]).split()[-1]
        values = {name: float(row[name].replace(",", "")) for name in metrics}
        found.append(Profile(launched, {k: Metric(v, units[k]) for k, v in values.items()}))
    return found
